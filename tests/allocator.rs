//! The allocator's promises, on simulated devices: sizes of any kind, limits, streams, settings.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use vkaccel::alloc::{
    AllocConf, BlockState, Events, HistoryOptions, Placement, PoolId, Simulator, TraceAction,
};
use vkaccel::{Error, ErrorKind, MemoryStats, OutOfMemoryReason};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn device(total: u64, conf: &str) -> Simulator {
    Simulator::new(total, conf.parse().unwrap())
}

fn holding(total: u64, conf: &str) -> Simulator {
    device(total, conf).with_events(Events::Hold)
}

fn place(device: &mut Simulator, id: u64, bytes: u64) -> Placement {
    device.allocate(id, bytes, 0).unwrap().unwrap()
}

fn place_on(device: &mut Simulator, id: u64, bytes: u64, stream: u64) -> Placement {
    device.allocate(id, bytes, stream).unwrap().unwrap()
}

/// The error of a request, and why there is no memory.
fn refused(device: &mut Simulator, bytes: u64) -> (Error, OutOfMemoryReason) {
    let error = device.allocate(u64::MAX, bytes, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let reason = error.out_of_memory().unwrap().reason;
    (error, reason)
}

fn nothing_done() -> MemoryStats {
    device(GIB, "").stats()
}

#[test]
fn no_bytes_need_no_memory_and_count_nowhere() {
    let mut device = device(GIB, "");
    assert_eq!(device.allocate(1, 0, 0).unwrap(), None);
    device.record(1, 2).unwrap();
    device.free(1).unwrap();
    assert_eq!(device.stats(), nothing_done());
    assert!(device.snapshot().segments.is_empty());
}

#[test]
fn sizes_up_to_the_largest_number_never_wrap() {
    let mut device = device(u64::MAX, "");
    for bytes in [
        1 << 60,
        (1 << 60) + 1,
        u64::MAX / 2,
        u64::MAX - 511,
        u64::MAX,
    ] {
        let (error, reason) = refused(&mut device, bytes);
        assert_eq!(reason, OutOfMemoryReason::NeverFits);
        assert_eq!(error.out_of_memory().unwrap().requested, bytes);
    }
    // As in PyTorch, sizes that no machine has are found before anything is counted.
    assert_eq!(device.stats(), nothing_done());
    // The largest one that counts, sixteen times: more than a u64 holds of bytes.
    for id in 0..15 {
        assert_eq!(place(&mut device, id, (1 << 60) - 1).rounded, 1 << 60);
    }
    let (_, reason) = refused(&mut device, (1 << 60) - 1);
    assert_eq!(reason, OutOfMemoryReason::FullNow);
    assert_eq!(device.stats().num_ooms, 1);
    assert_eq!(device.stats().reserved_bytes.all.current, 15 << 60);
}

#[test]
fn with_divisions_no_size_wraps_either() {
    for divisions in [1, 2, 1024, 1_u64 << 63] {
        let mut device = device(u64::MAX, &format!("roundup_power2_divisions:{divisions}"));
        for (id, bytes) in [1, 513, MIB + 1, (1 << 59) + 1, (1 << 60) - 1]
            .into_iter()
            .enumerate()
        {
            let placed = place(&mut device, id as u64, bytes);
            assert!(
                placed.rounded >= bytes && placed.rounded <= 1 << 60,
                "{divisions} {bytes}"
            );
            assert_eq!(placed.rounded % 512, 0);
        }
    }
}

#[test]
fn memory_is_reused_as_soon_as_its_own_stream_is_done_whatever_waits_before_it() {
    let mut device = holding(GIB, "");
    let first = place(&mut device, 1, 512 << 10);
    let second = place(&mut device, 2, 512 << 10);
    place(&mut device, 3, MIB);
    device.record(1, 2).unwrap();
    device.record(2, 3).unwrap();
    device.free(1).unwrap();
    device.free(2).unwrap();
    device.complete(3);
    assert_eq!(place(&mut device, 4, 512 << 10), second);
    device.complete(2);
    assert_eq!(place(&mut device, 5, 512 << 10), first);
    assert_eq!(device.stats().num_device_alloc, 1);
}

#[test]
fn what_is_cached_makes_way_before_a_limit_refuses() {
    let mut device = device(2 * GIB, "");
    device.set_fraction(1.0 / 64.0).unwrap();
    place(&mut device, 1, 20 * MIB);
    device.free(1).unwrap();
    place(&mut device, 2, 32 * MIB);
    let stats = device.stats();
    assert_eq!(stats.reserved_bytes.all.current, 32 * MIB);
    assert_eq!(stats.segment.all.current, 1);
    assert_eq!(
        (
            stats.num_alloc_retries,
            stats.num_ooms,
            stats.num_device_free
        ),
        (1, 0, 1)
    );
    let (error, reason) = refused(&mut device, 512);
    assert_eq!(reason, OutOfMemoryReason::OverLimit);
    let figures = error.out_of_memory().unwrap();
    assert_eq!(figures.limit, Some(32 * MIB));
    assert_eq!((figures.reserved, figures.allocated), (32 * MIB, 32 * MIB));
    assert_eq!((figures.cached, figures.largest_free_block), (0, 0));
    let stats = device.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms), (2, 1));
}

