//! Promises of summaries, snapshots and history: what can be seen of a device's memory.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use support::on_each_device;
use vkaccel::alloc::{Frame, TraceAction};
use vkaccel::memory::{self, memory_reserved};
use vkaccel::{Buffer, HistoryOptions};

const MIB: usize = 1 << 20;

fn bytes(len: usize) -> Buffer<u8> {
    Buffer::uninit(len).unwrap()
}

#[test]
fn a_summary_is_readable_and_a_snapshot_whole() {
    on_each_device("a_summary_is_readable", |_| {
        assert!(memory::memory_snapshot(None).unwrap().segments.is_empty());
        assert!(
            memory::memory_summary(None, false)
                .unwrap()
                .contains("vulkan:0")
        );
        let (small, large) = (bytes(1000), bytes(3 * MIB));
        let snapshot = memory::memory_snapshot(None).unwrap();
        let total: u64 = snapshot.segments.iter().map(|one| one.total_size).sum();
        assert_eq!(total, memory_reserved(None).unwrap());
        for segment in &snapshot.segments {
            let blocks: u64 = segment.blocks.iter().map(|block| block.size).sum();
            assert_eq!(blocks, segment.total_size);
        }
        let first = &snapshot.segments[0].blocks[0];
        assert_eq!(
            (first.address, first.requested_size),
            (small.address().get(), 1000)
        );
        let text = memory::memory_summary(None, false).unwrap();
        assert!(text.contains("22.00 MiB"), "{text}");
        drop((small, large));
    });
}

#[test]
fn history_knows_who_allocated_and_costs_nothing_while_off() {
    on_each_device("history_knows_who_allocated", |_| {
        drop(bytes(1));
        assert!(memory::memory_snapshot(None).unwrap().history.is_empty());
        memory::record_memory_history(Some(HistoryOptions::default()), None).unwrap();
        let line = line!() + 1;
        let kept = Buffer::<u8>::zeroed(777).unwrap();
        let snapshot = memory::memory_snapshot(None).unwrap();
        let entry = &snapshot.history[0];
        assert_eq!((entry.action, entry.size), (TraceAction::Alloc, 777));
        assert_eq!(entry.frames[0].line, line);
        assert!(entry.frames[0].filename.ends_with("memory_history.rs"));
        let block = &snapshot.segments[0].blocks[0];
        assert_eq!(block.frames, entry.frames);
        // A limit that is set later changes nothing about it.
        memory::set_memory_limit(Some(1 << 40), None).unwrap();
        drop(kept);
        let actions: Vec<_> = {
            let snapshot = memory::memory_snapshot(None).unwrap();
            snapshot.history.iter().map(|entry| entry.action).collect()
        };
        let freed = [TraceAction::FreeRequested, TraceAction::FreeCompleted];
        assert_eq!(actions[1..], freed);
        memory::record_memory_history(None, None).unwrap();
        assert!(memory::memory_snapshot(None).unwrap().history.is_empty());
    });
}

#[test]
fn a_recorded_stack_has_the_place_of_the_call_once_and_first() {
    on_each_device("a_recorded_stack_has_the_place", |_| {
        let options = HistoryOptions::default().with_backtraces(true);
        memory::record_memory_history(Some(options), None).unwrap();
        let (line, _kept) = (line!(), Buffer::<u8>::zeroed(777).unwrap());
        let snapshot = memory::memory_snapshot(None).unwrap();
        let frames = &snapshot.segments[0].blocks[0].frames;
        let is_here =
            |frame: &Frame| frame.line == line && frame.filename.ends_with("memory_history.rs");
        let here: Vec<bool> = frames.iter().map(is_here).collect();
        assert!(
            here.len() > 1 && here[0] && !here[1..].contains(&true),
            "{frames:?}"
        );
        // With debug information, which callers' files are from, its function is known, too.
        let debug = frames[1..]
            .iter()
            .any(|frame| frame.filename.ends_with("memory_history.rs"));
        assert!(!debug || !frames[0].name.is_empty(), "{frames:?}");
        memory::record_memory_history(None, None).unwrap();
    });
}
