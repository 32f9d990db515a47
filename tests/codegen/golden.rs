//! The real spec: its surface, byte by byte, and what must hold for it.

use std::process::Command;
use std::{env, fs};

use super::codegen::yaml::{self, Node};
use super::codegen::{self, Generated};
use super::{Real, expect, generate, path, text};

const ACCEPT: &str = "VKACCEL_BLESS=1 cargo test --test codegen";

/// The copies of generated code.
const API: &str = "tests/golden/api.rs";
const STATS: &str = "tests/golden/memory_stats.rs";

fn generated() -> Generated {
    expect(generate(Real::read().sources()))
}

/// Panics if a committed file is not what it should be, or writes it where that is asked for.
pub fn hold(name: &str, wanted: &str) {
    if env::var_os("VKACCEL_BLESS").is_some() {
        // Tests beside this one may read it.
        let part = path(&format!("{name}.part"));
        fs::write(&part, wanted).expect("the copy can be written");
        fs::rename(&part, path(name)).expect("the copy can be put in its place");
        return;
    }
    let golden = fs::read_to_string(path(name)).unwrap_or_default();
    if golden == wanted {
        return;
    }
    let same = golden.lines().zip(wanted.lines());
    let line = same.take_while(|(old, new)| old == new).count();
    panic!(
        "{name} is out of date; run `{ACCEPT}`, then commit it with the spec\n\
         first difference in line {}:\n  golden: {}\n  spec:   {}",
        line + 1,
        golden.lines().nth(line).unwrap_or("(end)"),
        wanted.lines().nth(line).unwrap_or("(end)"),
    );
}

#[test]
fn golden_copies_are_what_the_spec_gives() {
    let generated = generated();
    hold(API, &generated.api);
    hold(STATS, &generated.stats);
}

#[test]
fn golden_copies_are_formatted() {
    let output = Command::new("rustfmt")
        .args(["--check", "--edition", "2024", "--config-path"])
        .args([path("rustfmt.toml"), path(API), path(STATS)])
        .output()
        .expect("rustfmt is installed: rustup component add rustfmt");
    let difference = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "codegen/layout.rs no longer lays out as rustfmt does:\n{difference}{complaint}"
    );
}

#[test]
fn error_kinds_of_spec_and_crate_are_equal() {
    let Ok(Node::Map(spec)) = yaml::load(&text(codegen::SPEC)) else {
        panic!("the spec is no map");
    };
    let kinds = spec.iter().find(|(key, _)| key == "kinds");
    let Some((_, Node::List(kinds))) = kinds else {
        panic!("the spec has no list `kinds`");
    };
    let declared: Vec<&str> = kinds
        .iter()
        .filter_map(|kind| match kind {
            Node::Text(kind) => Some(kind.as_str()),
            _ => None,
        })
        .collect();
    let real: Vec<String> = vkaccel::ErrorKind::ALL
        .iter()
        .map(|kind| format!("{kind:?}"))
        .collect();
    assert_eq!(
        declared,
        real,
        "`kinds` of {} and src/error/kind.rs",
        codegen::SPEC
    );
}

#[test]
fn surface_names_no_place_of_this_machine() {
    let generated = generated();
    for (code, spec) in [
        (generated.api, codegen::SPEC),
        (generated.stats, codegen::STATS),
    ] {
        assert!(!code.contains(env!("CARGO_MANIFEST_DIR")));
        let head = format!("// @generated from {spec} by build.rs (codegen/)");
        assert!(code.starts_with(&head));
    }
}

#[test]
fn templates_that_print_what_is_no_text_are_refused() {
    for (template, fault) in [
        ("{{ nonsense }}", "undefined value"),
        ("{{ modules[0].nonsense }}", "undefined value"),
        ("{{ modules[0].nonsense|default('x') }}", "unknown filter"),
        ("{{ none }}", "a template prints `None`"),
        ("{{ modules[0].is_root }}", "a template prints `True`"),
        ("{% for module in modules %}", "syntax error"),
    ] {
        let real = Real::read();
        let faults = codegen::generate(real.sources(), &[("api.rs.j2", template)]);
        let faults = faults.expect_err(template);
        assert_eq!(faults.len(), 1, "{faults:?}");
        let said = faults[0].to_string();
        let good = said.starts_with("templates: ") && said.contains(fault);
        assert!(good && said.contains("api.rs.j2:1"), "{template}: {said}");
    }
}
