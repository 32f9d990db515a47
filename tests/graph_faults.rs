//! Calls of the driver that fail while graphs are captured, made, replayed and dropped: each is told as what it
//! is, all is as it was before, and what comes after works.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use ash::vk;
use process::over_the_shim;
use support::books::check_books;
use support::deadline::Deadline;
use support::entry::Entry;
use support::kernels::chosen as kernel;
use support::slow::{GROUPS, Slow};
use support::{TestRuntime, on_each_device};
use vkaccel::memory::{empty_cache, memory_allocated, memory_reserved, set_memory_limit};
use vkaccel::{
    Buffer, CaptureErrorMode, ErrorKind, Generator, Graph, Grid, Kernel, PinnedBuffer, Result,
    RngState, Stream, empty_host_cache, host_memory_stats, set_host_memory_limit,
};

/// The words of each buffer.
const WORDS: usize = 1000;
/// What a replay adds to the ticks.
const TICKS: u32 = 3 * 64;
/// The draws of a replay: of all words, and of one more buffer's bytes.
const DRAWS: u64 = 1000 + 1000;

/// What graphs work with, made before anything fails.
struct Bench {
    streams: [Stream; 3],
    words: Buffer<u32>,
    result: Buffer<u32>,
    truths: Buffer<u8>,
    threes: Buffer<[u8; 3]>,
    counts: Buffer<u32>,
    ticks: Buffer<u32>,
    source: PinnedBuffer<u32>,
    target: PinnedBuffer<u32>,
    generator: Generator,
    affine: Kernel,
    tick: Kernel,
}

impl Bench {
    fn new() -> Self {
        let streams = [(); 3].map(|()| Stream::new(0).unwrap());
        let stream = &streams[0];
        let bench = Self {
            words: stream.zeroed(WORDS).unwrap(),
            result: stream.zeroed(WORDS).unwrap(),
            truths: stream.zeroed(WORDS).unwrap(),
            threes: stream.zeroed(WORDS).unwrap(),
            counts: stream.upload(&[2, 1, 1]).unwrap(),
            ticks: stream.zeroed(1).unwrap(),
            source: PinnedBuffer::from_slice(&[1; WORDS]).unwrap(),
            target: PinnedBuffer::new(WORDS).unwrap(),
            generator: Generator::new(1, 0).unwrap(),
            affine: kernel("affine"),
            tick: kernel("tick"),
            streams,
        };
        // Everything that is made once is there.
        let mut replays = 0;
        bench.live(&mut replays).unwrap();
        vkaccel::synchronize(0).unwrap();
        bench
    }

    /// Some of everything that can be captured, on two streams; gives a buffer of its own.
    fn body(&self) -> Result<Buffer<u32>> {
        let [main, side, _] = &self.streams;
        main.copy_from_pinned(&self.source, &self.words)?;
        let output = main.uninit::<u32>(WORDS)?;
        main.copy(&self.words, &output)?;
        side.wait_stream(main)?;
        side.fill_bits(&self.generator, &self.words)?;
        side.fill_bernoulli(&self.generator, &self.truths, 0.5)?;
        side.write(&self.result, &[5; WORDS])?;
        {
            let temporary = main.zeroed::<u32>(1 << 20)?;
            main.fill(&temporary, 3)?;
            let args = (temporary.view(..WORDS)?, 2, 1, WORDS);
            main.launch(&self.affine, Grid::elements(WORDS), args)?;
            main.copy(temporary.view(..WORDS)?, &output)?;
        }
        main.fill(&self.threes, [1, 2, 3])?;
        main.copy(self.threes.view(..900)?, self.threes.view(7..907)?)?;
        main.launch_indirect(&self.tick, &self.counts, (&self.ticks,))?;
        main.concurrent(|| {
            let halves = [output.view(..512)?, output.view(512..)?];
            halves.into_iter().try_for_each(|half| {
                let args = (half, 3, 0, half.len());
                main.launch(&self.affine, Grid::elements(half.len()), args)
            })
        })?;
        main.launch(&self.tick, Grid::groups(1), (&self.ticks,))?;
        main.wait_event(&side.record_event()?)?;
        main.copy_to_pinned(&output, &self.target)?;
        Ok(output)
    }

