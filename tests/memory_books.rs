//! Promises about the books of device memory: whatever is asked for and whatever fails, blocks lie
//! apart and fill their segments, and the statistics are what a count of them gives.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use ash::vk;
use support::books::{check_books, families};
use support::entry::Entry;
use support::random::Random;
use support::{TestRuntime, on_each_device};
use vkaccel::memory::{self, empty_cache, memory_reserved, memory_snapshot, memory_stats};
use vkaccel::{Buffer, ErrorKind, MemPool, OutOfMemoryReason, Result, Stream};

const MIB: usize = 1 << 20;

/// A runtime whose driver's calls the entry rules.
fn ruled(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
}

/// Panics unless all that was ever taken went back.
fn check_nothing_is_left() {
    assert!(check_books().is_empty());
    for family in families(&memory_stats(None).unwrap()) {
        assert_eq!(family.all.current, 0);
        assert_eq!(family.all.allocated, family.all.freed);
    }
}

#[test]
fn buffers_of_random_sizes_lie_apart_and_all_memory_comes_back() {
    const SIZES: [usize; 10] = [
        1,
        511,
        512,
        513,
        MIB,
        MIB + 1,
        3 * MIB,
        10 * MIB - 1,
        10 * MIB,
        21 * MIB,
    ];
    on_each_device("buffers_of_random_sizes", |_| {
        let mut random = Random::new(5);
        let mut live: Vec<Buffer<u8>> = Vec::new();
        for _ in 0..10_000 {
            let held: usize = live.iter().map(Buffer::len).sum();
            if live.is_empty() || (random.below(10) < 6 && held < 100 * MIB && live.len() < 50) {
                let size = SIZES[random.below(SIZES.len())];
                live.push(Buffer::uninit(size).unwrap());
            } else {
                drop(live.swap_remove(random.below(live.len())));
            }
            let mut handed_out = check_books();
            let places = live
                .iter()
                .map(|one| (one.address().get(), one.len() as u64));
            let mut places: Vec<(u64, u64)> = places.collect();
            handed_out.sort_unstable();
            places.sort_unstable();
            assert_eq!(handed_out, places);
        }
        drop(live);
        for segment in memory_snapshot(None).unwrap().segments {
            assert_eq!(segment.blocks.len(), 1, "not merged: {segment:?}");
        }
        empty_cache().unwrap();
        assert_eq!(memory_reserved(None).unwrap(), 0);
        check_nothing_is_left();
    });
}

/// Some of everything that takes and gives memory back.
fn work() -> Result<()> {
    let (own, other) = (Stream::new(0)?, Stream::new(0)?);
    let small = own.uninit::<u8>(1000)?;
    let large = own.zeroed::<u8>(3 * MIB)?;
    let copy = other.uninit::<u8>(3 * MIB)?;
    other.wait_stream(&own)?;
    other.copy(&large, &copy)?;
    drop(large);
    let pool = MemPool::new(0)?;
    let private = pool.scope(|| own.zeroed::<u8>(5000))?;
    own.fill(&small, 7)?;
    assert_eq!(own.to_vec(&small)?, [7; 1000]);
    drop((private, pool));
    empty_cache()?;
    let whole = own.uninit::<u8>(22 * MIB)?;
    other.synchronize()?;
    drop((small, whole, copy));
    vkaccel::synchronize(None)
}

#[test]
fn private_pools_and_books_are_whole_when_the_host_runs_out_of_memory_at_any_call() {
    on_each_device("private_pools_and_books_are_whole", |test| {
        let (entry, runtime) = ruled(test);
        work().unwrap();
        for n in 1.. {
            vkaccel::synchronize(None).unwrap();
            empty_cache().unwrap();
            check_nothing_is_left();
            assert_eq!(memory::private_pool_bytes(None).unwrap(), []);
            entry.fail_any(n, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            let outcome = work();
            let failed = entry.failed();
            entry.forget_rules();
            assert!(check_books().is_empty(), "call {n}, {failed:?}");
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::OutOfHostMemory, "{failed:?}");
            }
            // Work that failed at the device's own turn is told of once more, at the most.
            if work().is_err() {
                work().unwrap();
            }
            if failed.is_none() {
                assert!(n > 20, "there are only {n} calls");
                break;
            }
        }
        drop(runtime);
        assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
    });
}

#[test]
fn what_the_driver_says_of_an_allocation_is_told_by_its_kind() {
    on_each_device("what_the_driver_says", |test| {
        let (entry, _runtime) = ruled(test);
        let kept = Buffer::from_slice(&[7u8; 100]).unwrap();
        for (result, reason) in [
            (
                vk::Result::ERROR_TOO_MANY_OBJECTS,
                Some(OutOfMemoryReason::TooManyAllocations),
            ),
            (
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                Some(OutOfMemoryReason::RefusedByDriver),
            ),
            (vk::Result::ERROR_OUT_OF_HOST_MEMORY, None),
        ] {
            let before = memory_stats(None).unwrap();
            entry.fail_all("vkAllocateMemory", result);
            let error = Buffer::<u8>::uninit(3 * MIB).unwrap_err();
            entry.forget_rules();
            assert_eq!(error.raw(), Some(result.as_raw()), "{error}");
            assert_eq!(error.is_out_of_memory(), reason.is_some(), "{error}");
            let figures = error.out_of_memory();
            assert_eq!(figures.map(|figures| figures.reason), reason, "{error}");
            match figures {
                Some(figures) => {
                    assert_eq!(figures.requested, 3 << 20);
                    assert_eq!((figures.reserved, figures.allocated), (2 << 20, 512));
                    assert!(figures.free <= figures.total && figures.total > 0);
                }
                None => assert_eq!(error.kind(), ErrorKind::OutOfHostMemory),
            }
            let after = memory_stats(None).unwrap();
            let ooms = after.num_ooms - before.num_ooms;
            assert_eq!(ooms, u64::from(reason.is_some()), "{error}");
            assert_eq!(families(&after), families(&before));
            assert_eq!(check_books().len(), 1);
        }
        assert_eq!(kept.to_vec().unwrap(), [7; 100]);
        memory::reset_accumulated_memory_stats(None).unwrap();
        drop(Buffer::<u8>::uninit(3 * MIB).unwrap());
        assert_eq!(memory_stats(None).unwrap().num_device_alloc, 1);
    });
}
