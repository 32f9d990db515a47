//! Promises of pinned host memory: copies both ways, guards, the cache behind it, staging.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::mem;
use std::sync::Barrier;
use std::thread;

use support::deadline::Deadline;
use support::entry::Entry;
use support::slow::Slow;
use support::{TestRuntime, on_each_device};
use vkaccel::memory::{
    empty_host_cache, host_memory_limit, host_memory_stats, reset_accumulated_host_memory_stats,
    reset_peak_host_memory_stats, set_host_memory_limit,
};
use vkaccel::{Buffer, Details, ErrorKind, HostMemoryStats, PinnedBuffer, Result, Runtime, Stream};

const MIB: usize = 1 << 20;

fn numbers(len: usize) -> Vec<u32> {
    (0u32..)
        .take(len)
        .map(|n| n.wrapping_mul(2_654_435_761))
        .collect()
}

fn held() -> u64 {
    host_memory_stats().unwrap().allocated_bytes.current
}

fn is_busy<T>(result: Result<T>) {
    match result {
        Ok(_) => panic!("the memory was to be had"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::HostBusy, "{error}"),
    }
}

/// A runtime whose calls of Vulkan are counted.
fn counted(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
}

#[test]
fn content_goes_both_ways_through_pinned_memory() {
    on_each_device("content_goes_both_ways", |_| {
        for len in [1, 3, 1000, MIB] {
            let data = numbers(len);
            let host = PinnedBuffer::from_slice(&data).unwrap();
            let buffer = Buffer::<u32>::zeroed(len).unwrap();
            buffer.copy_from_pinned(&host).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), data);
            let back = PinnedBuffer::<u32>::for_upload_on(0, len).unwrap();
            buffer.copy_to_pinned(&back).unwrap();
            assert_eq!(*back.read().unwrap(), data);
        }
        // Through views, on a stream that is named.
        let stream = Stream::new(0).unwrap();
        let buffer = stream.upload(&[1u8, 2, 3, 4, 5]).unwrap();
        let host = PinnedBuffer::from_slice(&[8u8, 9]).unwrap();
        stream
            .copy_from_pinned(&host, buffer.view(1..3).unwrap())
            .unwrap();
        stream
            .copy_to_pinned(buffer.view(2..4).unwrap(), &host)
            .unwrap();
        assert_eq!(*host.read().unwrap(), [9, 4]);
        assert_eq!(stream.to_vec(&buffer).unwrap(), [1, 8, 9, 4, 5]);
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    on_each_device("what_does_not_fit", |test| {
        let host = PinnedBuffer::<u32>::new(4).unwrap();
        let buffer = Buffer::<u32>::zeroed(5).unwrap();
        for result in [buffer.copy_from_pinned(&host), buffer.copy_to_pinned(&host)] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        let other = test.another(support::builder());
        let foreign = PinnedBuffer::<u32>::new(5).unwrap();
        let error = buffer.copy_from_pinned(&foreign).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice);
        assert!(error.to_string().contains("pinned buffer"), "{error}");
        drop(other);
        let error = PinnedBuffer::<u32>::new_on(7, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice);
        let error = PinnedBuffer::<u32>::new(usize::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfHostMemory);
        // Nothing at all can be pinned too.
        let nothing = PinnedBuffer::<u32>::new(0).unwrap();
        assert!(nothing.is_empty() && nothing.read().unwrap().is_empty());
        Buffer::<u32>::zeroed(0)
            .unwrap()
            .copy_from_pinned(&nothing)
            .unwrap();
        let units = PinnedBuffer::<()>::new(3).unwrap();
        assert_eq!(units.write().unwrap().len(), 3);
        let error = PinnedBuffer::<u8>::new(1 << 50).unwrap_err();
        let kinds = [ErrorKind::OutOfHostMemory, ErrorKind::OutOfMemory];
        assert!(kinds.contains(&error.kind()), "{error}");
    });
}

