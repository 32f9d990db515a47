//! JSON lines: one object a line, so that a file of any size is written and read as a stream.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Stacks, json};
use crate::alloc::snapshot::{
    BlockInfo, Frame, MemorySnapshot, SegmentInfo, TraceAction, TraceEntry,
};

impl MemorySnapshot {
    /// Writes it as JSON lines: what the whole has in common, then each segment followed by its
    /// blocks, then the history. A stack of calls stands on a line of its own before the first line
    /// that names it by number.
    ///
    /// The command line's `vkaccel memory` reads it. `out` had better be buffered.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Example
    ///
    /// ```
    /// let snapshot = vkaccel::alloc::MemorySnapshot::default();
    /// let mut file = Vec::new();
    /// snapshot.write_json_lines(&mut file)?;
    /// assert!(file.starts_with(b"{\"format\":\"vkaccel-memory\",\"version\":1,"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_json_lines(&self, mut out: impl Write) -> io::Result<()> {
        let out = &mut out;
        write!(
            out,
            "{{\"format\":\"vkaccel-memory\",\"version\":1,\"device\":{},\"total_bytes\":{},\"conf\":",
            self.device, self.total_bytes
        )?;
        json::text(out, &self.settings.conf.to_string())?;
        out.write_all(b",\"memory_fraction\":")?;
        json::optional(out, self.settings.memory_fraction)?;
        out.write_all(b",\"limit_bytes\":")?;
        json::optional(out, self.settings.limit_bytes)?;
        writeln!(out, ",\"history_dropped\":{}}}", self.history_dropped)?;

        let mut stacks = Stacks::default();
        for segment in &self.segments {
            let frames = stack(out, &mut stacks, &segment.frames)?;
            write_segment(out, segment, frames)?;
            for block in &segment.blocks {
                let frames = stack(out, &mut stacks, &block.frames)?;
                write_block(out, block, frames)?;
            }
        }
        for entry in &self.history {
            let frames = stack(out, &mut stacks, &entry.frames)?;
            write_entry(out, entry, frames)?;
        }
        out.flush()
    }
}

/// The number of a stack; a new one is written first.
fn stack(out: &mut impl Write, stacks: &mut Stacks, frames: &Arc<[Frame]>) -> io::Result<u64> {
    let (number, new) = stacks.number(frames);
    if new {
        write!(out, "{{\"frames\":{number},\"stack\":[")?;
        for (index, frame) in frames.iter().enumerate() {
            out.write_all(if index == 0 { b"[" } else { b",[" })?;
            json::text(out, &frame.name)?;
            out.write_all(b",")?;
            json::text(out, &frame.filename)?;
            write!(out, ",{}]", frame.line)?;
        }
        out.write_all(b"]}\n")?;
    }
    Ok(number)
}

fn write_segment(out: &mut impl Write, segment: &SegmentInfo, frames: u64) -> io::Result<()> {
    write!(
        out,
        "{{\"segment\":{},\"address\":{},\"total_size\":{},\"stream\":{},\"is_large\":{},\"pool\":[{},{}]",
        segment.registration_counter,
        segment.address,
        segment.total_size,
        segment.stream,
        segment.is_large,
        segment.pool.0,
        segment.pool.1
    )?;
    end(out, frames)
}

fn write_block(out: &mut impl Write, block: &BlockInfo, frames: u64) -> io::Result<()> {
    write!(
        out,
        "{{\"block\":{},\"size\":{},\"requested_size\":{},\"state\":\"{}\",\"gc_counter\":{}",
        block.address,
        block.size,
        block.requested_size,
        block.state.name(),
        block.gc_counter
    )?;
    end(out, frames)
}

fn write_entry(out: &mut impl Write, entry: &TraceEntry, frames: u64) -> io::Result<()> {
    let (place, at) = match entry.action {
        TraceAction::Oom => ("device_free", entry.device_free),
        _ => ("addr", entry.address),
    };
    write!(
        out,
        "{{\"action\":\"{}\",\"{place}\":{at},\"size\":{},\"stream\":{},\"pool\":[{},{}],\"time_us\":{}",
        entry.action.name(),
        entry.size,
        entry.stream,
        entry.pool.0,
        entry.pool.1,
        entry.time_us
    )?;
    end(out, frames)
}

fn end(out: &mut impl Write, frames: u64) -> io::Result<()> {
    match frames {
        0 => out.write_all(b"}\n"),
        frames => writeln!(out, ",\"frames\":{frames}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::snapshot::BlockState;

    #[test]
    fn each_thing_has_its_line_and_each_stack_is_written_once() {
        let frames: Arc<[Frame]> = Arc::new([Frame {
            name: "f".into(),
            filename: "a\"b.rs".into(),
            line: 3,
        }]);
        let entry = TraceEntry {
            address: 4096,
            size: 10,
            time_us: 7,
            frames: Arc::clone(&frames),
            ..TraceEntry::default()
        };
        let oom = TraceEntry {
            action: TraceAction::Oom,
            device_free: 5,
            pool: (0, 1),
            ..TraceEntry::default()
        };
        let block = BlockInfo {
            address: 4096,
            size: 512,
            requested_size: 10,
            state: BlockState::ActiveAllocated,
            frames,
            ..BlockInfo::default()
        };
        let snapshot = MemorySnapshot {
            segments: vec![SegmentInfo {
                address: 4096,
                total_size: 2 << 20,
                blocks: vec![block],
                ..SegmentInfo::default()
            }],
            history: vec![entry, oom],
            ..MemorySnapshot::default()
        };
        let mut out = Vec::new();
        snapshot.write_json_lines(&mut out).unwrap();
        let expected = r#"{"format":"vkaccel-memory","version":1,"device":0,"total_bytes":0,"conf":"","memory_fraction":null,"limit_bytes":null,"history_dropped":0}
{"segment":0,"address":4096,"total_size":2097152,"stream":0,"is_large":false,"pool":[0,0]}
{"frames":1,"stack":[["f","a\"b.rs",3]]}
{"block":4096,"size":512,"requested_size":10,"state":"active_allocated","gc_counter":0,"frames":1}
{"action":"alloc","addr":4096,"size":10,"stream":0,"pool":[0,0],"time_us":7,"frames":1}
{"action":"oom","device_free":5,"size":0,"stream":0,"pool":[0,1],"time_us":0}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
