//! A process of its own over the shim, which takes its settings from the environment, once.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The library, which lies by this test's own program; nothing if it has not been built.
fn library() -> Option<PathBuf> {
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
    places
        .filter(|path| path.is_file())
        .max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
}

/// A manifest for the library, in the target folder; tests run side by side.
fn manifest(test: &str, library: &Path) -> PathBuf {
    // The loader takes a list that colons part.
    let name = format!("{}-{}.json", test.replace(':', "-"), std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let library = library.display().to_string().replace('\\', "\\\\");
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
    let (drivers, library) = (drivers(), library());
    let Some(library) = library.filter(|_| !drivers.is_empty()) else {
        let required = std::env::var("VKACCEL_TEST_REQUIRE_DEVICE").is_ok_and(|value| value == "1");
        assert!(!required, "there is no shim, or no driver to stand it over");
        println!("SKIP {test}: no shim (cargo build -p vkaccel-icd-shim), or no driver below it");
        return;
    };
    let manifest = manifest(test, &library);
    for (name, driver) in drivers {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, "1").env("VKACCEL_SHIM_DRIVER", driver);
        command
            .env("VK_ICD_FILENAMES", &manifest)
            .env("VK_DRIVER_FILES", &manifest);
        // The older layer, where it looks at submissions, forgets a signal when one queue has waited for it, and reports
        // others that wait for it too (tests/data/broken.txt, `copy_then_two_queues`). Without this switch it looks at
        // recordings alone.
        command.env_remove("VK_LAYER_ENABLES");
        // The layer that distributions ship knows no waits on timelines between queues: where it checks
        // submissions, it takes all that several queues do for a race.
        command.env_remove("VK_LAYER_ENABLES");
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
