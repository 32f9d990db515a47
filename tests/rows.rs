//! Promises of rows: copies of every direction whose elements lie a stride apart.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use std::sync::{Arc, Mutex};

use process::over_the_shim;
use support::entry::{Entry, args, hold::Hold};
use support::matrices::Matrices;
use support::{TestRuntime, builder, on_each_device};
use vkaccel::memory::runtime_memory;
use vkaccel::{Buffer, Details, ErrorKind, Graph, PinnedBuffer, Runtime, Stream};

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 % 251) as u8).collect()
}

/// The transfers that some work takes.
fn transfers(stream: &Stream, work: impl FnOnce()) -> u64 {
    stream.synchronize().unwrap();
    let before = Runtime::current().counters();
    work();
    stream.synchronize().unwrap();
    Runtime::current().counters().since(&before).transfers
}

#[test]
fn rows_are_copied_in_every_direction_as_element_by_element() {
    on_each_device("rows_are_copied_in_every_direction", |_| {
        for (seed, elements) in [(1, 64), (2, 1000), (3, 50_000)] {
            Matrices::new(seed, elements).run(150);
        }
    });
}

#[test]
fn rows_are_staged_where_host_and_device_memory_are_apart() {
    let test = "rows_are_staged_where_host_and_device_memory_are_apart";
    over_the_shim(test, &[("MEMORY", "apart")], || {
        let _runtime = TestRuntime::new(builder());
        for (seed, elements) in [(4, 64), (5, 1000), (6, 10_000)] {
            Matrices::new(seed, elements).run(60);
        }
        staged_in_pieces(&Stream::new(0).unwrap());
        // More than what is kept.
        assert!(runtime_memory(0).unwrap().staging_bytes > 64 << 10);
    });
}

#[test]
fn rows_in_memory_that_is_not_coherent_are_flushed_and_invalidated() {
    let test = "rows_in_memory_that_is_not_coherent_are_flushed_and_invalidated";
    over_the_shim(test, &[("MEMORY", "non_coherent")], || {
        let _runtime = TestRuntime::new(builder());
        Matrices::new(7, 1000).run(100);
    });
}

/// Rows that are cut where pieces of staging memory end, and more of them than one command takes.
fn staged_in_pieces(stream: &Stream) {
    for (count, len, stride) in [(90, 100_003, 100_010), (5000, 3, 7)] {
        let extent = (count - 1) * stride + len;
        let matrix = stream.zeroed::<u8>(extent).unwrap();
        let rows = matrix.rows(count, len, stride).unwrap();
        let data = numbers(count * len);
        stream.write_rows(rows, &data).unwrap();
        let mut out = vec![0; data.len()];
        stream.read_rows(rows, &mut out).unwrap();
        assert!(out == data, "{count} rows");
        let whole = stream.to_vec(&matrix).unwrap();
        for (row, content) in whole.chunks(stride).enumerate() {
            let (content, gap) = content.split_at(len);
            assert!(content == &data[row * len..][..len]);
            assert!(gap.iter().all(|&byte| byte == 0));
        }
        // Each row a byte further, through itself.
        let from = matrix.view(..extent - 1).unwrap();
        let from = from.rows(count, len - 1, stride).unwrap();
        let to = matrix.view(1..).unwrap();
        let to = to.rows(count, len - 1, stride).unwrap();
        stream.copy_rows(from, to).unwrap();
        let moved = stream.to_vec(&matrix).unwrap();
        for (new, old) in moved.chunks(stride).zip(whole.chunks(stride)) {
            assert!(new[0] == old[0] && new[1..len] == old[..len - 1]);
        }
    }
}

#[test]
fn an_upload_of_rows_to_memory_in_use_goes_through_staging_in_pieces() {
    on_each_device("an_upload_of_rows", |test| {
        let entry = Entry::new().unwrap();
        let _runtime = test.another(entry.builder());
        let stream = Stream::new(0).unwrap();
        let _hold = Hold::new(&entry);
        staged_in_pieces(&stream);
    });
}

