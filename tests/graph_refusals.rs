//! Promises of what a capture refuses: which calls, of whom, and what their errors say.

#![allow(
    clippy::unwrap_used,
    clippy::redundant_closure,
    reason = "a test may panic anywhere, and a closure is the place of its call"
)]

mod support;

use std::sync::Arc;

use support::captures::a_good_graph_works;
use support::on_each_device;
use vkaccel::{
    Buffer, CaptureErrorMode, Details, Error, ErrorKind, Graph, PinnedBuffer, Result, Runtime,
    Stream, memory,
};

type Wait = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Calls that wait for the device on the host, by name.
fn waits(stream: &Stream) -> Vec<(&'static str, Wait)> {
    let other = stream.clone();
    let words = stream.upload(&[1u32; 3]).unwrap();
    let (event, timed) = (stream.record_event().unwrap(), stream.clone());
    let pinned = PinnedBuffer::<u32>::new_on(0, 3).unwrap();
    let download = stream.read_async(&words).unwrap();
    let download = std::sync::Mutex::new(Some(download));
    let later = stream.read_async(&words).unwrap();
    let (second, reader, on_host) = (pinned.clone(), stream.clone(), event.clone());
    let (whole, part, rows, to_capture) = (
        stream.upload(&[1u32; 4]).unwrap(),
        stream.upload(&[1u32; 4]).unwrap(),
        stream.upload(&[1u32; 4]).unwrap(),
        stream.clone(),
    );
    let shared = Arc::new(stream.upload(&[1u32; 4]).unwrap());
    let (of_rows, of_views, of_streams) = (shared.clone(), shared.clone(), shared.clone());
    stream.synchronize().unwrap();
    vec![
        ("synchronize", Box::new(|| vkaccel::synchronize(0))),
        ("Stream::synchronize", Box::new(move || other.synchronize())),
        (
            "Stream::synchronize_timeout",
            Box::new(move || {
                let time = core::time::Duration::ZERO;
                timed.synchronize_timeout(time).map(drop)
            }),
        ),
        ("Event::synchronize", Box::new(move || event.synchronize())),
        (
            "Event::synchronize_timeout",
            Box::new(move || {
                let time = core::time::Duration::ZERO;
                on_host.synchronize_timeout(time).map(drop)
            }),
        ),
        ("Buffer::to_vec", Box::new(move || words.to_vec().map(drop))),
        ("Buffer::read", Box::new(move || whole.read(&mut [0; 4]))),
        (
            "View::read",
            Box::new(move || part.view(1..)?.read(&mut [0; 3])),
        ),
        (
            "View::to_vec",
            Box::new(move || of_views.view(1..)?.to_vec().map(drop)),
        ),
        (
            "Rows::read",
            Box::new(move || rows.rows(1, 2, 2)?.read(&mut [0; 2])),
        ),
        (
            "Rows::to_vec",
            Box::new(move || of_rows.rows(1, 2, 2)?.to_vec().map(drop)),
        ),
        (
            "Stream::to_vec",
            Box::new(move || reader.to_vec(&*of_streams).map(drop)),
        ),
        (
            "Graph::capture_on",
            Box::new(move || Graph::new().capture_on(&to_capture, || Ok(()))),
        ),
        (
            "Download::wait_timeout",
            Box::new(move || later.wait_timeout(core::time::Duration::MAX).map(drop)),
        ),
        (
            "PinnedBuffer::read",
            Box::new(move || pinned.read().map(drop)),
        ),
        (
            "PinnedBuffer::write",
            Box::new(move || second.write().map(drop)),
        ),
        (
            "Download::wait",
            Box::new(move || match download.lock().unwrap().take() {
                Some(download) => download.wait().map(drop),
                None => Ok(()),
            }),
        ),
        ("empty_cache", Box::new(|| memory::empty_cache())),
    ]
}

fn is_refusal(error: &Error, call: &str) -> bool {
    is_against(error, ErrorKind::NotPermitted, call)
}

