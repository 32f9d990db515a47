//! The parts of a function's code: arguments, result, declaration, attributes.

use super::docs;
use super::layout::{self, INDENT};
use super::model::Entry;
use super::types::Type;

/// How a call can fail.
#[derive(Default)]
pub struct Failures {
    /// Kinds and when they are given.
    pub kinds: Vec<(String, String)>,
    /// Which of the errors that many calls have in common it has too.
    pub shared: Option<String>,
}

impl Failures {
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.shared.is_none()
    }
}

/// Where an entry stands, as far as its text depends on it.
pub struct Place<'a> {
    /// The name in torch of what holds it.
    pub torch: &'a str,
    pub bodies: &'a str,
    /// The columns its lines are moved to the right.
    pub indent: usize,
    pub method: bool,
}

/// ` -> T` with what a call returns, or nothing.
pub fn result(fallible: bool, returned: Option<Type>) -> String {
    match (fallible, returned) {
        (true, Some(returned)) => format!(" -> Result<{returned}>"),
        (true, None) => " -> Result<()>".into(),
        (false, Some(returned)) => format!(" -> {returned}"),
        (false, None) => String::new(),
    }
}

/// A body as the trait declares it.
pub fn declared(
    name: &str,
    args: &[String],
    result: &str,
    fallible: bool,
    place: &Place<'_>,
) -> Vec<String> {
    // The trait of an object stands at the edge, that of a module inside it.
    let indent = if place.method { 0 } else { place.indent } + INDENT;
    let tracked = fallible.then(|| TRACK_CALLER.to_string());
    let signature = layout::signature(&format!("fn {name}"), args, result, ";", indent);
    tracked.into_iter().chain(signature).collect()
}

/// The arguments of a function: as it takes them, as it passes them on, and as the body takes them.
pub struct Args {
    pub given: Vec<String>,
    pub passed: Vec<String>,
    pub body: Vec<String>,
}

pub const TRACK_CALLER: &str = "#[track_caller]";

/// How an argument is given to the body, and the type it has there.
pub fn handed_down(name: &str, take: &Type) -> (String, String) {
    match take {
        Type::Impl(bound, inner) if bound == "Into" => {
            (format!("{name}.into()"), inner.to_string())
        }
        Type::Impl(_, inner) => (format!("{name}.as_ref()"), format!("&{inner}")),
        other => (name.into(), other.to_string()),
    }
}

pub fn attributes(
    entry: &Entry,
    lasting: &Entry,
    fallible: bool,
    place: &Place<'_>,
) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(name) = docs::torch_name(entry, place.torch) {
        let alias = format!("alias = \"{name}\"");
        lines.extend(layout::attribute("doc", &[alias], place.indent));
    }
    if let Some(version) = &entry.deprecated {
        let since = format!("since = \"{}\"", version.as_str());
        let note = format!("note = \"use `{}`\"", lasting.name.as_str());
        let items = [since, note];
        lines.extend(layout::attribute("deprecated", &items, place.indent));
    }
    // The place of a call is of use only where something can go wrong.
    if fallible {
        lines.push(TRACK_CALLER.into());
    }
    lines
}
