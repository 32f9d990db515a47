//! What `vkaccel memory replay` prints: a row for each figure, a column for each run. Pure.

use std::fmt::Write;

use serde_json::{Value, json};

use super::device::Figures;
use super::limits::Limits;
use crate::words::size;

/// A run with some settings.
#[derive(Debug)]
pub struct Run {
    /// The settings; empty for the defaults.
    pub conf: String,
    /// What the program limited itself to.
    pub limits: Limits,
    pub figures: Figures,
}

/// What was replayed.
#[derive(Debug)]
pub struct Replay {
    pub file: String,
    /// The size of the device; none for one without bounds.
    pub total: Option<u64>,
    /// What is to be known of the file, a sentence each.
    pub notes: Vec<String>,
    pub runs: Vec<Run>,
}

/// A figure: how it is called, how programs call it, and its value.
type Row = (&'static str, &'static str, Number);

enum Number {
    Bytes(u64),
    Count(u64),
    Share(f64),
    Factor(f64),
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => size(*bytes),
            Self::Count(count) => count.to_string(),
            Self::Share(share) => format!("{:.1} %", share * 100.0),
            Self::Factor(factor) => format!("{factor:.3}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Bytes(number) | Self::Count(number) => json!(number),
            Self::Share(number) | Self::Factor(number) => json!(number),
        }
    }
}

fn rows(figures: &Figures) -> [Row; 11] {
    use Number::{Bytes, Count, Factor, Share};
    [
        (
            "peak reserved",
            "peak_reserved_bytes",
            Bytes(figures.peak_reserved),
        ),
        (
            "peak allocated",
            "peak_allocated_bytes",
            Bytes(figures.peak_allocated),
        ),
        (
            "peak requested",
            "peak_requested_bytes",
            Bytes(figures.peak_requested),
        ),
        (
            "peak reserved / peak requested",
            "overhead",
            Factor(figures.overhead()),
        ),
        (
            "unused at the peak of reserved",
            "unused_at_peak",
            Share(figures.unused_at_peak()),
        ),
        (
            "unused on average",
            "mean_unused",
            Share(figures.mean_unused()),
        ),
        (
            "retries with an emptied cache",
            "num_alloc_retries",
            Count(figures.retries),
        ),
        ("out of memory", "num_ooms", Count(figures.ooms)),
        (
            "waits for all streams",
            "num_sync_all_streams",
            Count(figures.syncs),
        ),
        (
            "segments asked of the driver",
            "num_device_alloc",
            Count(figures.segments_made),
        ),
        (
            "segments returned to it",
            "num_device_free",
            Count(figures.segments_returned),
        ),
    ]
}

/// The settings as a person reads them.
pub fn conf_text(conf: &str) -> &str {
    match conf {
        "" => "the defaults",
        conf => conf,
    }
}

/// The report for people.
pub fn text(replay: &Replay) -> String {
    let mut out = String::new();
    let operations = replay.runs.first().map_or(0, |run| run.figures.operations);
    let total = match replay.total {
        Some(total) => format!("a device of {}", size(total)),
        None => "a device without bounds".to_owned(),
    };
    line(
        &mut out,
        format_args!("{}: {operations} operations on {total}", replay.file),
    );
    for note in &replay.notes {
        line(&mut out, format_args!("{note}"));
    }
    // What belongs to one run of several has its letter.
    let heads: Vec<String> = match replay.runs.len() {
        1 => vec![String::new()],
        count => ('A'..='Z').map(|c| format!(" {c}")).take(count).collect(),
    };
    for (head, run) in heads.iter().zip(&replay.runs) {
        let conf = conf_text(&run.conf);
        line(&mut out, format_args!("settings{head}: {conf}"));
    }
    for (head, run) in heads.iter().zip(&replay.runs) {
        if !run.limits.is_empty() {
            let limits = run.limits.text();
            line(
                &mut out,
                format_args!("limits{head}: {limits}, as recorded; --no-limits leaves that out"),
            );
        }
    }
    for (head, run) in heads.iter().zip(&replay.runs) {
        if let Some(note) = recovered(run.figures.recovered) {
            line(&mut out, format_args!("note{head}: {note}"));
        }
    }
    out.push('\n');
    if replay.runs.len() > 1 {
        let mut row = " ".repeat(32);
        for head in heads {
            let _ = write!(row, "{head:>14}");
        }
        line(&mut out, format_args!("{row}"));
    }
    let columns: Vec<[Row; 11]> = replay.runs.iter().map(|run| rows(&run.figures)).collect();
    let labels = columns.first().into_iter().flatten();
    for (index, (label, ..)) in labels.enumerate() {
        let mut row = format!("{label:<32}");
        for column in &columns {
            let _ = write!(row, "{:>14}", column[index].2.text());
        }
        line(&mut out, format_args!("{row}"));
    }
    out
}

