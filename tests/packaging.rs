//! What is published, and what it depends on: told by cargo, from what is downloaded already.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_yaml::Value;

/// What cargo says; nothing where it lacks packages that no build here has needed.
fn cargo(test: &str, args: &str) -> Option<String> {
    let output = Command::new(env!("CARGO"))
        .args(args.split(' '))
        .args(["--offline", "--color=never"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("--offline") {
        println!("SKIP {test}: not all packages are downloaded (`cargo fetch` does it)");
        return None;
    }
    assert!(output.status.success(), "cargo {args}: {said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The crates that the library is built from with these features, and those that its build script is.
fn tree(test: &str, features: &str, edges: &str) -> Option<BTreeSet<String>> {
    // All targets: what only Windows or Apple's systems need counts too.
    let tree = cargo(
        test,
        &format!("tree -p vkaccel --target all --prefix none -e {edges} --features={features}"),
    )?;
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    Some(names.map(str::to_owned).collect())
}

/// The crates among these that build native code, or look for it.
fn native(crates: &BTreeSet<String>) -> Vec<&str> {
    let native = |name: &&str| {
        matches!(*name, "cc" | "cmake" | "pkg-config" | "bindgen") || name.ends_with("-sys")
    };
    crates.iter().map(String::as_str).filter(native).collect()
}

#[test]
fn the_package_holds_what_the_library_needs_and_nothing_of_its_tests() {
    let test = "the_package_holds_what_the_library_needs";
    let Some(list) = cargo(test, "package -p vkaccel --list --allow-dirty") else {
        return;
    };
    let list: BTreeSet<&str> = list.lines().collect();
    let top = |path: &&str| path.split('/').next().unwrap().to_owned();
    let tops: BTreeSet<String> = list.iter().map(top).collect();
    let expected = "build.rs Cargo.lock Cargo.toml Cargo.toml.orig CHANGELOG.md codegen \
                    CONTRIBUTING.md docs examples LICENSE-APACHE LICENSE-MIT README.md shaders \
                    spec src templates";
    let expected: BTreeSet<String> = expected.split_whitespace().map(str::to_owned).collect();
    // The commit is noted where there is a repository.
    let tops: BTreeSet<String> = tops
        .into_iter()
        .filter(|name| name != ".cargo_vcs_info.json")
        .collect();
    assert_eq!(tops, expected);
    for needed in ["src/crate_docs.md", "spec/api.yaml", "shaders/edge.comp"] {
        assert!(list.contains(needed), "{needed} is left out");
    }
}

#[test]
fn links_of_the_packages_documents_lead_into_it() {
    let test = "links_of_the_packages_documents";
    let Some(list) = cargo(test, "package -p vkaccel --list --allow-dirty") else {
        return;
    };
    for document in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        for part in read(document).split("](").skip(1) {
            let (link, _) = part.split_once(')').unwrap();
            let is_in = |path: &str| path.starts_with(link);
            assert!(
                link.contains("://") || list.lines().any(is_in),
                "{document} links to {link}, which is left out"
            );
        }
    }
}

#[test]
fn native_code_comes_with_its_feature_only() {
    let test = "native_code_comes_with_its_feature_only";
    let of = |features| tree(test, features, "normal,build");
    let (Some(none), Some(serde), Some(pickle), Some(glsl), Some(validator)) = (
        of(""),
        of("serde"),
        of("pickle"),
        of("glsl"),
        of("spirv-val"),
    ) else {
        return;
    };
    assert_eq!(native(&none), [] as [&str; 0]);
    assert_eq!(native(&serde), [] as [&str; 0]);
    assert_eq!(native(&pickle), [] as [&str; 0]);
    let only = |crates: &BTreeSet<String>| -> Vec<String> {
        let more = native(crates)
            .into_iter()
            .filter(|name| name.ends_with("-sys"));
        more.map(str::to_owned).collect()
    };
    assert_eq!(only(&glsl), ["shaderc-sys"]);
    assert_eq!(only(&validator), ["spirv-tools-sys"]);
}

#[test]
fn the_generators_crates_are_its_own() {
    let test = "the_generators_crates_are_its_own";
    let (Some(library), Some(build)) = (tree(test, "", "normal"), tree(test, "", "normal,build"))
    else {
        return;
    };
    for name in ["serde_yaml", "minijinja", "serde"] {
        assert!(!library.contains(name), "the library needs {name}");
        assert!(build.contains(name), "{name} is needed no more");
    }
}

#[test]
fn the_features_of_the_published_docs_build_with_rust_alone() {
    let test = "the_features_of_the_published_docs";
    let Some(metadata) = cargo(test, "metadata --no-deps --format-version 1") else {
        return;
    };
    let metadata: Value = serde_yaml::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_sequence().unwrap();
    let library = packages.iter().find(|one| one["name"] == "vkaccel");
    let features = &library.unwrap()["metadata"]["docs"]["rs"]["features"];
    let features: Vec<&str> = features
        .as_sequence()
        .unwrap()
        .iter()
        .flat_map(Value::as_str)
        .collect();
    let Some(crates) = tree(test, &features.join(","), "normal,build") else {
        return;
    };
    assert_eq!(native(&crates), [] as [&str; 0]);
}

/// Whether an expression of licences is met by some that are allowed.
fn is_met(expression: &str, allowed: &mut dyn FnMut(&str) -> bool) -> bool {
    // All are asked, so that each allowed one that is met anywhere is known.
    let count = |parts: std::str::Split<'_, &str>, allowed: &mut dyn FnMut(&str) -> bool| {
        let met: Vec<bool> = parts.map(|part| is_met(part, allowed)).collect();
        (met.iter().filter(|&&met| met).count(), met.len())
    };
    // The one form of brackets that there is.
    if let Some((inner, rest)) = expression
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") AND "))
    {
        return is_met(inner, allowed) && is_met(rest, allowed);
    }
    if expression.contains(" OR ") {
        return count(expression.split(" OR "), allowed).0 > 0;
    }
    if expression.contains(" AND ") {
        let (met, all) = count(expression.split(" AND "), allowed);
        return met == all;
    }
    allowed(expression)
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed_and_each_allowed_one_is_met() {
    let test = "every_dependency_has_a_licence_that_is_allowed";
    let Some(metadata) = cargo(test, "metadata --all-features --format-version 1") else {
        return;
    };
    let deny = read("deny.toml");
    let (_, list) = deny.split_once("\nallow = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    let listed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let mut met = BTreeSet::new();

    let metadata: Value = serde_yaml::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_sequence().unwrap();
    assert!(packages.len() > 20);
    for package in packages {
        let expression = package["license"].as_str().unwrap_or("none");
        let mut allowed = |licence: &str| {
            let found = listed.get(licence);
            met.extend(found);
            found.is_some()
        };
        let name = package["name"].as_str();
        assert!(
            is_met(&expression.replace('/', " OR "), &mut allowed),
            "{name:?}: {expression}"
        );
    }
    assert_eq!(met, listed, "an allowed licence is not met");
}
