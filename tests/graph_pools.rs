//! Promises about memory that graphs have in common with each other and with calls: nothing is written
//! while a replay under way still uses it, and all of it goes back once nothing does.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use process::over_the_shim;
use support::deadline::Deadline;
use support::kernels::chosen as kernel;
use support::slow::Slow;
use support::{TestRuntime, builder, on_each_device};
use vkaccel::memory::{empty_cache, memory_allocated, memory_reserved, set_memory_limit};
use vkaccel::{Buffer, CaptureErrorMode, Graph, Grid, MemPool, PoolId, Result, Stream};

/// A graph of a pool with temporary memory that it writes late, where that lies, and what it copies it to.
struct Late {
    graph: Graph,
    temporary: vkaccel::Address,
    result: Buffer<u32>,
}

impl Late {
    fn new(stream: &Stream, slow: &Slow, pool: Option<PoolId>) -> Self {
        let result = stream.zeroed::<u32>(64).unwrap();
        let mut graph = Graph::new();
        graph.set_pool(pool);
        let captured = graph.capture_on(stream, || {
            // The memory that they share puts all that follows behind the slow launch.
            let temporary = stream.uninit::<u32>(64)?;
            slow.launch(stream);
            stream.copy(slow.data.view(..64)?, temporary.view(..)?)?;
            stream.fill(&temporary, 7)?;
            stream.copy(&temporary, &result)?;
            Ok(temporary.address())
        });
        Self {
            temporary: captured.unwrap(),
            graph,
            result,
        }
    }
}

#[test]
fn the_host_writes_nothing_that_another_graph_of_the_pool_uses() {
    on_each_device("the_host_writes_nothing_that_another", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let output = stream.zeroed::<u32>(64).unwrap();
        let first = Late::new(&stream, &slow, None);
        let mut second = Graph::builder().pool(first.graph.pool()).build();
        let input = second.capture_on(&stream, || {
            let input = stream.uninit::<u32>(64)?;
            stream.copy(&input, &output)?;
            Ok(input)
        });
        let input = input.unwrap();
        assert_eq!(input.address(), first.temporary);
        for round in 1..4 {
            stream.replay(&first.graph).unwrap();
            stream.write(&input, &[10 * round; 64]).unwrap();
            stream.replay(&second).unwrap();
            assert_eq!(stream.to_vec(&output).unwrap(), [10 * round; 64]);
            assert_eq!(stream.to_vec(&first.result).unwrap(), [7; 64]);
        }
    });
}

#[test]
fn calls_that_take_a_graphs_memory_come_behind_its_replays() {
    on_each_device("calls_that_take_a_graphs_memory", |_| {
        let pool = MemPool::new(0).unwrap();
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        for keeps in [true, false] {
            let late = Late::new(&stream, &slow, Some(pool.id()));
            stream.replay(&late.graph).unwrap();
            let kept = keeps.then_some(late.graph);
            let words = pool.scope(|| stream.upload(&[5u32; 64])).unwrap();
            assert_eq!(words.address(), late.temporary);
            assert_eq!(stream.to_vec(&words).unwrap(), [5; 64]);
            assert_eq!(stream.to_vec(&late.result).unwrap(), [7; 64]);
            drop(kept);
        }
    });
}

#[test]
fn two_captures_at_once_share_a_pool() {
    on_each_device("two_captures_at_once", |_| {
        let streams = [(); 2].map(|()| Stream::new(0).unwrap());
        let words = [(); 2].map(|()| streams[0].zeroed::<u32>(1000).unwrap());
        let affine = kernel("affine");
        let first = Graph::new();
        let second = Graph::builder().pool(first.pool()).build();
        let mut graphs = [first, second];
        vkaccel::synchronize(0).unwrap();
        for (graph, stream) in graphs.iter_mut().zip(&streams) {
            graph.set_capture_error_mode(CaptureErrorMode::Relaxed);
            graph.capture_begin_on(stream).unwrap();
        }
        for step in 0..4 {
            for (which, stream) in streams.iter().enumerate() {
                let temporary = stream.uninit::<u32>(1000).unwrap();
                stream.copy(&words[which], &temporary).unwrap();
                let args = (&temporary, 2 + which, step, 1000);
                stream.launch(&affine, Grid::elements(1000), args).unwrap();
                stream.copy(&temporary, &words[which]).unwrap();
            }
        }
        for graph in graphs.iter_mut().rev() {
            graph.capture_end().unwrap();
        }
        for _ in 0..3 {
            streams[0].replay(&graphs[0]).unwrap();
            streams[1].replay(&graphs[1]).unwrap();
        }
        vkaccel::synchronize(0).unwrap();
        for (factor, words) in (2..).zip(&words) {
            let steps = (0..3).flat_map(|_| 0..4);
            let expected = steps.fold(0u32, |word, step| word * factor + step);
            assert_eq!(words.to_vec().unwrap(), [expected; 1000]);
        }
    });
}

