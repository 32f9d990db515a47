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

/// The torch snapshot as lines, with the header's limits set to these.
fn limited(scratch: &Scratch, limits: &str) -> PathBuf {
    let export = format!(
        "memory export {} --lines plain.jsonl",
        torch_snapshot().display()
    );
    scratch.vkaccel(&export).ok();
    let text = std::fs::read_to_string(scratch.path("plain.jsonl")).unwrap();
    let none = r#""total_bytes":0,"conf":"max_split_size_mb:200","memory_fraction":null,"limit_bytes":null"#;
    assert!(text.contains(none), "{text}");
    scratch.write("limited.jsonl", text.replacen(none, limits, 1));
    scratch.path("limited.jsonl")
}

#[test]
fn the_limits_of_the_recorded_program_hold_in_a_replay_unless_they_are_left_out() {
    let scratch = Scratch::new("limits");
    let figures = |file: &std::path::Path, args: &str| {
        let outcome = replay(&scratch, file, &format!("--json {args}")).ok();
        json(&outcome)["runs"].clone()
    };
    let peak = |run: &Value| run["peak_reserved_bytes"].as_u64().unwrap();
    let bytes = limited(
        &scratch,
        r#""total_bytes":1073741824,"conf":"","memory_fraction":null,"limit_bytes":41943040"#,
    );
    let runs = figures(&bytes, "");
    assert_eq!(runs[0]["limit_bytes"], 40 << 20);
    assert!(peak(&runs[0]) <= 40 << 20, "{runs}");
    assert!(runs[0]["num_ooms"].as_u64().unwrap() > 0, "{runs}");
    let text = replay(&scratch, &bytes, "").ok().stdout;
    let says = "settings: the defaults\nlimits: at most 40 MiB reserved, as recorded; --no-limits";
    assert!(text.contains(says), "{text}");
    let free = figures(&bytes, "--no-limits");
    assert_eq!(
        (free[0]["num_ooms"].as_u64(), &free[0]["limit_bytes"]),
        (Some(0), &Value::Null)
    );
    assert!(peak(&free[0]) > 40 << 20, "{free}");
    let text = replay(&scratch, &bytes, "--no-limits").ok().stdout;
    let says = "the limits it was recorded with are left out: at most 40 MiB reserved\n";
    assert!(text.contains(says) && !text.contains("limits:"), "{text}");

    let share = limited(
        &scratch,
        r#""total_bytes":83886080,"conf":"","memory_fraction":0.5,"limit_bytes":null"#,
    );
    let share_runs = figures(&share, "");
    assert_eq!(share_runs[0]["memory_fraction"], 0.5);
    assert_eq!(peak(&share_runs[0]), peak(&runs[0]));
    // It is a share of the device that is tried, and gives way to one of the settings that are.
    let larger = figures(
        &share,
        "--total 1GiB --conf max_split_size_mb:64 --conf per_process_memory_fraction:0.04",
    );
    assert_eq!(larger[0]["num_ooms"], 0);
    assert_eq!(larger[1]["memory_fraction"], Value::Null);
    assert!(peak(&larger[1]) <= 42_949_672, "{larger}");

    // One that the recorded settings have goes with them.
    let of_conf = limited(
        &scratch,
        r#""total_bytes":83886080,"conf":"per_process_memory_fraction:0.5","memory_fraction":0.5,"limit_bytes":null"#,
    );
    assert_eq!(peak(&figures(&of_conf, "")[0]), peak(&runs[0]));
    let other = figures(&of_conf, "--conf max_split_size_mb:64");
    assert!(peak(&other[0]) > 40 << 20, "{other}");
}

#[test]
fn a_golden_traces_fractions_are_left_out_on_request() {
    let scratch = Scratch::new("fractions");
    let trace = golden("fraction");
    let held = json(&replay(&scratch, &trace, "--json").ok())["runs"][0].clone();
    let free = json(&replay(&scratch, &trace, "--json --no-limits").ok())["runs"][0].clone();
    assert!(
        held["num_ooms"].as_u64() > free["num_ooms"].as_u64(),
        "{held} {free}"
    );
}

#[test]
fn requests_that_failed_when_recorded_and_do_not_here_are_told() {
    let scratch = Scratch::new("recovered");
    let roomy = replay(&scratch, &torch_snapshot(), "--total 1GiB").ok();
    let says = "\nnote: 1 request that failed when recorded succeeds here: ";
    assert!(roomy.stdout.contains(says), "{roomy:?}");
    let same = replay(&scratch, &torch_snapshot(), "").ok();
    assert!(!same.stdout.contains("failed when recorded"), "{same:?}");
    let trace = replay(&scratch, &golden("soup_oom"), "--total 1TiB --json").ok();
    assert_eq!(json(&trace)["runs"][0]["num_recovered_ooms"], 50);
}

#[test]
fn a_usage_line_has_the_whole_command() {
    let scratch = Scratch::new("usage");
    for args in [
        "f --html o --conf max_split_size_mb:64 --conf max_split_size_mb:65",
        "f --check --json",
        "",
        "f --total x",
    ] {
        let outcome = scratch.vkaccel(&format!("memory replay {args}"));
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        let usage = outcome
            .stderr
            .lines()
            .find(|line| line.starts_with("Usage: "));
        assert!(
            usage.is_none_or(|usage| usage.starts_with("Usage: vkaccel memory replay")),
            "{outcome:?}"
        );
        assert!(usage.is_some() || args == "f --total x", "{outcome:?}");
    }
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
