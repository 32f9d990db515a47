//! Promises of graphs: what is captured, what a replay does, and in which order.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use std::path::PathBuf;

use support::kernels::{APART, chosen as kernel};
use support::on_each_device;
use support::slow::Slow;
use vkaccel::{Buffer, ErrorKind, Event, Graph, Grid, Runtime, Stream, current_stream};

/// `data[i] = data[i] * factor + offset`, on a stream.
fn affine(stream: &Stream, data: &Buffer<u32>, factor: u32, offset: u32) {
    let len = data.len();
    let args = (data, factor, offset, len);
    let kernel = kernel("affine");
    stream.launch(&kernel, Grid::elements(len), args).unwrap();
}

#[test]
fn a_replay_does_again_what_was_captured() {
    on_each_device("a_replay_does_again", |_| {
        let stream = current_stream(None).unwrap();
        let input = stream.upload(&[1u32, 2, 3]).unwrap();
        let mut graph = Graph::new();
        graph.capture_begin().unwrap();
        assert!(stream.is_capturing());
        let output = Buffer::<u32>::uninit(3).unwrap();
        output.copy_from(input.view(..).unwrap()).unwrap();
        affine(&stream, &output, 2, 1);
        graph.capture_end().unwrap();
        assert!(!stream.is_capturing());
        for (given, expected) in [([1, 2, 3], [3, 5, 7]), ([10, 20, 30], [21, 41, 61])] {
            input.write(&given).unwrap();
            let before = Runtime::current().counters();
            graph.replay().unwrap();
            let since = Runtime::current().counters().since(&before);
            assert_eq!((since.replays, since.submits), (1, 1));
            assert_eq!((since.launches, since.transfers), (1, 1));
            assert_eq!(output.to_vec().unwrap(), expected);
        }
    });
}

#[test]
fn nothing_runs_while_it_is_captured() {
    on_each_device("nothing_runs", |_| {
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[7u32; 4]).unwrap();
        let mut graph = Graph::new();
        graph
            .capture_on(&stream, || {
                stream.fill(&words, 1)?;
                stream.write(&words, &[2; 4])?;
                affine(&stream, &words, 3, 0);
                Ok(())
            })
            .unwrap();
        assert_eq!(stream.to_vec(&words).unwrap(), [7; 4]);
        stream.replay(&graph).unwrap();
        assert_eq!(stream.to_vec(&words).unwrap(), [6; 4]);
    });
}

#[test]
fn uploads_keep_the_content_that_they_were_called_with() {
    on_each_device("uploads_keep", |_| {
        let stream = Stream::new(0).unwrap();
        // Longer than any piece of staging, and of no whole number of words.
        let lens = [1, 5, 100_003, (9 << 20) + 3];
        let buffers = lens.map(|len| stream.zeroed::<u8>(len).unwrap());
        let odd = stream.zeroed::<[u8; 3]>(11).unwrap();
        let mut graph = Graph::new();
        graph
            .capture_on(&stream, || {
                for (buffer, len) in buffers.iter().zip(lens) {
                    let mut data: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                    stream.write(buffer, &data)?;
                    data.fill(0);
                }
                // Copied onto itself, and filled with a pattern that is staged.
                stream.copy(buffers[2].view(..90_000)?, buffers[2].view(7..90_007)?)?;
                stream.fill(&odd, [1u8, 2, 3])
            })
            .unwrap();
        for _ in 0..2 {
            for buffer in &buffers {
                stream.fill(buffer, 0xEE).unwrap();
            }
            stream.replay(&graph).unwrap();
            for (at, (buffer, len)) in buffers.iter().zip(lens).enumerate() {
                let mut expected: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                if at == 2 {
                    expected.copy_within(..90_000, 7);
                }
                assert!(stream.to_vec(buffer).unwrap() == expected, "{len} bytes");
            }
            assert_eq!(stream.to_vec(&odd).unwrap(), [[1, 2, 3]; 11]);
        }
    });
}

