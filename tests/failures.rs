//! Calls of the driver that fail: nothing panics, nothing is lost without a word, nothing leaks, and
//! what comes after works.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::time::Duration;

use ash::vk;
use support::entry::Entry;
use support::kernels::{build, chosen as kernel, module};
use support::{TestRuntime, on_each_device};
use vkaccel::{Buffer, ErrorKind, Event, Grid, Kernel, Result, Stream};

/// A runtime for the device of `test` whose driver's calls the entry rules.
fn ruled(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
}

/// Some of everything: kernels, memory, uploads, launches, copies, fills, downloads.
fn work() -> Result<()> {
    let map = build(Kernel::builder(module("affine_map")))?;
    let stream = Stream::new(0)?;
    let source = stream.upload(&[1u32, 2, 3])?;
    let target = stream.zeroed::<u32>(3)?;
    let bytes = stream.zeroed::<u8>(7)?;
    stream.fill(&bytes, 9)?;
    for _ in 0..3 {
        stream.launch(&map, Grid::elements(3), (&source, &target, 11, 1, 3))?;
        stream.copy(&target, &source)?;
    }
    let words = stream.read_async(&target)?;
    assert_eq!(stream.to_vec(&bytes)?, [9; 7]);
    wait_for_each_other(&stream, &source)?;
    let expected = [1u32, 2, 3].map(|word| ((word * 11 + 1) * 11 + 1) * 11 + 1);
    assert_eq!(words.wait()?, expected);
    // Another stream takes over what the first has left.
    let words = Buffer::from_slice(&[5u32; 100])?;
    drop((stream, source));
    assert_eq!(words.to_vec()?, [5; 100]);
    vkaccel::synchronize(None)
}

/// Streams that wait for each other by events, and the time that takes.
fn wait_for_each_other(stream: &Stream, words: &Buffer<u32>) -> Result<()> {
    let other = Stream::new(0)?;
    let (start, end) = (Event::with_timing(), Event::with_timing());
    start.record(stream)?;
    other.wait_event(&start)?;
    other.fill(words, 1)?;
    end.record(&other)?;
    stream.wait_stream(&other)?;
    stream.fill(words, 2)?;
    assert_eq!(stream.to_vec(words)?, [2; 3]);
    end.synchronize()?;
    match start.elapsed_time(&end) {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// What the `n`-th call gives.
fn refusal(n: u64) -> vk::Result {
    match n % 2 {
        0 => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        _ => vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    }
}

/// Works while the `n`-th call from now fails, and then without failures; false if there was none.
fn works_in_spite_of_call(n: u64, entry: &Entry) -> bool {
    entry.fail_any(n, refusal(n));
    let outcome = work();
    let failed = entry.failed();
    entry.forget_rules();
    let Some(call) = failed else {
        outcome.unwrap();
        assert!(n > 20, "there are only {n} calls");
        return false;
    };
    if let Err(error) = outcome {
        let kinds = [ErrorKind::OutOfMemory, ErrorKind::OutOfHostMemory];
        assert!(kinds.contains(&error.kind()), "call {n}, {call}: {error:?}");
        let raw = Some(refusal(n).as_raw());
        assert_eq!(error.raw(), raw, "call {n}, {call}: {error:?}");
    }
    // Commands that nobody waited for may be lost behind it; each stream tells of that once.
    while vkaccel::synchronize(None).is_err() {}
    work().unwrap_or_else(|error| panic!("after call {n}, {call}: {error}"));
    true
}

/// Without the layer, which would take most of the time; the entry itself sees what leaks.
#[test]
fn memory_may_run_out_at_any_call_from_the_first_on() {
    on_each_device("memory_may_run_out_at_any_call_from_the_first", |test| {
        for n in 1.. {
            let entry = Entry::new().expect("there is a loader");
            let runtime = test.another(entry.builder().validation(false));
            let failed = works_in_spite_of_call(n, &entry);
            drop(runtime);
            assert!(entry.leaked().is_empty(), "call {n}: {:?}", entry.leaked());
            if !failed {
                return;
            }
        }
    });
}

#[test]
fn memory_may_run_out_at_any_call_on_a_device_in_use() {
    on_each_device(
        "memory_may_run_out_at_any_call_on_a_device_in_use",
        |test| {
            let (entry, runtime) = ruled(test);
            work().unwrap();
            for n in 1.. {
                if !works_in_spite_of_call(n, &entry) {
                    break;
                }
            }
            drop(runtime);
            assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
        },
    );
}

#[test]
fn a_submission_that_failed_is_made_up_for_and_runs_once() {
    on_each_device("a_submission_that_failed_is_made_up_for", |test| {
        let (entry, _runtime) = ruled(test);
        let double = kernel("affine");
        let words = Buffer::from_slice(&[1u32; 64]).unwrap();
        vkaccel::synchronize(None).unwrap();
        for round in 1..=8 {
            entry.fail("vkQueueSubmit", 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            // The command was taken: that it could not be submitted yet is nothing to act on.
            double
                .launch(Grid::elements(64), (&words, 2, 0, 64))
                .unwrap();
            // By now the pacer may have tried again.
            if let Err(error) = vkaccel::synchronize(None) {
                assert_eq!(error.kind(), ErrorKind::OutOfHostMemory);
            }
            entry.forget_rules();
            assert_eq!(words.to_vec().unwrap(), [1 << round; 64]);
        }
    });
}

#[test]
fn commands_that_were_lost_are_reported_to_whoever_comes_next() {
    on_each_device("commands_that_were_lost_are_reported", |test| {
        let (entry, _runtime) = ruled(test);
        let double = kernel("affine");
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[1u32; 64]).unwrap();
        stream.synchronize().unwrap();
        for round in 1..=8 {
            entry.fail(
                "vkEndCommandBuffer",
                1,
                vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            );
            // Whether the launch, the read or the pacer submits: no wrong words come back.
            let launched = stream.launch(&double, Grid::elements(64), (&words, 2, 0, 64));
            let error = launched.and_then(|()| stream.to_vec(&words)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfHostMemory, "{error}");
            entry.forget_rules();
            // It was said once; what is there is what was there before.
            assert_eq!(stream.to_vec(&words).unwrap(), [1 << (round - 1); 64]);
            stream
                .launch(&double, Grid::elements(64), (&words, 2, 0, 64))
                .unwrap();
            assert_eq!(stream.to_vec(&words).unwrap(), [1 << round; 64]);
        }
    });
}

#[test]
fn a_download_whose_copy_was_lost_fails() {
    on_each_device("a_download_whose_copy_was_lost", |test| {
        let (entry, _runtime) = ruled(test);
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[7u32; 64]).unwrap();
        for _ in 0..1000 {
            stream.synchronize().unwrap();
            // Behind these the copy stays open for a moment.
            for _ in 0..5 {
                stream.fill(&words, 7).unwrap();
            }
            let read = stream.read_async(&words).unwrap();
            entry.fail(
                "vkEndCommandBuffer",
                1,
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            );
            // Nobody but the pacer is there to be told.
            std::thread::sleep(Duration::from_millis(1));
            let outcome = read.wait();
            let failed = entry.failed();
            entry.forget_rules();
            if failed.is_some() {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::OutOfMemory);
                // If that was not the first to know, the next to use the stream is told, too.
                if let Err(next) = stream.fill(&words, 7) {
                    assert_eq!(next.kind(), ErrorKind::OutOfMemory);
                }
                assert_eq!(stream.to_vec(&words).unwrap(), [7; 64]);
                return;
            }
            assert_eq!(outcome.unwrap(), [7; 64]);
        }
        panic!("the pacer was always faster");
    });
}

