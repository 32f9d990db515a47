//! Reads the JSON lines that `MemorySnapshot::write_json_lines` writes.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use serde_json::{Map, Value};
use vkaccel::alloc::{
    BlockInfo, BlockState, Frame, MemorySnapshot, SegmentInfo, TraceAction, TraceEntry,
};

use super::golden::{number, parse};
use super::text::Lines;
use crate::exit::Failure;

/// How many segments, blocks and entries are read at most: some gigabytes of them.
const MAX_THINGS: usize = 20_000_000;

/// How many frames of a stack are kept; further ones are those of the start of the program.
const MAX_FRAMES: usize = 256;

/// Whether the first line of a file is a snapshot's.
pub fn is_header(header: &Value) -> bool {
    header.get("format") == Some(&Value::from("vkaccel-memory"))
}

/// What a file was read as.
#[derive(Debug)]
pub struct Recorded {
    pub snapshot: MemorySnapshot,
    /// The settings as they are spelled there, which need not be settings of ours.
    pub conf: String,
}

/// Reads the lines behind the first one.
pub fn read<R: BufRead>(header: &Value, mut lines: Lines<R>) -> Result<Recorded, Failure> {
    let mut reader = Reader {
        snapshot: MemorySnapshot::default(),
        stacks: HashMap::new(),
        things: 0,
    };
    let conf = reader.header(header).map_err(|text| lines.fault(text))?;
    while let Some(bytes) = lines.next()? {
        let taken = parse(bytes).and_then(|fields| reader.line(&fields));
        taken.map_err(|text| lines.fault(text))?;
    }
    let snapshot = reader.snapshot;
    Ok(Recorded { snapshot, conf })
}

struct Reader {
    snapshot: MemorySnapshot,
    stacks: HashMap<u64, Arc<[Frame]>>,
    things: usize,
}

impl Reader {
    fn header(&mut self, value: &Value) -> Result<String, String> {
        let fields = value.as_object().ok_or("it is no JSON object")?;
        match number(fields, "version")? {
            1 => {}
            version => return Err(format!("version {version} is not known, only 1")),
        }
        let snapshot = &mut self.snapshot;
        let device = number(fields, "device")?;
        snapshot.device = u32::try_from(device).map_err(|_| "`device` is no index")?;
        snapshot.total_bytes = number(fields, "total_bytes")?;
        snapshot.history_dropped = number(fields, "history_dropped")?;
        let settings = &mut snapshot.settings;
        settings.memory_fraction = optional(fields, "memory_fraction", |value| {
            value.as_f64().filter(|part| (0.0..=1.0).contains(part))
        })?;
        settings.limit_bytes = optional(fields, "limit_bytes", Value::as_u64)?;
        let conf = fields.get("conf").and_then(Value::as_str).unwrap_or("");
        if let Ok(parsed) = conf.parse() {
            settings.conf = parsed;
        }
        Ok(conf.to_owned())
    }

    fn line(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        self.things += 1;
        if self.things > MAX_THINGS {
            return Err(format!("more than {MAX_THINGS} lines are not read"));
        }
        if fields.contains_key("action") {
            let entry = self.entry(fields)?;
            self.snapshot.history.push(entry);
        } else if fields.contains_key("block") {
            let block = self.block(fields)?;
            let segment = self.snapshot.segments.last_mut();
            let segment = segment.ok_or("a block stands before the first segment")?;
            let end = segment.address.saturating_add(segment.total_size);
            if block.address < segment.address || block.address.saturating_add(block.size) > end {
                return Err("the block lies outside of its segment".to_owned());
            }
            segment.blocks.push(block);
            add_to_sums(segment);
        } else if fields.contains_key("segment") {
            let segment = self.segment(fields)?;
            self.snapshot.segments.push(segment);
        } else if fields.contains_key("stack") {
            self.stack(fields)?;
        } else {
            return Err("it is no segment, block, stack or action".to_owned());
        }
        Ok(())
    }