/// Whether an error names a call, its place and that of a capture, also in its figures.
fn is_against(error: &Error, kind: ErrorKind, call: &str) -> bool {
    let file = "graph_refusals.rs";
    error.kind() == kind
        && error.to_string().contains(&format!("{call}, called at "))
        && error.to_string().matches(file).count() >= 2
        && matches!(error.details(), Some(Details::Capture { call: named, call_site, capture_site, .. })
            if named == call && call_site.contains(file) && capture_site.contains(file))
}

#[test]
fn waits_are_refused_by_mode_and_thread() {
    on_each_device("waits_are_refused", |_| {
        let captured = Stream::new(0).unwrap();
        let runtime = Runtime::current();
        use CaptureErrorMode::{Default, Global, Relaxed, ThreadLocal};
        for (mode, own, others) in [
            (Default, true, false),
            (ThreadLocal, true, false),
            (Global, true, true),
            (Relaxed, false, false),
        ] {
            for from_another in [false, true] {
                let stream = Stream::new(0).unwrap();
                for (call, wait) in waits(&stream) {
                    let mut graph = Graph::builder().capture_error_mode(mode).build();
                    graph.capture_begin_on(&captured).unwrap();
                    let result = match from_another {
                        false => wait(),
                        true => std::thread::scope(|scope| {
                            let thread = scope.spawn(|| {
                                let _entered = runtime.enter();
                                wait()
                            });
                            thread.join().unwrap()
                        }),
                    };
                    let is_refused = if from_another { others } else { own };
                    match result {
                        Err(error) => {
                            assert!(
                                is_refused && is_refusal(&error, call),
                                "{mode:?}: {error:?}"
                            );
                        }
                        Ok(()) => assert!(!is_refused, "{call} in {mode:?}"),
                    }
                    // Only its own thread's calls fail it.
                    let ended = graph.capture_end();
                    assert_eq!(ended.is_err(), own && !from_another, "{call} in {mode:?}");
                }
            }
        }
        a_good_graph_works(&captured);
    });
}

#[test]
fn a_captured_stream_is_not_waited_for_in_any_mode() {
    on_each_device("a_captured_stream_is_not_waited_for", |_| {
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[1u32; 3]).unwrap();
        type Call = (&'static str, fn(&Stream, &Buffer<u32>) -> Result<()>);
        let calls: [Call; 7] = [
            ("Stream::synchronize", |stream, _| stream.synchronize()),
            ("Stream::query", |stream, _| stream.query().map(drop)),
            ("Stream::to_vec", |stream, words| {
                stream.to_vec(words).map(drop)
            }),
            ("Stream::read", |stream, words| {
                stream.read(words, &mut [0; 3])
            }),
            ("Stream::read_async", |stream, words| {
                stream.read_async(words).map(drop)
            }),
            ("Stream::add_callback", |stream, _| {
                stream.add_callback(|| {})
            }),
            ("Stream::replay", |stream, words| {
                let other = Stream::new(0)?;
                let mut graph = Graph::new();
                graph.capture_begin_on(&other)?;
                other.fill(words, 1)?;
                graph.capture_end()?;
                stream.replay(&graph)
            }),
        ];
        for (name, call) in calls {
            let mode = CaptureErrorMode::Relaxed;
            let mut graph = Graph::builder().capture_error_mode(mode).build();
            graph.capture_begin_on(&stream).unwrap();
            let error = call(&stream, &words).unwrap_err();
            assert!(is_refusal(&error, name), "{error:?}");
            let error = graph.capture_end().unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        a_good_graph_works(&stream);
    });
}

#[test]
fn memory_from_the_driver_is_refused_outside_of_the_capture_alone() {
    on_each_device("memory_from_the_driver", |_| {
        let (captured, outside) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        // What is cached for this stream may be had.
        drop(outside.uninit::<u32>(1000).unwrap());
        let take = |len| outside.uninit::<u32>(len).map(drop);
        let mut graph = Graph::new();
        graph.capture_begin_on(&captured).unwrap();
        drop(captured.uninit::<u32>(3 << 20).unwrap());
        take(1000).unwrap();
        let error = take(5 << 20).unwrap_err();
        let call = "taking device memory from the driver";
        assert!(is_refusal(&error, call), "{error:?}");
        assert!(
            error.to_string().contains("make the buffer before"),
            "{error}"
        );
        assert!(graph.capture_end().is_err());
        take(5 << 20).unwrap();

        let relaxed = CaptureErrorMode::Relaxed;
        let mut graph = Graph::builder().capture_error_mode(relaxed).build();
        let taken = graph.capture_on(&captured, || take(7 << 20));
        taken.unwrap();

        // Other threads' memory comes from where it always does.
        let runtime = Runtime::current();
        let mut graph = Graph::new();
        graph.capture_begin_on(&captured).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _entered = runtime.enter();
                take(9 << 20).unwrap();
                memory::private_pool_bytes(None).unwrap()
            });
            let private = thread.join().unwrap();
            assert!(private.iter().all(|(_, bytes)| *bytes == 0));
        });
        graph.capture_end().unwrap();
        a_good_graph_works(&captured);
    });
}