#[test]
fn guards_wait_for_the_copies_that_they_must_not_meet() {
    on_each_device("guards_wait", |_| {
        let _deadline = Deadline::new("guards_wait", 120);
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let host = PinnedBuffer::<u32>::new(4).unwrap();
        host.write().unwrap().copy_from_slice(&[1, 2, 3, 4]);
        let buffer = stream.zeroed::<u32>(4).unwrap();

        // A copy that reads the memory lets others read it at once, and is waited for by who writes.
        slow.launch(&stream);
        stream.copy_from_pinned(&host, &buffer).unwrap();
        assert_eq!(*host.read().unwrap(), [1, 2, 3, 4]);
        assert!(
            !stream.query().unwrap(),
            "reading waited for a copy that reads"
        );
        host.write().unwrap().fill(9);
        assert_eq!(stream.to_vec(&buffer).unwrap(), [1, 2, 3, 4]);

        // One that writes it is waited for by both.
        slow.launch(&stream);
        stream.copy_to_pinned(&buffer, &host).unwrap();
        assert!(!stream.query().unwrap());
        assert_eq!(*host.read().unwrap(), [1, 2, 3, 4]);
        stream.fill(&buffer, 5).unwrap();
        slow.launch(&stream);
        stream.copy_to_pinned(&buffer, &host).unwrap();
        assert_eq!(*host.write().unwrap(), [5, 5, 5, 5]);
    });
}

#[test]
fn a_copy_in_the_way_of_a_guard_is_refused_and_recorded_nowhere() {
    on_each_device("a_copy_in_the_way_of_a_guard", |_| {
        let host = PinnedBuffer::from_slice(&[1u32, 2]).unwrap();
        let same = host.clone();
        let buffer = Buffer::from_slice(&[7u32, 8]).unwrap();

        let reading = host.read().unwrap();
        let also = same.read().unwrap();
        is_busy(buffer.copy_to_pinned(&host));
        is_busy(same.write());
        buffer.copy_from_pinned(&host).unwrap();
        assert_eq!((&*reading, &*also), (&[1, 2][..], &[1, 2][..]));
        drop(reading);
        is_busy(buffer.copy_to_pinned(&same));
        drop(also);

        let writing = host.write().unwrap();
        is_busy(buffer.copy_to_pinned(&same));
        is_busy(buffer.copy_from_pinned(&same));
        is_busy(same.read());
        is_busy(same.write());
        drop(writing);
        assert_eq!(*same.read().unwrap(), [1, 2]);
        buffer.copy_to_pinned(&same).unwrap();
        assert_eq!(*host.read().unwrap(), [1, 2]);
    });
}

#[test]
#[allow(clippy::mem_forget, reason = "leaking is what is tested")]
fn a_guard_that_is_leaked_keeps_the_memory_for_ever() {
    on_each_device("a_guard_that_is_leaked", |_| {
        let buffer = Buffer::from_slice(&[7u32, 8]).unwrap();
        let (read, written) = (
            PinnedBuffer::from_slice(&[1u32, 2]).unwrap(),
            PinnedBuffer::from_slice(&[3u32, 4]).unwrap(),
        );
        mem::forget(read.read().unwrap());
        is_busy(buffer.copy_to_pinned(&read));
        is_busy(read.write());
        assert_eq!(*read.read().unwrap(), [1, 2]);
        buffer.copy_from_pinned(&read).unwrap();
        mem::forget(written.write().unwrap());
        is_busy(buffer.copy_from_pinned(&written));
        is_busy(written.read());
        vkaccel::synchronize(None).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1, 2]);
    });
}

#[test]
fn everything_may_be_dropped_in_any_order() {
    on_each_device("everything_may_be_dropped", |_| {
        let _deadline = Deadline::new("everything_may_be_dropped", 120);
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let data = numbers(1 << 16);
        for order in 0..6 {
            let buffer = stream.zeroed::<u32>(data.len()).unwrap();
            let from = PinnedBuffer::from_slice(&data).unwrap();
            let to = PinnedBuffer::<u32>::new(data.len()).unwrap();
            slow.launch(&stream);
            stream.copy_from_pinned(&from, &buffer).unwrap();
            stream.copy_to_pinned(&buffer, &to).unwrap();
            match order {
                0 => drop((from, buffer)),
                1 => drop((buffer, from)),
                2 => drop(from),
                3 => {
                    drop((from, to, buffer));
                    continue;
                }
                4 => {
                    drop((to, buffer));
                    // What comes next must not be what the copy still reads.
                    let other = PinnedBuffer::<u32>::new(data.len()).unwrap();
                    other.write().unwrap().fill(0);
                    assert_eq!(*from.read().unwrap(), data);
                    continue;
                }
                _ => drop(buffer),
            }
            assert_eq!(*to.read().unwrap(), data, "{order}");
        }
    });
}

