//! A page for browsers: one file that loads nothing, with the snapshot's data inside.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Stacks, json};
use crate::alloc::snapshot::{
    BlockState, Frame, MemorySnapshot, SegmentInfo, TraceAction, TraceEntry,
};

/// The page, with a mark where the data belongs.
const PAGE: &str = include_str!("page.html");
const MARK: &str = "@DATA@";

/// What is named by number in the data, each kind in order.
#[derive(Debug, Default)]
struct Names {
    stacks: Stacks,
    frames: Vec<Arc<[Frame]>>,
    pools: Vec<(u64, u64)>,
}

impl Names {
    /// The number of a stack, from 1; 0 is none.
    fn stack(&mut self, frames: &Arc<[Frame]>) -> u64 {
        let (number, new) = self.stacks.number(frames);
        if new {
            self.frames.push(Arc::clone(frames));
        }
        number
    }

    fn pool(&mut self, pool: (u64, u64)) -> usize {
        let found = self.pools.iter().position(|known| *known == pool);
        found.unwrap_or_else(|| {
            self.pools.push(pool);
            self.pools.len() - 1
        })
    }
}

impl MemorySnapshot {
    /// Writes it as a page for browsers: the allocations over time, the segments and blocks at every
    /// moment, and who called for them. The page is complete: it loads nothing.
    ///
    /// `out` had better be buffered.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    ///
    /// # Example
    ///
    /// ```
    /// let snapshot = vkaccel::alloc::MemorySnapshot::default();
    /// let mut page = Vec::new();
    /// snapshot.write_html(&mut page)?;
    /// assert!(page.starts_with(b"<!DOCTYPE html>"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_html(&self, mut out: impl Write) -> io::Result<()> {
        let out = &mut out;
        let (before, after) = PAGE.split_once(MARK).unwrap_or((PAGE, ""));
        out.write_all(before.as_bytes())?;
        write_data(self, out)?;
        out.write_all(after.as_bytes())?;
        out.flush()
    }
}

fn write_data(snapshot: &MemorySnapshot, out: &mut impl Write) -> io::Result<()> {
    let mut names = Names::default();
    names.pool((0, 0));
    write!(
        out,
        "{{\"device\":{},\"total\":{},\"dropped\":{},\"conf\":",
        snapshot.device, snapshot.total_bytes, snapshot.history_dropped
    )?;
    json::text(out, &snapshot.settings.conf.to_string())?;
    out.write_all(b",\"fraction\":")?;
    json::optional(out, snapshot.settings.memory_fraction)?;
    out.write_all(b",\"limit\":")?;
    json::optional(out, snapshot.settings.limit_bytes)?;
    out.write_all(b",\n\"segments\":[")?;
    for (index, segment) in snapshot.segments.iter().enumerate() {
        write_segment(segment, out, &mut names, index > 0)?;
    }
    out.write_all(b"],\n\"history\":[")?;
    // Times are told from the first one on, so that they are short.
    let start = snapshot.history.first().map_or(0, |entry| entry.time_us);
    for (index, entry) in snapshot.history.iter().enumerate() {
        write_entry(entry, out, &mut names, start, index > 0)?;
    }
    write!(out, "],\n\"start\":{start},\"pools\":[")?;
    for (index, (first, second)) in names.pools.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(out, "{comma}[{first},{second}]")?;
    }
    out.write_all(b"],\n\"stacks\":[[]")?;
    for frames in &names.frames {
        out.write_all(b",[")?;
        for (index, frame) in frames.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            json::text(out, &frame.to_string())?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"]}")
}

/// As `[rank, address, size, stream, is_large, pool, stack, [block, …]]`.
fn write_segment(
    segment: &SegmentInfo,
    out: &mut impl Write,
    names: &mut Names,
    comma: bool,
) -> io::Result<()> {
    let pool = names.pool(segment.pool);
    write!(
        out,
        "{}\n[{},{},{},{},{},{pool},{},[",
        if comma { "," } else { "" },
        segment.registration_counter,
        segment.address,
        segment.total_size,
        segment.stream,
        u8::from(segment.is_large),
        names.stack(&segment.frames)
    )?;
    for (index, block) in segment.blocks.iter().enumerate() {
        let state = match block.state {
            BlockState::Inactive => 0,
            BlockState::ActiveAllocated => 1,
            BlockState::ActivePendingFree => 2,
        };
        write!(
            out,
            "{}[{},{},{},{state},{}]",
            if index > 0 { "," } else { "" },
            block.address,
            block.size,
            block.requested_size,
            names.stack(&block.frames)
        )?;
    }
    out.write_all(b"]]")
}

/// As `[action, address or bytes free, size, stream, pool, time, stack]`.
fn write_entry(
    entry: &TraceEntry,
    out: &mut impl Write,
    names: &mut Names,
    start: u64,
    comma: bool,
) -> io::Result<()> {
    let (action, at) = match entry.action {
        TraceAction::Alloc => (0, entry.address),
        TraceAction::FreeRequested => (1, entry.address),
        TraceAction::FreeCompleted => (2, entry.address),
        TraceAction::SegmentAlloc => (3, entry.address),
        TraceAction::SegmentFree => (4, entry.address),
        TraceAction::Oom => (5, entry.device_free),
        TraceAction::Snapshot => (6, 0),
    };
    write!(
        out,
        "{}\n[{action},{at},{},{},{},{},{}]",
        if comma { "," } else { "" },
        entry.size,
        entry.stream,
        names.pool(entry.pool),
        entry.time_us.saturating_sub(start),
        names.stack(&entry.frames)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::snapshot::BlockInfo;

    #[test]
    fn the_page_holds_its_data_and_loads_nothing() {
        assert_eq!(PAGE.matches(MARK).count(), 1);
        for word in ["http:", "https:", "src=", "href=", "import ", "fetch("] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert!(PAGE.contains("default-src 'none'"));
    }

    #[test]
    fn the_data_names_stacks_and_pools_by_number() {
        let frames: Arc<[Frame]> = Arc::new([Frame {
            name: "f".into(),
            filename: "</script>".into(),
            line: 3,
        }]);
        let entry = TraceEntry {
            address: 4096,
            size: 10,
            time_us: 7,
            pool: (0, 2),
            frames: Arc::clone(&frames),
            ..TraceEntry::default()
        };
        let snapshot = MemorySnapshot {
            total_bytes: 99,
            segments: vec![SegmentInfo {
                total_size: 2 << 20,
                blocks: vec![BlockInfo {
                    size: 2 << 20,
                    ..BlockInfo::default()
                }],
                ..SegmentInfo::default()
            }],
            history: vec![
                entry.clone(),
                TraceEntry {
                    time_us: 9,
                    ..entry
                },
            ],
            ..MemorySnapshot::default()
        };
        let mut out = Vec::new();
        write_data(&snapshot, &mut out).unwrap();
        let expected = r#"{"device":0,"total":99,"dropped":0,"conf":"","fraction":null,"limit":null,
"segments":[
[0,0,2097152,0,0,0,0,[[0,2097152,0,0,0]]]],
"history":[
[0,4096,10,0,1,0,1],
[0,4096,10,0,1,2,1]],
"start":7,"pools":[[0,0],[0,2]],
"stacks":[[],["\u003c/script\u003e:3 f"]]}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