/// A stream that takes over what a captured stream leaves, while a replay uses it.
fn inherit(rounds: u32) {
    let pool = MemPool::new(0).unwrap();
    let replaying = Stream::new(0).unwrap();
    let slow = Slow::new(&replaying);
    for round in 0..rounds {
        let captured = Stream::new(0).unwrap();
        let late = Late::new(&captured, &slow, Some(pool.id()));
        captured.synchronize().unwrap();
        replaying.replay(&late.graph).unwrap();
        drop((late.graph, captured));
        let heir = Stream::new(0).unwrap();
        let words = pool.scope(|| heir.uninit::<u32>(64)).unwrap();
        assert_eq!(words.address(), late.temporary);
        match round % 2 {
            0 => heir.write(&words, &[round; 64]).unwrap(),
            _ => heir.fill(&words, round).unwrap(),
        }
        heir.synchronize().unwrap();
        replaying.synchronize().unwrap();
        assert_eq!(heir.to_vec(&words).unwrap(), [round; 64]);
        assert_eq!(heir.to_vec(&late.result).unwrap(), [7; 64]);
    }
}

#[test]
fn what_another_stream_inherits_comes_behind_replays() {
    on_each_device("what_another_stream_inherits", |_| inherit(2));
}

#[test]
fn what_another_queue_inherits_comes_behind_replays() {
    let test = "what_another_queue_inherits_comes_behind_replays";
    let settings = [("QUEUES", "4"), ("DELAY_US", "20000"), ("SEED", "4")];
    over_the_shim(test, &settings, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        inherit(6);
    });
}

/// Replays a graph late that uses a large buffer from outside, and drops both.
fn replays_and_drops(stream: &Stream, slow: &Slow) -> Result<()> {
    let large = stream.uninit::<u8>(64 << 20)?;
    let mut graph = Graph::new();
    graph.capture_on(stream, || {
        slow.launch(stream);
        stream.fill(&large, 1)
    })?;
    stream.replay(&graph)
}

#[test]
fn memory_that_a_replay_was_the_last_to_use_serves_where_no_more_is_left() {
    on_each_device("memory_that_a_replay_was_the_last_to_use", |_| {
        let (replaying, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let slow = Slow::new(&replaying);
        let limit = memory_reserved(0).unwrap() + (100 << 20);
        set_memory_limit(Some(limit), 0).unwrap();
        for _ in 0..3 {
            replays_and_drops(&replaying, &slow).unwrap();
            // A stream that is gone, too.
            replays_and_drops(&Stream::new(0).unwrap(), &slow).unwrap();
            drop(other.uninit::<u8>(64 << 20).unwrap());
        }
    });
}

#[test]
fn what_replays_were_the_last_to_use_is_cached_memory_too() {
    on_each_device("what_replays_were_the_last_to_use", |_| {
        let replaying = Stream::new(0).unwrap();
        let slow = Slow::new(&replaying);
        empty_cache().unwrap();
        let before = (memory_reserved(0).unwrap(), memory_allocated(0).unwrap());
        for _ in 0..3 {
            replays_and_drops(&replaying, &slow).unwrap();
            replays_and_drops(&Stream::new(0).unwrap(), &slow).unwrap();
            empty_cache().unwrap();
            let after = (memory_reserved(0).unwrap(), memory_allocated(0).unwrap());
            assert_eq!(after, before);
        }
    });
}

/// On a queue of its own, whose work may be late, as the replay's may be.
#[test]
fn a_replay_comes_behind_calls_that_had_its_memory() {
    let test = "a_replay_comes_behind_calls_that_had_its_memory";
    let settings = [("QUEUES", "4"), ("DELAY_US", "20000"), ("SEED", "3")];
    over_the_shim(test, &settings, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        let pool = MemPool::new(0).unwrap();
        let (calling, replaying) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        for round in 0..12 {
            let words = pool.scope(|| calling.uninit::<u32>(64)).unwrap();
            calling.fill(&words, 100 + round).unwrap();
            let address = words.address();
            drop(words);
            let mut graph = Graph::builder()
                .pool(pool.id())
                .capture_error_mode(CaptureErrorMode::Relaxed)
                .build();
            graph.capture_begin_on(&calling).unwrap();
            let output = calling.uninit::<u32>(64).unwrap();
            assert_eq!(output.address(), address);
            calling.fill(&output, round).unwrap();
            graph.capture_end().unwrap();
            replaying.replay(&graph).unwrap();
            vkaccel::synchronize(0).unwrap();
            assert_eq!(replaying.to_vec(&output).unwrap(), [round; 64]);
        }
    });
}

/// The first graph is gone before the second begins, but not its replay.
#[test]
fn graphs_of_a_pool_take_turns_with_replays_of_those_that_are_gone() {
    let test = "graphs_of_a_pool_take_turns_with_replays_of_those_that_are_gone";
    let settings = [("QUEUES", "4"), ("DELAY_US", "20000"), ("SEED", "5")];
    over_the_shim(test, &settings, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        let pool = MemPool::new(0).unwrap();
        let [captured, one, other] = [(); 3].map(|()| Stream::new(0).unwrap());
        let filling = |value: u32| {
            let mut graph = Graph::builder()
                .pool(pool.id())
                .capture_error_mode(CaptureErrorMode::Relaxed)
                .build();
            graph.capture_begin_on(&captured).unwrap();
            let words = captured.uninit::<u32>(64).unwrap();
            captured.fill(&words, value).unwrap();
            graph.capture_end().unwrap();
            (graph, words)
        };
        for round in 0..12 {
            let (first, words) = filling(100 + round);
            let address = words.address();
            drop(words);
            one.replay(&first).unwrap();
            drop(first);
            let (second, words) = filling(round);
            assert_eq!(words.address(), address);
            other.replay(&second).unwrap();
            vkaccel::synchronize(0).unwrap();
            assert_eq!(other.to_vec(&words).unwrap(), [round; 64]);
        }
    });
}