#[test]
fn threads_take_turns_with_the_device() {
    on_each_device("threads_take_turns", |test| {
        let _deadline = Deadline::new("threads_take_turns", 240);
        let host = PinnedBuffer::from_slice(&[0u32; 256]).unwrap();
        let start = Barrier::new(4);
        let runtime = test.runtime();
        // The device's own copies are in order.
        let stream = Stream::new(0).unwrap();
        // Whoever holds it writes one number everywhere, so that nobody ever sees two.
        let work = |thread: u32| {
            let _entered = runtime.enter();
            let buffer = stream.zeroed::<u32>(256).unwrap();
            start.wait();
            let mut done = 0;
            for round in 0.. {
                if done == 50 {
                    break;
                }
                let number = thread * 1_000_000 + round;
                let result = match (thread + round) % 4 {
                    0 => host.write().map(|mut guard| guard.fill(number)),
                    1 => {
                        stream.fill(&buffer, number).unwrap();
                        stream.copy_to_pinned(&buffer, &host)
                    }
                    2 => stream.copy_from_pinned(&host, &buffer).map(|()| {
                        let seen = stream.to_vec(&buffer).unwrap();
                        assert!(seen.iter().all(|&word| word == seen[0]), "{seen:?}");
                    }),
                    _ => host.read().map(|guard| {
                        assert!(guard.iter().all(|&word| word == guard[0]), "{guard:?}");
                    }),
                };
                match result {
                    Ok(()) => done += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::HostBusy, "{error}");
                        thread::yield_now();
                    }
                }
            }
        };
        thread::scope(|scope| {
            let work = &work;
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
        });
    });
}

#[test]
fn thirty_two_mib_and_a_page_cost_little_more() {
    on_each_device("thirty_two_mib_and_a_page", |_| {
        let large = PinnedBuffer::<u8>::new(33_558_528).unwrap();
        assert_eq!(held(), 33_619_968);
        let start = large.read().unwrap().as_ptr();
        drop(large);
        let small = PinnedBuffer::<u8>::new(10_240).unwrap();
        let again = PinnedBuffer::<u8>::new(33_558_528).unwrap();
        assert_eq!(again.read().unwrap().as_ptr(), start);
        assert!(held() <= 33_619_968 + 65_536);
        drop((small, again));
        empty_host_cache().unwrap();
        assert_eq!(held(), 0);
    });
}

#[test]
fn an_emptied_host_cache_is_back_with_the_driver() {
    on_each_device("an_emptied_host_cache", |test| {
        // Opens nothing, and has nothing to refuse.
        empty_host_cache().unwrap();
        assert!(!test.runtime().is_initialized());
        let (entry, _counted) = counted(test);
        let stream = Stream::new(0).unwrap();
        let buffer = stream.upload(&[1u8; 100]).unwrap();
        let host = PinnedBuffer::<u8>::new(100).unwrap();
        stream.copy_to_pinned(&buffer, &host).unwrap();
        stream.read_async(&buffer).unwrap().wait().unwrap();
        stream.synchronize().unwrap();
        let before = entry.calls("vkFreeMemory");
        drop(host);
        empty_host_cache().unwrap();
        assert_eq!(held(), 0);
        assert_eq!(entry.calls("vkFreeMemory") - before, 2);
    });
}

#[test]
fn host_statistics_have_torchs_names_and_follow_what_is_pinned() {
    on_each_device("host_statistics", |_| {
        assert_eq!(host_memory_stats().unwrap(), HostMemoryStats::default());
        let one = PinnedBuffer::<u8>::new(100_000).unwrap();
        let two = PinnedBuffer::<u8>::new(5000).unwrap();
        let stats = host_memory_stats().unwrap();
        assert_eq!(stats.active_bytes.current, 131_072 + 8192);
        assert_eq!(stats.get("active_requests.current"), Some(2));
        assert_eq!(stats.get("allocated_bytes.current"), Some(131_072 + 8192));
        assert_eq!((stats.num_host_alloc, stats.host_alloc_time.count), (2, 2));
        drop(one);
        let stats = host_memory_stats().unwrap();
        assert_eq!(stats.active_requests.current, 1);
        assert_eq!(stats.allocations.current, 2);
        let peak = stats.active_bytes.peak;
        assert_eq!(peak, 131_072 + 8192);
        reset_peak_host_memory_stats().unwrap();
        assert_eq!(host_memory_stats().unwrap().active_bytes.peak, 8192);
        reset_accumulated_host_memory_stats().unwrap();
        let stats = host_memory_stats().unwrap();
        assert_eq!((stats.num_host_alloc, stats.allocations.allocated), (0, 0));
        assert_eq!(stats.allocations.current, 2);
        drop(two);
        // What the runtime copies through is its own.
        let buffer = Buffer::from_slice(&[1u8; MIB]).unwrap();
        buffer.to_vec().unwrap();
        assert_eq!(host_memory_stats().unwrap().num_host_alloc, 0);
    });
}