#[test]
fn a_command_has_a_bounded_number_of_regions_and_rows_without_gaps_are_one() {
    on_each_device("a_command_has_a_bounded_number_of_regions", |test| {
        let entry = Entry::new().unwrap();
        let _runtime = test.another(entry.builder());
        let regions = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&regions);
        entry.alter("vkCmdCopyBuffer", move |args: &mut args::CmdCopyBuffer| {
            seen.lock().unwrap().push(args.3);
        });
        let stream = Stream::new(0).unwrap();
        let one = stream.zeroed::<u32>(3000 * 5).unwrap();
        let two = stream.zeroed::<u32>(3000 * 6).unwrap();
        let gaps = one.rows(3000, 4, 5).unwrap();
        let copied = transfers(&stream, || {
            stream
                .copy_rows(gaps, two.rows(3000, 4, 6).unwrap())
                .unwrap();
        });
        assert_eq!(copied, 3);
        assert_eq!(*regions.lock().unwrap(), [1024, 1024, 952]);
        regions.lock().unwrap().clear();
        let copied = transfers(&stream, || {
            let whole = two.rows(3000, 5, 5).unwrap();
            stream
                .copy_rows(one.rows(3000, 5, 5).unwrap(), whole)
                .unwrap();
        });
        assert_eq!(copied, 1);
        assert_eq!(*regions.lock().unwrap(), [1]);
    });
}

#[test]
fn rows_of_one_buffer_that_lie_between_each_other_are_copied_at_once() {
    on_each_device("rows_between_each_other", |_| {
        let stream = Stream::new(0).unwrap();
        let words: Vec<u32> = (0..40).collect();
        let matrix = stream.upload(&words).unwrap();
        let even = matrix.rows(5, 4, 8).unwrap();
        let odd = matrix.view(4..).unwrap().rows(5, 4, 8).unwrap();
        let copied = transfers(&stream, || stream.copy_rows(even, odd).unwrap());
        assert_eq!(copied, 1, "no way round is taken");
        let expected = words.iter().map(|word| word / 8 * 8 + word % 4);
        assert!(stream.to_vec(&matrix).unwrap().into_iter().eq(expected));
    });
}

#[test]
fn rows_that_do_not_lie_in_the_view_are_refused() {
    on_each_device("rows_that_do_not_lie_in_the_view", |_| {
        let matrix = Buffer::<u16>::zeroed(20).unwrap();
        let view = matrix.view(1..).unwrap();
        for (count, len, stride) in [
            (2, 4, 3),
            (1, 20, 20),
            (5, 4, 4),
            (4, 4, 6),
            (2, 1, usize::MAX),
            (usize::MAX, 2, usize::MAX),
            (3, 1, usize::MAX / 2 + 1),
            (usize::MAX, 1, 1),
            (1, usize::MAX, 0),
        ] {
            let error = view.rows(count, len, stride).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            let rows = if count == 1 { "1 row of" } else { "rows of" };
            assert!(error.to_string().contains(rows), "{error}");
        }
        // Behind the last row there need be nothing, and one row alone has no stride.
        for (count, len, stride) in [(4, 4, 5), (1, 19, 0), (1, 3, usize::MAX), (19, 1, 1)] {
            let rows = view.rows(count, len, stride).unwrap();
            assert_eq!((rows.len(), rows.is_empty()), (count * len, false));
            assert_eq!(rows.to_vec().unwrap(), vec![0; count * len]);
        }
        let text = format!("{:?}", view.rows(4, 4, 5).unwrap());
        assert!(text.contains("count: 4, row_len: 4, stride: 5"), "{text}");
    });
}

#[test]
fn no_rows_and_rows_of_nothing_are_no_work() {
    on_each_device("no_rows", |_| {
        let stream = Stream::new(0).unwrap();
        let matrix = stream.upload(&[7u8; 4]).unwrap();
        for (count, len, stride) in [(0, 3, 9), (usize::MAX, 0, 0), (0, 0, 0)] {
            let none = matrix.rows(count, len, stride).unwrap();
            assert_eq!((none.len(), none.is_empty()), (0, true));
            let work = || {
                stream.copy_rows(none, none).unwrap();
                stream.write_rows(none, &[]).unwrap();
                stream.read_rows(none, &mut []).unwrap();
                let host = PinnedBuffer::new(0).unwrap();
                stream.copy_rows_from_pinned(&host, none).unwrap();
                stream.copy_rows_to_pinned(none, &host).unwrap();
            };
            assert_eq!(transfers(&stream, work), 0);
            assert!(none.to_vec().unwrap().is_empty());
            assert!(none.read_async().unwrap().wait().unwrap().is_empty());
        }
        assert_eq!(stream.to_vec(&matrix).unwrap(), [7; 4]);
        let units = Buffer::<()>::zeroed(usize::MAX).unwrap();
        let units = units.rows(usize::MAX / 2, 2, 2).unwrap();
        assert_eq!(units.to_vec().unwrap().len(), usize::MAX - 1);
        units.write(&[(); usize::MAX - 1]).unwrap();
    });
}

