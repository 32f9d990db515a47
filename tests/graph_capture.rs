//! Promises of captures: what they forbid and to whom, and that one that fails leaves nothing behind.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::redundant_closure,
    reason = "a test may panic anywhere, its numbers are small, and a closure is the place of its call"
)]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use support::captures::a_good_graph_works;
use support::kernels::chosen as kernel;
use support::on_each_device;
use vkaccel::{
    Buffer, CaptureErrorMode, ErrorKind, Generator, Graph, Grid, MemPool, Philox, PinnedBuffer,
    Result, RngState, Stream, current_stream, memory,
};

/// What the allocator and the thread look like between captures.
fn state() -> (u64, u64, u64, vkaccel::Device, Stream, Vec<u8>) {
    memory::empty_cache().unwrap();
    let stats = memory::memory_stats(None).unwrap();
    let generator = vkaccel::random::get_rng_state(None).unwrap();
    (
        stats.reserved_bytes.all.current,
        stats.segment.all.current,
        stats.allocated_bytes.all.current,
        vkaccel::Device::new(vkaccel::current_device_index().unwrap() as u32),
        current_stream(None).unwrap(),
        generator.as_bytes().to_vec(),
    )
}

/// What goes in a capture before it fails.
fn record_something(stream: &Stream) -> Result<Buffer<u32>> {
    let words = stream.uninit::<u32>(1 << 20)?;
    stream.fill(&words, 1)?;
    Generator::default_of(None)?.fill_bits(&words)?;
    stream.launch(&kernel("affine"), Grid::elements(64), (&words, 2, 0, 64))?;
    Ok(words)
}

#[test]
fn a_capture_that_fails_leaves_all_as_it_was() {
    on_each_device("a_capture_that_fails", |_| {
        let stream = current_stream(None).unwrap();
        let side = Stream::new(0).unwrap();
        a_good_graph_works(&stream);
        let before = state();
        type Failure = (&'static str, Box<dyn Fn(&mut Graph)>);
        let failures: Vec<Failure> = vec![
            (
                "a refused call",
                Box::new(|graph| {
                    graph.capture_begin().unwrap();
                    record_something(&current_stream(None).unwrap()).unwrap();
                    let error = vkaccel::synchronize(None).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::NotPermitted);
                    let error = graph.capture_end().unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Capture);
                    assert!(error.to_string().contains("synchronize"), "{error}");
                    assert_eq!(graph.replay().unwrap_err().kind(), ErrorKind::Capture);
                }),
            ),
            (
                "given up",
                Box::new(|graph| {
                    graph.capture_begin().unwrap();
                    drop(record_something(&current_stream(None).unwrap()).unwrap());
                }),
            ),
            (
                "an error of the program's",
                Box::new(|graph| {
                    let error = graph.capture(|| {
                        record_something(&current_stream(None)?)?;
                        Buffer::from_slice(&[1u8])?.cast::<u32>()
                    });
                    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidArgument);
                }),
            ),
            (
                "a panic",
                Box::new(|graph| {
                    let panicked = catch_unwind(AssertUnwindSafe(|| {
                        graph.capture(|| -> Result<()> {
                            let _words = record_something(&current_stream(None)?)?;
                            panic!("on purpose")
                        })
                    }));
                    assert!(panicked.is_err());
                }),
            ),
            (
                "a stream that was not joined",
                Box::new(move |graph| {
                    let stream = current_stream(None).unwrap();
                    let error = graph.capture(|| {
                        side.wait_stream(&stream)?;
                        record_something(&side)
                    });
                    let error = error.map(drop).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Capture);
                    let text = error.to_string();
                    assert!(text.contains(&format!("stream {}", side.id())), "{text}");
                    assert!(!side.is_capturing());
                    side.synchronize().unwrap();
                }),
            ),
            (
                "reset",
                Box::new(|graph| {
                    graph.capture_begin().unwrap();
                    record_something(&current_stream(None).unwrap()).unwrap();
                    graph.reset().unwrap();
                }),
            ),
        ];
        for (name, fail) in failures {
            let mut graph = Graph::new();
            fail(&mut graph);
            drop(graph);
            assert!(!stream.is_capturing(), "{name}");
            stream.synchronize().unwrap();
            assert_eq!(state(), before, "{name}");
            a_good_graph_works(&stream);
            assert_eq!(state(), before, "{name}");
        }
    });
}