#[test]
fn streams_join_a_capture_by_waiting_and_leave_it_with_its_end() {
    on_each_device("streams_join_a_capture", |_| {
        let (main, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let left = main.upload(&[1u32; 100]).unwrap();
        let right = main.upload(&[2u32; 100]).unwrap();
        main.synchronize().unwrap();
        let mut graph = Graph::new();
        graph
            .capture_on(&main, || {
                affine(&main, &left, 2, 0);
                assert!(!side.is_capturing());
                side.wait_stream(&main)?;
                assert!(side.is_capturing());
                affine(&side, &right, 3, 0);
                affine(&main, &left, 1, 5);
                let done = side.record_event()?;
                main.wait_event(&done)?;
                main.copy(&right, &left)
            })
            .unwrap();
        assert!(!side.is_capturing() && !main.is_capturing());
        // What was captured on both runs on one.
        for stream in [&main, &side] {
            let before = Runtime::current().counters();
            stream.replay(&graph).unwrap();
            let since = Runtime::current().counters().since(&before);
            assert_eq!((since.submits, since.launches, since.transfers), (1, 3, 1));
            stream.synchronize().unwrap();
        }
        assert_eq!(main.to_vec(&left).unwrap(), [18; 100]);
        assert_eq!(main.to_vec(&right).unwrap(), [18; 100]);
    });
}

#[test]
fn branches_that_share_no_memory_run_side_by_side() {
    on_each_device("branches_that_share_no_memory", |_| {
        let streams = [(); 3].map(|()| Stream::new(0).unwrap());
        let buffers = [(); 3].map(|()| streams[0].zeroed::<u32>(64).unwrap());
        streams[0].synchronize().unwrap();
        let mut graph = Graph::new();
        let captured = graph.capture_on(&streams[0], || {
            for (stream, buffer) in streams.iter().zip(&buffers) {
                stream.wait_stream(&streams[0])?;
                for step in 1..=4 {
                    affine(stream, buffer, 2, step);
                }
                streams[0].wait_stream(stream)?;
            }
            Ok(())
        });
        captured.unwrap();
        let before = Runtime::current().counters();
        streams[0].replay(&graph).unwrap();
        streams[0].synchronize().unwrap();
        let since = Runtime::current().counters().since(&before);
        // One before all of it, and one between each two steps of all three.
        assert_eq!((since.launches, since.barriers), (12, 4));
        for buffer in &buffers {
            assert_eq!(streams[0].to_vec(buffer).unwrap(), [26; 64]);
        }
    });
}

#[test]
fn a_kept_graph_is_made_when_asked_or_by_its_first_replay() {
    on_each_device("a_kept_graph", |_| {
        let stream = current_stream(None).unwrap();
        let words = stream.zeroed::<u32>(64).unwrap();
        for asks in [0, 1, 3] {
            let mut graph = Graph::builder().keep_graph(true).build();
            assert_eq!(graph.instantiate().unwrap_err().kind(), ErrorKind::Capture);
            let capture = || {
                affine(&stream, &words, 1, 1);
                Ok(())
            };
            graph.capture(capture).unwrap();
            stream.fill(&words, 0).unwrap();
            for _ in 0..asks {
                graph.instantiate().unwrap();
                graph.replay().unwrap();
            }
            graph.replay().unwrap();
            assert_eq!(words.to_vec().unwrap(), [asks + 1; 64]);
        }
        let mut graph = Graph::new();
        graph.capture(|| words.fill(3)).unwrap();
        let error = graph.instantiate().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capture);
        assert!(error.to_string().contains("keep_graph"), "{error}");
        graph.replay().unwrap();
        assert_eq!(words.to_vec().unwrap(), [3; 64]);
    });
}

/// Where it lies on this machine, if it is there.
fn graphviz() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dot = std::env::split_paths(&path).map(|folder| folder.join("dot"));
    dot.into_iter().find(|program| program.is_file())
}

