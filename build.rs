//! Generates the declared surface into `OUT_DIR`. Files in and out, nothing else: what they
//! mean is in `codegen/`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "codegen/mod.rs"]
mod codegen;

fn main() {
    // Tests that read files of the repository aren't there where only the package is.
    println!("cargo::rustc-check-cfg=cfg(test_data)");
    if Path::new("tests/data").is_dir() {
        println!("cargo::rustc-cfg=test_data");
    }
    let (folder, names) = codegen::TEMPLATES;
    let mut faults = Vec::new();
    // The folder `codegen` needs no such line: it is part of this program.
    let mut read = |path: &Path| {
        println!("cargo::rerun-if-changed={}", path.display());
        fs::read_to_string(path).unwrap_or_else(|error| {
            faults.push(format!(
                "{}: {error}; the build can't do without it",
                path.display()
            ));
            String::new()
        })
    };
    let (api, stats) = (
        read(Path::new(codegen::SPEC)),
        read(Path::new(codegen::STATS)),
    );
    let templates: Vec<String> = names
        .iter()
        .map(|name| read(&Path::new(folder).join(name)))
        .collect();
    if faults.is_empty() {
        let named = names.iter().copied();
        let named: Vec<(&str, &str)> = named.zip(templates.iter().map(String::as_str)).collect();
        let sources = codegen::Sources {
            api: &api,
            stats: &stats,
            version: env!("CARGO_PKG_VERSION"),
        };
        match codegen::generate(sources, &named) {
            Ok(generated) => {
                for (name, text) in [
                    ("api.rs", generated.api),
                    ("memory_stats.rs", generated.stats),
                ] {
                    faults.extend(write(name, &text).err().map(|error| error.to_string()));
                }
            }
            Err(found) => faults.extend(found.iter().map(ToString::to_string)),
        }
    }
    for fault in faults {
        println!("cargo::error={fault}");
    }
}

/// Writes a file, unless it is there already: an unchanged file compiles nothing anew.
fn write(name: &str, text: &str) -> io::Result<()> {
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    let path = PathBuf::from(folder).join(name);
    if fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text)
}