#[test]
fn a_limit_on_host_memory_is_held_before_the_driver_is_asked() {
    on_each_device("a_limit_on_host_memory", |test| {
        let (entry, _counted) = counted(test);
        Runtime::current().init(0).unwrap();
        set_host_memory_limit(Some(1 << 20)).unwrap();
        assert_eq!(host_memory_limit().unwrap(), Some(1 << 20));
        let half = PinnedBuffer::<u8>::new(512 << 10).unwrap();
        let calls = entry.calls("vkAllocateMemory");
        let error = PinnedBuffer::<u8>::new((512 << 10) + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfHostMemory);
        assert!(error.to_string().contains("1048576"), "{error}");
        assert_eq!(entry.calls("vkAllocateMemory"), calls);
        drop(half);
        let whole = PinnedBuffer::<u8>::new(MIB).unwrap();
        assert_eq!(held(), MIB as u64);
        set_host_memory_limit(None).unwrap();
        drop((whole, PinnedBuffer::<u8>::new(2 * MIB).unwrap()));
    });
}

#[test]
fn a_driver_without_memory_is_told_by_kind_and_leaves_the_cache_sound() {
    on_each_device("a_driver_without_memory", |test| {
        let (entry, _counted) = counted(test);
        let kept = PinnedBuffer::<u8>::new(MIB).unwrap();
        drop(PinnedBuffer::<u8>::new(2 * MIB).unwrap());
        for (result, kinds) in [
            (
                ash::vk::Result::ERROR_OUT_OF_HOST_MEMORY,
                &[ErrorKind::OutOfHostMemory, ErrorKind::OutOfMemory][..],
            ),
            (
                ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                &[ErrorKind::OutOfHostMemory, ErrorKind::OutOfMemory][..],
            ),
        ] {
            entry.fail_all("vkAllocateMemory", result);
            let error = PinnedBuffer::<u8>::new(4 * MIB).unwrap_err();
            assert!(kinds.contains(&error.kind()), "{error}");
            assert_eq!(error.raw(), Some(result.as_raw()), "{error}");
            entry.forget_rules();
        }
        // What was cached went back for it.
        assert_eq!(held(), MIB as u64);
        assert!(PinnedBuffer::<u8>::new(4 * MIB).is_ok());
        assert_eq!(kept.read().unwrap().len(), MIB);
    });
}

/// Both ways through pinned memory and through staging.
fn there_and_back() -> Result<()> {
    let data = numbers(100_000);
    let stream = Stream::new(0)?;
    let host = PinnedBuffer::<u32>::new(data.len())?;
    host.write()?.copy_from_slice(&data);
    let buffer = stream.uninit::<u32>(data.len())?;
    stream.copy_from_pinned(&host, &buffer)?;
    assert_eq!(stream.to_vec(&buffer)?, data);
    let download = stream.read_async(&buffer)?;
    let back = PinnedBuffer::<u32>::new(data.len())?;
    stream.copy_to_pinned(&buffer, &back)?;
    assert_eq!(*back.read()?, data);
    assert_eq!(download.wait()?, data);
    Ok(())
}

