//! A crate that depends on vkaccel builds from a path and runs its kernels.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

mod support;

const MANIFEST: &str = r#"[package]
name = "vkaccel-consumer"
version = "0.0.0"
edition = "2024"

[features]
glsl = ["vkaccel/glsl"]

[dependencies]
vkaccel = { path = 'VKACCEL' }

# A workspace of its own, though it lies in another's folder.
[workspace]
"#;

/// Writes the crate into the target folder; returns its folder.
fn write_crate() -> PathBuf {
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("consumer");
    let manifest = MANIFEST.replace("VKACCEL", &library.display().to_string());
    fs::create_dir_all(folder.join("src")).unwrap();
    write_changed(&folder.join("Cargo.toml"), manifest.as_bytes());
    // The versions that are built already, so that nothing is looked up.
    let versions = fs::read(library.join("Cargo.lock")).unwrap();
    fs::write(folder.join("Cargo.lock"), versions).unwrap();
    for (name, source) in [
        ("main.rs", "tests/data/consumer/main.rs"),
        ("saxpy.spv", "shaders/saxpy.spv"),
        ("saxpy.comp", "shaders/saxpy.comp"),
    ] {
        let content = fs::read(library.join(source)).unwrap();
        write_changed(&folder.join("src").join(name), &content);
    }
    folder
}

/// Writes a file unless it is so already, so that nothing is built again for it.
fn write_changed(path: &Path, content: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(content) {
        fs::write(path, content).unwrap();
    }
}

/// Builds the crate in the target folder that this test was built in, and runs it.
fn build_and_run(features: &[&str]) -> String {
    // Both tests write the same crate and program.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    let folder = write_crate();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let build = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet"])
        .args(features)
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&build.stderr);
    assert!(build.status.success(), "building {features:?}: {text}");
    let run = Command::new(target.join("debug/vkaccel-consumer"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "running {features:?}: {text}");
    String::from_utf8(run.stdout).unwrap()
}

/// Whether there is a device for the program.
fn has_device(test: &str) -> bool {
    let has = Cell::new(false);
    support::on_each_device(test, |_| has.set(true));
    has.get()
}

#[test]
fn a_crate_with_default_features_runs_spirv_and_is_told_to_turn_glsl_on() {
    if has_device("a_crate_with_default_features") {
        let right = "SPIR-V [12.0, 24.0, 36.0]\nGLSL Err(CompilerUnavailable)\n";
        assert_eq!(build_and_run(&[]), right);
    }
}

#[cfg(feature = "glsl")]
#[test]
fn a_crate_with_glsl_runs_glsl() {
    if has_device("a_crate_with_glsl") {
        let right = "SPIR-V [12.0, 24.0, 36.0]\nGLSL [12.0, 24.0, 36.0]\n";
        assert_eq!(build_and_run(&["--features", "glsl"]), right);
    }
}
