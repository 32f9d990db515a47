//! Compares what a simulated device makes of a golden trace with what the trace says.

use std::fmt::Write as _;

use serde_json::Value;
use vkaccel::MemoryStats;
use vkaccel::alloc::Placement;

use super::device::Outcome;
use super::golden::{Expected, Header};

/// How many statistics a difference names.
const SHOWN: usize = 12;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub operations: u64,
    pub placements: u64,
    pub statistics: u64,
}

/// The outcome of a comparison that found something.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// The device did something else; in words.
    Difference(String),
    /// The trace doesn't say what it must; in words.
    Unusable(String),
}

/// Checks that the statistics of a trace are known.
pub fn check_keys(header: &Header) -> Result<(), String> {
    let stats = vkaccel::alloc::Simulator::new(0, vkaccel::alloc::AllocConf::default()).stats();
    for key in &header.keys {
        if stats.get(key).is_none() {
            return Err(format!("`keys` has `{key}`, which is no statistic"));
        }
    }
    match header.keys.is_empty() {
        true => Err("`keys` is missing: there is nothing to compare".to_owned()),
        false => Ok(()),
    }
}

impl Compared {
    /// Compares an operation's outcome and the statistics after it, where they are `due`.
    pub fn compare(
        &mut self,
        header: &Header,
        expected: &Expected,
        outcome: Outcome,
        stats: &MemoryStats,
        due: bool,
    ) -> Result<(), Found> {
        self.operations += 1;
        let result = match outcome {
            Outcome::Done | Outcome::Skipped | Outcome::Placed(_) => "ok",
            Outcome::Nothing => "null",
            Outcome::OutOfMemory => "oom",
        };
        match expected.result.as_deref() {
            Some(expected) if expected != result => {
                return Err(Found::Difference(differs("res", expected, result)));
            }
            Some(_) => {}
            None => return Err(Found::Unusable("`res` is missing".to_owned())),
        }
        if let Outcome::Placed(placement) = outcome {
            self.placements += 1;
            compare_placement(expected, &placement)?;
        }
        match &expected.stats {
            Some(values) if values.len() != header.keys.len() => Err(Found::Unusable(format!(
                "`stats` has {} values for {} keys",
                values.len(),
                header.keys.len()
            ))),
            Some(values) => {
                self.statistics += header.keys.len() as u64;
                compare_stats(&header.keys, values, stats)
            }
            None if due => Err(Found::Unusable(format!(
                "`stats` is missing, which every {} lines have",
                header.every
            ))),
            None => Ok(()),
        }
    }
}

