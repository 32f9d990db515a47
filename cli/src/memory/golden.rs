//! Reads golden traces: a header, then an operation a line with what PyTorch's allocator made of it.

use std::io::BufRead;

use serde_json::{Map, Value};
use vkaccel::alloc::Events;

use super::ops::Op;
use super::text::Lines;
use crate::exit::Failure;

/// The first line.
#[derive(Debug)]
pub struct Header {
    pub total: u64,
    pub events: Events,
    /// Statistics are given on every so many-th line.
    pub every: u64,
    /// The settings; empty for the defaults.
    pub conf: String,
    /// The names of the statistics, in their order.
    pub keys: Vec<String>,
}

/// A line behind it.
#[derive(Debug)]
pub struct Line {
    pub op: Op,
    pub expected: Expected,
}

/// What came of an operation.
#[derive(Debug, Default)]
pub struct Expected {
    pub result: Option<String>,
    /// Of an allocation: its numbers by the names of their fields.
    pub placement: Vec<(&'static str, Value)>,
    pub stats: Option<Vec<i64>>,
}

/// The numbers of a placement.
const PLACEMENT: [&str; 5] = ["rounded", "pool", "seg", "off", "seg_size"];

/// A trace, line by line.
#[derive(Debug)]
pub struct Golden<R> {
    lines: Lines<R>,
    next: u64,
}

/// Whether the first line of a file is a trace's.
pub fn is_header(header: &Value) -> bool {
    header.get("format") == Some(&Value::from(1))
}

impl Header {
    /// Reads the first line; a fault is told without its place.
    pub fn read(value: &Value) -> Result<Self, String> {
        let fields = value.as_object().ok_or("it is no JSON object")?;
        let text = |name| fields.get(name).and_then(Value::as_str);
        let events = match text("events") {
            Some("immediate") => Events::Immediate,
            Some("hold") => Events::Hold,
            _ => return Err("`events` is not \"immediate\" or \"hold\"".to_owned()),
        };
        let keys = match fields.get("keys") {
            None => Vec::new(),
            Some(keys) => {
                let keys = keys.as_array().ok_or("`keys` is no list")?;
                let texts = keys.iter().map(|key| key.as_str().map(str::to_owned));
                texts
                    .collect::<Option<Vec<String>>>()
                    .ok_or("`keys` has something that is no text")?
            }
        };
        Ok(Self {
            total: number(fields, "total")?,
            events,
            every: match fields.get("every") {
                None => 1,
                Some(_) => number(fields, "every")?.max(1),
            },
            conf: text("conf").unwrap_or_default().to_owned(),
            keys,
        })
    }
}

impl<R: BufRead> Golden<R> {
    /// Goes on behind the first line.
    pub const fn new(lines: Lines<R>) -> Self {
        Self { lines, next: 0 }
    }

    /// The next operation.
    pub fn next(&mut self) -> Result<Option<Line>, Failure> {
        let Some(bytes) = self.lines.next()? else {
            return Ok(None);
        };
        let read = parse(bytes).and_then(|fields| {
            let line = line(&fields)?;
            match fields.get("i").map(Value::as_u64) {
                Some(index) if index != Some(self.next) => {
                    Err(format!("`i` is not {}: lines are missing", self.next))
                }
                _ => Ok(line),
            }
        });
        self.next += 1;
        read.map(Some).map_err(|text| self.lines.fault(text))
    }

    /// A fault of the line that was read last.
    pub fn fault(&self, text: impl std::fmt::Display) -> Failure {
        self.lines.fault(text)
    }

    /// The number of the line in the file.
    pub const fn line_number(&self) -> u64 {
        self.lines.number()
    }
}

/// An object of JSON.
pub fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is no JSON object".to_owned()),
        Err(error) => Err(format!("it is no JSON: {error}")),
    }
}

/// A number that is not below 0.
pub fn number(fields: &Map<String, Value>, name: &str) -> Result<u64, String> {
    match fields.get(name) {
        None => Err(format!("`{name}` is missing")),
        Some(value) => value
            .as_u64()
            .ok_or_else(|| format!("`{name}` is {value}, and not a whole number from 0 on")),
    }
}

