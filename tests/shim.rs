//! What the crate makes of devices that the machine does not have: ones that get lost at work, or
//! have little memory. The ICD shim (`tests/icd-shim`) shows them.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use process::over_the_shim;
use support::{TestRuntime, builder};
use vkaccel::{Buffer, ErrorKind, OutOfMemoryReason, Result, Stream};

const MIB: usize = 1 << 20;

/// Buffers of this size until there is an error.
fn fill_up(bytes: usize) -> (Vec<Buffer<u8>>, vkaccel::Error) {
    let mut held = Vec::new();
    loop {
        match Buffer::zeroed(bytes) {
            Ok(buffer) => held.push(buffer),
            Err(error) => return (held, error),
        }
        assert!(held.len() < 10_000, "it never gets full");
    }
}

/// Work that is right only if everything was.
fn work() -> Result<()> {
    let stream = Stream::new(0)?;
    let words = stream.upload(&[1u32, 2, 3])?;
    let copy = stream.zeroed::<u32>(3)?;
    stream.copy(&words, &copy)?;
    assert_eq!(stream.to_vec(&copy)?, [1, 2, 3]);
    Ok(())
}

fn loses_the_device_at_work() {
    // The layer that distributions ship takes what a lost device had to do for unfinished.
    let mut runtime = TestRuntime::new(builder().validation(false));
    let stream = Stream::new(0).unwrap();
    let words = stream.zeroed::<u32>(1000).unwrap();
    runtime.expect_loss();
    // Nobody waits, so that the loss comes while more is submitted.
    let lost = (0..10_000).find_map(|round| {
        let filled = stream.fill(&words, round).and_then(|()| stream.flush());
        filled.and_then(|()| stream.query()).err()
    });
    let lost = lost.unwrap();
    assert!(lost.is_device_lost(), "{lost}");
    // What the host has seen by then is at most what was done.
    let text = lost.to_string();
    let seen = text.split("seen to have completed: ").nth(1).unwrap();
    let seen: u64 = seen.split(' ').next().unwrap().parse().unwrap();
    assert!(seen <= 8, "{text}");
    let told = |result: Result<()>| {
        let error = result.unwrap_err();
        assert!(error.is_device_lost(), "{error}");
    };
    told(stream.synchronize());
    told(stream.fill(&words, 1));
    told(words.to_vec().map(drop));
    told(Buffer::<u32>::zeroed(16).map(drop));
    told(vkaccel::synchronize(None));
    drop((words, stream));
    drop(runtime);
    // A new runtime opens the device anew.
    let _runtime = TestRuntime::new(builder().validation(false));
    work().unwrap();
}

#[test]
fn a_loss_that_counters_tell_as_the_highest_number_is_told_to_all() {
    let test = "a_loss_that_counters_tell_as_the_highest_number_is_told_to_all";
    let settings = [
        ("FAIL", "execution#9=ERROR_DEVICE_LOST"),
        ("DELAY_US", "2000"),
        ("QUEUES", "2"),
    ];
    over_the_shim(test, &settings, loses_the_device_at_work);
}

#[test]
fn a_loss_that_counters_tell_as_an_error_is_told_to_all() {
    let test = "a_loss_that_counters_tell_as_an_error_is_told_to_all";
    let settings = [
        ("FAIL", "execution#9=ERROR_DEVICE_LOST"),
        ("LOST_COUNTER", "error"),
        ("DELAY_US", "2000"),
    ];
    over_the_shim(test, &settings, loses_the_device_at_work);
}

#[test]
fn a_full_device_says_so_with_figures_and_goes_on() {
    let test = "a_full_device_says_so_with_figures_and_goes_on";
    let settings = [("HEAP_BYTES", "33554432"), ("HEAP_OTHERS_BYTES", "8388608")];
    over_the_shim(test, &settings, || {
        let _runtime = TestRuntime::new(builder());
        work().unwrap();
        for _ in 0..3 {
            let (mut held, error) = fill_up(MIB);
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
            let figures = error.out_of_memory().unwrap();
            assert_eq!(figures.reason, OutOfMemoryReason::RefusedByDriver);
            assert_eq!((figures.requested, figures.total), (1 << 20, 32 << 20));
            assert!((16..=24).contains(&held.len()), "{} MiB", held.len());
            let memory = vkaccel::get_memory_info(0).unwrap();
            // Less than a segment of small buffers takes.
            assert!(memory.free < 2 << 20, "{memory:?}");
            // What there is can be used, and what is given back is there again.
            held[0].fill(7).unwrap();
            held.truncate(8);
            assert_eq!(held[0].to_vec().unwrap(), [7; MIB]);
            work().unwrap();
        }
    });
}

#[test]
fn no_more_allocations_are_made_than_the_device_takes() {
    let test = "no_more_allocations_are_made_than_the_device_takes";
    let settings = [("MAX_ALLOCATIONS", "40")];
    over_the_shim(test, &settings, || {
        let _runtime = TestRuntime::new(builder().alloc_conf("segment_per_allocation:True"));
        work().unwrap();
        let (mut held, error) = fill_up(4096);
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        let figures = error.out_of_memory().unwrap();
        assert_eq!(figures.reason, OutOfMemoryReason::TooManyAllocations);
        assert!((30..=40).contains(&held.len()), "{}", held.len());
        held.truncate(20);
        work().unwrap();
    });
}

#[test]
fn a_buffer_beyond_the_largest_never_fits() {
    let test = "a_buffer_beyond_the_largest_never_fits";
    let settings = [
        ("MAX_ALLOCATION_BYTES", "8388608"),
        ("MAX_BUFFER_BYTES", "4194304"),
    ];
    over_the_shim(test, &settings, || {
        let _runtime = TestRuntime::new(builder());
        let error = Buffer::<u8>::uninit(4 * MIB + 1).unwrap_err();
        let figures = error.out_of_memory().unwrap();
        assert_eq!(figures.reason, OutOfMemoryReason::NeverFits, "{error}");
        let largest = Buffer::<u8>::zeroed(4 * MIB).unwrap();
        assert_eq!(largest.view(4 * MIB - 1..).unwrap().to_vec().unwrap(), [0]);
    });
}
