//! Promises of streams: order, waiting, progress, and that anything may be dropped at any moment.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use std::any::Any;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use support::deadline::Deadline;
use support::kernels::{APART, chosen as kernel};
use support::random::Random;
use support::slow::{GROUPS, Slow};
use support::{TestRuntime, builder, on_each_device};
use vkaccel::{Buffer, Grid, Stream};

#[test]
fn a_stream_that_nothing_was_given_to_has_finished() {
    on_each_device("a_stream_that_nothing_was_given_to", |test| {
        let stream = Stream::new(0).unwrap();
        assert!(stream.query().unwrap());
        stream.synchronize().unwrap();
        stream.flush().unwrap();
        assert!(stream.synchronize_timeout(Duration::ZERO).unwrap());
        assert!(
            !test.runtime().is_initialized(),
            "none of that opens the device"
        );
    });
}

#[test]
fn waiting_ends_with_the_work_or_with_the_time() {
    on_each_device("waiting_ends_with_the_work", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        for _ in 0..3 {
            slow.launch(&stream);
        }
        assert!(!stream.query().unwrap());
        assert!(!stream.synchronize_timeout(Duration::ZERO).unwrap());
        assert!(
            !stream
                .synchronize_timeout(Duration::from_millis(1))
                .unwrap()
        );
        // Longer than any clock counts.
        assert!(stream.synchronize_timeout(Duration::MAX).unwrap());
        assert!(stream.query().unwrap());
        assert!(stream.synchronize_timeout(Duration::ZERO).unwrap());
        slow.launch(&stream);
        stream.synchronize().unwrap();
        assert!(stream.query().unwrap());
    });
}

/// What was recorded runs though nobody calls again.
///
/// `query` itself submits what is open, but does not wait: it could not find work finished that
/// takes long and that it had to submit first.
#[test]
fn recorded_work_runs_without_further_calls() {
    on_each_device("recorded_work_runs", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        // The first command after a wait is submitted at once, the second stays open for a third.
        stream.fill(&slow.data, 1).unwrap();
        slow.launch(&stream);
        std::thread::sleep(slow.took * 5 + Duration::from_millis(200));
        assert!(stream.query().unwrap());

        // Several streams, each with work left open.
        let streams: Vec<_> = (0..3).map(|_| Stream::new(0).unwrap()).collect();
        for stream in &streams {
            let words = stream.zeroed::<u32>(1).unwrap();
            stream.fill(&words, 1).unwrap();
        }
        slow.launch(&streams[0]);
        std::thread::sleep(slow.took * 5 + Duration::from_millis(200));
        for stream in &streams {
            assert!(stream.query().unwrap());
        }
    });
}

/// A hundred streams are a hundred.
#[test]
fn a_hundred_streams_are_told_apart_and_all_run() {
    on_each_device("a_hundred_streams", |_| {
        let started = Instant::now();
        let kernel = kernel("add_at_index");
        let words = Buffer::<u32>::zeroed(100 * APART).unwrap();
        vkaccel::synchronize(None).unwrap();
        let streams: Vec<_> = (0..100).map(|_| Stream::new(0).unwrap()).collect();
        for (i, stream) in streams.iter().enumerate() {
            let word = words.view(i * APART..=i * APART).unwrap();
            let args = (word, 0, u32::try_from(i).unwrap());
            stream.launch(&kernel, Grid::groups(1), args).unwrap();
        }
        for stream in &streams {
            stream.synchronize().unwrap();
            assert!(stream.query().unwrap());
        }
        let result = words.to_vec().unwrap();
        let result: Vec<u32> = result.into_iter().step_by(APART).collect();
        assert_eq!(result, (0..100).collect::<Vec<u32>>());
        assert!(started.elapsed() < Duration::from_secs(10));

        let ids: HashSet<_> = streams.iter().map(Stream::id).collect();
        #[allow(clippy::mutable_key_type, reason = "a stream's hash is that of its id")]
        let handles: HashSet<_> = streams.iter().chain(&streams).cloned().collect();
        assert_eq!((ids.len(), handles.len()), (100, 100));
        for (a, one) in streams.iter().enumerate() {
            for (b, other) in streams.iter().enumerate() {
                assert_eq!(one == other, a == b);
            }
        }
        assert_eq!(streams[0], streams[0].clone());
    });
}

