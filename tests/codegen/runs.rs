//! Every run of the generator writes the same bytes, and it runs when the spec changes only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_yaml::Value;

use super::{Real, codegen, conformance, expect, generate, path, text};

/// The variable that makes this test write what it generates to a file, and no more.
const INTO: &str = "VKACCEL_TEST_GENERATE_INTO";

/// Hash seeds differ between processes, so what walks a hash table would differ too.
#[test]
fn every_process_generates_the_same_bytes() {
    let real = Real::read();
    let generated = expect(generate(real.sources()));
    let table = conformance::table(&expect(codegen::read(real.sources())));
    let here = [generated.api, generated.stats, table].concat();
    if let Some(file) = env::var_os(INTO) {
        fs::write(file, here).expect("it can be written");
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{}", std::process::id()));
    let mut outputs = BTreeSet::new();
    for run in 0..20 {
        let child = Command::new(env::current_exe().expect("this program has a path"))
            .args(["--exact", "runs::every_process_generates_the_same_bytes"])
            .env(INTO, &file)
            .output()
            .expect("this program starts again");
        assert!(child.status.success(), "run {run}: {child:?}");
        outputs.insert(fs::read(&file).expect("the child has written"));
        fs::remove_file(&file).expect("it can be removed");
    }
    assert_eq!(outputs.len(), 1, "20 runs gave different surfaces");
    assert_eq!(outputs.pop_first().as_deref(), Some(here.as_bytes()));
}

/// A package with this one's build script, and a dependency of its own.
struct Package(PathBuf);

impl Package {
    fn write() -> Self {
        let package = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join("rebuild"));
        let manifest = text("Cargo.toml");
        let section = "[build-dependencies]";
        let (_, rest) = manifest.split_once(section).expect("there are such");
        let dependencies = rest.split("\n[").next().unwrap_or_default();
        package.put(
            "Cargo.toml",
            &format!(
                "[package]\nname = \"vkaccel-rebuild\"\nversion = \"{}\"\nedition = \"2024\"\n\n\
                 [workspace]\n\n[dependencies]\nvkaccel-other = {{ path = \"other\" }}\n\n\
                 {section}{dependencies}",
                env!("CARGO_PKG_VERSION"),
            ),
        );
        package.put(
            "other/Cargo.toml",
            "[package]\nname = \"vkaccel-other\"\nversion = \"0.0.0\"\nedition = \"2024\"\n",
        );
        package.put("other/src/lib.rs", "");
        package.put(
            "src/lib.rs",
            "pub const API: &str = include_str!(concat!(env!(\"OUT_DIR\"), \"/api.rs\"));\n",
        );
        package.put("README.md", "Nothing.\n");
        // The versions that are built already, so that nothing is looked up.
        fs::copy(path("Cargo.lock"), package.0.join("Cargo.lock")).expect("it can be copied");
        package.put("build.rs", &text("build.rs"));
        for folder in ["codegen", "codegen/stats", "spec", "templates"] {
            for entry in fs::read_dir(path(folder)).expect("it is there") {
                let name = entry.expect("it can be listed").file_name();
                let name = format!("{folder}/{}", name.to_string_lossy());
                if path(&name).is_file() {
                    package.put(&name, &text(&name));
                }
            }
        }
        package
    }

    /// Writes a file unless it is so already.
    fn put(&self, name: &str, content: &str) {
        let file = self.0.join(name);
        if fs::read_to_string(&file).is_ok_and(|old| old == content) {
            return;
        }
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
        fs::write(file, content).expect("it can be written");
    }

    fn cargo(&self, variables: &[(&str, &str)]) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .expect("a folder");
        Command::new(env!("CARGO"))
            .args([
                "build",
                "--offline",
                "--message-format=json",
                "--manifest-path",
            ])
            .arg(self.0.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target)
            .envs(variables.iter().copied())
            .output()
            .expect("cargo starts")
    }

    /// Builds; returns what was not fresh, and where the build script wrote.
    fn build(&self, variables: &[(&str, &str)]) -> (Vec<String>, PathBuf) {
        let output = self.cargo(variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let (mut stale, mut folder) = (Vec::new(), None);
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_yaml::from_str(line).expect("cargo writes JSON");
            let text = |value: &Value| value.as_str().map(String::from);
            if message["fresh"] == Value::Bool(false) {
                stale.extend(text(&message["target"]["name"]));
            }
            let package = text(&message["package_id"]).unwrap_or_default();
            if package.contains("rebuild") && message["reason"] == "build-script-executed" {
                folder = text(&message["out_dir"]).map(PathBuf::from);
            }
        }
        (stale, folder.expect("the build script has run"))
    }
}

#[test]
fn the_generator_runs_when_the_spec_changes_and_rebuilds_its_crate_alone() {
    let package = Package::write();
    let (_, folder) = package.build(&[]);
    let api = || fs::read_to_string(folder.join("api.rs")).expect("it was generated");
    let before = api();
    assert_eq!(before, expect(generate(Real::read().sources())).api);

    assert_eq!(
        package.build(&[]).0,
        Vec::<String>::new(),
        "nothing was changed"
    );
    let unrelated = format!("Written by {}.\n", std::process::id());
    package.put("README.md", &unrelated);
    package.put("docs/conformance.md", &unrelated);
    assert_eq!(
        package.build(&[]).0,
        Vec::<String>::new(),
        "an unrelated file"
    );
    let variables = [("VKACCEL_BLESS", "1"), ("VKACCEL_VISIBLE_DEVICES", "0")];
    assert_eq!(
        package.build(&variables).0,
        Vec::<String>::new(),
        "variables"
    );

    // Cargo keeps what the script told it beside its folder.
    let told = folder.with_file_name("output");
    let told = fs::read_to_string(told).expect("cargo keeps it");
    let told = told
        .lines()
        .filter(|line| line.starts_with("cargo::rerun-if"));
    let told: BTreeSet<String> = told.map(String::from).collect();
    let (templates, names) = codegen::TEMPLATES;
    let read = names.iter().map(|name| format!("{templates}/{name}"));
    let read = read.chain([codegen::SPEC, codegen::STATS].map(String::from));
    let wanted: BTreeSet<String> = read
        .map(|file| format!("cargo::rerun-if-changed={file}"))
        .collect();
    assert_eq!(told, wanted, "what the build script watches");

    let spec = text(codegen::SPEC);
    let old = "summary: The number of visible devices.";
    let new = "summary: How many devices are visible.";
    package.put(codegen::SPEC, &spec.replacen(old, new, 1));
    assert_eq!(package.build(&[]).0, ["vkaccel_rebuild"], "a line of docs");
    let after = api();
    let lines = before.lines().zip(after.lines());
    let changed: Vec<_> = lines.filter(|(old, new)| old != new).collect();
    let line = |text: &str| text.replace("summary:", "///");
    assert_eq!(changed, [(&*line(old), &*line(new))]);

    package.put(codegen::SPEC, &spec.replacen(old, "sumary: What.", 1));
    let failed = package.cargo(&[]);
    assert!(!failed.status.success());
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(said.contains("spec/api.yaml:"), "{said}");
    assert!(
        said.contains("unknown key `sumary`") && said.contains("`summary` is missing"),
        "{said}"
    );
    assert_eq!(api(), after, "nothing is written of a bad spec");

    package.put(codegen::SPEC, &spec);
    package.build(&[]);
    assert_eq!(api(), before);
}
