//! The code generator: the spec gives the golden surface, a bad spec gives faults that help.

#[path = "../../codegen/mod.rs"]
mod codegen;

mod bad;
mod golden;
mod mutations;

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the package.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The text of a file of the package.
fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What the generator makes of a spec with the package's templates, as the build script calls it.
fn generate(spec: &str) -> Result<String, Vec<codegen::Fault>> {
    let (folder, names) = codegen::TEMPLATES;
    let texts: Vec<String> = names
        .iter()
        .map(|name| text(&format!("{folder}/{name}")))
        .collect();
    let named = names.iter().copied().zip(texts.iter().map(String::as_str));
    codegen::generate(spec, &named.collect::<Vec<_>>())
}

/// The faults of a spec, as the build prints them.
fn faults(spec: &str) -> Vec<String> {
    match generate(spec) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}
