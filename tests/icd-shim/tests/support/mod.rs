//! Vulkan by hand, over the shim, in a process of its own: the shim takes its settings from the
//! environment, once.
//!
//! # Safety
//!
//! Objects are of the one device that is passed along, and destroyed after it has been waited for.

#![allow(dead_code, reason = "each test program uses a part of it")]

mod vulkan;

use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub use vulkan::{Opened, Vulkan};

/// Set in the processes that a test starts.
const CHILD: &str = "VKACCEL_SHIM_TEST_CHILD";

/// The drivers that can stand below, by name.
fn drivers() -> Vec<(&'static str, PathBuf)> {
    let named = [
        ("lavapipe", "VKACCEL_TEST_LAVAPIPE"),
        ("swiftshader", "VKACCEL_TEST_SWIFTSHADER"),
    ];
    let paths = named.iter().filter_map(|(name, variable)| {
        let path = PathBuf::from(std::env::var_os(variable)?);
        path.is_file().then_some((*name, path))
    });
    paths.collect()
}

/// The library, which lies by this test's own program.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let name = format!(
        "{}vkaccel_icd_shim{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let places = program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(&name));
    let found = places.filter(|path| path.is_file()).max_by_key(|path| {
        let changed = path.metadata().and_then(|metadata| metadata.modified());
        changed.unwrap()
    });
    found.expect("the shim is built: cargo build -p vkaccel-icd-shim")
}

/// A manifest for the library, in the target folder; tests run side by side.
fn manifest(test: &str) -> PathBuf {
    let name = format!("{test}-{}.json", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let library = library().display().to_string().replace('\\', "\\\\");
    let text = format!(
        "{{\"file_format_version\": \"1.0.0\", \"ICD\": {{\"library_path\": \"{library}\", \
         \"api_version\": \"1.3.0\"}}}}"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs a test over the shim with these settings, on each driver that is there; `test` is the name
/// of the calling test.
#[track_caller]
pub fn over_the_shim(test: &str, settings: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let drivers = drivers();
    if drivers.is_empty() {
        let required = std::env::var("VKACCEL_TEST_REQUIRE_DEVICE").is_ok_and(|value| value == "1");
        assert!(!required, "there is no driver for the shim to stand over");
        println!("SKIP {test}: no driver for the shim to stand over");
        return;
    }
    let manifest = manifest(test);
    for (name, driver) in drivers {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, "1").env("VKACCEL_SHIM_DRIVER", driver);
        command
            .env("VK_ICD_FILENAMES", &manifest)
            .env("VK_DRIVER_FILES", &manifest);
        for (setting, value) in settings {
            command.env(format!("VKACCEL_SHIM_{setting}"), value);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "over {name}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    std::fs::remove_file(manifest).unwrap();
}
