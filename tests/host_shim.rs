//! Host memory of kinds that the machine does not have: not coherent, scarce, used by work that
//! finishes late. The ICD shim (`tests/icd-shim`) shows it.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use process::over_the_shim;
use support::deadline::Deadline;
use support::random::Random;
use support::{TestRuntime, builder};
use vkaccel::memory::{empty_host_cache, host_memory_stats};
use vkaccel::{Buffer, ErrorKind, PinnedBuffer, Stream};

const MIB: usize = 1 << 20;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|n| u8::try_from((n * 31 + seed * 17) % 251).unwrap())
        .collect()
}

/// Uploads, downloads and pinned copies of many lengths, side by side in the same memory.
fn copies() {
    let stream = Stream::new(0).unwrap();
    let mut random = Random::new(7);
    for seed in 0..40 {
        let len = 1 + random.below([100, 5000, 300_000][seed % 3]);
        let data = bytes(len, seed);
        let (one, two) = (
            stream.upload(&data).unwrap(),
            stream.upload(&[seed]).unwrap(),
        );
        let three = stream.upload(&data[len / 2..]).unwrap();
        assert_eq!(stream.to_vec(&one).unwrap(), data, "{len}");
        assert_eq!(stream.to_vec(&two).unwrap(), [seed]);
        let download = stream.read_async(&three).unwrap();
        assert_eq!(download.wait().unwrap(), data[len / 2..], "{len}");

        let host = PinnedBuffer::<u8>::new(len).unwrap();
        host.write().unwrap().copy_from_slice(&data);
        stream.fill(&one, 0).unwrap();
        stream.copy_from_pinned(&host, &one).unwrap();
        assert_eq!(stream.to_vec(&one).unwrap(), data, "{len}");
        stream.fill(&one, 9).unwrap();
        stream.copy_to_pinned(&one, &host).unwrap();
        assert!(host.read().unwrap().iter().all(|&byte| byte == 9));
        // What the host writes in part leaves the rest as the device left it.
        host.write().unwrap()[0] = 1;
        stream.copy_from_pinned(&host, &one).unwrap();
        let seen = stream.to_vec(&one).unwrap();
        assert!(
            seen[0] == 1 && seen[1..].iter().all(|&byte| byte == 9),
            "{len}"
        );
    }
}

#[test]
fn memory_that_is_not_coherent_is_flushed_and_invalidated() {
    let test = "memory_that_is_not_coherent_is_flushed_and_invalidated";
    over_the_shim(test, &[("MEMORY", "non_coherent")], || {
        let _runtime = TestRuntime::new(builder());
        copies();
    });
}

#[test]
fn copies_on_queues_that_finish_late_and_out_of_order_meet_no_memory_in_use() {
    let test = "copies_on_queues_that_finish_late_and_out_of_order_meet_no_memory_in_use";
    let settings = [
        ("QUEUES", "4"),
        ("DELAY_US", "300"),
        ("MEMORY", "non_coherent"),
    ];
    over_the_shim(test, &settings, || {
        let _deadline = Deadline::new(test, 240);
        let test = TestRuntime::new(builder());
        let runtime = test.runtime();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let _entered = runtime.enter();
                    copies();
                });
            }
        });
        // Dropped while late copies use them, and handed to other streams.
        let streams: Vec<Stream> = (0..4).map(|_| Stream::new(0).unwrap()).collect();
        for round in 0..40 {
            let stream = &streams[round % 4];
            let data = bytes(MIB, round);
            let host = PinnedBuffer::from_slice(&data).unwrap();
            let buffer = stream.zeroed::<u8>(MIB).unwrap();
            stream.copy_from_pinned(&host, &buffer).unwrap();
            drop(host);
            let other = PinnedBuffer::<u8>::new(MIB).unwrap();
            other.write().unwrap().fill(0xEE);
            assert_eq!(stream.to_vec(&buffer).unwrap(), data, "{round}");
        }
    });
}

#[test]
fn no_more_is_pinned_than_the_heaps_budget_leaves() {
    let test = "no_more_is_pinned_than_the_heaps_budget_leaves";
    let settings = [
        ("HEAP_BYTES", "67108864"),
        ("HEAP_OTHERS_BYTES", "30408704"),
    ];
    over_the_shim(test, &settings, || {
        let _runtime = TestRuntime::new(builder());
        let mut held = Vec::new();
        let error = loop {
            match PinnedBuffer::<u8>::new(4 * MIB) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
            assert!(held.len() <= 8, "the budget is passed");
        };
        // Of 35 MiB.
        assert_eq!(held.len(), 8);
        // Host and device share their memory here, so it is the device's that is full.
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert!(
            error.to_string().contains("bytes of host memory"),
            "{error}"
        );
        let figures = error.out_of_memory().unwrap();
        assert_eq!((figures.requested, figures.total), (4 << 20, 64 << 20));

        // Buffers still come and go in what is left.
        let buffer = Buffer::from_slice(&bytes(MIB, 3)).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), bytes(MIB, 3));
        drop(buffer);
        // Memory that either side has cached is the other's where it lacks it.
        held.clear();
        assert_eq!(
            host_memory_stats().unwrap().allocated_bytes.current,
            32 << 20
        );
        let large = Buffer::<u8>::zeroed(24 * MIB).unwrap();
        drop(large);
        assert!(PinnedBuffer::<u8>::new(24 * MIB).is_ok());
        empty_host_cache().unwrap();
        assert_eq!(host_memory_stats().unwrap().allocated_bytes.current, 0);
    });
}

#[test]
fn a_full_device_is_written_and_read_through_what_was_kept_for_it() {
    let test = "a_full_device_is_written_and_read_through_what_was_kept_for_it";
    over_the_shim(test, &[("HEAP_BYTES", "67108864")], || {
        let _deadline = Deadline::new(test, 240);
        let _runtime = TestRuntime::new(builder().alloc_conf("segment_per_allocation:True"));
        let mut held = Vec::new();
        for len in [8 * MIB, MIB, 64 << 10, 512] {
            while let Ok(buffer) = Buffer::<u8>::uninit(len) {
                held.push(buffer);
            }
        }
        for (seed, buffer) in held.iter().enumerate() {
            let data = bytes(buffer.len(), seed);
            buffer.write(&data).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), data);
        }
    });
}
