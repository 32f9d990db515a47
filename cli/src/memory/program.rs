//! What a program did with memory, told from what an allocator recorded of it.
//!
//! A history has what was allocated and given back. What it lacks is made up so that the same
//! decisions lead to the same history: a block that could not be reused for a while after it was
//! given back was in use on another stream until then; segments that went back to the driver, and not
//! for the sake of an allocation, went with an emptied cache.

use std::collections::HashMap;

use vkaccel::alloc::{BlockState, MemorySnapshot, TraceAction, TraceEntry};

use super::ops::Op;

/// An operation and where it is from.
#[derive(Debug, PartialEq)]
pub struct Step {
    pub op: Op,
    /// Whether it is an allocation for which there was no memory.
    pub failed: bool,
    /// Its entry in the history; none for what was there before the first one.
    pub entry: Option<usize>,
}

/// What a program did, in order.
#[derive(Debug, Default)]
pub struct Program {
    pub steps: Vec<Step>,
    /// Blocks from before the history, which are allocated first.
    pub earlier: u64,
    /// Entries that make no sense after those before them, such as when some are lost.
    pub odd: u64,
    /// What the device seems to have in all, told by a failed allocation.
    pub total: Option<u64>,
}

/// A block in use.
#[derive(Clone, Copy, Debug)]
struct Live {
    id: u64,
    /// The stream that is made up to keep it in use, once it was given back.
    kept_by: Option<u64>,
}

struct Reader<'a> {
    history: &'a [TraceEntry],
    program: Program,
    live: HashMap<u64, Live>,
    next_id: u64,
    next_stream: u64,
    idle_streams: Vec<u64>,
    reserved: u64,
    most_reserved: u64,
    total: Option<u64>,
}

impl Program {
    /// Tells it from a history. `total` is what the device has, if that is known.
    pub fn of(snapshot: &MemorySnapshot, total: Option<u64>) -> Self {
        let history = &snapshot.history;
        let streams = history.iter().map(|entry| entry.stream);
        let streams = streams.chain(snapshot.segments.iter().map(|segment| segment.stream));
        let reserved = reserved_before(snapshot);
        let mut reader = Reader {
            history,
            program: Program::default(),
            live: HashMap::new(),
            next_id: 0,
            next_stream: streams.max().unwrap_or(0).saturating_add(1),
            idle_streams: Vec::new(),
            reserved,
            most_reserved: reserved,
            total,
        };
        reader.allocate_earlier(snapshot);
        let mut index = 0;
        while index < history.len() {
            index = reader.entry(index);
        }
        reader.program
    }
}

/// What was reserved before the first entry.
fn reserved_before(snapshot: &MemorySnapshot) -> u64 {
    let now = snapshot.segments.iter().map(|segment| segment.total_size);
    let mut reserved = now.fold(0, u64::saturating_add);
    for entry in snapshot.history.iter().rev() {
        match entry.action {
            TraceAction::SegmentAlloc => reserved = reserved.saturating_sub(entry.size),
            TraceAction::SegmentFree => reserved = reserved.saturating_add(entry.size),
            _ => {}
        }
    }
    reserved
}

/// What the blocks are that were in use before the first entry: those that are given back without
/// having been allocated, and those in use at the end without that.
fn earlier(snapshot: &MemorySnapshot) -> Vec<(u64, Op)> {
    let mut known: HashMap<u64, bool> = HashMap::new();
    let mut found = Vec::new();
    let alloc = |size, stream, pool| Op::Alloc {
        id: 0,
        size,
        stream,
        pool: Some(pool).filter(|pool| *pool != (0, 0)),
    };
    for entry in &snapshot.history {
        match entry.action {
            TraceAction::Alloc => drop(known.insert(entry.address, true)),
            TraceAction::FreeRequested | TraceAction::FreeCompleted => {
                let was_live = known.insert(entry.address, false);
                // Given back and completed are two entries of one block.
                if was_live.is_none() {
                    let op = alloc(entry.size, entry.stream, entry.pool);
                    found.push((entry.address, op));
                }
            }
            _ => {}
        }
    }
    for segment in &snapshot.segments {
        for block in &segment.blocks {
            let in_use = block.state != BlockState::Inactive && block.requested_size > 0;
            if in_use && !known.contains_key(&block.address) {
                let op = alloc(block.requested_size, segment.stream, segment.pool);
                found.push((block.address, op));
            }
        }
    }
    found.sort_by_key(|(address, _)| *address);
    found
}

