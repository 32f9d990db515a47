//! Promises of the memory that uploads, downloads and fills go through.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::thread;

use support::deadline::Deadline;
use support::entry::Entry;
use support::entry::hold::Hold;
use support::{TestRuntime, on_each_device};
use vkaccel::memory::{empty_host_cache, runtime_memory};
use vkaccel::{Buffer, ErrorKind, Runtime, Stream};

const MIB: usize = 1 << 20;

fn numbers(len: usize) -> Vec<u32> {
    (0u32..)
        .take(len)
        .map(|n| n.wrapping_mul(2_654_435_761))
        .collect()
}

/// A runtime whose calls of Vulkan are counted.
fn counted(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
}

/// A buffer that queued work seems to use until somebody waits for it, so that the host can't write it
/// itself.
fn busy(stream: &Stream, len: usize) -> Buffer<u32> {
    let buffer = stream.uninit::<u32>(len).unwrap();
    stream.fill(&buffer, 0).unwrap();
    buffer
}

#[test]
fn what_the_runtime_copies_through_has_a_ledger_of_its_own() {
    on_each_device("the_ledger", |test| {
        let (entry, _counted) = counted(test);
        assert_eq!(runtime_memory(0).unwrap().staging_bytes, 0);
        let stream = Stream::new(0).unwrap();
        let _hold = Hold::new(&entry);
        let buffer = busy(&stream, MIB / 4);
        let before = runtime_memory(0).unwrap().staging_bytes;
        stream.write(&buffer, &numbers(MIB / 4)).unwrap();
        let used = runtime_memory(0).unwrap().staging_bytes;
        // The chunk, and what stays, which is there now at the latest.
        let kept = 64 << 10;
        assert!([1 << 20, (1 << 20) + kept].contains(&(used - before)));
        stream.synchronize().unwrap();
        empty_host_cache().unwrap();
        // What stays is for a device that is full.
        assert_eq!(runtime_memory(0).unwrap().staging_bytes, kept);
        let error = runtime_memory(5).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice);
    });
}

#[test]
fn a_large_upload_goes_through_bounded_staging() {
    on_each_device("a_large_upload", |test| {
        let (entry, _counted) = counted(test);
        let stream = Stream::new(0).unwrap();
        let _hold = Hold::new(&entry);
        let data = numbers(20 * MIB);
        let buffer = busy(&stream, data.len());
        let before = entry.calls("vkAllocateMemory");
        stream.write(&buffer, &data).unwrap();
        assert_eq!(stream.to_vec(&buffer).unwrap(), data);
        // It waited for its own oldest piece, and that is counted.
        assert!(Runtime::current().counters().host_waits_staging > 0);
        // At most 32 MiB in chunks of 4, and what stays.
        let chunks = entry.calls("vkAllocateMemory") - before;
        assert!((1..=9).contains(&chunks), "{chunks}");
    });
}

#[test]
fn a_device_without_memory_for_staging_is_written_and_read_nevertheless() {
    on_each_device("without_memory_for_staging", |test| {
        let _deadline = Deadline::new("without_memory_for_staging", 120);
        let (entry, _counted) = counted(test);
        let stream = Stream::new(0).unwrap();
        let _hold = Hold::new(&entry);
        let buffer = busy(&stream, MIB);
        // What stays is there from the first staged copy on, at the latest.
        let pair = busy(&stream, 2);
        stream.write(&pair, &[1, 2]).unwrap();
        entry.fail_all(
            "vkAllocateMemory",
            ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        );
        let data = numbers(MIB);
        stream.write(&buffer, &data).unwrap();
        assert_eq!(stream.to_vec(&buffer).unwrap(), data);
        // Copies onto themselves, and fills with a pattern that is no word, are staged too.
        let (lower, upper) = (buffer.view(..MIB - 1), buffer.view(1..));
        stream.copy(lower.unwrap(), upper.unwrap()).unwrap();
        let moved = stream.to_vec(buffer.view(1..).unwrap()).unwrap();
        assert_eq!(moved, data[..MIB - 1]);
        let wide = buffer.cast::<[u8; 16]>().unwrap();
        let pattern: [u8; 16] = core::array::from_fn(|index| u8::try_from(index).unwrap());
        stream.fill(&wide, pattern).unwrap();
        let seen = stream.to_vec(&wide).unwrap();
        assert!(seen.iter().all(|seen| *seen == pattern));
        // Threads share what little there is, for a part of the buffer each.
        let current = Runtime::current();
        stream.synchronize().unwrap();
        thread::scope(|scope| {
            let (current, wide, third) = (&current, &wide, wide.len() / 3);
            for part in 0..3 {
                scope.spawn(move || {
                    let _entered = current.enter();
                    let stream = Stream::new(0).unwrap();
                    let part = wide.view(part * third..(part + 1) * third).unwrap();
                    for _ in 0..20 {
                        stream.fill(part, pattern).unwrap();
                        let seen = stream.to_vec(part).unwrap();
                        assert!(seen.iter().all(|one| *one == pattern));
                    }
                });
            }
        });
    });
}

#[test]
fn what_nothing_can_be_staged_for_is_written_once_it_is_free_or_refused() {
    on_each_device("nothing_can_be_staged", |test| {
        let _deadline = Deadline::new("nothing_can_be_staged", 120);
        let (entry, _counted) = counted(test);
        let stream = Stream::new(0).unwrap();
        let _hold = Hold::new(&entry);
        let buffer = busy(&stream, 3000);
        if runtime_memory(0).unwrap().staging_bytes > 0 {
            return support::skip_part("nothing_can_be_staged", "the device keeps staging memory");
        }
        entry.fail_all(
            "vkAllocateMemory",
            ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        );
        stream.write(&buffer, &numbers(3000)).unwrap();
        assert_eq!(stream.to_vec(&buffer).unwrap(), numbers(3000));
        let (lower, upper) = (buffer.view(..2999), buffer.view(1..));
        let refused = stream.copy(lower.unwrap(), upper.unwrap());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!(stream.to_vec(&buffer).unwrap(), numbers(3000));
        let wide = buffer.cast::<[u32; 3]>().unwrap();
        stream.fill(&wide, [7; 3]).unwrap();
        stream.fill(&wide, [1, 2, 3]).unwrap();
        assert_eq!(stream.to_vec(&wide).unwrap(), [[1, 2, 3]; 1000]);
    });
}

#[test]
fn a_fill_with_a_long_pattern_repeats_it() {
    on_each_device("a_fill_with_a_long_pattern", |_| {
        let row =
            |row: usize| core::array::from_fn(|byte| u8::try_from((row * 7 + byte) % 251).unwrap());
        let pattern: [[u8; 4096]; 32] = core::array::from_fn(row);
        let buffer = Buffer::<[[u8; 4096]; 32]>::zeroed(3).unwrap();
        buffer.fill(pattern).unwrap();
        assert!(buffer.to_vec().unwrap().iter().all(|seen| *seen == pattern));
    });
}