#[test]
fn a_dump_shows_kernels_streams_and_the_memory_between_them() {
    on_each_device("a_dump_shows", |test| {
        let (main, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = main.zeroed::<u32>(64).unwrap();
        let copy = main.zeroed::<u32>(64).unwrap();
        let capture = || {
            affine(&main, &words, 2, 1);
            side.wait_stream(&main)?;
            side.copy(&words, &copy)?;
            main.wait_stream(&side)?;
            main.fill(words.view(..32)?, 9)
        };
        let file = format!("vkaccel_dump_{}_{}.dot", std::process::id(), test.index());
        let path = std::env::temp_dir().join(file);
        let mut graph = Graph::new();
        graph.capture_on(&main, capture).unwrap();
        let error = graph.debug_dump(&path).unwrap_err();
        assert!(error.to_string().contains("enable_debug_mode"), "{error}");
        graph.reset().unwrap();
        graph.enable_debug_mode();
        graph.capture_on(&main, capture).unwrap();
        graph.debug_dump(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for part in [
            "3 nodes in 3 levels",
            &format!("label=\"stream {}\"", main.id()),
            &format!("label=\"stream {}\"", side.id()),
            "[1, 1, 1]",
            "copy of 256 bytes",
            "fill of 128 bytes with 0x00000009",
            "n0 -> n1",
            "n1 -> n2",
            "(256 bytes)",
            "(128 bytes)",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("n0 -> n2"), "it is behind the copy: {text}");
        match graphviz() {
            Some(dot) => {
                let drawn = std::process::Command::new(dot)
                    .arg("-Tsvg")
                    .arg(&path)
                    .output();
                let drawn = drawn.unwrap();
                assert!(drawn.status.success(), "{drawn:?}");
                assert!(String::from_utf8_lossy(&drawn.stdout).contains("</svg>"));
            }
            None => support::skip_part("graphviz draws the dump", "it is not installed"),
        }
        std::fs::remove_file(path).unwrap();
        let error = graph.debug_dump("/no/such/folder/graph.dot").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    });
}

#[test]
fn replays_run_in_order_with_what_else_is_on_their_streams() {
    on_each_device("replays_run_in_order", |_| {
        let streams = [(); 4].map(|()| Stream::new(0).unwrap());
        let slow = Slow::new(&streams[0]);
        let word = streams[0].zeroed::<u32>(64).unwrap();
        streams[0].synchronize().unwrap();
        let mut graph = Graph::new();
        let captured = graph.capture_on(&streams[0], || {
            slow.launch(&streams[0]);
            affine(&streams[0], &word, 2, 1);
            Ok(())
        });
        captured.unwrap();
        let mut expected = 0;
        for round in 0..3 {
            for stream in &streams {
                stream.replay(&graph).unwrap();
                expected = expected * 2 + 1;
            }
            // Beside what is not captured, on the last of them.
            affine(&streams[3], &word, 3, round);
            expected = expected * 3 + round;
            streams[0].wait_stream(&streams[3]).unwrap();
        }
        assert_eq!(streams[0].to_vec(&word).unwrap(), [expected; 64]);
    });
}

#[test]
fn launches_take_their_counts_from_memory_at_each_replay() {
    on_each_device("launches_take_their_counts", |_| {
        let stream = current_stream(None).unwrap();
        let counts = stream.zeroed::<u32>(3).unwrap();
        let ticks = stream.zeroed::<u32>(1).unwrap();
        let tick = kernel("tick");
        let mut graph = Graph::new();
        graph
            .capture(|| tick.launch_indirect(&counts, (&ticks,)))
            .unwrap();
        let each = tick.interface().local_size[0];
        let mut expected = 0;
        for count in [10u32, 0, 3] {
            counts.write(&[count, 1, 1]).unwrap();
            graph.replay().unwrap();
            expected += count * each;
            assert_eq!(ticks.to_vec().unwrap(), [expected]);
        }
        // Too many run nothing, and are told once each.
        for _ in 0..2 {
            counts.write(&[u32::MAX, 1, 1]).unwrap();
            graph.replay().unwrap();
            let error = stream.synchronize().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded);
            counts.write(&[1, 1, 1]).unwrap();
            graph.replay().unwrap();
            expected += each;
            assert_eq!(ticks.to_vec().unwrap(), [expected]);
        }
        // The next replay, which is right, hides nothing.
        let few = stream.upload(&[2u32, 1, 1]).unwrap();
        counts.write(&[1, u32::MAX, 1]).unwrap();
        let before = Runtime::current().counters();
        graph.replay().unwrap();
        counts.copy_from(few.view(..).unwrap()).unwrap();
        graph.replay().unwrap();
        let submits = Runtime::current().counters().since(&before).submits;
        assert!(submits <= 3, "{submits} for two replays and a copy");
        let error = stream.synchronize().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("along y"), "{error}");
        stream.synchronize().unwrap();
        assert_eq!(ticks.to_vec().unwrap(), [expected + 2 * each]);
    });
}