    fn entry(&self, fields: &Map<String, Value>) -> Result<TraceEntry, String> {
        let name = fields.get("action").and_then(Value::as_str).unwrap_or("");
        let action = TraceAction::from_name(name);
        let mut entry = TraceEntry::default();
        entry.action = action.ok_or_else(|| format!("`{name}` is no action"))?;
        match entry.action {
            TraceAction::Oom => entry.device_free = number(fields, "device_free")?,
            _ => entry.address = number(fields, "addr")?,
        }
        entry.size = number(fields, "size")?;
        entry.stream = number(fields, "stream")?;
        entry.pool = pool(fields)?;
        entry.time_us = number(fields, "time_us")?;
        entry.frames = self.frames(fields)?;
        Ok(entry)
    }

    fn segment(&self, fields: &Map<String, Value>) -> Result<SegmentInfo, String> {
        let mut segment = SegmentInfo::default();
        segment.registration_counter = number(fields, "segment")?;
        segment.address = number(fields, "address")?;
        segment.total_size = number(fields, "total_size")?;
        segment.stream = number(fields, "stream")?;
        segment.is_large = fields.get("is_large") == Some(&Value::Bool(true));
        segment.pool = pool(fields)?;
        segment.frames = self.frames(fields)?;
        Ok(segment)
    }

    fn block(&self, fields: &Map<String, Value>) -> Result<BlockInfo, String> {
        let mut block = BlockInfo::default();
        block.address = number(fields, "block")?;
        block.size = number(fields, "size")?;
        block.requested_size = number(fields, "requested_size")?;
        block.gc_counter = number(fields, "gc_counter")?;
        let name = fields.get("state").and_then(Value::as_str).unwrap_or("");
        block.state = state(name).ok_or_else(|| format!("`{name}` is no state"))?;
        block.frames = self.frames(fields)?;
        Ok(block)
    }

    fn stack(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        let wrong = "a frame is not [name, file, line]";
        let stack = fields.get("stack").and_then(Value::as_array).ok_or(wrong)?;
        let frame = |value: &Value| -> Option<Frame> {
            let [name, file, line] = value.as_array()?.as_slice() else {
                return None;
            };
            let mut frame = Frame::default();
            frame.name = name.as_str()?.to_owned().into();
            frame.filename = file.as_str()?.to_owned().into();
            frame.line = u32::try_from(line.as_u64()?).ok()?;
            Some(frame)
        };
        let frames: Option<Vec<Frame>> = stack.iter().take(MAX_FRAMES).map(frame).collect();
        let number = number(fields, "frames")?;
        self.stacks.insert(number, frames.ok_or(wrong)?.into());
        Ok(())
    }

    fn frames(&self, fields: &Map<String, Value>) -> Result<Arc<[Frame]>, String> {
        match fields.get("frames") {
            None => Ok(Arc::default()),
            Some(value) => {
                let found = value.as_u64().and_then(|number| self.stacks.get(&number));
                let found = found.ok_or_else(|| format!("there is no stack {value} before"))?;
                Ok(Arc::clone(found))
            }
        }
    }
}

/// The state of that name.
pub fn state(name: &str) -> Option<BlockState> {
    match name {
        "active_allocated" => Some(BlockState::ActiveAllocated),
        "active_pending_free" | "active_awaiting_free" => Some(BlockState::ActivePendingFree),
        "inactive" => Some(BlockState::Inactive),
        _ => None,
    }
}

/// Adds the last block of a segment to its sums.
pub fn add_to_sums(segment: &mut SegmentInfo) {
    let Some(block) = segment.blocks.last() else {
        return;
    };
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    if block.state != BlockState::Inactive {
        add(&mut segment.active_size, block.size);
        add(&mut segment.requested_size, block.requested_size);
    }
    if block.state == BlockState::ActiveAllocated {
        add(&mut segment.allocated_size, block.size);
    }
}

/// A field that may be null or missing. One that can't be read is a fault: without its limits, a run
/// looks as if it had room.
fn optional<T>(
    fields: &Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(format!("`{name}` is no limit: {value}")),
        },
    }
}