fn compare_placement(expected: &Expected, placement: &Placement) -> Result<(), Found> {
    let found = [
        ("rounded", Value::from(placement.rounded)),
        (
            "pool",
            Value::from(if placement.small { "small" } else { "large" }),
        ),
        ("seg", Value::from(placement.segment)),
        ("off", Value::from(placement.offset)),
        ("seg_size", Value::from(placement.segment_bytes)),
    ];
    for (name, found) in found {
        let given = expected.placement.iter().find(|(given, _)| *given == name);
        match given {
            None => return Err(Found::Unusable(format!("`{name}` is missing"))),
            Some((_, expected)) if *expected != found => {
                let text = differs(name, expected, &found);
                return Err(Found::Difference(text));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn compare_stats(keys: &[String], values: &[i64], stats: &MemoryStats) -> Result<(), Found> {
    let mut text = String::new();
    let mut count = 0;
    for (key, expected) in keys.iter().zip(values) {
        let found = stats.get(key);
        if found == Some(*expected) {
            continue;
        }
        count += 1;
        if count <= SHOWN {
            let found = found.map_or("nothing".to_owned(), |found| found.to_string());
            let _ = write!(text, "\n  {}", differs(key, expected, found));
        }
    }
    match count {
        0 => Ok(()),
        1 => Err(Found::Difference(text.trim_start().to_owned())),
        _ => {
            if count > SHOWN {
                let _ = write!(text, "\n  and {} more", count - SHOWN);
            }
            Err(Found::Difference(format!("{count} statistics:{text}")))
        }
    }
}

fn differs(name: &str, expected: impl std::fmt::Display, found: impl std::fmt::Display) -> String {
    format!("`{name}` is {found}, and {expected} in the trace")
}

#[cfg(test)]
mod tests {
    use vkaccel::alloc::{AllocConf, Simulator};

    use super::*;

    fn header(keys: &[&str]) -> Header {
        let mut header =
            Header::read(&serde_json::json!({"total": 1, "events": "hold", "every": 4})).unwrap();
        header.keys = keys.iter().map(|key| (*key).to_owned()).collect();
        header
    }

    fn ok(stats: Option<Vec<i64>>) -> Expected {
        Expected {
            result: Some("ok".to_owned()),
            placement: Vec::new(),
            stats,
        }
    }

    fn compare(header: &Header, expected: &Expected, outcome: Outcome) -> Result<(), Found> {
        let stats = Simulator::new(1, AllocConf::default()).stats();
        Compared::default().compare(header, expected, outcome, &stats, false)
    }

    #[test]
    fn equal_statistics_and_results_pass_and_are_counted() {
        let header = header(&["num_ooms", "allocation.all.current"]);
        let stats = Simulator::new(1, AllocConf::default()).stats();
        let mut compared = Compared::default();
        let expected = ok(Some(vec![0, 0]));
        let result = compared.compare(&header, &expected, Outcome::Done, &stats, true);
        assert_eq!(result, Ok(()));
        assert_eq!((compared.operations, compared.statistics), (1, 2));
    }

    #[test]
    fn a_difference_names_what_differs_with_both_values() {
        let header = header(&["num_ooms", "max_split_size"]);
        let one = compare(&header, &ok(Some(vec![3, -1])), Outcome::Done);
        let expected = "`num_ooms` is 0, and 3 in the trace";
        assert_eq!(one, Err(Found::Difference(expected.to_owned())));
        let Err(Found::Difference(two)) = compare(&header, &ok(Some(vec![3, 4])), Outcome::Done)
        else {
            panic!("no difference");
        };
        assert!(two.starts_with("2 statistics:\n  `num_ooms`"), "{two}");
        let oom = compare(&header, &ok(None), Outcome::OutOfMemory);
        let expected = "`res` is oom, and ok in the trace";
        assert_eq!(oom, Err(Found::Difference(expected.to_owned())));
    }

    #[test]
    fn what_a_trace_must_say_and_does_not_makes_it_unusable() {
        let header = header(&["num_ooms"]);
        let stats = Simulator::new(1, AllocConf::default()).stats();
        let due = Compared::default().compare(&header, &ok(None), Outcome::Done, &stats, true);
        assert!(matches!(due, Err(Found::Unusable(text)) if text.contains("every 4 lines")));
        let short = compare(&header, &ok(Some(vec![])), Outcome::Done);
        assert!(matches!(short, Err(Found::Unusable(_))));
        let silent = compare(&header, &Expected::default(), Outcome::Done);
        assert!(matches!(silent, Err(Found::Unusable(_))));
        let placed = Simulator::new(64 << 20, AllocConf::default())
            .allocate(1, 1, 0)
            .unwrap()
            .unwrap();
        let nowhere = compare(&header, &ok(None), Outcome::Placed(placed));
        assert!(matches!(nowhere, Err(Found::Unusable(text)) if text.contains("`rounded`")));
    }

    #[test]
    fn unknown_statistics_are_named() {
        assert!(check_keys(&header(&["num_ooms"])).is_ok());
        assert!(check_keys(&header(&[])).is_err());
        let error = check_keys(&header(&["num_ooms", "nonsense"])).unwrap_err();
        assert!(error.contains("nonsense"), "{error}");
    }
}