    /// Graphs from beginning to end, with their replays; those that were taken are counted.
    fn live(&self, replays: &mut u32) -> Result<()> {
        let [main, side, other] = &self.streams;
        let mut replay = |graph: &Graph, stream: &Stream| -> Result<()> {
            stream.replay(graph)?;
            *replays += 1;
            Ok(())
        };
        let mut graph = Graph::builder().keep_graph(true).build();
        graph.set_capture_error_mode(CaptureErrorMode::Relaxed);
        graph.capture_begin_on(main)?;
        let output = self.body()?;
        graph.capture_end()?;
        replay(&graph, main)?;
        graph.instantiate()?;
        for stream in [main, other, side] {
            replay(&graph, stream)?;
        }
        graph.reset()?;
        drop(output);
        let output = graph.capture_on(side, || {
            main.wait_stream(side)?;
            let output = self.body()?;
            side.wait_stream(main)?;
            Ok(output)
        })?;
        replay(&graph, side)?;
        replay(&graph, other)?;
        // Its last replay may be under way.
        drop(graph);
        assert_eq!(other.to_vec(&output)?, [21; WORDS]);
        Ok(())
    }

    /// What has to be as it was, once everything else is gone.
    fn state(&self) -> (u64, u64, u64, u64) {
        empty_cache().unwrap();
        empty_host_cache().unwrap();
        check_books();
        let host = host_memory_stats().unwrap();
        (
            memory_reserved(0).unwrap(),
            memory_allocated(0).unwrap(),
            host.allocated_bytes.current,
            host.active_bytes.current,
        )
    }

    /// Waits until all is done; says how often somebody was told of commands that were lost.
    fn settle() -> u32 {
        let mut told = 0;
        while vkaccel::synchronize(None).is_err() {
            told += 1;
            assert!(told < 100, "it is told again and again");
        }
        told
    }

    fn ticks(&self) -> u32 {
        self.streams[0].to_vec(&self.ticks).unwrap()[0]
    }

    /// Lives while the `n`-th call from now fails; false if there was none.
    fn lives_in_spite_of_call(&self, n: u64, entry: &Entry) -> bool {
        let (before, ticks) = (self.state(), self.ticks());
        let offset = self.generator.offset().unwrap();
        let mut replays = 0;
        entry.fail_any(n, refusal(n));
        let outcome = self.live(&mut replays);
        let failed = entry.failed();
        entry.forget_rules();
        let place = format!("call {n}, {failed:?}, {outcome:?}");
        if let Err(error) = &outcome {
            let kinds = [ErrorKind::OutOfMemory, ErrorKind::OutOfHostMemory];
            assert!(kinds.contains(&error.kind()), "{place}");
            assert_eq!(error.raw(), Some(refusal(n).as_raw()), "{place}");
        }
        assert!(
            self.streams.iter().all(|one| !one.is_capturing()),
            "{place}"
        );
        let told = Self::settle();
        // Nothing has run that was refused, and what was taken has, unless somebody was told.
        let ran = (self.ticks() - ticks) / TICKS;
        assert!(
            ran <= replays && (ran == replays || told > 0),
            "{place}: {ran} of {replays}"
        );
        let drawn = self.generator.offset().unwrap() - offset;
        assert_eq!(drawn, DRAWS * u64::from(replays), "{place}");
        assert_eq!(self.state(), before, "{place}");
        if failed.is_none() {
            outcome.unwrap();
            assert!(n > 100, "there are only {n} calls");
            return false;
        }
        let mut replays = 0;
        let lived = self.live(&mut replays);
        lived.unwrap_or_else(|error| panic!("after {place}: {error}"));
        Self::settle();
        assert_eq!(self.state(), before, "after {place}");
        true
    }
}

/// What the `n`-th call gives.
fn refusal(n: u64) -> vk::Result {
    match n % 2 {
        0 => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        _ => vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    }
}

/// A runtime for the device of `test` whose driver's calls the entry rules, without the layer, which would
/// take most of the time; the entry itself sees what leaks.
fn ruled(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder().validation(false));
    (entry, runtime)
}

/// Lets memory run out at every call of a graph's life, one after the other.
fn run_out(entry: &Entry, runtime: TestRuntime) {
    let _deadline = Deadline::new("a graph's life", 300);
    let bench = Bench::new();
    for n in 1.. {
        if !bench.lives_in_spite_of_call(n, entry) {
            break;
        }
    }
    drop(bench);
    drop(runtime);
    assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
}