#[test]
fn a_stream_may_be_dropped_with_its_work_open() {
    on_each_device("a_stream_may_be_dropped", |_| {
        let kernel = kernel("add_at_index");
        let words = Buffer::<u32>::zeroed(50 * APART).unwrap();
        vkaccel::synchronize(None).unwrap();
        for (i, at) in (0..50u32).zip((0..).step_by(APART)) {
            let stream = Stream::new(0).unwrap();
            // More than one, so that some of it is not submitted yet.
            for value in 0..3 {
                let args = (words.view(at..=at).unwrap(), 0, value + i);
                stream.launch(&kernel, Grid::groups(1), args).unwrap();
            }
        }
        vkaccel::synchronize(None).unwrap();
        let expected: Vec<u32> = (0..50).map(|i| 3 * i + 3).collect();
        let result = words.to_vec().unwrap();
        assert_eq!(
            result.into_iter().step_by(APART).collect::<Vec<_>>(),
            expected
        );
    });
}

/// Thousands of streams, each with work that is open, submitted, waiting or none, dropped at once, later,
/// or by another thread.
#[test]
fn thousands_of_streams_come_and_go_at_any_moment() {
    on_each_device("thousands_of_streams", |test| {
        let _deadline = Deadline::new("thousands_of_streams", 120);
        let started = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let runtime = test.runtime().clone();
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    let kernel = kernel("add_at_index");
                    let mut random = Random::new(thread);
                    let mut kept = Vec::new();
                    let words = Buffer::<u32>::zeroed(1500 * APART).unwrap();
                    vkaccel::synchronize(0).unwrap();
                    let mut launches = vec![0; 1500];
                    for (i, launches) in launches.iter_mut().enumerate() {
                        let stream = Stream::new(0).unwrap();
                        for _ in 0..random.below(3) {
                            let word = words.view(i * APART..=i * APART).unwrap();
                            let args = (word, 0, 1);
                            stream.launch(&kernel, Grid::groups(1), args).unwrap();
                            *launches += 1;
                        }
                        match random.below(6) {
                            0 => stream.flush().unwrap(),
                            1 => stream.synchronize().unwrap(),
                            2 => kept.push(stream),
                            3 => drop(stream.record_event().unwrap()),
                            4 if !kept.is_empty() => {
                                let other = kept.swap_remove(random.below(kept.len()));
                                stream.wait_stream(&other).unwrap();
                            }
                            _ => {}
                        }
                    }
                    vkaccel::synchronize(0).unwrap();
                    let result = words.to_vec().unwrap().into_iter().step_by(APART);
                    assert_eq!(result.collect::<Vec<u32>>(), launches);
                });
            }
        });
        assert!(started.elapsed() < Duration::from_secs(60));
    });
}

#[test]
fn a_download_outlives_its_stream_and_its_buffer() {
    on_each_device("a_download_outlives_its_stream", |_| {
        let stream = Stream::new(0).unwrap();
        let buffer = stream.upload(&[1u32, 2, 3]).unwrap();
        let download = stream.read_async(&buffer).unwrap();
        drop(buffer);
        drop(stream);
        assert_eq!(download.wait().unwrap(), [1, 2, 3]);
    });
}

#[test]
fn downloads_are_done_in_any_order_and_say_so() {
    on_each_device("downloads_are_done_in_any_order", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let first = stream.upload(&[1u32; 100]).unwrap();
        let early = stream.read_async(&first).unwrap();
        slow.launch(&stream);
        let late = stream.read_async(&slow.data).unwrap();
        assert!(!late.is_done().unwrap());
        assert!(!late.wait_timeout(Duration::ZERO).unwrap());
        assert!(!late.wait_timeout(Duration::from_millis(1)).unwrap());
        assert!(early.wait_timeout(Duration::MAX).unwrap());
        assert_eq!(early.wait().unwrap(), [1; 100]);
        while !late.is_done().unwrap() {
            std::thread::yield_now();
        }
        assert!(late.wait_timeout(Duration::ZERO).unwrap());
        assert_eq!(late.wait().unwrap().len(), GROUPS);
        let none = stream.zeroed::<u32>(0).unwrap();
        let nothing = stream.read_async(&none).unwrap();
        assert!(nothing.wait_timeout(Duration::ZERO).unwrap());
        // Given up, it does no harm.
        drop(stream.read_async(&first).unwrap());
    });
}

