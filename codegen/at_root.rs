//! The functions of modules stand at the root of the crate too, as in torch, unless `at_root: none`
//! leaves them out.

use std::collections::BTreeMap;

use super::fault::Faults;
use super::fields::Word;
use super::layout;
use super::model::{Module, ROOT, Spec};
use super::rules;

/// What is wrong with a module's `at_root`.
pub fn refuse(at_root: &str, is_root: bool) -> Option<String> {
    match at_root {
        _ if is_root => Some("is for the other modules".into()),
        "none" => None,
        _ => Some(format!("unknown word `{at_root}`; expected none")),
    }
}

/// Notes functions that have the name of one in another module.
pub fn check(spec: &Spec, faults: &Faults) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for module in spec.modules.iter().filter(|module| stands(module)) {
        let holder = module.name.as_str();
        for (name, word) in functions(spec, module) {
            let first = *seen.entry(name).or_insert(holder);
            // A second one in the same module is noted as that.
            if first != holder && !name.is_empty() {
                let fault = format!(
                    "`{name}` is a function of `{first}` too, and those of both modules stand at the \
                     root of the crate"
                );
                rules::refuse(word, Some(fault), faults);
            }
        }
    }
}

/// The lines by which the functions of a module stand at the root too; none for the root itself.
pub fn lines(spec: &Spec, module: &Module) -> Vec<String> {
    let mut names: Vec<&str> = functions(spec, module).map(|(name, _)| name).collect();
    if module.name.as_str() == ROOT || names.is_empty() || !stands(module) {
        return Vec::new();
    }
    names.sort_unstable();
    let mut lines = Vec::new();
    if module.functions.iter().any(|f| f.deprecated.is_some()) {
        lines.push("#[allow(deprecated)]".into());
    }
    let path = format!("pub use self::{}::", module.name.as_str());
    lines.extend(layout::import(&path, &names, 0));
    lines
}

/// Whether the functions of a module stand at the root.
fn stands(module: &Module) -> bool {
    module.at_root.is_none()
}

/// The functions of a module, declared and written by hand, each with the word that names it.
fn functions<'a>(spec: &'a Spec, module: &'a Module) -> impl Iterator<Item = (&'a str, &'a Word)> {
    let declared = module.functions.iter();
    let declared = declared.map(|entry| (entry.name.as_str(), &entry.name));
    let written = spec.handwritten.iter().filter_map(|written| {
        let (holder, name) = written.split();
        (holder == module.name.as_str()).then_some((name, &written.name))
    });
    declared.chain(written)
}