fn pool(fields: &Map<String, Value>) -> Result<(u64, u64), String> {
    let pair = fields.get("pool").and_then(Value::as_array);
    match pair.map(Vec::as_slice) {
        Some([first, second]) => first.as_u64().zip(second.as_u64()),
        _ => None,
    }
    .ok_or_else(|| "`pool` is not a pair of numbers".to_owned())
}

#[cfg(test)]
mod tests {
    use vkaccel::alloc::{AllocConf, HistoryOptions, Simulator};

    use super::*;

    fn read_all(text: &[u8]) -> Result<Recorded, Failure> {
        let mut lines = Lines::new(text, "s.jsonl");
        let first = lines.next()?.unwrap_or_default().to_vec();
        read(&serde_json::from_slice(&first).unwrap_or_default(), lines)
    }

    fn written() -> (MemorySnapshot, Vec<u8>) {
        let conf: AllocConf = "max_split_size_mb:64".parse().unwrap();
        let mut device = Simulator::new(64 << 20, conf);
        device.record_history(Some(HistoryOptions::default()));
        device.set_limit(Some(48 << 20));
        device.set_fraction(0.7).unwrap();
        device.allocate(1, 100, 3).unwrap();
        device.allocate(2, 5 << 20, 0).unwrap();
        device.set_time(77);
        device.free(1).unwrap();
        device.allocate(3, 1 << 30, 0).unwrap_err();
        let mut snapshot = device.snapshot();
        let mut frame = Frame::default();
        frame.filename = "a.rs".into();
        frame.line = 7;
        snapshot.history[1].frames = Arc::new([frame]);
        let mut file = Vec::new();
        snapshot.write_json_lines(&mut file).unwrap();
        (snapshot, file)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let (snapshot, file) = written();
        let recorded = read_all(&file).unwrap();
        assert_eq!(recorded.snapshot, snapshot);
        assert_eq!(recorded.conf, "max_split_size_mb:64");
    }

    #[test]
    fn damaged_files_are_read_or_refused_with_the_line() {
        let (_, file) = written();
        for cut in 0..file.len() {
            if let Err(error) = read_all(&file[..cut]) {
                assert!(error.to_string().starts_with("s.jsonl, line "), "{error}");
            }
        }
        for place in 0..file.len() {
            let mut damaged = file.clone();
            damaged[place] = damaged[place].wrapping_add(1);
            if let Err(error) = read_all(&damaged) {
                assert!(error.to_string().starts_with("s.jsonl, line "), "{error}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let header = r#"{"format":"vkaccel-memory","version":1,"device":0,"total_bytes":0,"history_dropped":0}"#;
        for (line, says) in [
            ("{}", "no segment, block, stack or action"),
            (r#"{"action":"fly"}"#, "`fly` is no action"),
            (r#"{"action":"alloc"}"#, "`addr` is missing"),
            (
                r#"{"block":1,"size":1,"requested_size":1,"state":"inactive","gc_counter":0}"#,
                "before the first segment",
            ),
            (
                r#"{"segment":0,"address":0,"total_size":1,"stream":0,"pool":3}"#,
                "`pool`",
            ),
            (
                r#"{"segment":0,"address":0,"total_size":1,"stream":0,"pool":[0,0],"frames":4}"#,
                "no stack 4",
            ),
            (r#"{"frames":1,"stack":[[1]]}"#, "a frame is not"),
        ] {
            let error = read_all(format!("{header}\n{line}").as_bytes()).unwrap_err();
            assert!(error.to_string().contains("line 2: "), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        for (limit, says) in [
            (
                r#","memory_fraction":1.5}"#,
                "`memory_fraction` is no limit: 1.5",
            ),
            (r#","limit_bytes":-1}"#, "`limit_bytes` is no limit: -1"),
        ] {
            let limited = header.replace('}', limit);
            let error = read_all(limited.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        let newer = header.replace("\"version\":1", "\"version\":9");
        let error = read_all(newer.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("version 9"), "{error}");
    }
}
