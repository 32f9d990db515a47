//! Graphs among threads: captures beside whatever others do, replays from many at once, and drops and ends
//! at any moment.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use support::deadline::Deadline;
use support::entry::Entry;
use support::kernels::chosen as kernel;
use support::random::Random;
use support::slow::Slow;
use support::{TestRuntime, on_each_device};
use vkaccel::{
    Buffer, CaptureErrorMode, ErrorKind, Event, Generator, Graph, Grid, Kernel, PinnedBuffer,
    Result, Runtime, Stream, memory,
};

/// The words of each buffer.
const WORDS: usize = 1000;

/// Runs `f` on threads of their own, each in the runtime of this one.
fn on_threads(count: u64, f: impl Fn(u64) + Sync) {
    let runtime = Runtime::current();
    std::thread::scope(|scope| {
        for thread in 0..count {
            let (runtime, f) = (runtime.clone(), &f);
            scope.spawn(move || {
                let _entered = runtime.enter();
                f(thread);
            });
        }
    });
}

/// Captures on two streams and replays, over and over, with the numbers that come out.
fn capture_and_replay(thread: u64, rounds: u32, affine: &Kernel) {
    let (main, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
    let mode = match thread % 2 {
        0 => CaptureErrorMode::ThreadLocal,
        _ => CaptureErrorMode::Relaxed,
    };
    let generator = Generator::new(thread, 0).unwrap();
    let input = main.zeroed::<u32>(WORDS).unwrap();
    for round in 0..rounds {
        main.synchronize().unwrap();
        let mut graph = Graph::builder().capture_error_mode(mode).build();
        let captured = graph.capture_on(&main, || {
            let output = main.uninit::<u32>(WORDS)?;
            side.wait_stream(&main)?;
            let bits = side.uninit::<u32>(WORDS)?;
            side.fill_bits(&generator, &bits)?;
            let temporary = main.uninit::<u32>(300_000)?;
            main.copy(&input, temporary.view(..WORDS)?)?;
            let args = (temporary.view(..WORDS)?, 2, 1, WORDS);
            main.launch(affine, Grid::elements(WORDS), args)?;
            main.copy(temporary.view(..WORDS)?, &output)?;
            main.wait_event(&side.record_event()?)?;
            Ok((output, bits))
        });
        let (output, bits) = captured.unwrap();
        for replay in 0..3 {
            let value = round * 10 + replay;
            main.write(&input, &[value; WORDS]).unwrap();
            let mut expected = [0u32; WORDS];
            let mut philox = vkaccel::Philox::from_state(&generator.state().unwrap()).unwrap();
            philox.fill_bits(&mut expected).unwrap();
            main.replay(&graph).unwrap();
            assert_eq!(main.to_vec(&output).unwrap(), [2 * value + 1; WORDS]);
            assert!(main.to_vec(&bits).unwrap() == expected);
        }
    }
}

/// What goes on meanwhile.
fn disturb(thread: u64, affine: &Kernel, is_over: &AtomicBool) {
    let mut random = Random::new(thread);
    let stream = Stream::new(0).unwrap();
    let words = stream.upload(&[1u32; WORDS]).unwrap();
    let pinned = PinnedBuffer::<u32>::new(WORDS).unwrap();
    let mut graph = Graph::new();
    let add = graph.capture_on(&stream, || {
        stream.launch(affine, Grid::elements(WORDS), (&words, 1, 1, WORDS))
    });
    add.unwrap();
    let mut expected = 1;
    while !is_over.load(Ordering::Relaxed) {
        match random.below(8) {
            0 => memory::empty_cache().unwrap(),
            1 => vkaccel::empty_host_cache().unwrap(),
            2 => {
                let bytes = 1 << random.below(24);
                drop(stream.zeroed::<u8>(bytes).unwrap());
            }
            3 => {
                stream.replay(&graph).unwrap();
                expected += 1;
            }
            4 => {
                let args = (&words, 1, 2, WORDS);
                stream.launch(affine, Grid::elements(WORDS), args).unwrap();
                expected += 2;
            }
            5 => assert_eq!(stream.to_vec(&words).unwrap(), [expected; WORDS]),
            6 => {
                stream.copy_to_pinned(&words, &pinned).unwrap();
                assert_eq!(*pinned.read().unwrap(), [expected; WORDS]);
            }
            _ => vkaccel::synchronize(0).unwrap(),
        }
    }
}

#[test]
fn captures_are_not_disturbed_by_what_other_threads_do() {
    on_each_device("captures_are_not_disturbed", |_| {
        let _deadline = Deadline::new("captures beside others", 120);
        let affine = kernel("affine");
        let (is_over, running) = (AtomicBool::new(false), AtomicU32::new(2));
        on_threads(5, |thread| match thread {
            0 | 1 => {
                let ended = Ended(&running, &is_over);
                capture_and_replay(thread, 12, &affine);
                drop(ended);
            }
            _ => disturb(thread, &affine, &is_over),
        });
    });
}

/// Ends the others when the last of those that count is done, or has failed.
struct Ended<'a>(&'a AtomicU32, &'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 || std::thread::panicking() {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_graph_is_replayed_by_many_threads_at_once() {
    on_each_device("a_graph_is_replayed_by_many_threads", |_| {
        let _deadline = Deadline::new("replays of many threads", 120);
        let stream = Stream::new(0).unwrap();
        let words = stream.zeroed::<u32>(WORDS).unwrap();
        let bits = stream.zeroed::<u32>(64).unwrap();
        let generator = Generator::new(9, 0).unwrap();
        let affine = kernel("affine");
        let mut graph = Graph::builder().keep_graph(true).build();
        let captured = graph.capture_on(&stream, || {
            let temporary = stream.uninit::<u32>(WORDS)?;
            stream.copy(&words, &temporary)?;
            let args = (&temporary, 1, 1, WORDS);
            stream.launch(&affine, Grid::elements(WORDS), args)?;
            stream.fill_bits(&generator, &bits)?;
            stream.copy(&temporary, &words)
        });
        captured.unwrap();
        on_threads(4, |thread| {
            let own = Stream::new(0).unwrap();
            let mut random = Random::new(thread);
            for _ in 0..50 {
                match random.below(3) {
                    0 => stream.replay(&graph).unwrap(),
                    1 => Stream::new(0).unwrap().replay(&graph).unwrap(),
                    _ => own.replay(&graph).unwrap(),
                }
                if random.below(10) == 0 {
                    own.synchronize().unwrap();
                }
            }
        });
        vkaccel::synchronize(0).unwrap();
        assert_eq!(stream.to_vec(&words).unwrap(), [200; WORDS]);
        assert_eq!(generator.offset().unwrap(), 200 * 64);
        drop(graph);
    });
}

