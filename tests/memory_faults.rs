//! The allocator's books balance whichever call of the driver fails.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use ash::vk;
use support::books::check_books;
use support::entry::Entry;
use support::on_each_device;
use vkaccel::memory::{empty_cache, memory_reserved, memory_stats};
use vkaccel::{Buffer, ErrorKind, Result, Stream};

const MIB: usize = 1 << 20;

/// Buffers of all kinds of sizes made and dropped on two streams, one used by the other's.
fn churn() -> Result<()> {
    let (one, other) = (Stream::new(0)?, Stream::new(0)?);
    let mut live: Vec<Buffer<u8>> = Vec::new();
    for round in 0..3 {
        for bytes in [100, 3000, MIB, 3 * MIB, 12 * MIB] {
            let stream = if (bytes + round) % 2 == 0 {
                &one
            } else {
                &other
            };
            live.push(stream.uninit(bytes)?);
        }
        let first = live.swap_remove(0);
        other.fill(&first, 1)?;
        drop(first);
        live.truncate(2 + round);
        if round == 1 {
            empty_cache()?;
        }
    }
    Ok(())
}

#[test]
fn the_books_balance_whichever_call_of_the_driver_fails() {
    on_each_device("the_books_balance_whichever_call_fails", |test| {
        let entry = Entry::new().expect("there is a loader");
        let runtime = test.another(entry.builder().validation(false));
        churn().unwrap();
        for n in 1.. {
            entry.fail_any(n, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            let outcome = churn();
            let failed = entry.failed();
            entry.forget_rules();
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::OutOfMemory, "call {n}: {error}");
            }
            check_books();
            // Commands that were lost are told of once, stream by stream.
            while vkaccel::synchronize(0).is_err() {}
            empty_cache().unwrap();
            check_books();
            assert_eq!(memory_reserved(0).unwrap(), 0, "after call {n}, {failed:?}");
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
fn a_request_that_fails_leaves_the_statistics_but_for_what_it_counts() {
    on_each_device("a_request_that_fails_leaves_the_statistics", |test| {
        let entry = Entry::new().expect("there is a loader");
        let _runtime = test.another(entry.builder());
        let kept = Buffer::<u8>::uninit(3 * MIB).unwrap();
        drop(Buffer::<u8>::uninit(24 * MIB).unwrap());
        let before = memory_stats(0).unwrap();
        entry.fail_all("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let error = Buffer::<u8>::uninit(30 * MIB).unwrap_err();
        entry.forget_rules();
        assert_eq!(
            error.raw(),
            Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY.as_raw())
        );
        let since = memory_stats(0).unwrap().since(&before);
        assert_eq!((since.num_ooms, since.num_alloc_retries), (1, 1));
        assert_eq!((since.num_device_alloc, since.num_device_free), (0, 1));
        assert_eq!(since.allocated.all.allocated, 0);
        assert_eq!(since.reserved_bytes.all.current, -(24 << 20));
        check_books();
        drop(kept);
    });
}
