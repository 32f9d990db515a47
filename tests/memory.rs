//! Promises of the caching allocator: what is held, cached, given back and refused.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use process::over_the_shim;
use support::entry::Entry;
use support::{TestRuntime, builder, on_each_device, on_each_device_with};
use vkaccel::alloc::{Frame, TraceAction};
use vkaccel::memory::{
    self, empty_cache, max_memory_allocated, max_memory_reserved, memory_allocated,
    memory_reserved, memory_stats,
};
use vkaccel::{
    Buffer, ErrorKind, HistoryOptions, MemPool, MemoryStats, OutOfMemoryReason, PinnedBuffer,
    Pressure, Result, Runtime, Stream,
};

const MIB: usize = 1 << 20;

fn stats() -> MemoryStats {
    memory_stats(None).unwrap()
}

fn bytes(len: usize) -> Buffer<u8> {
    Buffer::uninit(len).unwrap()
}

/// A runtime whose calls of Vulkan are counted.
fn counted(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
}

#[test]
fn statistics_are_empty_before_the_first_buffer_and_whole_after() {
    on_each_device("statistics_are_empty_before_the_first_buffer", |test| {
        assert!(stats().is_empty());
        assert_eq!(memory_reserved(None).unwrap(), 0);
        empty_cache().unwrap();
        memory::reset_peak_memory_stats(None).unwrap();
        memory::reset_accumulated_memory_stats(None).unwrap();
        assert!(!test.runtime().is_initialized());
        let wrong = memory_stats(99).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidDevice);

        let buffer = bytes(1);
        let stats = stats();
        assert_eq!(stats.iter().count(), MemoryStats::KEYS.len());
        assert_eq!(stats.requested_bytes.all.current, 1);
        assert_eq!(stats.allocated_bytes.small_pool.current, 512);
        assert_eq!(stats.reserved_bytes.small_pool.current, 2 << 20);
        assert_eq!((stats.num_device_alloc, stats.num_device_free), (1, 0));
        drop(buffer);
    });
}

#[test]
fn readers_are_the_statistics_they_are_named_after() {
    on_each_device("readers_are_the_statistics", |_| {
        let small = bytes(1000);
        drop(bytes(3 * MIB));
        let stats = stats();
        assert_eq!(memory_allocated(None).unwrap(), 1024);
        assert_eq!(
            memory_allocated(None).unwrap(),
            stats.allocated_bytes.all.current
        );
        let peak = 1024 + 3 * MIB as u64;
        assert_eq!(max_memory_allocated(None).unwrap(), peak);
        assert_eq!(
            memory_reserved(None).unwrap(),
            stats.reserved_bytes.all.current
        );
        assert_eq!(max_memory_reserved(None).unwrap(), 22 << 20);
        drop(small);
    });
}

#[test]
fn nothing_at_all_moves_no_counter() {
    on_each_device("nothing_at_all_moves_no_counter", |_| {
        drop(bytes(1));
        let before = stats();
        let other = Stream::new(0).unwrap();
        let empty = Buffer::<u32>::from_slice(&[]).unwrap();
        empty.fill(1).unwrap();
        empty.record_stream(&other).unwrap();
        assert!(empty.view(..).unwrap().to_vec().unwrap().is_empty());
        drop(empty);
        drop(Buffer::<f64>::zeroed(0).unwrap());
        assert_eq!(stats(), before);
    });
}

#[test]
fn a_freed_block_is_handed_out_again_without_the_driver() {
    on_each_device("a_freed_block_is_handed_out_again", |test| {
        let (entry, _runtime) = counted(test);
        let first = bytes(5 * MIB);
        let address = first.address();
        drop(first);
        let calls = entry.calls("vkAllocateMemory");
        for _ in 0..100 {
            assert_eq!(bytes(5 * MIB).address(), address);
        }
        assert_eq!(entry.calls("vkAllocateMemory"), calls);
        assert_eq!(stats().num_device_alloc, 1);
    });
}

