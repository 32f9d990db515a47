//! The committed modules, for tests.

use std::fs;
use std::path::PathBuf;

use super::{Module, words_from_bytes};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/spirv")
}

/// The names of all modules.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".spv").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// The words of a module.
pub(crate) fn words(name: &str) -> Vec<u32> {
    let path = folder().join(name).with_extension("spv");
    words_from_bytes(&fs::read(path).unwrap()).unwrap()
}

/// A module.
pub(crate) fn module(name: &str) -> Module {
    Module::parse(&words(name)).unwrap()
}
