//! Bad specs, each made by one change to a good one: what the build says about it.

use super::{faults, generate};

/// A small spec in which every key occurs.
const GOOD: &str = include_str!("good.yaml");

/// The faults of the good spec after one change, without the file's name.
#[track_caller]
fn after(old: &str, new: &str) -> Vec<String> {
    assert_eq!(
        GOOD.matches(old).count(),
        1,
        "`{old}` must occur once in good.yaml"
    );
    let place = |fault: String| {
        fault
            .strip_prefix("spec/api.yaml:")
            .unwrap_or(&fault)
            .to_string()
    };
    faults(&GOOD.replacen(old, new, 1))
        .into_iter()
        .map(place)
        .collect()
}

#[test]
fn good_spec_has_no_fault() {
    assert_eq!(faults(GOOD), Vec::<String>::new());
    assert!(generate(GOOD).is_ok());
}

#[test]
fn unknown_key_is_refused() {
    let faults = after("differs: It says more.", "difers: It says more.");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("28: root.wait.difers: unknown key `difers`;"),
        "{faults:?}"
    );
}