#[test]
fn a_reset_of_peaks_leaves_what_is_live_and_what_was_counted() {
    let mut device = device(GIB, "");
    place(&mut device, 1, 4 * MIB);
    place(&mut device, 2, 6 * MIB);
    device.free(2).unwrap();
    assert_eq!(device.stats().allocated_bytes.all.peak, 10 * MIB);
    device.reset_peak();
    let bytes = device.stats().allocated_bytes.all;
    assert_eq!((bytes.peak, bytes.current), (4 * MIB, 4 * MIB));
    place(&mut device, 3, MIB);
    device.free(3).unwrap();
    let stats = device.stats();
    assert_eq!(stats.allocated_bytes.all.peak, 5 * MIB);
    assert_eq!(
        (stats.allocated.all.allocated, stats.allocated.all.freed),
        (3, 2)
    );
    device.reset_accumulated();
    let blocks = device.stats().allocated.all;
    assert_eq!(
        (blocks.allocated, blocks.freed, blocks.current, blocks.peak),
        (0, 0, 1, 2)
    );
    device.free(1).unwrap();
    let blocks = device.stats().allocated.all;
    assert_eq!((blocks.current, blocks.freed), (0, 1));
}

#[test]
fn memory_given_back_stays_active_until_other_streams_are_done() {
    let mut device = holding(GIB, "");
    place_on(&mut device, 1, MIB, 1);
    device.record(1, 2).unwrap();
    // The block's own stream, and repeats, change nothing.
    device.record(1, 1).unwrap();
    device.record(1, 2).unwrap();
    device.free(1).unwrap();
    let stats = device.stats();
    assert_eq!(stats.allocated_bytes.all.current, 0);
    assert_eq!(
        (stats.active_bytes.all.current, stats.active.all.current),
        (MIB, 1)
    );
    assert_eq!(
        device.snapshot().segments[0].blocks[0].state,
        BlockState::ActivePendingFree
    );
    device.complete(2);
    place_on(&mut device, 2, 512, 1);
    device.free(2).unwrap();
    let stats = device.stats();
    assert_eq!(
        (stats.active_bytes.all.current, stats.active.all.current),
        (0, 0)
    );
}

#[test]
fn the_largest_segment_is_used_to_its_last_byte_and_never_passed() {
    let largest = (1 << 31) - 1;
    let conf = AllocConf::default();
    let mut device = Simulator::with_limits(8 * GIB, largest, u64::MAX, conf);
    let placed = place(&mut device, 1, largest);
    assert_eq!((placed.rounded, placed.segment_bytes), (largest, largest));
    device.free(1).unwrap();
    assert_eq!(place(&mut device, 1, largest - 5).segment, 0);
    let (_, reason) = refused(&mut device, largest + 1);
    assert_eq!(reason, OutOfMemoryReason::NeverFits);
    let stats = device.stats();
    // Nothing that is cached could help.
    assert_eq!((stats.num_ooms, stats.num_alloc_retries), (1, 0));
}

#[test]
fn segments_shrink_to_the_largest_one_there_can_be() {
    let mut device = Simulator::with_limits(GIB, 9 * MIB, u64::MAX, AllocConf::default());
    assert_eq!(place(&mut device, 1, 2 * MIB).segment_bytes, 9 * MIB);
    assert_eq!(place(&mut device, 2, 9 * MIB).segment_bytes, 9 * MIB);
    let mut tiny = Simulator::with_limits(GIB, MIB + 100, u64::MAX, AllocConf::default());
    assert_eq!(place(&mut tiny, 1, 600).segment_bytes, MIB + 100);
    // What is behind the last whole unit belongs to the last block.
    assert_eq!(place(&mut tiny, 2, MIB - 1024).rounded, MIB - 1024 + 100);
    let rest = place(&mut tiny, 3, 100);
    assert_eq!((rest.segment, rest.rounded), (1, 512));
}

