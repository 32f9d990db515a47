//! What the template of the statistics may speak of; texts are finished lines.

use serde::Serialize;

#[derive(Serialize)]
pub struct StatsView {
    /// Metrics by what they are.
    pub level: String,
    pub highest: String,
    pub increases: String,
    pub decreases: String,
    pub metrics: Vec<FieldView>,
    pub resets: Vec<ResetView>,
    /// The pool that is all of them.
    pub total: String,
    pub pools: Vec<FieldView>,
    pub parts: Vec<PartView>,
    pub fields: Vec<FieldView>,
    pub keys: Vec<String>,
    pub values: Vec<String>,
    pub aliases: Vec<String>,
    pub sample: SampleView,
    pub since_stat: Vec<String>,
    pub since_all: Vec<String>,
    pub row_count: usize,
    pub rows: Vec<String>,
    pub single_count: usize,
    pub singles: Vec<String>,
    /// The columns of the longest name in the table.
    pub name_width: usize,
    pub stat_delta: Vec<FieldView>,
    pub delta: Vec<FieldView>,
}

#[derive(Serialize)]
pub struct FieldView {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub docs: Vec<String>,
}

/// A pool that changes belong to.
#[derive(Serialize)]
pub struct PartView {
    pub name: String,
    pub variant: String,
    pub docs: Vec<String>,
}

#[derive(Serialize)]
pub struct ResetView {
    /// The method.
    pub name: String,
    pub docs: Vec<String>,
    pub of_stat: Vec<String>,
    pub of_all: Vec<String>,
}

/// A number to show in examples.
#[derive(Serialize)]
pub struct SampleView {
    pub key: String,
    pub field: String,
}
