//! Recorded runs of PyTorch's allocator, made again with buffers of real devices that seem as large
//! as the recording's: every statistic and every place is as recorded.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use std::collections::BTreeMap;

use process::over_the_shim;
use serde_json::Value;
use support::entry::Entry;
use support::entry::hold::{Hold, Submitted};
use support::{TestRuntime, kernels, on_each_device};
use vkaccel::{Buffer, Grid, Kernel, MemPool, Result, Stream, memory};

/// Recordings that any device can make again: on one queue, work ends in the order in which it was
/// submitted.
const IN_ORDER: &[&str] = &[
    "best_fit_large",
    "best_fit_small",
    "best_fit_ties",
    "coalesce_large",
    "coalesce_small",
    "conf_gc",
    "conf_gc_idle",
    "conf_max_split",
    "conf_roundup",
    "dnn",
    "dnn_comm",
    "empty_cache_live",
    "fraction",
    "fraction_reserved",
    "inactive_split",
    "oom_events",
    "oom_retry",
    "pools_private",
    "record_hold",
    "record_immediate",
    "resets",
    "rounding_small",
    "soup_mixed",
    "soup_oom",
    "soup_small",
    "split_large",
    "split_small",
    "stream_pools",
];

/// Recordings in which streams overtake each other, which takes a queue for each.
const OUT_OF_ORDER: &[&str] = &["record_order", "soup_oom_events", "soup_streams"];

/// A recording.
struct Trace {
    head: Value,
    lines: Vec<Value>,
}

impl Trace {
    fn read(name: &str) -> Self {
        let text = String::from_utf8(support::data(&format!("traces/{name}.jsonl"))).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        Self {
            head: lines.next().unwrap(),
            lines: lines.collect(),
        }
    }
}

/// A run of a recording on a device.
struct Run {
    streams: Vec<Stream>,
    /// Work that uses no memory, so that a stream has something to be done.
    nothing: Option<Kernel>,
    hold: Hold,
    /// What each stream submitted last.
    last: BTreeMap<u64, Submitted>,
    blocks: BTreeMap<u64, Block>,
    pools: BTreeMap<u64, MemPool>,
    pool: Option<u64>,
}

/// A buffer of the recording, with the other streams that were said to use it.
struct Block {
    buffer: Buffer<u8>,
    users: Vec<u64>,
}

impl Run {
    fn new(trace: &Trace, entry: &Entry) -> Self {
        let mut streams = vec![vkaccel::current_stream(0).unwrap()];
        streams.extend((0..3).map(|_| Stream::new(0).unwrap()));
        let holds = trace.head["events"] == "hold";
        Self {
            streams,
            nothing: holds.then(|| kernels::kernel("nothing")),
            hold: if holds {
                Hold::new(entry)
            } else {
                Hold::default()
            },
            last: BTreeMap::new(),
            blocks: BTreeMap::new(),
            pools: BTreeMap::new(),
            pool: None,
        }
    }

    fn stream(&self, number: u64) -> &Stream {
        &self.streams[usize::try_from(number).unwrap()]
    }

    fn step(&mut self, line: &Value) {
        let number = |key: &str| line[key].as_u64().unwrap();
        let argument = || line["args"][0].as_u64().unwrap();
        match line["op"].as_str().unwrap() {
            "alloc" => self.allocate(line),
            "free" => self.free(number("id")),
            "record" => {
                let (id, user) = (number("id"), number("stream"));
                let stream = self.stream(user).clone();
                let block = self.blocks.get_mut(&id).unwrap();
                block.buffer.record_stream(&stream).unwrap();
                block.users.push(user);
            }
            "complete" => {
                let stream = number("stream");
                if let Some(&submitted) = self.last.get(&stream) {
                    self.hold.let_go(submitted);
                    self.stream(stream).synchronize().unwrap();
                }
            }
            "empty_cache" => memory::empty_cache().unwrap(),
            "reset_peak" => memory::reset_peak_memory_stats(0).unwrap(),
            "reset_accumulated" => memory::reset_accumulated_memory_stats(0).unwrap(),
            "fraction" => {
                let fraction = line["args"][0].as_f64().unwrap();
                memory::set_per_process_memory_fraction(fraction, 0).unwrap();
            }
            "stats" => {}
            "pool_begin" => {
                let new = || MemPool::new(0).unwrap();
                self.pools.entry(argument()).or_insert_with(new);
                self.pool = Some(argument());
            }
            "pool_end" => self.pool = None,
            "pool_release" => drop(self.pools.remove(&argument())),
            other => panic!("op: {other}"),
        }
    }