#[test]
fn the_last_allocation_is_never_asked_for_and_segments_grow_before_it_comes_to_that() {
    let mut device = Simulator::with_limits(64 * GIB, u64::MAX, 16, AllocConf::default());
    let sizes: Vec<u64> = (0..16)
        .map(|id| place_on(&mut device, id, MIB, id).segment_bytes / MIB)
        .collect();
    // Up to three quarters, as in PyTorch; from there on the reserved bytes over what is left.
    assert_eq!(sizes[..12], [2; 12]);
    assert_eq!(sizes[12..], [6, 10, 20, 60]);
    let error = device.allocate(99, MIB, 99).unwrap_err();
    let figures = error.out_of_memory().unwrap();
    assert_eq!(figures.reason, OutOfMemoryReason::TooManyAllocations);
    // Streams that have room go on.
    assert_eq!(place_on(&mut device, 98, MIB / 2, 15).segment, 15);
    // With one segment free, another stream has one.
    device.free(0).unwrap();
    assert_eq!(place_on(&mut device, 97, MIB, 97).segment, 16);
    assert_eq!(device.stats().num_ooms, 1);
}

#[test]
fn segments_do_not_grow_past_a_limit_nor_past_what_is_split() {
    let conf: AllocConf = "max_split_size_mb:20".parse().unwrap();
    let mut device = Simulator::with_limits(64 * GIB, u64::MAX, 16, conf);
    let sizes: Vec<u64> = (0..16)
        .map(|id| place_on(&mut device, id, MIB, id).segment_bytes / MIB)
        .collect();
    assert_eq!(sizes[12..], [6, 10, 18, 18]);

    let mut device = Simulator::with_limits(64 * GIB, u64::MAX, 16, AllocConf::default());
    device.set_limit(Some(27 * MIB));
    let sizes: Vec<u64> = (0..13)
        .map(|id| place_on(&mut device, id, MIB, id).segment_bytes / MIB)
        .collect();
    assert_eq!(sizes[12], 2);
}

#[test]
fn a_hard_cap_is_held_to_the_byte_and_counts_what_it_refuses() {
    let mut device = device(GIB, "");
    device.set_limit(Some(22 * MIB));
    place(&mut device, 1, 2 * MIB);
    place(&mut device, 2, 512);
    let (error, reason) = refused(&mut device, 19 * MIB);
    assert_eq!(reason, OutOfMemoryReason::OverLimit);
    assert_eq!(error.out_of_memory().unwrap().limit, Some(22 * MIB));
    let stats = device.stats();
    assert_eq!((stats.num_oom_rejections, stats.num_ooms), (1, 1));
    // A fraction that refuses is no cap that does.
    device.set_limit(None);
    device.set_fraction(22.0 / 1024.0).unwrap();
    assert_eq!(
        refused(&mut device, 19 * MIB).1,
        OutOfMemoryReason::OverLimit
    );
    assert_eq!(device.stats().num_oom_rejections, 1);
    device.reset_accumulated();
    assert_eq!(device.stats().num_oom_rejections, 0);
}