/// Words of one buffer, by many rounds of a freed and reused block: each launch must see its own.
#[test]
fn memory_that_is_reused_while_work_is_queued_keeps_what_each_owner_wrote() {
    on_each_device("memory_that_is_reused_while_work_is_queued", |_| {
        let out = Buffer::<u32>::zeroed(64 * 1024).unwrap();
        for round in 0..64u32 {
            let temporary = Buffer::from_slice(&[round; 1024]).unwrap();
            let start = round as usize * 1024;
            out.view(start..start + 1024)
                .unwrap()
                .copy_from(temporary.view(..).unwrap())
                .unwrap();
        }
        let words = out.to_vec().unwrap();
        for (index, word) in words.iter().enumerate() {
            assert_eq!(*word as usize, index / 1024);
        }
    });
}

#[test]
fn an_emptied_cache_is_back_with_the_driver_before_the_call_returns() {
    on_each_device("an_emptied_cache_is_back_with_the_driver", |test| {
        let (entry, _runtime) = counted(test);
        let kept = Buffer::from_slice(&[7u8; 100]).unwrap();
        let held = |entry: &Entry| entry.calls("vkAllocateMemory") - entry.calls("vkFreeMemory");
        let before = held(&entry);
        let busy: Vec<Buffer<u32>> = (1..=4).map(|n| Buffer::zeroed(n * MIB).unwrap()).collect();
        assert!(held(&entry) >= before + 3);
        drop(busy);
        assert!(memory_reserved(None).unwrap() > 2 << 20);
        empty_cache().unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 2 << 20);
        assert_eq!(held(&entry), before);
        assert_eq!(kept.to_vec().unwrap(), [7; 100]);
        drop(kept);
        empty_cache().unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 0);
        let stats = stats();
        assert_eq!(stats.segment.all.freed, stats.segment.all.allocated);
    });
}

#[test]
fn a_reset_of_the_peaks_leaves_all_else() {
    on_each_device("a_reset_of_the_peaks_leaves_all_else", |_| {
        let a = bytes(4 * MIB);
        drop(bytes(6 * MIB));
        let read = || stats().allocated_bytes.all;
        assert_eq!(read().peak, 10 << 20);
        memory::reset_peak_memory_stats(None).unwrap();
        assert_eq!((read().peak, read().current), (4 << 20, 4 << 20));
        drop(bytes(MIB));
        assert_eq!(read().peak, 5 << 20);
        let blocks = || stats().allocated.all;
        assert_eq!((blocks().allocated, blocks().freed), (3, 2));
        drop(a);
    });
}

#[test]
fn a_reset_of_the_sums_leaves_all_else() {
    on_each_device("a_reset_of_the_sums_leaves_all_else", |_| {
        let a = bytes(4 * MIB);
        drop(bytes(6 * MIB));
        let peak = stats().allocated_bytes.all.peak;
        memory::reset_accumulated_memory_stats(None).unwrap();
        let blocks = || stats().allocated.all;
        assert_eq!(
            (blocks().allocated, blocks().freed, blocks().current),
            (0, 0, 1)
        );
        assert_eq!(stats().allocated_bytes.all.peak, peak);
        drop(a);
        assert_eq!((blocks().current, blocks().freed), (0, 1));
    });
}

#[test]
fn a_fraction_is_held_before_the_driver_is_asked() {
    on_each_device("a_fraction_is_held_before_the_driver_is_asked", |test| {
        let (entry, runtime) = counted(test);
        assert_eq!(memory::get_per_process_memory_fraction(None).unwrap(), 1.0);
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let error = memory::set_per_process_memory_fraction(wrong, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{wrong}");
        }
        let total = vkaccel::get_memory_info(None).unwrap().total;
        let fraction = (33_554_432.0 + 0.5) / total as f64;
        // Before there is an allocator.
        memory::set_per_process_memory_fraction(fraction, None).unwrap();
        assert!(!runtime.runtime().is_initialized());
        assert_eq!(
            memory::get_per_process_memory_fraction(None).unwrap(),
            fraction
        );

        drop(bytes(20 * MIB));
        let whole = Buffer::<u8>::uninit(32 * MIB).unwrap();
        whole.fill(0x5A).unwrap();
        let read = stats();
        assert_eq!(read.reserved_bytes.all.current, 32 << 20);
        assert_eq!(read.segment.all.current, 1);
        assert_eq!((read.num_alloc_retries, read.num_ooms), (1, 0));
        assert_eq!(read.num_device_free, 1);

        vkaccel::synchronize(None).unwrap();
        let calls = entry.calls("vkAllocateMemory");
        let error = Buffer::<u8>::uninit(512).unwrap_err();
        assert_eq!(entry.calls("vkAllocateMemory"), calls);
        let figures = error.out_of_memory().unwrap();
        assert_eq!(figures.reason, OutOfMemoryReason::OverLimit);
        assert_eq!((figures.requested, figures.reserved), (512, 32 << 20));
        assert_eq!((figures.total, figures.limit), (total, Some(32 << 20)));
        let read = stats();
        assert_eq!((read.num_ooms, read.num_alloc_retries), (1, 2));
        memory::set_per_process_memory_fraction(1.0, None).unwrap();
        assert!(whole.to_vec().unwrap().iter().all(|&byte| byte == 0x5A));
        memory::set_per_process_memory_fraction(0.0, None).unwrap();
        assert!(
            Buffer::<u8>::uninit(40 * MIB)
                .unwrap_err()
                .is_out_of_memory()
        );
    });
}

