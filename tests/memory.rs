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

use vkaccel::memory::{
    self, empty_cache, max_memory_allocated, max_memory_reserved, memory_allocated,
    memory_reserved, memory_stats,
};
use vkaccel::{
    Buffer, ErrorKind, MemPool, MemoryStats, OutOfMemoryReason, PinnedBuffer, Pressure, Result,
    Runtime, Stream,
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
        memory::allocator_settings(None).unwrap_err()
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