#[test]
fn what_is_against_a_capture_names_its_call_and_both_places() {
    on_each_device("what_is_against_a_capture", |_| {
        use ErrorKind::{Capture, NotPermitted};
        let [one, other, outside] = [(); 3].map(|()| Stream::new(0).unwrap());
        let words = outside.upload(&[1u32; 3]).unwrap();
        let event = outside.record_event().unwrap();
        type Call<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);
        let calls: [Call<'_>; 3] = [
            ("Stream::wait_event", Box::new(|| one.wait_event(&event))),
            (
                "Stream::wait_stream",
                Box::new(|| one.wait_stream(&outside)),
            ),
            ("Event::wait", Box::new(|| event.wait(&one))),
        ];
        for (name, call) in calls {
            let mut graph = Graph::new();
            graph.capture_begin_on(&one).unwrap();
            for error in [call().unwrap_err(), graph.capture_end().unwrap_err()] {
                assert!(is_against(&error, Capture, name), "{error:?}");
            }
        }
        let (mut graph, mut second) = (Graph::new(), Graph::new());
        graph.capture_begin_on(&one).unwrap();
        let error = second.capture_begin_on(&one).unwrap_err();
        assert!(
            is_against(&error, Capture, "Graph::capture_begin_on"),
            "{error:?}"
        );
        let error = second.capture_on(&one, || Ok(())).unwrap_err();
        assert!(
            is_against(&error, Capture, "Graph::capture_on"),
            "{error:?}"
        );
        let entered = one.enter().unwrap();
        let error = second.capture_begin().unwrap_err();
        assert!(
            is_against(&error, Capture, "Graph::capture_begin"),
            "{error:?}"
        );
        let error = second.capture(|| Ok(())).unwrap_err();
        assert!(is_against(&error, Capture, "Graph::capture"), "{error:?}");
        drop(entered);
        second.capture_begin_on(&other).unwrap();
        let error = other.wait_stream(&one).unwrap_err();
        assert!(
            is_against(&error, Capture, "Stream::wait_stream"),
            "{error:?}"
        );
        assert!(second.capture_end().is_err());
        graph.capture_end().unwrap();

        let mut graph = Graph::new();
        graph.capture_begin_on(&one).unwrap();
        other.wait_stream(&one).unwrap();
        other.fill(&words, 3).unwrap();
        let error = graph.capture_end().unwrap_err();
        assert!(
            is_against(&error, Capture, "Graph::capture_end"),
            "{error:?}"
        );
        let loose = format!("stream {} was joined", other.id());
        assert!(error.to_string().contains(&loose), "{error}");

        let captured = graph.capture_on(&one, || {
            let error = words.to_vec().unwrap_err();
            assert!(
                is_against(&error, NotPermitted, "Buffer::to_vec"),
                "{error:?}"
            );
            Ok(())
        });
        let error = captured.unwrap_err();
        assert!(is_against(&error, Capture, "Buffer::to_vec"), "{error:?}");
    });
}