impl Reader<'_> {
    fn allocate_earlier(&mut self, snapshot: &MemorySnapshot) {
        for (address, mut op) in earlier(snapshot) {
            if let Op::Alloc { id, .. } = &mut op {
                *id = self.new_block(address);
            }
            self.program.earlier += 1;
            self.push(op, None);
        }
    }

    fn push(&mut self, op: Op, entry: Option<usize>) {
        self.program.steps.push(Step {
            op,
            failed: false,
            entry,
        });
    }

    fn new_block(&mut self, address: u64) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.live.insert(address, Live { id, kept_by: None });
        id
    }

    /// Takes an entry, or several that belong together; returns where to go on.
    fn entry(&mut self, index: usize) -> usize {
        let entry = &self.history[index];
        match entry.action {
            TraceAction::Alloc => self.alloc(index, entry),
            TraceAction::FreeRequested => return self.free(index, entry),
            TraceAction::FreeCompleted => self.complete(index, entry),
            TraceAction::SegmentAlloc => {
                self.reserved = self.reserved.saturating_add(entry.size);
                self.most_reserved = self.most_reserved.max(self.reserved);
            }
            TraceAction::SegmentFree => return self.return_segments(index),
            TraceAction::Oom => {
                if self.total.is_none() {
                    // Another process may have held some of it just then.
                    let total = self.reserved.saturating_add(entry.device_free);
                    let known = self.program.total.unwrap_or(self.most_reserved);
                    self.program.total = Some(total.max(known));
                }
                let id = self.next_id;
                self.next_id += 1;
                let op = self.request(id, entry);
                self.program.steps.push(Step {
                    op,
                    failed: true,
                    entry: Some(index),
                });
            }
            _ => {}
        }
        index + 1
    }

    fn request(&self, id: u64, entry: &TraceEntry) -> Op {
        Op::Alloc {
            id,
            size: entry.size,
            stream: entry.stream,
            pool: Some(entry.pool).filter(|pool| *pool != (0, 0)),
        }
    }

    fn alloc(&mut self, index: usize, entry: &TraceEntry) {
        if let Some(lost) = self.live.remove(&entry.address) {
            self.program.odd += 1;
            if lost.kept_by.is_none() {
                self.push(Op::Free { id: lost.id }, Some(index));
            }
        }
        let id = self.new_block(entry.address);
        let op = self.request(id, entry);
        self.push(op, Some(index));
    }

    fn free(&mut self, index: usize, entry: &TraceEntry) -> usize {
        let Some(live) = self.live.get(&entry.address).copied() else {
            self.program.odd += 1;
            return index + 1;
        };
        if live.kept_by.is_some() {
            self.program.odd += 1;
            return index + 1;
        }
        let next = self.history.get(index + 1);
        let completes = |next: &TraceEntry| {
            next.action == TraceAction::FreeCompleted && next.address == entry.address
        };
        if next.is_some_and(completes) {
            self.live.remove(&entry.address);
            self.push(Op::Free { id: live.id }, Some(index));
            return index + 2;
        }
        let stream = self.idle_streams.pop().unwrap_or_else(|| {
            self.next_stream = self.next_stream.saturating_add(1);
            self.next_stream
        });
        let id = live.id;
        self.push(Op::Record { id, stream }, Some(index));
        self.push(Op::Free { id }, Some(index));
        let kept_by = Some(stream);
        self.live.insert(entry.address, Live { id, kept_by });
        index + 1
    }

    fn complete(&mut self, index: usize, entry: &TraceEntry) {
        match self.live.remove(&entry.address) {
            Some(Live {
                kept_by: Some(stream),
                ..
            }) => {
                self.idle_streams.push(stream);
                self.push(Op::Complete { stream }, Some(index));
            }
            // It was given back before the first entry.
            Some(Live { id, .. }) => self.push(Op::Free { id }, Some(index)),
            None => self.program.odd += 1,
        }
    }

    /// Takes segments that went back to the driver one after the other.
    fn return_segments(&mut self, index: usize) -> usize {
        let rest = self.history[index..].iter();
        let count = rest
            .take_while(|entry| entry.action == TraceAction::SegmentFree)
            .count();
        let returned = &self.history[index..index + count];
        let before = self.reserved;
        for entry in returned {
            self.reserved = self.reserved.saturating_sub(entry.size);
        }
        let next = self.history.get(index + count);
        if !next.is_some_and(|next| self.make_room(returned, next, before)) {
            self.push(Op::EmptyCache, Some(index));
        }
        index + count
    }

    /// Whether segments went back for the sake of what comes next.
    fn make_room(&self, returned: &[TraceEntry], next: &TraceEntry, reserved: u64) -> bool {
        match next.action {
            TraceAction::Oom => true,
            // One call did both.
            TraceAction::SegmentAlloc if !next.frames.is_empty() => {
                returned.iter().all(|entry| entry.frames == next.frames)
            }
            // Nobody knows who called: was there no room before, and none in what went back?
            TraceAction::SegmentAlloc => {
                let serves = |entry: &TraceEntry| {
                    (entry.stream, entry.pool) == (next.stream, next.pool)
                        && entry.size >= next.size
                };
                let full = |total| reserved.saturating_add(next.size) > total;
                self.total.is_some_and(full) && !returned.iter().any(serves)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vkaccel::alloc::{AllocConf, Events, Frame, HistoryOptions, Simulator};

    use super::super::device::Device;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn recorded(total: u64) -> Simulator {
        let mut device = Simulator::new(total, AllocConf::default()).with_events(Events::Hold);
        device.record_history(Some(HistoryOptions::default()));
        device
    }

    /// What happened to blocks and segments when it is done again.
    fn again(snapshot: &MemorySnapshot, total: u64) -> Vec<(TraceAction, u64, u64)> {
        let mut device = Device::new(total, AllocConf::default(), Events::Hold);
        device.record_history(HistoryOptions::default());
        for step in Program::of(snapshot, Some(total)).steps {
            match step.failed {
                true => device.apply_failed(&step.op).unwrap(),
                false => device.apply(&step.op).unwrap(),
            };
        }
        told(&device.snapshot())
    }

    fn told(snapshot: &MemorySnapshot) -> Vec<(TraceAction, u64, u64)> {
        let history = snapshot.history.iter();
        history
            .map(|entry| (entry.action, entry.address, entry.size))
            .collect()
    }

    #[test]
    fn a_history_done_again_gives_the_same_history() {
        let mut device = recorded(100 * MIB);
        device.allocate(1, 30 * MIB, 0).unwrap();
        device.allocate(2, 5 * MIB, 7).unwrap();
        // In use elsewhere for a while after it was given back.
        device.record(2, 3).unwrap();
        device.free(2).unwrap();
        device.allocate(3, 5 * MIB, 7).unwrap();
        device.complete(3);
        device.allocate(4, 1000, 7).unwrap();
        device.free(1).unwrap();
        // Makes room for itself, then finds none.
        device.allocate(5, 60 * MIB, 0).unwrap();
        device.allocate(6, 60 * MIB, 0).unwrap_err();
        device.free(5).unwrap();
        device.empty_cache();
        device.allocate(7, 40 * MIB, 0).unwrap();
        let snapshot = device.snapshot();
        assert!(told(&snapshot).len() > 18);
        assert_eq!(again(&snapshot, 100 * MIB), told(&snapshot));
    }

    #[test]
    fn what_was_there_before_the_history_is_allocated_first() {
        let mut device = Simulator::new(100 * MIB, AllocConf::default());
        device.allocate(1, 3 * MIB, 0).unwrap();
        device.allocate(2, 2 * MIB, 0).unwrap();
        device.record_history(Some(HistoryOptions::default()));
        device.free(1).unwrap();
        device.allocate(3, MIB, 0).unwrap();
        let program = Program::of(&device.snapshot(), None);
        assert_eq!((program.earlier, program.odd), (2, 0));
        let sizes: Vec<u64> = program
            .steps
            .iter()
            .filter_map(|step| match step.op {
                Op::Alloc { size, .. } => Some(size),
                _ => None,
            })
            .collect();
        assert_eq!(sizes, [3 * MIB, 2 * MIB, MIB]);
    }

    #[test]
    fn the_size_of_the_device_is_told_by_a_failed_allocation() {
        let mut device = recorded(64 * MIB);
        device.allocate(1, 20 * MIB, 0).unwrap();
        device.allocate(2, 50 * MIB, 0).unwrap_err();
        let program = Program::of(&device.snapshot(), None);
        assert_eq!(program.total, Some(64 * MIB));
        assert!(program.steps[1].failed);
    }

    #[test]
    fn segments_return_for_an_allocation_if_one_call_did_both() {
        let frames = |line| -> Arc<[Frame]> {
            let mut frame = Frame::default();
            frame.line = line;
            Arc::new([frame])
        };
        let entry = |action, size, line| {
            let mut entry = TraceEntry::default();
            (entry.action, entry.size, entry.frames) = (action, size, frames(line));
            entry
        };
        let program = |line| {
            let mut snapshot = MemorySnapshot::default();
            snapshot.history = vec![
                entry(TraceAction::SegmentFree, MIB, line),
                entry(TraceAction::SegmentAlloc, MIB, 5),
            ];
            Program::of(&snapshot, None).steps
        };
        assert!(program(5).is_empty());
        assert_eq!(program(4)[0].op, Op::EmptyCache);
    }

    #[test]
    fn entries_that_make_no_sense_are_counted_and_passed_over() {
        let mut device = recorded(64 * MIB);
        device.allocate(1, 1000, 0).unwrap();
        device.free(1).unwrap();
        device.allocate(2, 1000, 0).unwrap();
        let mut snapshot = device.snapshot();
        // The entries of the free are lost.
        snapshot.history.retain(|entry| {
            !matches!(
                entry.action,
                TraceAction::FreeRequested | TraceAction::FreeCompleted
            )
        });
        let program = Program::of(&snapshot, None);
        assert_eq!(program.odd, 1);
        let mut device = Device::new(64 * MIB, AllocConf::default(), Events::Hold);
        for step in &program.steps {
            device.apply(&step.op).unwrap();
        }
        assert_eq!(device.stats().allocated_bytes.all.current, 1024);
    }
}