#[test]
fn callbacks_may_replay() {
    on_each_device("callbacks_may_replay", |_| {
        let _deadline = Deadline::new("replays from callbacks", 60);
        let stream = Stream::new(0).unwrap();
        let word = stream.zeroed::<u32>(1).unwrap();
        let add = kernel("add_at_index");
        let mut graph = Graph::new();
        let captured = graph.capture_on(&stream, || {
            stream.launch(&add, Grid::groups(1), (&word, 0, 1))
        });
        captured.unwrap();
        let graph = Arc::new(graph);
        for _ in 0..150 {
            stream.replay(&graph).unwrap();
            let (graph, stream) = (Arc::clone(&graph), stream.clone());
            let again = stream.clone();
            let replay = move || again.replay(&graph).unwrap();
            stream.add_callback(replay).unwrap();
        }
        let (sender, receiver) = channel();
        stream
            .add_callback(move || sender.send(()).unwrap())
            .unwrap();
        receiver.recv().unwrap();
        assert_eq!(stream.to_vec(&word).unwrap(), [300]);
    });
}

#[test]
fn all_may_be_dropped_by_other_threads_while_replays_run() {
    on_each_device("all_may_be_dropped_by_other_threads", |_| {
        let _deadline = Deadline::new("drops", 120);
        let watcher = Stream::new(0).unwrap();
        let slow = Slow::new(&watcher);
        let result = watcher.zeroed::<u32>(WORDS).unwrap();
        let affine = kernel("affine");
        watcher.synchronize().unwrap();
        memory::empty_cache().unwrap();
        let before = memory::memory_allocated(0).unwrap();
        for round in 0..12u32 {
            let stream = Stream::new(0).unwrap();
            let pinned = PinnedBuffer::from_slice(&[round; WORDS]).unwrap();
            let mut graph = Graph::new();
            let captured = graph.capture_on(&stream, || {
                let output = stream.uninit::<u32>(WORDS)?;
                stream.copy_from_pinned(&pinned, &output)?;
                slow.launch(&stream);
                // Behind the slow launch.
                stream.copy(slow.data.view(..1)?, output.view(..1)?)?;
                stream.fill(output.view(..1)?, round)?;
                stream.launch(&affine, Grid::elements(WORDS), (&output, 3, 0, WORDS))?;
                stream.copy(&output, &result)?;
                Ok((output, stream.record_event()?))
            });
            let (output, event) = captured.unwrap();
            let replaying = Stream::new(0).unwrap();
            replaying.replay(&graph).unwrap();
            let done = replaying.record_event().unwrap();
            let mut things: Vec<Box<dyn core::any::Any + Send>> = vec![
                Box::new(graph),
                Box::new(output),
                Box::new(event),
                Box::new(pinned),
                Box::new(stream),
                Box::new(replaying),
            ];
            let mut random = Random::new(u64::from(round));
            for last in (1..things.len()).rev() {
                things.swap(last, random.below(last + 1));
            }
            let (sender, receiver) = channel::<Box<dyn core::any::Any + Send>>();
            std::thread::scope(|scope| {
                scope.spawn(move || receiver.into_iter().for_each(drop));
                things
                    .into_iter()
                    .for_each(|thing| sender.send(thing).unwrap());
                drop(sender);
                memory::empty_cache().unwrap();
            });
            watcher.wait_event(&done).unwrap();
            assert_eq!(watcher.to_vec(&result).unwrap(), [3 * round; WORDS]);
        }
        memory::empty_cache().unwrap();
        assert_eq!(memory::memory_allocated(0).unwrap(), before);
    });
}