#[test]
fn pinned_memory_may_be_made_filled_and_given_back_during_a_capture() {
    on_each_device("pinned_memory_may_be_made", |_| {
        let words = Buffer::<u32>::zeroed(64).unwrap();
        let mode = CaptureErrorMode::Global;
        let mut graph = Graph::builder().capture_error_mode(mode).build();
        let source = graph.capture(|| {
            let source = PinnedBuffer::from_slice(&[7u32; 64])?;
            words.copy_from_pinned(&source)?;
            drop(PinnedBuffer::<u32>::new(64)?);
            memory::empty_host_cache()?;
            Ok(source)
        });
        let source = source.unwrap();
        for expected in [7, 8] {
            graph.replay().unwrap();
            assert_eq!(words.to_vec().unwrap(), [expected; 64]);
            source.write().unwrap().fill(8);
        }
    });
}

#[test]
fn a_stream_is_captured_once_at_a_time() {
    on_each_device("a_stream_is_captured_once", |_| {
        let (one, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let (mut first, mut second) = (Graph::new(), Graph::new());
        first.capture_begin_on(&one).unwrap();
        for error in [
            second.capture_begin_on(&one).unwrap_err(),
            first.capture_begin_on(&other).unwrap_err(),
            first.replay().unwrap_err(),
            second.capture_end().unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Capture, "{error}");
        }
        second.capture_begin_on(&other).unwrap();
        // A stream can't be of two captures.
        let error = other.wait_stream(&one).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capture);
        assert!(second.capture_end().is_err());
        first.capture_end().unwrap();
        a_good_graph_works(&one);
        a_good_graph_works(&other);
    });
}

#[test]
fn pool_and_mode_are_chosen_anew_for_each_capture() {
    on_each_device("pool_and_mode_are_chosen", |_| {
        let stream = current_stream(None).unwrap();
        let pool = MemPool::new(None).unwrap();
        let mut graph = Graph::new();
        let own = graph.pool();
        for id in [None, Some(pool.id()), None] {
            graph.set_pool(id);
            graph.set_capture_error_mode(CaptureErrorMode::Relaxed);
            assert_eq!(graph.pool(), id.unwrap_or(own));
            let words = graph.capture(|| {
                vkaccel::Stream::new(None)?.synchronize()?;
                stream.zeroed::<u32>(1000)
            });
            let bytes = memory::private_pool_bytes(None).unwrap();
            assert_eq!(bytes, [(id.unwrap_or(own), 2 << 20)]);
            drop(words);
            graph.reset().unwrap();
            memory::empty_cache().unwrap();
            assert!(memory::private_pool_bytes(None).unwrap().is_empty());
        }
    });
}