#[test]
fn a_limit_in_bytes_is_held_before_the_driver_is_asked() {
    let limited = || builder().memory_limit(8 << 20);
    on_each_device_with("a_limit_in_bytes_is_held", limited, |_| {
        assert_eq!(memory::memory_limit(None).unwrap(), Some(8 << 20));
        let held: Vec<_> = (0..8).map(|_| bytes(MIB)).collect();
        let error = Buffer::<u8>::uninit(MIB).unwrap_err();
        let figures = error.out_of_memory().unwrap();
        assert_eq!(figures.reason, OutOfMemoryReason::OverLimit);
        assert_eq!(figures.limit, Some(8 << 20));
        assert!(error.to_string().contains("set_memory_limit"), "{error}");
        assert_eq!(stats().num_oom_rejections, 1);
        memory::set_memory_limit(Some(10 << 20), None).unwrap();
        drop(bytes(MIB));
        drop(held);
        memory::set_memory_limit(Some(0), None).unwrap();
        // What is cached is still there to be used.
        drop(bytes(MIB));
        memory::set_memory_limit(None, None).unwrap();
        drop(bytes(40 * MIB));
    });
}

#[test]
fn settings_change_at_run_time_and_keep_what_is_there() {
    on_each_device("settings_change_at_run_time", |_| {
        assert_eq!(memory::allocator_settings(None).unwrap(), "");
        let kept = bytes(3 * MIB);
        let text = "roundup_power2_divisions:4";
        memory::set_allocator_settings(text, None).unwrap();
        assert_eq!(memory::allocator_settings(None).unwrap(), text);
        let rounded = bytes(5 * MIB + 1);
        assert_eq!(memory_allocated(None).unwrap(), (3 + 6) << 20);
        let error = memory::set_allocator_settings("no_such_key:1", None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("max_split_size_mb"), "{error}");
        assert_eq!(memory::allocator_settings(None).unwrap(), text);
        drop((kept, rounded));
    });
    let wrong = Runtime::builder().alloc_conf("max_split_size_mb:x").build();
    let error = {
        let _entered = wrong.enter();
        vkaccel::memory_stats(None).unwrap_err()
    };
    let kinds = [ErrorKind::Config, ErrorKind::NoDriver, ErrorKind::NoDevice];
    assert!(kinds.contains(&error.kind()), "{error}");
}

#[test]
fn private_pools_hold_their_own_memory_until_they_are_given_up() {
    on_each_device("private_pools_hold_their_own_memory", |_| {
        let pool = MemPool::new(None).unwrap();
        let shared = bytes(100);
        let own = pool.scope(|| Buffer::<u8>::uninit(100)).unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 4 << 20);
        let of_pools = || memory::private_pool_bytes(None).unwrap();
        assert_eq!(of_pools(), [(pool.id(), 2 << 20)]);
        // It is left on error and panic.
        let failed: Result<()> = pool.scope(|| Buffer::<u8>::uninit(usize::MAX).map(drop));
        assert!(failed.is_err());
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            pool.scope(|| -> Result<()> { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        drop(bytes(100));
        assert_eq!(memory_reserved(None).unwrap(), 4 << 20);

        drop(own);
        empty_cache().unwrap();
        assert_eq!(of_pools(), [(pool.id(), 2 << 20)]);
        let late = pool.scope(|| Buffer::<u8>::uninit(100)).unwrap();
        drop(pool);
        empty_cache().unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 4 << 20);
        drop(late);
        empty_cache().unwrap();
        assert!(of_pools().is_empty());
        assert_eq!(memory_reserved(None).unwrap(), 2 << 20);
        drop(shared);
    });
}