/// What a reader of the peaks must know of requests that failed when they were recorded.
fn recovered(count: u64) -> Option<String> {
    let requests = match count {
        0 => return None,
        1 => "1 request that failed when recorded succeeds".to_owned(),
        count => format!("{count} requests that failed when recorded succeed"),
    };
    Some(format!(
        "{requests} here: what they take is in the peaks, and given back at once"
    ))
}

/// The report for programs. Keys are stable: they may be added, never renamed.
pub fn json(replay: &Replay) -> String {
    let runs = replay.runs.iter().map(|run| {
        let mut fields = serde_json::Map::new();
        fields.insert("conf".to_owned(), json!(run.conf));
        fields.insert("limit_bytes".to_owned(), json!(run.limits.bytes));
        fields.insert("memory_fraction".to_owned(), json!(run.limits.fraction));
        let recovered = run.figures.recovered;
        fields.insert("num_recovered_ooms".to_owned(), json!(recovered));
        for (_, key, number) in rows(&run.figures) {
            fields.insert(key.to_owned(), number.json());
        }
        Value::Object(fields)
    });
    let operations = replay.runs.first().map_or(0, |run| run.figures.operations);
    let root = json!({
        "file": replay.file,
        "operations": operations,
        "total_bytes": replay.total,
        "notes": replay.notes,
        "runs": runs.collect::<Vec<Value>>(),
    });
    format!("{root:#}\n")
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(confs: &[&str]) -> Replay {
        let run = |conf: &&str| {
            let mut figures = Figures::default();
            figures.operations = 3;
            figures.peak_reserved = 20 << 20;
            figures.peak_requested = 16 << 20;
            figures.allocated_then = 15 << 20;
            Run {
                conf: (*conf).to_owned(),
                limits: Limits::default(),
                figures,
            }
        };
        Replay {
            file: "t.jsonl".to_owned(),
            total: Some(1 << 30),
            notes: Vec::new(),
            runs: confs.iter().map(run).collect(),
        }
    }

    #[test]
    fn two_runs_stand_side_by_side() {
        let text = text(&replay(&["", "max_split_size_mb:64"]));
        let expected = "\
t.jsonl: 3 operations on a device of 1 GiB
settings A: the defaults
settings B: max_split_size_mb:64

                                             A             B
peak reserved                           20 MiB        20 MiB
";
        assert!(text.starts_with(expected), "{text}");
        let overhead = "peak reserved / peak requested           1.250         1.250\n";
        assert!(text.contains(overhead), "{text}");
        let unused = "unused at the peak of reserved          25.0 %        25.0 %\n";
        assert!(text.contains(unused), "{text}");
    }

    #[test]
    fn one_run_needs_no_letters() {
        let text = text(&replay(&[""]));
        assert!(
            text.contains("\nsettings: the defaults\n\npeak reserved"),
            "{text}"
        );
    }

    #[test]
    fn limits_and_failures_that_are_none_here_are_told_below_the_settings() {
        let mut one = replay(&[""]);
        one.runs[0].limits.bytes = Some(24 << 20);
        one.runs[0].figures.recovered = 3;
        let expected = "
settings: the defaults
limits: at most 24 MiB reserved, as recorded; --no-limits leaves that out
note: 3 requests that failed when recorded succeed here: what they take is in the peaks, and given back \
at once

peak reserved";
        assert!(text(&one).contains(expected), "{}", text(&one));
        let mut two = replay(&["", "a"]);
        two.runs[1].limits.fraction = Some(0.5);
        two.runs[1].figures.recovered = 1;
        let expected = "
settings B: a
limits B: at most 50.0 % of the device reserved, as recorded; --no-limits leaves that out
note B: 1 request that failed when recorded succeeds here: ";
        assert!(text(&two).contains(expected), "{}", text(&two));
        let value: Value = serde_json::from_str(&json(&two)).unwrap();
        assert_eq!(value["runs"][1]["memory_fraction"], 0.5);
        assert_eq!(value["runs"][1]["limit_bytes"], Value::Null);
        assert_eq!(value["runs"][1]["num_recovered_ooms"], 1);
    }

    #[test]
    fn json_has_the_keys_that_programs_rely_on() {
        let value: Value = serde_json::from_str(&json(&replay(&["", "a"]))).unwrap();
        assert_eq!(value["operations"], 3);
        assert_eq!(value["total_bytes"], 1u64 << 30);
        assert_eq!(value["runs"][1]["conf"], "a");
        assert_eq!(value["runs"][0]["peak_reserved_bytes"], 20u64 << 20);
        assert_eq!(value["runs"][0]["overhead"], 1.25);
        assert_eq!(value["runs"][0]["num_ooms"], 0);
    }
}
