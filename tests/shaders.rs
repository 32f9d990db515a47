//! The SPIR-V committed beside the shaders is what their sources give.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of `shaders/` with this extension, by name.
fn files(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of shaders is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|of_file| of_file == extension))
        .collect();
    files.sort();
    files
}

/// What glslc makes of a source; `None` where glslc is not installed.
fn compile(source: &Path) -> Option<Vec<u8>> {
    let output = Command::new("glslc")
        .args(["--target-env=vulkan1.2", "-o", "-"])
        .arg(source)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", source.display());
    Some(output.stdout)
}

/// The word of a module's header that names the compiler and its version.
fn generator(module: &[u8]) -> Option<&[u8]> {
    module.get(8..12)
}

#[test]
fn committed_modules_are_what_their_sources_give() {
    let bless = std::env::var_os("VKACCEL_BLESS").is_some();
    let sources = files("comp");
    assert!(!sources.is_empty());
    for source in sources {
        let Some(compiled) = compile(&source) else {
            println!("SKIP shaders: glslc is not installed");
            return;
        };
        let path = source.with_extension("spv");
        if bless {
            fs::write(&path, &compiled).unwrap();
        }
        let committed = fs::read(&path).unwrap_or_default();
        if !committed.is_empty() && generator(&committed) != generator(&compiled) {
            println!("SKIP shaders: this glslc is another version than that of the modules");
            return;
        }
        assert!(
            committed == compiled,
            "{} is out of date; run `VKACCEL_BLESS=1 cargo test --test shaders`",
            path.display()
        );
    }
}

#[test]
fn every_committed_module_has_a_source() {
    let sources = files("comp");
    for module in files("spv") {
        assert!(
            sources.contains(&module.with_extension("comp")),
            "{} belongs to no source",
            module.display()
        );
    }
}