    fn allocate(&mut self, line: &Value) {
        let number = |key: &str| line[key].as_u64().unwrap();
        let size = usize::try_from(number("size"));
        let stream = self.stream(number("stream"));
        let allocate = || stream.uninit::<u8>(size.unwrap());
        let result: Result<Buffer<u8>> = match self.pool {
            Some(pool) => self.pools[&pool].scope(allocate),
            None => allocate(),
        };
        match (line["res"].as_str().unwrap(), result) {
            ("ok", Ok(buffer)) => {
                compare_place(line, &buffer);
                let users = Vec::new();
                self.blocks.insert(number("id"), Block { buffer, users });
            }
            ("null", Ok(buffer)) => assert!(buffer.is_empty()),
            ("oom", Err(error)) => {
                let figures = error.out_of_memory().unwrap_or_else(|| panic!("{error}"));
                assert_eq!(figures.requested, number("size"));
            }
            (_, result) => panic!("{result:?} for {line}"),
        }
    }

    fn free(&mut self, id: u64) {
        // The block of a failed allocation, or of no bytes, does not exist.
        let Some(Block { buffer, users }) = self.blocks.remove(&id) else {
            return;
        };
        if let Some(nothing) = &self.nothing {
            for &user in &users {
                let stream = &self.streams[usize::try_from(user).unwrap()];
                stream.launch(nothing, Grid::groups(1), ()).unwrap();
                stream.flush().unwrap();
                self.last.insert(user, self.hold.newest().unwrap());
            }
        }
        drop(buffer);
    }
}

/// Compares where a buffer lies with what was recorded.
fn compare_place(line: &Value, buffer: &Buffer<u8>) {
    let address = buffer.address().get();
    let snapshot = memory::memory_snapshot(0).unwrap();
    let inside = |start: u64, size: u64| (start..start + size).contains(&address);
    let segment = snapshot
        .segments
        .iter()
        .find(|segment| inside(segment.address, segment.total_size))
        .unwrap();
    let block = segment
        .blocks
        .iter()
        .find(|block| block.address == address)
        .unwrap();
    let found = [
        block.size,
        segment.registration_counter,
        address - segment.address,
        segment.total_size,
    ];
    let expected = ["rounded", "seg", "off", "seg_size"].map(|key| line[key].as_u64().unwrap());
    assert_eq!(found, expected, "{line}");
    assert_eq!(segment.is_large, line["pool"] == "large", "{line}");
}

/// Makes a recording again on the device that a test sees. Gives the number of statistics compared.
fn replay(name: &str, test: &TestRuntime) -> usize {
    let trace = Trace::read(name);
    let entry = Entry::new().expect("there is a loader");
    entry.let_heaps_have(trace.head["total"].as_u64().unwrap());
    let conf = trace.head["conf"].as_str().unwrap_or_default();
    let _runtime = test.another(entry.builder().alloc_conf(conf));
    let keys = trace.head["keys"].as_array().unwrap();
    let mut run = Run::new(&trace, &entry);
    let mut compared = 0;
    for line in &trace.lines {
        run.step(line);
        let Some(values) = line["stats"].as_array() else {
            continue;
        };
        let stats = memory::memory_stats(0).unwrap();
        for (key, value) in keys.iter().zip(values) {
            let key = key.as_str().unwrap();
            // Before the first request there is no allocator, and nothing to be counted.
            let found = stats
                .get(key)
                .unwrap_or(if key == "max_split_size" { -1 } else { 0 });
            assert_eq!(Some(found), value.as_i64(), "{name}: {key} after {line}");
            compared += 1;
        }
    }
    // What is still held back may finish before the device is given back.
    entry.forget_rules();
    compared
}

#[test]
fn buffers_lie_where_pytorchs_blocks_lay_and_count_as_they_did() {
    on_each_device("buffers_lie_where_pytorchs_blocks_lay", |test| {
        for name in IN_ORDER {
            let compared = replay(name, test);
            assert!(compared >= 122 * 17, "{name} is cut off: {compared}");
        }
    });
}

#[test]
fn streams_that_overtake_each_other_free_memory_as_pytorchs_did() {
    let test = "streams_that_overtake_each_other_free_memory_as_pytorchs_did";
    over_the_shim(test, &[("QUEUES", "4")], || {
        on_each_device(test, |test| {
            for name in OUT_OF_ORDER {
                assert!(replay(name, test) >= 122 * 17, "{name} is cut off");
            }
        });
    });
}
