//! Promises of graphs in forked processes.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::child::role;
use support::fork::{in_fork, in_own_process};
use support::on_each_device;
use vkaccel::{CaptureErrorMode, ErrorKind, Graph, Runtime, Stream};

/// A graph that was captured, one that is being captured, and threads that hold their locks much of the time.
#[test]
fn graphs_and_captures_of_the_parent_are_inert_in_a_forked_child() {
    const NAME: &str = "graphs_and_captures_of_the_parent_are_inert_in_a_forked_child";
    if role().is_some() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let runtime = Runtime::current();
        let (stream, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = stream.upload(&[1u32; 64]).unwrap();
        let body = || {
            let temporary = stream.uninit::<u32>(64)?;
            stream.copy(&words, &temporary)?;
            side.wait_stream(&stream)?;
            side.copy(&temporary, words.view(..)?)?;
            side.fill(words.view(..32)?, 7)?;
            stream.wait_stream(&side)
        };
        let mut graph = Graph::new();
        graph.enable_debug_mode();
        // The graph has what is left of it.
        let gone = stream.upload(&[5u32; 64]).unwrap();
        let captured = graph.capture_on(&stream, || {
            stream.copy(&gone, &words)?;
            body()
        });
        captured.unwrap();
        drop(gone);
        // The allocator's lock is taken much of the time, and that of the list of captures.
        let busy = |work: fn(&Stream)| {
            let runtime = runtime.clone();
            std::thread::spawn(move || {
                let _entered = runtime.enter();
                let stream = Stream::new(0).unwrap();
                while !STOP.load(Ordering::Relaxed) {
                    work(&stream);
                }
            })
        };
        let busy = [
            busy(|stream| drop(stream.uninit::<u8>(1000).unwrap())),
            busy(|stream| Graph::new().capture_begin_on(stream).unwrap()),
        ];
        let mut capturing = Graph::builder().keep_graph(true).build();
        capturing.set_capture_error_mode(CaptureErrorMode::Relaxed);
        capturing.capture_begin_on(&stream).unwrap();
        body().unwrap();
        let mut all = Some((graph, capturing, words, stream, side));
        for round in 0..50 {
            all.as_ref().unwrap().0.replay().unwrap();
            // Then and again no replay is under way, which would keep what the graph has.
            if round % 2 == 0 {
                vkaccel::synchronize(0).unwrap();
            }
            in_fork(|| {
                let started = Instant::now();
                let (mut graph, mut capturing, words, stream, side) = all.take().unwrap();
                assert!(!stream.is_capturing());
                let path = std::env::temp_dir().join("none.dot");
                for error in [
                    graph.replay().unwrap_err(),
                    side.replay(&graph).unwrap_err(),
                    graph.debug_dump(path).unwrap_err(),
                    graph.reset().unwrap_err(),
                    stream.fill(&words, 1).unwrap_err(),
                    capturing.capture_end().unwrap_err(),
                    capturing.capture_begin_on(&side).unwrap_err(),
                    Graph::new().capture_begin_on(&side).unwrap_err(),
                    Graph::new().capture(|| Ok(())).unwrap_err(),
                ] {
                    assert_eq!(error.kind(), ErrorKind::ForkedChild, "{error}");
                }
                assert!(format!("{graph:?}").contains("captured"));
                drop((graph, capturing, words, stream, side));
                assert!(started.elapsed() < Duration::from_secs(2), "not at once");
            });
        }
        STOP.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        let (_, mut capturing, words, stream, _) = all.unwrap();
        capturing.capture_end().unwrap();
        stream.fill(&words, 3).unwrap();
        stream.replay(&capturing).unwrap();
        let expected = [[7; 32], [3; 32]].concat();
        return assert_eq!(stream.to_vec(&words).unwrap(), expected);
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}
