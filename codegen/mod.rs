//! Owns the way from `spec/*.yaml` to Rust: read, check, render. No files, no environment: texts in,
//! texts out, so that the build script and the tests run the same code.

mod at_root;
mod check;
mod derived;
mod docs;
mod fault;
pub mod fields;
mod layout;
pub mod model;
mod names;
mod parts;
mod render;
mod rules;
mod similar;
pub mod stats;
mod template;
mod text;
mod types;
pub mod yaml;

use model::Spec;
use stats::StatsSpec;

pub use fault::Fault;

/// The declared functions and methods, from the root of the package.
pub const SPEC: &str = "spec/api.yaml";

/// The statistics of memory, from the root of the package.
pub const STATS: &str = "spec/memory_stats.yaml";

/// The folder of the templates, and the templates in it: that of the surface, which includes the
/// others, and at the end that of the statistics.
pub const TEMPLATES: (&str, &[&str]) = (
    "templates",
    &[
        "api.rs.j2",
        "module.rs.j2",
        "bodies.rs.j2",
        "function.rs.j2",
        "memory_stats.rs.j2",
    ],
);

/// The texts of the two files of the spec, and the version of the crate that they are for.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    pub api: &'a str,
    pub stats: &'a str,
    pub version: &'a str,
}

/// The generated code, to be written into files of these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// `api.rs`
    pub api: String,
    /// `memory_stats.rs`
    pub stats: String,
}

/// Generates the surface from the spec and the templates, given by name and text.
///
/// The same texts always give the same surface. `Err` has every fault that was found.
pub fn generate(sources: Sources<'_>, templates: &[(&str, &str)]) -> Result<Generated, Vec<Fault>> {
    let (spec, stats) = read(sources)?;
    render::render(&spec, &stats, templates).map_err(|text| {
        vec![Fault {
            file: TEMPLATES.0.into(),
            line: 0,
            entry: String::new(),
            text,
        }]
    })
}

/// Reads and checks the spec. `Err` has every fault that was found, in both files.
pub fn read(sources: Sources<'_>) -> Result<(Spec, StatsSpec), Vec<Fault>> {
    let stats = read_file(STATS, sources.stats, |root, faults| {
        let stats = StatsSpec::read(root, faults)?;
        stats::check(&stats, faults);
        Some(stats)
    });
    let spec = read_file(SPEC, sources.api, |root, faults| {
        let spec = Spec::read(root, faults)?;
        check::check(&spec, stats.as_ref().ok(), sources.version, faults);
        Some(spec)
    });
    match (spec, stats) {
        (Ok(spec), Ok(stats)) => Ok((spec, stats)),
        (spec, stats) => {
            let faults = [spec.err(), stats.err()];
            Err(faults.into_iter().flatten().flatten().collect())
        }
    }
}

/// Reads one file with `read`, which notes what is wrong with its tree.
fn read_file<T>(
    file: &str,
    text: &str,
    read: impl Fn(&yaml::Node, &fault::Faults) -> Option<T>,
) -> Result<T, Vec<Fault>> {
    let fault = |line: Option<usize>, text: &str| Fault {
        file: file.into(),
        line: line.unwrap_or(0),
        entry: String::new(),
        text: text.into(),
    };
    let mut found: Vec<Fault> = yaml::cut_lines(text)
        .into_iter()
        .map(|line| fault(Some(line), "the text is cut off at ` #`: put it in quotes"))
        .collect();
    let root = match yaml::load(text) {
        Ok(root) => root,
        Err(refusal) => {
            let hint = yaml::hint(&refusal.text);
            found.push(fault(refusal.line, &format!("{}{hint}", refusal.text)));
            found.sort();
            return Err(found);
        }
    };
    let faults = fault::Faults::default();
    let model = read(&root, &faults);
    found.extend(faults.resolve(file, text, &root));
    found.sort();
    model.filter(|_| found.is_empty()).ok_or(found)
}