#[test]
fn sides_of_another_shape_or_device_are_refused() {
    on_each_device("sides_of_another_shape", |test| {
        let (one, two) = (
            Buffer::from_slice(&[1u32; 12]),
            Buffer::from_slice(&[2u32; 12]),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        let rows = two.rows(2, 3, 4).unwrap();
        for (count, len) in [(3, 2), (2, 4), (3, 3), (1, 6), (0, 0)] {
            let error = rows
                .copy_from(one.rows(count, len, 4).unwrap())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let Some(&Details::Size {
                expected, given, ..
            }) = error.details()
            else {
                panic!("no figures: {error}");
            };
            assert_eq!((expected, given), (24, (count * len * 4) as u64));
            assert!(error.to_string().contains("2 of 3"), "{error}");
        }
        assert_eq!(
            rows.write(&[0; 8]).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            rows.read(&mut [0; 5]).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        let host = PinnedBuffer::<u32>::new(8).unwrap();
        for result in [rows.copy_from_pinned(&host), rows.copy_to_pinned(&host)] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        let other = test.another(builder());
        let elsewhere = Buffer::from_slice(&[3u32; 12]).unwrap();
        let elsewhere = elsewhere.rows(2, 3, 4).unwrap();
        for result in [rows.copy_from(elsewhere), elsewhere.copy_from(rows)] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidDevice);
        }
        drop(other);
        assert_eq!(two.to_vec().unwrap(), [2; 12]);
    });
}

#[test]
fn copies_of_rows_are_captured() {
    on_each_device("copies_of_rows_are_captured", |_| {
        let stream = Stream::new(0).unwrap();
        let (count, len, stride) = (70, 100_003, 100_005);
        let large = stream.zeroed::<u8>(count * stride).unwrap();
        let large = large.rows(count, len, stride).unwrap();
        let data = numbers(count * len);
        let matrix = stream.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
        let (left, right) = (
            matrix.rows(2, 2, 3),
            matrix.view(1..).unwrap().rows(2, 2, 3),
        );
        let (left, right) = (left.unwrap(), right.unwrap());
        let (source, target) = (PinnedBuffer::<u32>::new(4), PinnedBuffer::<u32>::new(4));
        let (source, target) = (source.unwrap(), target.unwrap());
        let mut graph = Graph::new();
        graph
            .capture_on(&stream, || {
                stream.write_rows(large, &data)?;
                stream.copy_rows_from_pinned(&source, left)?;
                stream.copy_rows(left, right)?;
                stream.copy_rows_to_pinned(right, &target)
            })
            .unwrap();
        assert_eq!(stream.to_vec(&matrix).unwrap(), [1, 2, 3, 4, 5, 6]);
        for round in 1..3 {
            source
                .write()
                .unwrap()
                .copy_from_slice(&[round, 20, 30, 40]);
            stream.fill(large.buffer(), 0).unwrap();
            stream.replay(&graph).unwrap();
            assert_eq!(
                stream.to_vec(&matrix).unwrap(),
                [round, round, 20, 30, 30, 40]
            );
            assert_eq!(*target.read().unwrap(), [round, 20, 30, 40]);
            let mut out = vec![0; data.len()];
            stream.read_rows(large, &mut out).unwrap();
            assert!(out == data);
        }
        // What the host would wait for is not.
        for name in [
            "Stream::read_rows",
            "Stream::read_rows_async",
            "Rows::read_async",
        ] {
            let mut refused = Graph::new();
            let captured = refused.capture_on(&stream, || match name {
                "Stream::read_rows" => stream.read_rows(left, &mut [0; 4]),
                "Stream::read_rows_async" => stream.read_rows_async(left).map(drop),
                _ => left.read_async().map(drop),
            });
            let error = captured.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotPermitted, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    });
}