#[test]
fn each_replay_draws_what_calls_would_have_drawn() {
    on_each_device("each_replay_draws", |_| {
        let stream = current_stream(None).unwrap();
        let side = Stream::new(0).unwrap();
        let generators = [1, 2].map(|seed| Generator::new(seed, None).unwrap());
        let default = Generator::default_of(None).unwrap();
        let buffers = [(); 4].map(|()| stream.zeroed::<u32>(1003).unwrap());
        let floats = stream.zeroed::<f32>(77).unwrap();
        stream.synchronize().unwrap();
        let draw = || -> Result<()> {
            stream.fill_bits(&generators[0], &buffers[0])?;
            side.wait_stream(&stream)?;
            side.fill_bits(&generators[1], &buffers[1])?;
            side.fill_integers(&generators[0], &buffers[2], 5..=99)?;
            stream.wait_stream(&side)?;
            stream.fill_normal(&default, &floats, 0.0, 1.0)?;
            stream.fill_bits(&generators[0], buffers[3].view(1..)?)
        };
        let seen = || {
            let words: Vec<_> = buffers.iter().map(|one| one.to_vec().unwrap()).collect();
            (
                words,
                bytemuck::cast_vec::<f32, u32>(floats.to_vec().unwrap()),
            )
        };
        let states = || [&generators[0], &generators[1], &default].map(|one| one.state().unwrap());
        let set = |to: &[vkaccel::RngState; 3]| {
            for (generator, state) in [&generators[0], &generators[1], &default].iter().zip(to) {
                generator.set_state(state).unwrap();
            }
        };
        let begin = states();
        let mut graph = Graph::new();
        graph.capture(draw).unwrap();
        assert_eq!(states(), begin, "a capture draws nothing");
        let mut all = Vec::new();
        for _ in 0..4 {
            graph.replay().unwrap();
            all.push((seen(), states()));
        }
        set(&begin);
        for (numbers, after) in &all {
            draw().unwrap();
            side.synchronize().unwrap();
            assert_eq!(states(), *after);
            assert!(seen() == *numbers);
        }
        assert!(all[0].0 != all[1].0);
        // A seed between two replays counts for the next one.
        set(&begin);
        graph.replay().unwrap();
        assert!(seen() == all[0].0);
    });
}

#[test]
fn a_replay_that_is_refused_draws_nothing() {
    on_each_device("a_replay_that_is_refused", |_| {
        let stream = current_stream(None).unwrap();
        let generator = Generator::new(3, None).unwrap();
        let words = stream.zeroed::<u32>(64).unwrap();
        let target = PinnedBuffer::<u32>::new(64).unwrap();
        let mut graph = Graph::new();
        let captured = graph.capture(|| {
            generator.fill_bits(&words)?;
            words.copy_to_pinned(&target)
        });
        captured.unwrap();
        let before = generator.state().unwrap();
        let lent = target.read().unwrap();
        assert_eq!(graph.replay().unwrap_err().kind(), ErrorKind::HostBusy);
        drop(lent);
        assert_eq!(generator.state().unwrap(), before);
        generator.set_offset(u64::MAX - 3).unwrap();
        let before = generator.state().unwrap();
        assert_eq!(graph.replay().unwrap_err().kind(), ErrorKind::LimitExceeded);
        assert_eq!(generator.state().unwrap(), before);
        generator.set_offset(0).unwrap();
        graph.replay().unwrap();
        assert_eq!(generator.state().unwrap().offset(), 64);
        assert_eq!(*target.read().unwrap(), words.to_vec().unwrap());
    });
}

#[test]
fn a_graph_takes_numbers_of_256_generators_and_no_more() {
    on_each_device("a_graph_takes_numbers_of_256", |_| {
        let stream = Stream::new(0).unwrap();
        let words = stream.zeroed::<u32>(8).unwrap();
        let seeds = 0..257;
        let generators: Vec<_> = seeds.map(|seed| Generator::new(seed, 0).unwrap()).collect();
        let mut graph = Graph::new();
        let mut capture = |count: usize| {
            graph.capture_on(&stream, || {
                let mut used = generators[..count].iter();
                used.try_for_each(|generator| stream.fill_bits(generator, &words))
            })
        };
        let error = capture(257).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        capture(256).unwrap();
        stream.replay(&graph).unwrap();
        let mut expected = [0u32; 8];
        let mut last = Philox::from_state(&RngState::from_parts(255, 0)).unwrap();
        last.fill_bits(&mut expected).unwrap();
        assert_eq!(stream.to_vec(&words).unwrap(), expected);
        let offsets: Vec<_> = generators.iter().map(|one| one.offset().unwrap()).collect();
        assert_eq!(offsets, [&[8; 256][..], &[0]].concat());
    });
}