#[test]
fn pressure_is_told_once_a_request_with_no_lock_held() {
    let limited = || builder().memory_limit(32 << 20);
    on_each_device_with("pressure_is_told_once_a_request", limited, |_| {
        let spare = Arc::new(Mutex::new(Some(bytes(20 * MIB))));
        let calls = Arc::new(AtomicUsize::new(0));
        let (given, counted) = (Arc::clone(&spare), Arc::clone(&calls));
        let handle = memory::on_pressure(None, move |figures| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert_eq!(figures.requested, 30 << 20);
            // Asking is allowed, allocating is not: it fails instead of recursing.
            assert!(memory_reserved(None).unwrap() > 0);
            let nested = Buffer::<u8>::uninit(24 * MIB).unwrap_err();
            assert!(nested.is_out_of_memory(), "{nested}");
            match given.lock().unwrap().take() {
                Some(_) => Pressure::TryAgain,
                None => Pressure::GiveUp,
            }
        })
        .unwrap();
        let got = bytes(30 * MIB);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        // The nested one.
        assert_eq!(stats().num_ooms, 1);
        let error = Buffer::<u8>::uninit(30 * MIB).unwrap_err();
        assert!(error.is_out_of_memory());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(stats().num_ooms, 3);
        drop(handle);
        assert!(Buffer::<u8>::uninit(30 * MIB).is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        drop(got);
    });
}

#[test]
fn memory_used_on_another_stream_waits_for_it() {
    on_each_device("memory_used_on_another_stream_waits_for_it", |_| {
        let (owner, user) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let block = owner.zeroed::<u32>(MIB / 4).unwrap();
        let copy = user.uninit::<u32>(MIB / 4).unwrap();
        owner.synchronize().unwrap();
        for _ in 0..50 {
            user.copy(&block, &copy).unwrap();
        }
        drop(block);
        let read = stats();
        assert_eq!(read.allocated_bytes.all.current, 1 << 20);
        assert_eq!(read.active_bytes.all.current, 2 << 20);
        user.synchronize().unwrap();
        // Frees are looked at when memory is asked for.
        drop(owner.uninit::<u8>(512).unwrap());
        let read = stats();
        assert_eq!(read.active_bytes.all.current, 1 << 20);
        assert_eq!(read.active.all.current, 1);
    });
}

#[test]
fn threads_on_streams_of_their_own_keep_the_counters_whole() {
    on_each_device("threads_on_streams_of_their_own", |test| {
        std::thread::scope(|scope| {
            for seed in 1..=4u64 {
                let runtime = test.runtime().clone();
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    churn(seed);
                });
            }
        });
        let read = stats();
        assert_eq!(read.allocated.all.current, 0);
        assert_eq!(read.allocated.all.allocated, read.allocated.all.freed);
        assert_eq!(read.requested_bytes.all.current, 0);
        vkaccel::synchronize(None).unwrap();
        empty_cache().unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 0);
        assert_eq!(stats().active_bytes.all.current, 0);
    });
}

