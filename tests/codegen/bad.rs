//! Bad specs, each made by a change to a good one, and what the build says about it.
//!
//! They are in `bad.txt`, for `good.yaml`, and `bad_stats.txt`, for `good_stats.yaml`: a change takes
//! the lines after `-` out and puts those after `+` in, and a line after `!` is the beginning of a
//! fault, without the name of the file. Every fault is there.

use std::collections::BTreeSet;

use super::codegen::{self, Sources};
use super::{GOOD, faults, generate};

const BAD: &str = include_str!("bad.txt");
const BAD_STATS: &str = include_str!("bad_stats.txt");

/// The sections of a file of bad specs: title and text.
fn sections(bad: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    bad.split("== ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
}

/// A good text with the changes of one case, each a block of lines that occurs once.
fn changed(good: &str, case: &str) -> String {
    let mut spec = format!("\n{good}");
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
    let find = |bad| sections(bad).find(|(found, _)| *found == title);
    let (file, section) = match (find(BAD), find(BAD_STATS)) {
        (Some((_, section)), None) => (codegen::SPEC, section),
        (None, Some((_, section))) => (codegen::STATS, section),
        _ => panic!("one section `{title}` is needed"),
    };
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
        let found = if file == codegen::SPEC {
            let api = &changed(GOOD.api, case);
            faults(Sources { api, ..GOOD })
        } else {
            let stats = &changed(GOOD.stats, case);
            faults(Sources { stats, ..GOOD })
        };
        let fits = |(found, expected): (&String, &&str)| {
            let found = found.strip_prefix(file).and_then(|f| f.strip_prefix(':'));
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
    let api_faults = |api| faults(Sources { api, ..GOOD });
    assert_eq!(
        api_faults(""),
        ["spec/api.yaml:1: expected a map, found nothing"]
    );
    assert_eq!(
        api_faults("- a"),
        ["spec/api.yaml:1: expected a map, found a list"]
    );
    assert_eq!(
        api_faults("kinds: [Io]"),
        ["spec/api.yaml:1: `modules` lacks `root`, the root of the crate"]
    );
    let stats_faults = |stats| faults(Sources { stats, ..GOOD });
    assert_eq!(
        stats_faults("- a"),
        ["spec/memory_stats.yaml:1: expected a map, found a list"]
    );
    assert_eq!(stats_faults("counters: []").len(), 1);
}

#[test]
fn faults_of_both_files_are_told_at_once() {
    let found = faults(Sources {
        api: &GOOD
            .api
            .replace("summary: The limit.", "summary: The limit"),
        stats: &GOOD.stats.replace("unit: blocks", "units: blocks"),
        ..GOOD
    });
    let files: Vec<&str> = found
        .iter()
        .filter_map(|fault| fault.split(':').next())
        .collect();
    assert_eq!(
        files,
        [codegen::SPEC, codegen::STATS, codegen::STATS],
        "{found:?}"
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
            let all = sections(BAD).chain(sections(BAD_STATS));
            assert_eq!(all.map(|(title, _)| title).collect::<BTreeSet<_>>(), tests);
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
    what_is_made_of_statistics_names_some_that_there_are
    statistics_are_read_as_strictly_as_functions
    metrics_and_pools_are_what_the_generator_knows
    statistics_have_names_of_their_own
}