#[test]
fn memory_may_run_out_at_any_call_of_a_graphs_life() {
    on_each_device("memory_may_run_out_at_any_call_of_a_graphs_life", |test| {
        let (entry, runtime) = ruled(test);
        run_out(&entry, runtime);
    });
}

/// Commands are made for each family that a graph is replayed on.
#[test]
fn memory_may_run_out_where_replays_go_to_two_families() {
    let test = "memory_may_run_out_where_replays_go_to_two_families";
    let settings = [("FAMILY", "compute")];
    over_the_shim(test, &settings, || {
        let entry = Entry::new().expect("there is a loader");
        let runtime = TestRuntime::new(entry.builder().validation(false));
        run_out(&entry, runtime);
    });
}

/// The bound on what is in flight has a replay wait for the oldest one, behind its own submission.
#[test]
fn a_replay_that_was_submitted_is_not_refused() {
    on_each_device("a_replay_that_was_submitted_is_not_refused", |test| {
        let (entry, _runtime) = ruled(test);
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let ticks = stream.zeroed::<u32>(1).unwrap();
        let words = stream.zeroed::<u32>(64).unwrap();
        let generator = Generator::new(5, 0).unwrap();
        let tick = kernel("tick");
        let mut graph = Graph::new();
        let captured = graph.capture_on(&stream, || {
            stream.launch(&tick, Grid::groups(1), (&ticks,))?;
            stream.fill_bits(&generator, &words)
        });
        captured.unwrap();
        slow.launch(&stream);
        entry.fail_all("vkWaitSemaphores", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let mut taken = 0;
        for _ in 0..100 {
            taken += u32::from(stream.replay(&graph).is_ok());
        }
        assert!(entry.failed().is_some(), "nothing was waited for");
        entry.forget_rules();
        let end = RngState::from_parts(5, 64 * u64::from(taken));
        assert_eq!(generator.state().unwrap(), end);
        assert_eq!(stream.to_vec(&ticks).unwrap(), [64 * taken]);
    });
}

#[test]
fn a_graph_whose_replay_was_lost_with_its_stream_is_replayed_on_others() {
    on_each_device("a_graph_whose_replay_was_lost", |test| {
        let (entry, _runtime) = ruled(test);
        let other = Stream::new(0).unwrap();
        let word = other.zeroed::<u32>(1).unwrap();
        let add = kernel("add_at_index");
        let mut graph = Graph::new();
        let captured = graph.capture_on(&other, || {
            other.launch(&add, Grid::groups(1), (&word, 0, 1))
        });
        captured.unwrap();
        let stream = Stream::new(0).unwrap();
        stream.replay(&graph).unwrap();
        stream.synchronize().unwrap();
        entry.fail_all("vkQueueSubmit", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        stream.replay(&graph).unwrap();
        drop(stream);
        entry.forget_rules();
        assert!(Bench::settle() > 0, "nobody was told");
        for expected in 2..5 {
            other.replay(&graph).unwrap();
            assert_eq!(other.to_vec(&word).unwrap(), [expected]);
        }
    });
}

/// Loses the device at the `n`-th call of a function in a graph's life; false if there was none.
fn loses_at(test: &TestRuntime, function: &str, n: u64, steps: u32) -> bool {
    let (entry, mut runtime) = ruled(test);
    let bench = Bench::new();
    entry.fail(function, n, vk::Result::ERROR_DEVICE_LOST);
    let mut replays = 0;
    // Behind the last wait nobody has anything to call the driver for.
    let outcome = bench.live(&mut replays).and_then(|()| {
        // What is over at once is not waited for.
        let slow = kernel("slow");
        let data = bench.streams[0].uninit::<u32>(GROUPS)?;
        bench.streams[0].launch(&slow, Grid::groups(GROUPS), (&data, steps))?;
        vkaccel::synchronize(0)
    });
    let place = format!("call {n} of {function}");
    let failed = entry.failed();
    entry.forget_rules();
    if failed.is_none() {
        outcome.expect(&place);
        return false;
    }
    runtime.expect_loss();
    // It stays lost.
    let told = [
        outcome,
        bench.live(&mut replays),
        vkaccel::synchronize(0),
        bench.streams[0].synchronize(),
    ];
    for told in &told {
        let error = told.as_ref().expect_err(&place);
        assert!(error.is_device_lost(), "{place}: {error}");
    }
    assert!(
        bench.streams.iter().all(|one| !one.is_capturing()),
        "{place}"
    );
    // What the device still does in truth is done before its memory goes.
    entry.wait_idle();
    drop(bench);
    drop(runtime);
    assert!(entry.leaked().is_empty(), "{place}: {:?}", entry.leaked());
    true
}

/// These are the functions that may say so.
#[test]
fn a_device_may_be_lost_at_any_call_of_a_graphs_life() {
    on_each_device("a_device_may_be_lost_at_any_call", |test| {
        let _deadline = Deadline::new("losses", 300);
        let steps = Slow::new(&Stream::new(0).unwrap()).steps / 2;
        for function in [
            "vkQueueSubmit",
            "vkGetSemaphoreCounterValue",
            "vkWaitSemaphores",
        ] {
            // All of the first ones, and of those that look how far the device is, some.
            let mut n = 1;
            while loses_at(test, function, n, steps) {
                n += 1 + n / 8;
            }
            assert!(n > 1, "{function} was not called");
        }
        // The test's own runtime never noticed.
        let mut replays = 0;
        Bench::new().live(&mut replays).unwrap();
    });
}

#[test]
fn a_device_may_be_lost_during_a_capture() {
    on_each_device("a_device_may_be_lost_during_a_capture", |test| {
        for ends in [true, false] {
            let (entry, mut runtime) = ruled(test);
            let bench = Bench::new();
            let [main, _, other] = &bench.streams;
            runtime.expect_loss();
            let mut graph = Graph::builder()
                .capture_error_mode(CaptureErrorMode::Relaxed)
                .build();
            graph.capture_begin_on(main).unwrap();
            let output = bench.body().unwrap();
            entry.fail("vkQueueSubmit", 1, vk::Result::ERROR_DEVICE_LOST);
            let told = other.fill(&bench.result, 1).and_then(|()| other.flush());
            assert!(told.unwrap_err().is_device_lost());
            assert!(bench.body().unwrap_err().is_device_lost());
            if ends {
                // It may be known only when it is replayed.
                let ended = graph.capture_end().and_then(|()| graph.replay());
                assert!(ended.unwrap_err().is_device_lost());
            }
            drop(graph);
            assert!(bench.streams.iter().all(|one| !one.is_capturing()));
            entry.forget_rules();
            entry.wait_idle();
            drop((bench, output));
            drop(runtime);
            assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
        }
    });
}

#[test]
fn memory_may_run_out_in_a_capture() {
    on_each_device("memory_may_run_out_in_a_capture", |test| {
        let _runtime = test.another(support::builder());
        let bench = Bench::new();
        let before = bench.state();
        let [main, ..] = &bench.streams;
        let mut graph = Graph::new();
        for gives_up in [true, false] {
            set_memory_limit(Some(before.0 + (24 << 20)), 0).unwrap();
            let captured = graph.capture_on(main, || {
                let output = bench.body()?;
                let refused = main.uninit::<u32>(16 << 20).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
                match gives_up {
                    true => Err(refused),
                    false => Ok(output),
                }
            });
            assert!(!main.is_capturing());
            // What was refused is no part of the graph, and replays need no memory.
            let Ok(output) = captured else {
                assert!(gives_up);
                assert_eq!(bench.state(), before);
                continue;
            };
            main.replay(&graph).unwrap();
            assert_eq!(main.to_vec(&output).unwrap(), [21; WORDS]);
            graph.reset().unwrap();
        }
        set_memory_limit(None, 0).unwrap();
        assert_eq!(bench.state(), before);
        // The same for memory of the host.
        set_host_memory_limit(Some(before.2 + 1000)).unwrap();
        let error = graph.capture_on(main, || main.write(&bench.result, &[1; WORDS]));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::OutOfHostMemory);
        set_host_memory_limit(None).unwrap();
        assert_eq!(bench.state(), before);
        let mut replays = 0;
        bench.live(&mut replays).unwrap();
        vkaccel::synchronize(0).unwrap();
        assert_eq!(bench.state(), before);
    });
}