/// Buffers of random sizes, each with a content of its own.
fn churn(seed: u64) {
    let stream = Stream::new(0).unwrap();
    let mut random = support::random::Random::new(seed);
    let mut live: Vec<(u32, Buffer<u32>)> = Vec::new();
    for round in 0..300u32 {
        let sizes = [1, 127, 128, 129, 1000, 100_000, 300_000];
        if live.len() < 20 && random.below(10) < 6 {
            let len = sizes[random.below(sizes.len())];
            let buffer = stream.uninit::<u32>(len).unwrap();
            stream.fill(&buffer, round).unwrap();
            live.push((round, buffer));
        } else if !live.is_empty() {
            let (value, buffer) = live.swap_remove(random.below(live.len()));
            if round % 8 == 0 {
                let words = stream.to_vec(&buffer).unwrap();
                assert!(words.iter().all(|&word| word == value));
            }
        }
    }
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
        assert!(entry.frames[0].filename.ends_with("memory.rs"));
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
        let is_here = |frame: &Frame| frame.line == line && frame.filename.ends_with("memory.rs");
        let here: Vec<bool> = frames.iter().map(is_here).collect();
        assert!(
            here.len() > 1 && here[0] && !here[1..].contains(&true),
            "{frames:?}"
        );
        // With debug information, which callers' files are from, its function is known, too.
        let debug = frames[1..]
            .iter()
            .any(|frame| frame.filename.ends_with("memory.rs"));
        assert!(!debug || !frames[0].name.is_empty(), "{frames:?}");
        memory::record_memory_history(None, None).unwrap();
    });
}

#[test]
fn memory_of_streams_that_are_gone_serves_others() {
    on_each_device("memory_of_streams_that_are_gone", |_| {
        for round in 0..50u32 {
            let stream = Stream::new(0).unwrap();
            let words = stream.uninit::<u32>(3 * MIB).unwrap();
            stream.fill(&words, round).unwrap();
            let seen = stream.to_vec(words.view(..10).unwrap()).unwrap();
            assert_eq!(seen, [round; 10]);
        }
        assert_eq!(stats().num_device_alloc, 1);
        // A buffer may outlive its stream, and then leave its memory.
        let stream = Stream::new(0).unwrap();
        let late = stream.zeroed::<u32>(3 * MIB).unwrap();
        drop(stream);
        let other = Stream::new(0).unwrap();
        let apart = other.uninit::<u32>(3 * MIB).unwrap();
        assert_eq!(stats().num_device_alloc, 2);
        drop(late);
        vkaccel::synchronize(0).unwrap();
        drop(other.uninit::<u32>(3 * MIB).unwrap());
        assert_eq!(stats().num_device_alloc, 2);
        drop(apart);
        empty_cache().unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 0);
    });
}

/// The shim holds each submission back for a while.
#[test]
fn memory_that_queued_work_still_reads_is_not_overwritten_by_the_host() {
    let test = "memory_that_queued_work_still_reads_is_not_overwritten_by_the_host";
    over_the_shim(test, &[("DELAY_US", "3000")], || {
        on_each_device(test, |_| {
            let stream = Stream::new(0).unwrap();
            for round in 0..20u32 {
                let a = stream.upload(&[round; 5000]).unwrap();
                let copy = stream.uninit::<u32>(5000).unwrap();
                stream.copy(&a, &copy).unwrap();
                let address = a.address();
                drop(a);
                // It gets the memory of `a`, which the copy may not have read yet.
                let b = stream.upload(&[round + 1000; 5000]).unwrap();
                assert_eq!(b.address(), address);
                assert_eq!(stream.to_vec(&copy).unwrap(), [round; 5000]);
                assert_eq!(stream.to_vec(&b).unwrap(), [round + 1000; 5000]);
            }
        });
    });
}

#[test]
fn the_host_writes_and_reads_mapped_memory_itself_where_nothing_uses_it() {
    on_each_device("the_host_writes_and_reads_mapped_memory_itself", |test| {
        let (entry, _runtime) = counted(test);
        let words = Buffer::from_slice(&[1u32; 1000]).unwrap();
        // The software drivers have one kind of memory, which the host reaches, unless it is hidden.
        let is_apart = std::env::var_os("VKACCEL_SHIM_MEMORY").is_some();
        assert_eq!(entry.calls("vkQueueSubmit") > 0, is_apart);
        assert_eq!(words.to_vec().unwrap(), [1; 1000]);
        words.fill(2).unwrap();
        assert_eq!(words.to_vec().unwrap(), [2; 1000]);
        words.write(&[3; 1000]).unwrap();
        assert_eq!(words.view(10..20).unwrap().to_vec().unwrap(), [3; 10]);
        assert_eq!(entry.calls("vkCmdCopyBuffer") > 0, is_apart);
    });
}