/// A captured stream that others use may find the capture begun or ended at any moment.
#[test]
fn commands_that_others_put_on_a_captured_stream_are_captured_run_or_refused() {
    on_each_device("commands_that_others_put_on", |_| {
        let _deadline = Deadline::new("commands of others", 120);
        let stream = Stream::new(0).unwrap();
        let words = stream.zeroed::<u32>(1).unwrap();
        let data = stream.zeroed::<u32>(WORDS).unwrap();
        let generator = Generator::new(3, 0).unwrap();
        let add = kernel("add_at_index");
        stream.synchronize().unwrap();
        let (is_over, running) = (AtomicBool::new(false), AtomicU32::new(1));
        let (taken, replayed) = (AtomicU32::new(0), AtomicU32::new(0));
        on_threads(3, |thread| {
            if thread == 0 {
                let _ended = Ended(&running, &is_over);
                for _ in 0..40 {
                    let mut graph = Graph::builder()
                        .capture_error_mode(CaptureErrorMode::Relaxed)
                        .build();
                    graph.capture_begin_on(&stream).unwrap();
                    stream.fill(&data, 1).unwrap();
                    std::thread::yield_now();
                    graph.capture_end().unwrap();
                    stream.replay(&graph).unwrap();
                    replayed.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
            let mut random = Random::new(thread);
            while !is_over.load(Ordering::Relaxed) {
                let outcome: Result<()> = match random.below(5) {
                    0 | 1 => {
                        let told = stream.launch(&add, Grid::groups(1), (&words, 0, 1));
                        taken.fetch_add(u32::from(told.is_ok()), Ordering::Relaxed);
                        told
                    }
                    2 => stream.write(&data, &[2; WORDS]),
                    3 => stream.fill_bits(&generator, &data),
                    _ => stream
                        .uninit::<u32>(WORDS)
                        .and_then(|other| stream.copy(&data, &other)),
                };
                if let Err(error) = outcome {
                    assert_eq!(error.kind(), ErrorKind::Capture, "{error}");
                }
            }
        });
        vkaccel::synchronize(0).unwrap();
        assert!(!stream.is_capturing());
        // Each launch was captured and replayed once, or run.
        assert_eq!(replayed.load(Ordering::Relaxed), 40);
        assert_eq!(stream.to_vec(&words).unwrap(), [taken.into_inner()]);
    });
}

/// Runs `f` over and over while another thread begins and ends captures of a stream.
fn while_it_is_captured(stream: &Stream, captures: u32, mut f: impl FnMut()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..captures {
                let mut graph = Graph::builder()
                    .capture_error_mode(CaptureErrorMode::Relaxed)
                    .build();
                graph.capture_begin_on(stream).unwrap();
                // A callback may have been refused.
                let _ = graph.capture_end();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            f();
        }
    });
}