#[test]
fn threads_share_a_stream() {
    on_each_device("threads_share_a_stream", |_| {
        let (stream, kernel) = (Stream::new(0).unwrap(), kernel("add_at_index"));
        let words = stream.zeroed::<u32>(8).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8u32 {
                let (stream, kernel, words) = (&stream, &kernel, &words);
                scope.spawn(move || {
                    for round in 0..100 {
                        let args = (words, thread, 1);
                        stream.launch(kernel, Grid::groups(1), args).unwrap();
                        match round % 25 {
                            7 => stream.synchronize().unwrap(),
                            13 => stream.flush().unwrap(),
                            19 => drop(stream.query().unwrap()),
                            _ => {}
                        }
                    }
                });
            }
        });
        assert_eq!(stream.to_vec(&words).unwrap(), [100; 8]);
    });
}

#[test]
fn threads_with_streams_of_their_own_do_not_disturb_each_other() {
    on_each_device("threads_with_streams_of_their_own", |test| {
        let kernel = kernel("affine");
        std::thread::scope(|scope| {
            for thread in 0..8u32 {
                let (kernel, runtime) = (kernel.clone(), test.runtime().clone());
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    let stream = Stream::new(0).unwrap();
                    let _current = stream.enter().unwrap();
                    for round in 0..10 {
                        let words = Buffer::from_slice(&[thread; 1000]).unwrap();
                        kernel
                            .launch(Grid::elements(1000), (&words, 2, round, 1000))
                            .unwrap();
                        let copy = Buffer::<u32>::uninit(1000).unwrap();
                        copy.copy_from(words.view(..).unwrap()).unwrap();
                        drop(words);
                        assert_eq!(copy.to_vec().unwrap(), [2 * thread + round; 1000]);
                    }
                });
            }
        });
    });
}

#[test]
fn another_thread_waits_for_what_this_one_recorded() {
    on_each_device("another_thread_waits", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        slow.launch(&stream);
        slow.launch(&stream);
        let other = stream.clone();
        std::thread::spawn(move || {
            other.synchronize().unwrap();
            assert!(other.query().unwrap());
        })
        .join()
        .unwrap();
        assert!(stream.query().unwrap());
    });
}

#[test]
fn everything_may_be_dropped_in_any_order_while_work_runs() {
    on_each_device("everything_may_be_dropped", |_| {
        let stream = Stream::new(0).unwrap();
        let steps = Slow::new(&stream).steps / 4;
        let mut random = Random::new(7);
        for _ in 0..12 {
            let inner = TestRuntime::new(builder());
            let stream = Stream::new(0).unwrap();
            let kernel = kernel("slow");
            let data = stream.zeroed::<u32>(GROUPS).unwrap();
            let spare = stream.upload(&[5u32; 1000]).unwrap();
            stream
                .launch(&kernel, Grid::groups(GROUPS), (&data, steps))
                .unwrap();
            let download = stream.read_async(&data).unwrap();
            stream
                .copy(spare.view(..500).unwrap(), spare.view(500..).unwrap())
                .unwrap();
            let runtime = inner.runtime().clone();
            let mut things: Vec<Box<dyn Any>> = vec![
                Box::new(inner),
                Box::new(stream),
                Box::new(kernel),
                Box::new(data),
                Box::new(spare),
                Box::new(download),
                Box::new(runtime),
            ];
            while !things.is_empty() {
                drop(things.swap_remove(random.below(things.len())));
            }
        }
    });
}

#[test]
fn waiting_for_the_device_waits_for_every_stream() {
    on_each_device("waiting_for_the_device_waits_for_every_stream", |_| {
        let streams: Vec<_> = (0..8).map(|_| Stream::new(0).unwrap()).collect();
        let words = Buffer::<u32>::zeroed(8 << 16).unwrap();
        vkaccel::synchronize(None).unwrap();
        for (index, stream) in streams.iter().enumerate() {
            let part = words.view(index << 16..(index + 1) << 16).unwrap();
            for value in 0..20 {
                stream.fill(part, value).unwrap();
            }
        }
        vkaccel::synchronize("vulkan:0").unwrap();
        // Nothing was left to be done: asking finds every stream idle.
        for stream in &streams {
            assert!(stream.query().unwrap());
        }
        assert!(words.to_vec().unwrap().iter().all(|&word| word == 19));
    });
}
