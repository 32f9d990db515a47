//! The tool as it is run, on the committed lists and on the spec.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const FOUND: &str = "data/torch-2.14.0-to-2.15.0.txt";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn spec_diff(arguments: &[PathBuf]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spec-diff"));
    command.args(arguments).output().unwrap()
}

#[test]
fn the_committed_finding_is_what_the_lists_give() {
    let lists = ["data/torch-2.14.0.json", "data/torch-2.15.0.json"].map(path);
    let output = spec_diff(&lists);
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{found}");
    if env::var_os("VKACCEL_BLESS").is_some() {
        fs::write(path(FOUND), &found).unwrap();
    }
    let committed = fs::read_to_string(path(FOUND)).unwrap_or_default();
    assert_eq!(
        committed, found,
        "{FOUND} is out of date; run `VKACCEL_BLESS=1 cargo test -p spec-diff`"
    );
}

#[test]
fn a_spec_is_the_same_as_itself() {
    let spec = path("../../spec");
    let output = spec_diff(&[spec.clone(), spec]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn wrong_use_ends_with_two() {
    for arguments in [vec![], vec![path("nowhere"), path("nowhere")]] {
        let output = spec_diff(&arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}