#[test]
fn events_and_callbacks_for_a_stream_that_another_thread_captures_are_taken_or_refused() {
    on_each_device("events_and_callbacks_for_a_stream", |_| {
        let _deadline = Deadline::new("callbacks beside captures", 120);
        let stream = Stream::new(0).unwrap();
        stream.zeroed::<u32>(1).unwrap();
        let (sender, receiver) = channel();
        let mut taken = 0;
        while_it_is_captured(&stream, 3000, || {
            if let Err(error) = stream.record_event() {
                assert_eq!(error.kind(), ErrorKind::Capture, "{error}");
            }
            let sender = sender.clone();
            match stream.add_callback(move || sender.send(()).unwrap()) {
                Ok(()) => taken += 1,
                Err(error) => assert!(
                    [ErrorKind::Capture, ErrorKind::NotPermitted].contains(&error.kind()),
                    "{error}"
                ),
            }
        });
        drop(sender);
        // It ends with the last callback that was neither run nor dropped.
        assert_eq!(receiver.into_iter().count(), taken);
    });
}

/// A fill that finds the capture begun since it drew its numbers would give the same ones at each replay.
#[test]
fn a_fill_for_a_stream_that_another_thread_captures_is_drawn_anew_at_each_replay() {
    on_each_device("a_fill_for_a_stream_that_another", |_| {
        let _deadline = Deadline::new("fills beside captures", 120);
        let stream = Stream::new(0).unwrap();
        let data = stream.zeroed::<u32>(64).unwrap();
        let generator = Generator::new(1, 0).unwrap();
        let (go, done) = (Barrier::new(2), Barrier::new(2));
        let is_begun = AtomicBool::new(false);
        let mut random = Random::new(1);
        let mut repeated = 0;
        let mut captures = || {
            for _ in 0..400 {
                stream.fill(&data, 0).unwrap();
                stream.synchronize().unwrap();
                is_begun.store(false, Ordering::Relaxed);
                go.wait();
                for _ in 0..random.below(2000) {
                    core::hint::spin_loop();
                }
                let mut graph = Graph::builder()
                    .capture_error_mode(CaptureErrorMode::Relaxed)
                    .build();
                graph.capture_begin_on(&stream).unwrap();
                is_begun.store(true, Ordering::Relaxed);
                done.wait();
                graph.capture_end().unwrap();
                let replayed = [(); 2].map(|()| {
                    stream.fill(&data, 0).unwrap();
                    stream.replay(&graph).unwrap();
                    stream.to_vec(&data).unwrap()
                });
                // There are no fills in it, or new numbers.
                let [first, second] = replayed;
                repeated += u32::from(first == second && first != [0; 64]);
            }
        };
        let fills = || {
            for _ in 0..400 {
                go.wait();
                while !is_begun.load(Ordering::Relaxed) {
                    if let Err(error) = stream.fill_bits(&generator, &data) {
                        assert_eq!(error.kind(), ErrorKind::Capture, "{error}");
                    }
                }
                done.wait();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(fills);
            captures();
        });
        assert_eq!(repeated, 0);
    });
}