#[test]
fn threads_that_copy_to_and_from_one_buffer_get_whole_contents() {
    on_each_device("threads_that_copy_to_and_from_one_buffer", |test| {
        let words = Buffer::from_slice(&[0u32; 50_000]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3u32 {
                let (runtime, words) = (test.runtime().clone(), &words);
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    for round in 0..30 {
                        words.write(&vec![thread * 1000 + round; 50_000]).unwrap();
                        let seen = words.to_vec().unwrap();
                        assert!(seen.iter().all(|&word| word == seen[0]), "torn");
                    }
                });
            }
        });
    });
}

/// Each kind of idle memory makes way for the other, where one heap or the driver's count has both.
#[test]
fn idle_host_memory_makes_way_for_buffers_and_the_other_way_round() {
    let test = "idle_host_memory_makes_way_for_buffers_and_the_other_way_round";
    over_the_shim(test, &[("HEAP_BYTES", "67108864")], || {
        let _runtime = TestRuntime::new(builder());
        drop(PinnedBuffer::<u8>::new(32 * MIB).unwrap());
        let device = Buffer::<u8>::zeroed(40 * MIB).unwrap();
        drop(device);
        let host = PinnedBuffer::<u8>::new(40 * MIB).unwrap();
        drop(host);
    });
}

#[test]
fn idle_allocations_make_way_where_the_driver_has_no_more_of_them() {
    let test = "idle_allocations_make_way_where_the_driver_has_no_more_of_them";
    let settings = [("MAX_ALLOCATIONS", "24"), ("MEMORY", "apart")];
    over_the_shim(test, &settings, || {
        let _runtime = TestRuntime::new(builder());
        let pinned: Vec<_> = (0..30)
            .map_while(|_| PinnedBuffer::<u8>::new(100).ok())
            .collect();
        assert!(pinned.len() > 15);
        drop(pinned);
        let buffers: Vec<_> = (0..30)
            .map_while(|_| Buffer::<u8>::uninit(12 * MIB).ok())
            .collect();
        assert!(buffers.len() > 15);
        drop(buffers);
        drop(PinnedBuffer::<u8>::new(100).unwrap());
    });
}

#[test]
fn callbacks_are_not_asked_for_what_nothing_that_is_given_up_could_help() {
    let limited = || builder().memory_limit(32 << 20);
    on_each_device_with("callbacks_are_not_asked", limited, |_| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let _handle = memory::on_pressure(None, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Pressure::GiveUp
        });
        assert!(Buffer::<u8>::uninit(1 << 50).is_err());
        let error = Buffer::<u8>::uninit(40 * MIB).unwrap_err();
        assert!(
            error.to_string().contains("more than the limit alone"),
            "{error}"
        );
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let held = bytes(20 * MIB);
        assert!(Buffer::<u8>::uninit(20 * MIB).is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        drop(held);
    });
}

/// The shim holds each submission back for a while.
#[test]
fn memory_that_is_reused_behind_a_wait_is_not_written_by_the_host_meanwhile() {
    let test = "memory_that_is_reused_behind_a_wait_is_not_written_by_the_host_meanwhile";
    over_the_shim(test, &[("QUEUES", "2"), ("DELAY_US", "5000")], || {
        let conf = "cross_stream_reuse:True";
        let _runtime = TestRuntime::new(builder().alloc_conf(conf));
        let (owner, user) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let mut reused = 0;
        for round in 0..10u32 {
            let x = owner.upload(&vec![round; 3 * MIB]).unwrap();
            owner.synchronize().unwrap();
            let copy = user.uninit::<u32>(3 * MIB).unwrap();
            user.copy(&x, &copy).unwrap();
            let address = x.address();
            drop(x);
            let y = owner.upload(&vec![round + 100; 3 * MIB]).unwrap();
            reused += u32::from(y.address() == address);
            assert!(
                user.to_vec(&copy)
                    .unwrap()
                    .iter()
                    .all(|&word| word == round)
            );
            assert!(
                owner
                    .to_vec(&y)
                    .unwrap()
                    .iter()
                    .all(|&word| word == round + 100)
            );
        }
        assert!(reused > 0, "nothing was reused before it was free");
    });
}