#[test]
fn an_event_of_a_capture_orders_nothing_outside_of_it() {
    on_each_device("an_event_of_a_capture", |_| {
        let (stream, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = stream.zeroed::<u32>(APART).unwrap();
        let outside = stream.record_event().unwrap();
        let (inside, timed) = (Event::new(), Event::with_timing());
        let mut graph = Graph::new();
        graph
            .capture_on(&stream, || {
                inside.record(&stream)?;
                timed.record(&stream)?;
                stream.fill(&words, 1)
            })
            .unwrap();
        let start = Event::with_timing();
        start.record(&stream).unwrap();
        for error in [
            inside.query().unwrap_err(),
            inside.synchronize().unwrap_err(),
            other.wait_event(&inside).unwrap_err(),
            start.elapsed_time(&timed).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Capture, "{error}");
        }
        assert!(!other.is_capturing());
        // The other way round.
        stream.fill(&words, 2).unwrap();
        let mut graph = Graph::new();
        let late = stream.record_event().unwrap();
        let error = graph
            .capture_on(&other, || {
                let told = other.wait_event(&late).unwrap_err();
                assert_eq!(told.kind(), ErrorKind::Capture);
                Ok(())
            })
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capture);
        inside.record(&stream).unwrap();
        assert!(outside.query().is_ok());
        inside.synchronize().unwrap();
    });
}

#[test]
fn the_stream_that_is_captured_is_current_inside_of_the_scope() {
    on_each_device("the_stream_that_is_captured", |_| {
        let before = current_stream(None).unwrap();
        let stream = Stream::new(0).unwrap();
        let words = stream.upload(&[1u32; 64]).unwrap();
        let mut graph = Graph::new();
        let captured = graph.capture_on(&stream, || {
            assert_eq!(current_stream(None)?, stream);
            words.fill(7)
        });
        captured.unwrap();
        assert_eq!(current_stream(None).unwrap(), before);
        assert_eq!(stream.to_vec(&words).unwrap(), [1; 64]);
        stream.replay(&graph).unwrap();
        assert_eq!(stream.to_vec(&words).unwrap(), [7; 64]);
        let failed = graph
            .reset()
            .and_then(|()| graph.capture_on(&stream, || Buffer::from_slice(&[1u8])?.cast::<u32>()));
        assert!(failed.is_err());
        assert_eq!(current_stream(None).unwrap(), before);
    });
}

#[test]
fn whether_a_wait_is_refused_does_not_depend_on_how_far_the_device_is() {
    on_each_device("whether_a_wait_is_refused", |_| {
        let (stream, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = stream.upload(&[1u32; 64]).unwrap();
        let never = Event::new();
        let nothing = Stream::new(0).unwrap();
        stream.fill(&words, 2).unwrap();
        let done = stream.record_event().unwrap();
        stream.synchronize().unwrap();
        assert!(done.query().unwrap());
        let again = stream.record_event().unwrap();
        for event in [&done, &again] {
            let mut graph = Graph::new();
            let refused = graph.capture_on(&other, || other.wait_event(event));
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Capture);
        }
        let mut graph = Graph::new();
        let captured = graph.capture_on(&other, || {
            other.wait_event(&never)?;
            other.wait_stream(&nothing)?;
            other.wait_stream(&other)?;
            other.fill(&words, 5)
        });
        captured.unwrap();
        other.replay(&graph).unwrap();
        assert_eq!(other.to_vec(&words).unwrap(), [5; 64]);
    });
}