fn line(fields: &Map<String, Value>) -> Result<Line, String> {
    let number = |name| number(fields, name);
    let arg = || match fields.get("args").and_then(Value::as_array) {
        Some(args) if args.len() == 1 => Ok(&args[0]),
        _ => Err("`args` is not a list of one value"),
    };
    let pool = || {
        let pool = arg()?.as_u64();
        pool.ok_or("the pool is not a whole number from 0 on")
    };
    let name = fields.get("op").and_then(Value::as_str);
    let op = match name.ok_or("`op` is missing")? {
        "alloc" => Op::Alloc {
            id: number("id")?,
            size: number("size")?,
            stream: number("stream")?,
            pool: None,
        },
        "free" => Op::Free { id: number("id")? },
        "record" => Op::Record {
            id: number("id")?,
            stream: number("stream")?,
        },
        "complete" => Op::Complete {
            stream: number("stream")?,
        },
        "empty_cache" => Op::EmptyCache,
        "reset_peak" => Op::ResetPeak,
        "reset_accumulated" => Op::ResetAccumulated,
        "fraction" => Op::Fraction(arg()?.as_f64().ok_or("the fraction is no number")?),
        "stats" => Op::Stats,
        "pool_begin" => Op::PoolBegin(pool()?),
        "pool_end" => Op::PoolEnd(pool()?),
        "pool_release" => Op::PoolRelease(pool()?),
        other => return Err(format!("`{other}` is no operation")),
    };
    let result = fields.get("res").and_then(Value::as_str).map(str::to_owned);
    let given = |name: &'static str| fields.get(name).map(|value| (name, value.clone()));
    let stats = match fields.get("stats") {
        None => None,
        Some(stats) => {
            let values = stats.as_array().ok_or("`stats` is no list")?;
            let numbers = values.iter().map(Value::as_i64);
            let numbers: Option<Vec<i64>> = numbers.collect();
            Some(numbers.ok_or("`stats` has something that is no whole number")?)
        }
    };
    Ok(Line {
        op,
        expected: Expected {
            result,
            placement: PLACEMENT.into_iter().filter_map(given).collect(),
            stats,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(text: &'static str) -> Golden<&'static [u8]> {
        Golden::new(Lines::new(text.as_bytes(), "t.jsonl"))
    }

    fn read(text: &'static str) -> Op {
        golden(text).next().unwrap().unwrap().op
    }

    #[test]
    fn every_operation_is_read() {
        assert_eq!(
            read(r#"{"op":"alloc","id":1,"size":2,"stream":3}"#),
            Op::Alloc {
                id: 1,
                size: 2,
                stream: 3,
                pool: None
            }
        );
        assert_eq!(
            read(r#"{"op":"record","id":1,"stream":3}"#),
            Op::Record { id: 1, stream: 3 }
        );
        assert_eq!(read(r#"{"op":"fraction","args":[0.5]}"#), Op::Fraction(0.5));
        assert_eq!(read(r#"{"op":"pool_end","args":[7]}"#), Op::PoolEnd(7));
        for (name, op) in [
            ("empty_cache", Op::EmptyCache),
            ("reset_peak", Op::ResetPeak),
            ("reset_accumulated", Op::ResetAccumulated),
            ("stats", Op::Stats),
        ] {
            let fields = parse(format!(r#"{{"op":"{name}"}}"#).as_bytes()).unwrap();
            assert_eq!(line(&fields).unwrap().op, op);
        }
    }

    #[test]
    fn what_came_of_it_is_kept_for_the_comparison() {
        let line = golden(r#"{"i":0,"op":"free","id":1,"res":"ok","off":4,"stats":[-1]}"#).next();
        let expected = line.unwrap().unwrap().expected;
        assert_eq!(expected.result.as_deref(), Some("ok"));
        assert_eq!(expected.placement, [("off", Value::from(4))]);
        assert_eq!(expected.stats, Some(vec![-1]));
    }

    #[test]
    fn a_damaged_line_is_named_with_what_is_wrong() {
        for (text, says) in [
            ("{", "it is no JSON"),
            ("[]", "it is no JSON object"),
            ("{}", "`op` is missing"),
            (r#"{"op":"fly"}"#, "`fly` is no operation"),
            (
                r#"{"op":"alloc","id":1,"size":-1,"stream":0}"#,
                "`size` is -1",
            ),
            (
                r#"{"op":"alloc","id":1,"size":1e30,"stream":0}"#,
                "`size` is 1e",
            ),
            (r#"{"op":"free"}"#, "`id` is missing"),
            (r#"{"op":"fraction"}"#, "`args`"),
            (r#"{"op":"pool_begin","args":["a"]}"#, "the pool"),
            (r#"{"op":"stats","stats":3}"#, "`stats` is no list"),
            (r#"{"op":"stats","stats":["a"]}"#, "no whole number"),
            (r#"{"op":"stats","i":5}"#, "lines are missing"),
        ] {
            let error = golden(text).next().unwrap_err().to_string();
            assert!(error.starts_with("t.jsonl, line 1: "), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_header_needs_a_total_and_its_kind_of_events() {
        let read = |text| Header::read(&serde_json::from_str(text).unwrap());
        let header = read(r#"{"format":1,"total":9,"events":"hold","conf":"c","keys":["a"]}"#);
        let header = header.unwrap();
        assert_eq!((header.total, header.events), (9, Events::Hold));
        assert_eq!((header.every, &*header.conf), (1, "c"));
        assert!(read(r#"{"total":9}"#).unwrap_err().contains("`events`"));
        let error = read(r#"{"events":"hold","total":-3}"#).unwrap_err();
        assert!(error.contains("`total` is -3"), "{error}");
        let error = read(r#"{"events":"hold","total":3,"keys":[1]}"#).unwrap_err();
        assert!(error.contains("`keys`"), "{error}");
    }
}
