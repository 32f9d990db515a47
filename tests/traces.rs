//! Recorded runs of PyTorch's allocator, made again on a simulated device: every statistic and every
//! place is as recorded.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]
#![cfg(test_data)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use vkaccel::alloc::{Events, Placement, PoolId, Simulator};
use vkaccel::{MemoryStats, Result};

/// What was compared in a trace.
#[derive(Debug, Default)]
struct Compared {
    operations: usize,
    statistics: usize,
    places: usize,
}

struct Trace {
    device: Simulator,
    keys: Vec<String>,
    every: u64,
}

impl Trace {
    fn new(head: &Value) -> Self {
        assert_eq!(head["format"], 1);
        let conf = head["conf"].as_str().unwrap_or_default();
        let events = match head["events"].as_str().unwrap() {
            "immediate" => Events::Immediate,
            "hold" => Events::Hold,
            other => panic!("events: {other}"),
        };
        let total = head["total"].as_u64().unwrap();
        let keys = head["keys"].as_array().unwrap().iter();
        Self {
            device: Simulator::new(total, conf.parse().unwrap()).with_events(events),
            keys: keys.map(|key| key.as_str().unwrap().to_owned()).collect(),
            every: head["every"].as_u64().unwrap(),
        }
    }

    /// Does what a line says and compares what came of it.
    fn step(&mut self, line: &Value, compared: &mut Compared) {
        let number = |key: &str| {
            line[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key} in {line}"))
        };
        let argument = |place: usize| &line["args"][place];
        let pool = || PoolId(0, argument(0).as_u64().unwrap());
        let device = &mut self.device;
        match line["op"].as_str().unwrap() {
            "alloc" => {
                let result = device.allocate(number("id"), number("size"), number("stream"));
                compare(line, result, compared);
            }
            // The block of a failed allocation does not exist.
            "free" => device.free(number("id")).unwrap(),
            "record" => device.record(number("id"), number("stream")).unwrap(),
            "complete" => device.complete(number("stream")),
            "empty_cache" => device.empty_cache(),
            "reset_peak" => device.reset_peak(),
            "reset_accumulated" => device.reset_accumulated(),
            "fraction" => device.set_fraction(argument(0).as_f64().unwrap()).unwrap(),
            "stats" => {}
            "pool_begin" => device.pool_begin(pool()),
            "pool_end" => device.pool_end(pool()),
            "pool_release" => device.pool_release(pool()),
            other => panic!("op: {other}"),
        }
        compared.operations += 1;
    }

    fn statistics(&self, line: &Value, compared: &mut Compared) {
        let stats = self.device.stats();
        let values = line["stats"].as_array().unwrap();
        assert_eq!(values.len(), self.keys.len());
        for (key, value) in self.keys.iter().zip(values) {
            assert_eq!(stats.get(key), value.as_i64(), "{key} after {line}");
        }
        compared.statistics += values.len();
    }
}

/// Compares an allocation with what was recorded of it.
fn compare(line: &Value, result: Result<Option<Placement>>, compared: &mut Compared) {
    match (line["res"].as_str().unwrap(), result) {
        ("ok", Ok(Some(placed))) => {
            let pool = if placed.small { "small" } else { "large" };
            let found = (
                placed.rounded,
                pool,
                placed.segment,
                placed.offset,
                placed.segment_bytes,
            );
            let number = |key: &str| line[key].as_u64().unwrap();
            let pool = line["pool"].as_str().unwrap();
            let expected = (
                number("rounded"),
                pool,
                number("seg"),
                number("off"),
                number("seg_size"),
            );
            assert_eq!(found, expected, "{line}");
            compared.places += 1;
        }
        ("null", Ok(None)) => {}
        ("oom", Err(error)) => {
            assert!(error.is_out_of_memory(), "{error}");
            let figures = error.out_of_memory().unwrap();
            assert_eq!(Some(figures.requested), line["size"].as_u64());
        }
        (_, result) => panic!("{result:?} for {line}"),
    }
}

fn replay(path: &Path) -> Compared {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut trace = Trace::new(&lines.next().unwrap());
    let mut compared = Compared::default();
    let lines: Vec<Value> = lines.collect();
    for (place, line) in (0..).zip(&lines) {
        assert_eq!(line["i"], place);
        trace.step(line, &mut compared);
        let due = (place + 1) % trace.every == 0 || place + 1 == lines.len() as u64;
        assert_eq!(line.get("stats").is_some(), due, "{line}");
        if due {
            trace.statistics(line, &mut compared);
        }
    }
    compared
}

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/traces");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    files.sort();
    files
}

#[test]
fn every_statistic_and_place_is_as_recorded_of_pytorch() {
    let mut sum = Compared::default();
    let files = traces();
    for path in &files {
        let compared = replay(path);
        let name = path.file_stem().unwrap().to_str().unwrap();
        println!("{name}: {compared:?}");
        assert!(compared.operations >= 17, "{name} is cut off");
        sum.operations += compared.operations;
        sum.statistics += compared.statistics;
        sum.places += compared.places;
    }
    // All of the recordings are here, and all of them were compared.
    assert_eq!(files.len(), 34);
    assert_eq!(sum.operations, 6962);
    assert_eq!(sum.places, 3398);
    assert_eq!(sum.statistics, 301_706);
}

#[test]
fn the_recorded_statistics_are_keys_of_ours() {
    let known: BTreeSet<&str> = MemoryStats::KEYS.iter().copied().collect();
    for path in traces() {
        let text = fs::read_to_string(path).unwrap();
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let keys = head["keys"].as_array().unwrap();
        assert_eq!(keys.len(), 122);
        for key in keys {
            let key = key
                .as_str()
                .unwrap()
                .replacen("allocation.", "allocated.", 1);
            assert!(known.contains(&*key), "{key}");
        }
    }
}