#[test]
fn whichever_call_of_the_driver_fails_host_memory_stays_sound() {
    on_each_device("whichever_call_fails", |test| {
        let _deadline = Deadline::new("whichever_call_fails", 240);
        for result in [
            ash::vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        ] {
            let (entry, counted) = counted(test);
            there_and_back().unwrap();
            for n in 1.. {
                // The calls are those of a runtime that has nothing cached.
                vkaccel::synchronize(None).unwrap();
                empty_host_cache().unwrap();
                entry.fail_any(n, result);
                let outcome = there_and_back();
                let failed = entry.failed();
                entry.forget_rules();
                if let Err(error) = outcome {
                    let kinds = [ErrorKind::OutOfHostMemory, ErrorKind::OutOfMemory];
                    assert!(kinds.contains(&error.kind()), "{failed:?}: {error}");
                }
                // Work that failed at the device's own turn is told of once more, at the most.
                if there_and_back().is_err() {
                    there_and_back().unwrap();
                }
                // What a failed copy kept is given back once it is seen to be done.
                while vkaccel::synchronize(None).is_err() {}
                empty_host_cache().unwrap();
                let stats = host_memory_stats().unwrap();
                assert_eq!(stats.active_requests.current, 0, "{failed:?}");
                if failed.is_none() {
                    break;
                }
                assert!(n < 500);
            }
            drop(counted);
            assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
        }
    });
}

/// Whole pages of the test's own.
struct Pages(*mut u8, Layout);

impl Pages {
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 1 << 16).unwrap();
        // SAFETY: the layout has bytes.
        #[allow(unsafe_code)]
        let start = unsafe { alloc_zeroed(layout) };
        assert!(!start.is_null());
        Self(start, layout)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: made with this layout; the tests let go of what imported it first.
        #[allow(unsafe_code)]
        unsafe {
            dealloc(self.0, self.1);
        };
    }
}

#[test]
#[allow(unsafe_code)]
fn memory_of_the_program_is_imported_where_the_device_can() {
    on_each_device("memory_is_imported", |test| {
        let (entry, counted) = counted(test);
        let pages = Pages::new(1 << 16);
        let start = pages.0.cast::<u32>();
        let len = (1 << 16) / 4;
        // SAFETY: the pages live longer than what imports them, and nothing else uses them.
        let host = match unsafe { PinnedBuffer::import(start, len) } {
            Ok(host) => host,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                return support::skip("memory_is_imported", "the device can't import");
            }
        };
        let data = numbers(len);
        assert!(host.read().unwrap().iter().all(|&word| word == 0));
        host.write().unwrap().copy_from_slice(&data);
        let buffer = Buffer::<u32>::zeroed(len).unwrap();
        buffer.copy_from_pinned(&host).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), data);
        buffer.fill(3).unwrap();
        buffer.copy_to_pinned(&host).unwrap();
        assert!(host.read().unwrap().iter().all(|&word| word == 3));
        // SAFETY: no copy is queued, and the guard is gone.
        assert_eq!(unsafe { start.read() }, 3);
        // It is none of the cache's.
        assert_eq!(host_memory_stats().unwrap(), HostMemoryStats::default());

        for (offset, len) in [(1, 1024), (0, 1023)] {
            let inside = start.wrapping_add(offset);
            // SAFETY: refused before it is used.
            let refused = unsafe { PinnedBuffer::import(inside, len) };
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(matches!(error.details(), Some(Details::Alignment { .. })));
        }
        // SAFETY: as above.
        let refused = unsafe { PinnedBuffer::<u32>::import(std::ptr::null_mut(), 1024) };
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);

        // Every call that can fail leaves nothing behind.
        drop(host);
        for n in 1.. {
            entry.fail_any(n, ash::vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            // SAFETY: as above.
            let imported = unsafe { PinnedBuffer::import(start, len) };
            entry.forget_rules();
            match imported {
                Ok(_) => break,
                Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfHostMemory, "{error}"),
            }
            assert!(n < 20);
        }
        drop(buffer);
        drop(counted);
        assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
        drop(pages);
    });
}

/// Which of two threads tells last of its copy is chance; both are waited for.
#[test]
fn a_guard_waits_for_the_copies_of_all_threads_that_share_a_stream() {
    on_each_device("a_guard_waits_for_the_copies_of_all_threads", |_| {
        let stream = Stream::new(0).unwrap();
        let sources = [1u32, 2].map(|value| stream.upload(&vec![value; 256 * 1024]).unwrap());
        let host = PinnedBuffer::<u32>::new(256 * 1024).unwrap();
        for _ in 0..60 {
            let barrier = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for source in &sources {
                    let (stream, host, barrier) = (&stream, &host, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        stream.copy_to_pinned(source, host).unwrap();
                    });
                }
            });
            let guard = host.read().unwrap();
            let before = guard.last().copied();
            stream.synchronize().unwrap();
            assert!(guard.iter().all(|&word| Some(word) == before));
        }
    });
}
