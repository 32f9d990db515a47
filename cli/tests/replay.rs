//! `vkaccel memory`: traces and snapshots in, figures and pages out. Needs no device.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::path::PathBuf;

use serde_json::Value;
use support::{Outcome, Scratch};

/// A file of the tests' data.
fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn golden(name: &str) -> PathBuf {
    data("../tests/data/traces").join(format!("{name}.jsonl"))
}

fn torch_snapshot() -> PathBuf {
    data("tests/data/torch_snapshot.pickle")
}

/// Replays a file with these options.
fn replay(scratch: &Scratch, file: &std::path::Path, args: &str) -> Outcome {
    scratch.vkaccel(&format!("memory replay {} {args}", file.display()))
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// A golden trace with something in it replaced.
fn altered(scratch: &Scratch, name: &str, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(golden(name)).unwrap();
    assert!(text.contains(from), "{name} has no {from}");
    scratch.write("altered.jsonl", text.replacen(from, to, 1));
    scratch.path("altered.jsonl")
}

#[test]
fn every_golden_trace_is_equal_to_the_last_statistic() {
    let scratch = Scratch::new("golden");
    let folder = std::fs::read_dir(data("../tests/data/traces")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let traces: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    assert!(traces.len() >= 34, "{} traces", traces.len());
    for trace in traces {
        let outcome = replay(&scratch, &trace, "--check").ok();
        assert!(outcome.stdout.contains(": equal in "), "{outcome:?}");
    }
}

#[test]
fn the_first_difference_ends_with_1_and_names_line_and_values() {
    let scratch = Scratch::new("different");
    let trace = altered(&scratch, "dnn", r#""off":9000448"#, r#""off":9000960"#);
    let outcome = replay(&scratch, &trace, "--check");
    let says = "line 3, allocating 4500000 bytes as 2 on stream 0: `off` is 9000448, and 9000960 in the \
                trace";
    outcome.fails(1, says);
    let trace = altered(&scratch, "oom_retry", r#""res":"oom""#, r#""res":"ok""#);
    replay(&scratch, &trace, "--check").fails(1, "`res` is oom, and ok in the trace");
    let trace = altered(&scratch, "conf_roundup", "divisions:4", "divisions:2");
    replay(&scratch, &trace, "--check").fails(1, "`rounded` is 6144, and 5120 in the trace");
    let trace = altered(
        &scratch,
        "split_small",
        r#""stats":[1,1,0"#,
        r#""stats":[1,2,5"#,
    );
    let says =
        "2 statistics:\n  `active.all.current` is 1, and 2 in the trace\n  `active.all.freed` is 0";
    replay(&scratch, &trace, "--check").fails(1, says);
}

#[test]
fn unusable_files_end_with_2_and_say_where() {
    let scratch = Scratch::new("unusable");
    let whole = std::fs::read_to_string(golden("oom_retry")).unwrap();
    let header = whole.lines().next().unwrap().to_owned();
    let after_header = |line: &str| format!("{header}\n{line}\n");
    let half = &whole[..whole.len() / 2];
    let cut: String = whole
        .lines()
        .take(5)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let every = cut
        .replace(r#""every":1"#, r#""every":9"#)
        .replace(r#""stats":["#, r#""x":["#);
    for (content, says) in [
        (String::new(), "is empty"),
        ("nonsense".to_owned(), "no golden trace"),
        ("{".to_owned(), "line 1: it is no JSON"),
        ("{}".to_owned(), "line 1: `format` is neither"),
        (half.to_owned(), "it is no JSON"),
        (every, "cut off"),
        (
            cut.replace(r#""stats":["#, r#""x":["#),
            "line 2: `stats` is missing",
        ),
        (
            after_header(r#"{"i":3,"op":"stats"}"#),
            "line 2: `i` is not 0",
        ),
        (
            after_header(r#"{"op":"free","id":9,"res":"ok"}"#),
            "line 2: there is no block 9",
        ),
        (
            after_header(r#"{"op":"fraction","args":[7]}"#),
            "line 2: a memory fraction",
        ),
        (
            whole.replace(r#""keys":["#, r#""keys":["odd","#),
            "line 1: `keys` has `odd`",
        ),
        (
            whole.replacen(r#""format":1"#, r#""format":1,"conf":"a:b""#, 1),
            "line 1: ",
        ),
    ] {
        scratch.write("bad", content);
        let outcome = replay(&scratch, &scratch.path("bad"), "--check");
        outcome.fails(2, says);
    }
    scratch
        .vkaccel("memory replay missing")
        .fails(2, "cannot read");
    scratch.vkaccel("memory replay .").fails(2, "is a folder");
    replay(&scratch, &torch_snapshot(), "--check").fails(2, "no golden trace");
    let nowhere = replay(&scratch, &golden("dnn"), "--lines nowhere/x.jsonl");
    nowhere.fails(2, "there is no folder");
}

#[test]
fn damaged_pickles_end_with_2_and_never_run_anything() {
    let scratch = Scratch::new("pickles");
    let whole = std::fs::read(torch_snapshot()).unwrap();
    let system = b"\x80\x02cposix\nsystem\nX\x0b\x00\x00\x00touch ranityq\x00\x85R.";
    let mut deep = vec![0x80, 2];
    deep.resize(3_000_002, b'(');
    for (content, says) in [
        (&whole[..whole.len() / 2], "the pickle ends here"),
        (&b"\x80\x02N."[..], "no snapshot of PyTorch's memory"),
        (&system[..], "makes a Python object"),
        (&deep[..], "the pickle ends here"),
        (&b"\x80\x63"[..], "protocol 99"),
    ] {
        scratch.write("bad.pickle", content);
        let outcome = scratch.vkaccel("memory replay bad.pickle");
        outcome.fails(2, says);
    }
    assert!(!scratch.path("ranity").exists());
}

#[test]
fn two_settings_are_tried_side_by_side() {
    let scratch = Scratch::new("two");
    let confs = "--conf max_split_size_mb:20 --conf garbage_collection_threshold:0.6";
    let outcome = replay(&scratch, &golden("soup_oom"), confs).ok();
    assert!(
        outcome
            .stdout
            .contains("settings A: max_split_size_mb:20\n"),
        "{outcome:?}"
    );
    let row = |outcome: &Outcome, label: &str| -> Vec<String> {
        let line = outcome.stdout.lines().find(|line| line.starts_with(label));
        let values = line.unwrap()[32..].split("  ").map(str::trim);
        values
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let ooms = row(&outcome, "out of memory");
    assert_eq!(ooms.len(), 2, "{outcome:?}");
    let both = replay(&scratch, &golden("soup_oom"), &format!("{confs} --json")).ok();
    let both = json(&both);
    assert_eq!(both["runs"][0]["num_ooms"].to_string(), ooms[0]);
    assert_eq!(both["runs"][1]["num_ooms"].to_string(), ooms[1]);
    // The trace's own settings, and its own statistics, are those of the last line.
    let own = replay(&scratch, &golden("soup_oom"), "--json").ok();
    let own = json(&own);
    assert_eq!(own["runs"][0]["num_ooms"], 50);
    assert_ne!(own["runs"][0]["num_ooms"], both["runs"][0]["num_ooms"]);
}

#[test]
fn another_size_of_device_is_tried() {
    let scratch = Scratch::new("total");
    let figures =
        |args: &str| json(&replay(&scratch, &golden("dnn"), args).ok())["runs"][0].clone();
    let large = figures("--json");
    let small = figures("--json --total 200MiB");
    assert_eq!(large["num_alloc_retries"], 0);
    assert!(small["num_alloc_retries"].as_u64().unwrap() > 0, "{small}");
    assert!(small["peak_reserved_bytes"].as_u64().unwrap() <= 200 << 20);
    assert!(large["peak_reserved_bytes"].as_u64().unwrap() > 200 << 20);
}

#[test]
fn a_snapshot_of_pytorchs_is_done_again() {
    let scratch = Scratch::new("torch");
    let outcome = replay(&scratch, &torch_snapshot(), "").ok();
    for says in [
        "12 operations on a device of 64 MiB",
        "a failed allocation tells",
        "2 blocks are from before the history",
        "settings: max_split_size_mb:200",
        "out of memory                                1\n",
        "peak reserved                           52 MiB\n",
    ] {
        assert!(outcome.stdout.contains(says), "{says}: {outcome:?}");
    }
    let roomy = replay(&scratch, &torch_snapshot(), "--total 1GiB --json").ok();
    assert_eq!(json(&roomy)["runs"][0]["num_ooms"], 0);
}

#[test]
fn formats_are_turned_into_each_other_without_loss() {
    let scratch = Scratch::new("formats");
    let first = torch_snapshot();
    let export = format!(
        "memory export {} --lines a.jsonl --pickle a.pickle",
        first.display()
    );
    scratch.vkaccel(&export).ok();
    scratch
        .vkaccel("memory export a.pickle --lines b.jsonl")
        .ok();
    scratch
        .vkaccel("memory export a.jsonl --lines c.jsonl --html c.html")
        .ok();
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(read("a.jsonl"), read("b.jsonl"));
    assert_eq!(read("a.jsonl"), read("c.jsonl"));
    let page = read("c.html");
    assert!(page.contains("/job/model.py:12 forward"), "stacks are lost");
    let figures =
        |name: &str| json(&replay(&scratch, &scratch.path(name), "--json").ok())["runs"].clone();
    assert_eq!(figures("a.jsonl"), figures("a.pickle"));
    // From one program to the next.
    let text = read("a.jsonl");
    let piped = scratch
        .vkaccel_reading("memory replay - --json", text.as_bytes())
        .ok();
    assert_eq!(json(&piped)["runs"], figures("a.jsonl"));
}

#[test]
fn what_cannot_be_replayed_or_exported_says_why() {
    let scratch = Scratch::new("refused");
    let dnn = golden("dnn");
    let export = scratch.vkaccel(&format!("memory export {} --pickle x", dnn.display()));
    export.fails(2, "no snapshot: `vkaccel memory replay --html` shows it");
    let export = format!(
        "memory export {} --lines s.jsonl",
        torch_snapshot().display()
    );
    scratch.vkaccel(&export).ok();
    let text = std::fs::read_to_string(scratch.path("s.jsonl")).unwrap();
    let without = text.lines().filter(|line| !line.contains("\"action\""));
    let without: Vec<&str> = without.collect();
    scratch.write("still.jsonl", without.join("\n"));
    scratch
        .vkaccel("memory replay still.jsonl")
        .fails(2, "has no history");
    // Settings that only CUDA has are named, with a way on.
    scratch.write(
        "cuda.jsonl",
        text.replacen("max_split_size_mb:200", "backend:cudaMallocAsync", 1),
    );
    scratch
        .vkaccel("memory replay cuda.jsonl")
        .fails(2, "--conf gives others");
    scratch
        .vkaccel("memory replay cuda.jsonl --conf max_split_size_mb:30")
        .ok();
    let device = replay(&scratch, &torch_snapshot(), "--device 3");
    device.fails(2, "the devices [0]");
}

#[test]
fn what_a_simulated_device_did_can_be_replayed_itself() {
    let scratch = Scratch::new("again");
    for name in ["dnn", "soup_oom", "conf_max_split", "stream_pools"] {
        let args = "--json --lines out.jsonl --pickle out.pickle";
        let first = json(&replay(&scratch, &golden(name), args).ok());
        let total = format!("--json --total {}", first["total_bytes"]);
        for file in ["out.jsonl", "out.pickle"] {
            let again = json(&replay(&scratch, &scratch.path(file), &total).ok());
            for figure in [
                "peak_reserved_bytes",
                "peak_requested_bytes",
                "num_ooms",
                "num_device_alloc",
                "num_device_free",
            ] {
                let (again, first) = (&again["runs"][0][figure], &first["runs"][0][figure]);
                assert_eq!(again, first, "{name}, {file}: {figure}");
            }
        }
    }
}