#[test]
fn a_fraction_of_nothing_allows_nothing_and_one_of_all_allows_all() {
    let mut device = device((1 << 53) + 1, "");
    device.set_fraction(0.0).unwrap();
    assert_eq!(refused(&mut device, 1).1, OutOfMemoryReason::OverLimit);
    device.set_fraction(1.0).unwrap();
    let error = device.allocate(9, u64::MAX, 0).unwrap_err();
    // To the byte, although no f64 has it.
    assert_eq!(error.out_of_memory().unwrap().limit, Some((1 << 53) + 1));
    place(&mut device, 1, 1);
    for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        let error = device.set_fraction(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!((device.fraction() - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_fraction_in_the_settings_is_in_force_from_the_start() {
    let mut device = device(100 * MIB, "per_process_memory_fraction:0.25");
    place(&mut device, 1, 20 * MIB);
    assert_eq!(
        refused(&mut device, 6 * MIB).1,
        OutOfMemoryReason::OverLimit
    );
}

#[test]
fn why_there_is_no_memory_is_told_apart() {
    let mut device = device(64 * MIB, "");
    assert_eq!(
        refused(&mut device, 65 * MIB).1,
        OutOfMemoryReason::NeverFits
    );
    place(&mut device, 1, 40 * MIB);
    place(&mut device, 2, 2 * MIB);
    let (error, reason) = refused(&mut device, 30 * MIB);
    assert_eq!(reason, OutOfMemoryReason::FullNow);
    let figures = error.out_of_memory().unwrap();
    assert_eq!(
        (figures.total, figures.reserved, figures.free),
        (64 * MIB, 60 * MIB, 4 * MIB)
    );
    assert_eq!((figures.allocated, figures.cached), (42 * MIB, 18 * MIB));
    assert_eq!(
        (figures.largest_free_block, figures.limit),
        (18 * MIB, None)
    );
    // All is as before.
    place(&mut device, 3, 18 * MIB);
    assert_eq!(device.stats().reserved_bytes.all.current, 60 * MIB);
}

#[test]
fn each_allocation_has_its_own_segment_where_that_is_asked_for() {
    let mut device = holding(GIB, "segment_per_allocation:True");
    let first = place(&mut device, 1, 100);
    let second = place(&mut device, 2, 3 * MIB);
    assert_eq!((first.segment, first.segment_bytes), (0, 512));
    assert_eq!((second.segment, second.segment_bytes), (1, 3 * MIB));
    device.free(1).unwrap();
    assert_eq!(device.stats().segment.all.current, 1);
    // What other streams use stays until they have finished.
    device.record(2, 1).unwrap();
    device.free(2).unwrap();
    assert_eq!(device.stats().segment.all.current, 1);
    device.complete(1);
    assert_eq!(place(&mut device, 3, 100).segment, 2);
    assert_eq!(device.stats().segment.all.current, 1);
    assert_eq!(device.stats().inactive_split.all.peak, 0);
}

#[test]
fn settings_change_while_blocks_are_out_and_every_count_comes_back_to_zero() {
    let mut device = device(GIB, "max_split_size_mb:20");
    for (id, conf) in (0..).zip([
        "",
        "max_split_size_mb:64",
        "segment_per_allocation:True",
        "",
    ]) {
        place(&mut device, 2 * id, 30 * MIB);
        place(&mut device, 2 * id + 1, 100);
        device.set_conf(conf.parse().unwrap());
        assert_eq!(device.conf().to_string(), conf);
    }
    assert_eq!(device.stats().oversize_allocations.current, 1);
    (0..8).for_each(|id| device.free(id).unwrap());
    device.empty_cache();
    let stats = device.stats();
    for (key, value) in stats.iter().filter(|(key, _)| key.ends_with(".current")) {
        assert_eq!(value, 0, "{key}");
    }
    assert_eq!(stats.num_device_alloc, stats.num_device_free);
}

#[test]
fn pending_memory_is_handed_out_at_once_only_where_that_is_asked_for() {
    let mut strict = holding(GIB, "");
    let mut eager = holding(GIB, "cross_stream_reuse:True");
    for device in [&mut strict, &mut eager] {
        place(device, 1, 20 * MIB);
        device.record(1, 1).unwrap();
        device.free(1).unwrap();
    }
    assert_eq!(place(&mut strict, 2, 20 * MIB).segment, 1);
    // A part of it; the rest goes on waiting.
    let placed = place(&mut eager, 2, 5 * MIB);
    assert_eq!(
        (placed.segment, placed.offset, placed.rounded),
        (0, 0, 5 * MIB)
    );
    let stats = eager.stats();
    assert_eq!(
        (stats.active.all.current, stats.active_bytes.all.current),
        (2, 20 * MIB)
    );
    assert_eq!(stats.requested_bytes.all.current, 5 * MIB);
    let placed = place(&mut eager, 3, 15 * MIB);
    assert_eq!((placed.segment, placed.offset), (0, 5 * MIB));
    // Nobody waits for anything any more.
    eager.free(2).unwrap();
    eager.free(3).unwrap();
    assert_eq!(eager.stats().active_bytes.all.current, 0);
    let blocks = &eager.snapshot().segments[0].blocks;
    assert_eq!((blocks.len(), blocks[0].state), (1, BlockState::Inactive));
    assert_eq!(eager.stats().num_device_alloc, 1);
}

#[test]
fn another_streams_cached_memory_is_never_handed_out() {
    let mut device = holding(GIB, "cross_stream_reuse:True");
    place_on(&mut device, 1, MIB, 1);
    device.record(1, 2).unwrap();
    device.free(1).unwrap();
    assert_eq!(place_on(&mut device, 2, MIB, 2).segment, 1);
}

#[test]
fn private_pools_tell_their_bytes_and_keep_them_until_they_are_released() {
    let mut device = device(GIB, "");
    let (first, second) = (PoolId(0, 7), PoolId(1, 0));
    device.pool_begin(first);
    place(&mut device, 1, MIB);
    device.pool_begin(second);
    place(&mut device, 2, 3 * MIB);
    device.pool_end(second);
    place(&mut device, 3, MIB);
    device.pool_end(first);
    assert_eq!(place(&mut device, 4, MIB).segment, 2);
    assert_eq!(
        device.private_pool_bytes(),
        [(first, 2 * MIB), (second, 20 * MIB)]
    );
    (1..=4).for_each(|id| device.free(id).unwrap());
    device.empty_cache();
    assert_eq!(device.stats().reserved_bytes.all.current, 22 * MIB);
    device.pool_release(first);
    assert_eq!(
        device.private_pool_bytes(),
        [(first, 2 * MIB), (second, 20 * MIB)]
    );
    device.empty_cache();
    assert_eq!(device.private_pool_bytes(), [(second, 20 * MIB)]);
    device.pool_release(second);
    device.empty_cache();
    assert_eq!(device.private_pool_bytes(), []);
    assert_eq!(device.stats().segment.all.current, 0);
}

#[test]
fn the_history_tells_what_was_done_in_order() {
    let mut device = holding(64 * MIB, "");
    device.record_history(Some(HistoryOptions::default()));
    device.set_time(5);
    place(&mut device, 1, 100);
    device.record(1, 3).unwrap();
    device.free(1).unwrap();
    device.set_time(6);
    refused(&mut device, 65 * MIB);
    device.empty_cache();
    let snapshot = device.snapshot();
    let entries = snapshot.history.iter();
    let told: Vec<_> = entries
        .map(|entry| (entry.action, entry.size, entry.time_us))
        .collect();
    let expected = [
        (TraceAction::SegmentAlloc, 2 * MIB, 5),
        (TraceAction::Alloc, 100, 5),
        (TraceAction::FreeRequested, 100, 5),
        (TraceAction::FreeCompleted, 100, 6),
        (TraceAction::SegmentFree, 2 * MIB, 6),
        (TraceAction::Oom, 65 * MIB, 6),
    ];
    assert_eq!(told, expected);
    assert_eq!(snapshot.history[5].device_free, 64 * MIB);
    let address = snapshot.history[0].address;
    assert!(
        snapshot.history[..5]
            .iter()
            .all(|entry| entry.address == address)
    );
    assert!(address > 0);
    device.record_history(None);
    assert!(device.snapshot().history.is_empty());
}

#[test]
fn a_snapshot_shows_every_segment_and_block_with_its_sizes() {
    let mut device = holding(GIB, "");
    place_on(&mut device, 1, 100, 4);
    place_on(&mut device, 2, 3 * MIB, 5);
    place_on(&mut device, 3, 600, 4);
    device.record(1, 5).unwrap();
    device.free(1).unwrap();
    let snapshot = device.snapshot();
    let segments: Vec<_> = snapshot
        .segments
        .iter()
        .map(|segment| {
            (
                segment.registration_counter,
                segment.stream,
                segment.is_large,
            )
        })
        .collect();
    assert_eq!(segments, [(0, 4, false), (1, 5, true)]);
    let small = &snapshot.segments[0];
    let sizes = (
        small.total_size,
        small.active_size,
        small.allocated_size,
        small.requested_size,
    );
    assert_eq!(sizes, (2 * MIB, 1536, 1024, 700));
    let blocks: Vec<_> = small
        .blocks
        .iter()
        .map(|block| {
            (
                block.address - small.address,
                block.size,
                block.requested_size,
                block.state,
            )
        })
        .collect();
    let expected = [
        (0, 512, 100, BlockState::ActivePendingFree),
        (512, 1024, 600, BlockState::ActiveAllocated),
        (1536, 2 * MIB - 1536, 0, BlockState::Inactive),
    ];
    assert_eq!(blocks, expected);
}

#[test]
fn wrong_numbers_are_refused_and_change_nothing() {
    let mut device = device(GIB, "");
    place(&mut device, 1, 100);
    let before = device.stats();
    for error in [
        device.allocate(1, 100, 0).unwrap_err(),
        device.free(2).unwrap_err(),
        device.record(2, 0).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    device.complete(77);
    device.pool_end(PoolId(3, 3));
    device.pool_release(PoolId(3, 3));
    assert_eq!(device.stats(), before);
}
