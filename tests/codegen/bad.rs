//! Bad specs, each made by a change to `good.yaml`, and what the build says about it.
//!
//! They are in `bad.txt`: a change takes the lines after `-` out and puts those after `+` in, and
//! a line after `!` is the beginning of a fault, without the name of the file. Every fault is there.

use std::collections::BTreeSet;

use super::{faults, generate};

/// A small spec in which every key occurs.
const GOOD: &str = include_str!("good.yaml");

const BAD: &str = include_str!("bad.txt");

/// The sections of `bad.txt`: title and text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    BAD.split("== ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
}

/// The good spec with the changes of one case, each a block of lines that occurs once.
fn changed(case: &str) -> String {
    let mut spec = format!("\n{GOOD}");
    let mut lines = case.lines().peekable();
    while lines.peek().is_some() {
        let mut block = |mark: &str| {
            let mut text = String::from("\n");
            while let Some(line) = lines.next_if(|line| line.starts_with(mark)) {
                text.push_str(line[1..].strip_prefix(' ').unwrap_or(""));
                text.push('\n');
            }
            text
        };
        let (old, new) = (block("-"), block("+"));
        if old.len() > 1 {
            assert_eq!(spec.matches(&old).count(), 1, "must occur once:{old}");
            spec = spec.replacen(&old, &new, 1);
        }
        while lines
            .next_if(|line| !line.starts_with(['-', '+']))
            .is_some()
        {}
    }
    spec.split_off(1)
}

fn check_section(title: &str) {
    let (_, section) = sections().find(|(found, _)| *found == title).expect(title);
    for case in section
        .split("\n\n")
        .map(str::trim)
        .filter(|case| !case.is_empty())
    {
        let expected: Vec<&str> = case
            .lines()
            .filter_map(|line| line.strip_prefix('!'))
            .map(str::trim)
            .collect();
        let found = faults(&changed(case));
        let fits = |(found, expected): (&String, &&str)| {
            let found = found.strip_prefix("spec/api.yaml:");
            found.is_some_and(|found| found.starts_with(expected))
        };
        let same = found.len() == expected.len() && found.iter().zip(&expected).all(fits);
        assert!(same, "{case}\nfound:\n  {}", found.join("\n  "));
    }
}

#[test]
fn good_spec_has_no_fault() {
    assert_eq!(faults(GOOD), Vec::<String>::new());
    assert!(generate(GOOD).is_ok());
}

#[test]
fn specs_without_any_entry_are_refused() {
    assert_eq!(
        faults(""),
        ["spec/api.yaml:1: expected a map, found nothing"]
    );
    assert_eq!(
        faults("- a"),
        ["spec/api.yaml:1: expected a map, found a list"]
    );
    assert_eq!(
        faults("kinds: [Io]"),
        ["spec/api.yaml:1: `modules` lacks `root`, the root of the crate"]
    );
}

/// One test for each section of `bad.txt`.
macro_rules! sections {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check_section(&stringify!($name).replace('_', " "));
            }
        )*

        #[test]
        fn every_section_has_its_test() {
            let tests = [$(stringify!($name).replace('_', " ")),*];
            let tests: BTreeSet<&str> = tests.iter().map(String::as_str).collect();
            assert_eq!(sections().map(|(title, _)| title).collect::<BTreeSet<_>>(), tests);
        }
    };
}

sections! {
    keys_that_nobody_knows_are_refused
    an_alias_has_nothing_that_follows_its_target
    keys_that_occur_twice_are_refused_in_maps_too
    keys_that_are_missing_are_named
    bad_yaml_is_told_with_its_line
    things_of_another_form_are_refused
    words_that_yaml_readers_disagree_about_are_refused
    names_that_rust_refuses_are_refused
    two_entries_of_one_name_are_refused
    undeclared_types_and_kinds_are_refused
    types_that_rust_refuses_are_refused
    what_nothing_uses_is_refused
    empty_texts_are_refused
    texts_that_were_cut_off_are_refused
    texts_that_are_no_docs_are_refused
    examples_that_show_nothing_are_refused
    deprecated_entries_without_successor_are_refused
    circles_of_aliases_are_refused
    origins_versions_and_proofs_have_their_form
    all_faults_are_told_at_once
}
