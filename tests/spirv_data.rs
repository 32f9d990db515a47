//! The SPIR-V committed in `tests/data/spirv` is what the sources beside it give.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/spirv");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of modules is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|e| extensions.iter().any(|x| e == *x))
        })
        .collect();
    files.sort();
    files
}

/// What the compiler or assembler makes of a source; `None` where it is not installed. The flags
/// are in the first line of the source.
fn build(source: &Path) -> Option<Vec<u8>> {
    let text = fs::read_to_string(source).expect("the source can be read");
    let first = text.lines().next().unwrap_or_default();
    let (_, flags) = first
        .split_once("flags: ")
        .expect("the first line has flags");
    let tool = if source.extension().is_some_and(|e| e == "comp") {
        "glslc"
    } else {
        "spirv-as"
    };
    let output = Command::new(tool)
        .args(flags.split_whitespace())
        .args(["-o", "-"])
        .arg(source)
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", source.display());
    Some(output.stdout)
}

/// The word of a module's header that names the compiler and its version.
fn generator(module: &[u8]) -> Option<&[u8]> {
    module.get(8..12)
}

#[test]
fn committed_modules_are_what_their_sources_give() {
    let bless = std::env::var_os("VKACCEL_BLESS").is_some();
    let sources = files(&["comp", "spvasm"]);
    assert!(!sources.is_empty());
    for source in sources {
        let Some(built) = build(&source) else {
            println!("SKIP spirv_data {}: no compiler for it", source.display());
            continue;
        };
        let path = source.with_extension("spv");
        if bless {
            fs::write(&path, &built).unwrap();
        }
        let committed = fs::read(&path).unwrap_or_default();
        if !committed.is_empty() && generator(&committed) != generator(&built) {
            println!(
                "SKIP spirv_data {}: another compiler made it",
                source.display()
            );
            continue;
        }
        assert!(
            committed == built,
            "{} is out of date; run `VKACCEL_BLESS=1 cargo test --test spirv_data`",
            path.display()
        );
    }
}

#[test]
fn every_committed_module_has_a_source() {
    let sources = files(&["comp", "spvasm"]);
    for module in files(&["spv"]) {
        assert!(
            sources.contains(&module.with_extension("comp"))
                || sources.contains(&module.with_extension("spvasm")),
            "{} belongs to no source",
            module.display()
        );
    }
}
