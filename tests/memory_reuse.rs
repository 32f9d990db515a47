//! Promises of memory that passes from owner to owner: between streams, threads, and host and device.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use process::over_the_shim;
use support::entry::Entry;
use support::{TestRuntime, builder, on_each_device};
use vkaccel::memory::{empty_cache, memory_reserved, memory_stats};
use vkaccel::{Buffer, MemoryStats, Stream};

const MIB: usize = 1 << 20;

fn stats() -> MemoryStats {
    memory_stats(None).unwrap()
}

/// A runtime whose calls of Vulkan are counted.
fn counted(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
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
fn threads_that_copy_to_and_from_their_parts_of_a_buffer_leave_the_others_alone() {
    on_each_device("threads_that_copy_to_and_from_their_parts", |test| {
        const LEN: usize = 20_000;
        let words = Buffer::from_slice(&[0u32; 3 * LEN]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3usize {
                let (runtime, words) = (test.runtime().clone(), &words);
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    let part = words.view(thread * LEN..(thread + 1) * LEN).unwrap();
                    for round in 0..30 {
                        part.write(&[round; LEN]).unwrap();
                        assert_eq!(part.to_vec().unwrap(), [round; LEN]);
                    }
                });
            }
        });
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