/// What everybody is told once the device is lost.
fn is_lost(words: &Buffer<u32>, stream: &Stream) {
    let told = |result: Result<()>| assert!(result.unwrap_err().is_device_lost());
    told(stream.synchronize());
    told(vkaccel::synchronize(None));
    told(words.fill(1));
    told(words.to_vec().map(drop));
    told(Buffer::<u32>::zeroed(16).map(drop));
}

#[test]
fn a_loss_at_a_submission_is_told_to_everybody_and_another_runtime_works() {
    on_each_device("a_loss_at_a_submission", |test| {
        let (entry, mut runtime) = ruled(test);
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[7u32; 64]).unwrap();
        stream.synchronize().unwrap();
        runtime.expect_loss();
        entry.fail("vkQueueSubmit", 1, vk::Result::ERROR_DEVICE_LOST);
        let filled = stream.fill(&words, 1).and_then(|()| stream.synchronize());
        assert!(filled.unwrap_err().is_device_lost());
        is_lost(&words, &stream);
        drop((words, stream));
        drop(runtime);
        assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
        // The first test's own runtime never noticed.
        work().unwrap();
    });
}

#[test]
fn a_counter_beyond_what_was_submitted_is_a_loss() {
    on_each_device("a_counter_beyond_what_was_submitted", |test| {
        let (entry, mut runtime) = ruled(test);
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[7u32; 64]).unwrap();
        stream.synchronize().unwrap();
        runtime.expect_loss();
        stream.fill(&words, 1).unwrap();
        stream.flush().unwrap();
        // It has long been done, so that what the loss destroys is in nobody's use.
        std::thread::sleep(Duration::from_millis(50));
        entry.let_counters_say(u64::MAX);
        assert!(stream.synchronize().unwrap_err().is_device_lost());
        is_lost(&words, &stream);
        drop((words, stream));
        drop(runtime);
        assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
    });
}