#[test]
fn a_capture_given_up_or_ended_by_another_thread_lets_its_streams_go() {
    on_each_device("a_capture_given_up_or_ended_by_another", |_| {
        let (stream, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = stream.upload(&[1u32; 64]).unwrap();
        let affine = kernel("affine");
        stream.synchronize().unwrap();
        for ends in [true, false] {
            let mut graph = Graph::new();
            graph.capture_begin_on(&stream).unwrap();
            side.wait_stream(&stream).unwrap();
            let args = (&words, 2, 0, 64);
            side.launch(&affine, Grid::elements(64), args).unwrap();
            stream.wait_stream(&side).unwrap();
            let runtime = Runtime::current();
            let graph = std::thread::spawn(move || {
                let _entered = runtime.enter();
                if ends {
                    graph.capture_end().unwrap();
                    return Some(graph);
                }
                drop(graph);
                None
            });
            let graph = graph.join().unwrap();
            assert!(!stream.is_capturing() && !side.is_capturing());
            if let Some(graph) = graph {
                stream.replay(&graph).unwrap();
            }
            assert_eq!(stream.to_vec(&words).unwrap(), [2; 64]);
        }
    });
}

/// A runtime that shuts down with captures and replays under way, and whose things are dropped then.
fn shut_down(test: &TestRuntime, is_capturing: bool) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    let (stream, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
    let slow = Slow::new(&stream);
    let words: Buffer<u32> = stream.zeroed(64).unwrap();
    let pinned = PinnedBuffer::<u32>::new(64).unwrap();
    let event = Event::new();
    let mut graph = Graph::new();
    let body = || {
        let temporary = stream.zeroed::<u32>(64)?;
        slow.launch(&stream);
        side.wait_stream(&stream)?;
        side.copy(&temporary, &words)?;
        side.copy_to_pinned(&words, &pinned)?;
        event.record(&side)?;
        stream.wait_event(&event)
    };
    graph.capture_on(&stream, body).unwrap();
    let mut second = Graph::new();
    for _ in 0..3 {
        stream.replay(&graph).unwrap();
        side.replay(&graph).unwrap();
    }
    if is_capturing {
        second.capture_begin_on(&stream).unwrap();
        body().unwrap();
    }
    runtime.runtime().shutdown().unwrap();
    let is_shut = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::ShutDown);
    is_shut(graph.replay());
    is_shut(stream.replay(&graph));
    is_shut(side.wait_event(&event));
    if is_capturing {
        is_shut(second.capture_end());
        assert_eq!(second.capture_end().unwrap_err().kind(), ErrorKind::Capture);
    }
    is_shut(second.capture_begin_on(&stream));
    assert!(!stream.is_capturing());
    graph.reset().unwrap();
    drop((graph, words, slow, pinned, event, second, stream, side));
    drop(runtime);
    assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
}

#[test]
fn a_runtime_shuts_down_with_captures_and_replays_under_way() {
    on_each_device("a_runtime_shuts_down_with_captures", |test| {
        let _deadline = Deadline::new("a shutdown", 60);
        for is_capturing in [false, true] {
            shut_down(test, is_capturing);
        }
    });
}
