//! The code generator: the spec gives the golden surface, a bad spec gives faults that help.

#[path = "../../codegen/mod.rs"]
mod codegen;

mod bad;
mod conformance;
mod derived;
mod golden;
mod mutations;
mod runs;

use std::fs;
use std::path::{Path, PathBuf};

use codegen::{Fault, Generated, Sources};

/// A small spec in which every key occurs.
const GOOD: Sources<'_> = Sources {
    api: include_str!("good.yaml"),
    stats: include_str!("good_stats.yaml"),
    version: "0.4.0",
};

/// A file of the package.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The text of a file of the package.
fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The package's spec, to be lent to the generator.
struct Real {
    api: String,
    stats: String,
}

impl Real {
    fn read() -> Self {
        Self {
            api: text(codegen::SPEC),
            stats: text(codegen::STATS),
        }
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            api: &self.api,
            stats: &self.stats,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// What the generator makes of a spec with the package's templates, as the build script calls it.
fn generate(sources: Sources<'_>) -> Result<Generated, Vec<Fault>> {
    let (folder, names) = codegen::TEMPLATES;
    let texts: Vec<String> = names
        .iter()
        .map(|name| text(&format!("{folder}/{name}")))
        .collect();
    let named = names.iter().copied().zip(texts.iter().map(String::as_str));
    codegen::generate(sources, &named.collect::<Vec<_>>())
}

/// The faults of a spec, as the build prints them.
fn faults(sources: Sources<'_>) -> Vec<String> {
    match generate(sources) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

/// A text, or all faults as the reason for a panic.
fn expect<T>(result: Result<T, Vec<Fault>>) -> T {
    result.unwrap_or_else(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    })
}
