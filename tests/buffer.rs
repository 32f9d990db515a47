//! Promises of buffers, views and downloads.

#![allow(unsafe_code, reason = "a module is loaded")]

mod support;

use support::on_each_device;
use vkaccel::{Buffer, ErrorKind, Grid, Kernel, Runtime, Stream};

/// Fills, writes and copies of any number of bytes touch those bytes alone.
#[test]
fn fills_and_copies_of_any_byte_count_touch_no_neighbour() {
    on_each_device("fills_and_copies_of_any_byte_count", |_| {
        let buffer = Buffer::from_slice(&[0xEEu8; 16]).unwrap();
        buffer.view(0..5).unwrap().fill(0xAB).unwrap();
        buffer.view(6..7).unwrap().fill(0x01).unwrap();
        let three = Buffer::from_slice(&[1u8, 2, 3]).unwrap();
        buffer
            .view(9..12)
            .unwrap()
            .copy_from(three.view(..).unwrap())
            .unwrap();
        let expected = [
            0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xEE, 0x01, 0xEE, 0xEE, 1, 2, 3, 0xEE, 0xEE, 0xEE, 0xEE,
        ];
        assert_eq!(buffer.to_vec().unwrap(), expected);

        let five = Buffer::<u8>::uninit(5).unwrap();
        five.fill(0x7F).unwrap();
        assert_eq!(five.to_vec().unwrap(), [0x7F; 5]);

        let (from, to) = (buffer.view(0..8).unwrap(), buffer.view(4..12).unwrap());
        to.copy_from(from).unwrap();
        let expected = [
            0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xEE, 0x01, 0xEE, 0xEE, 0xEE,
            0xEE, 0xEE,
        ];
        assert_eq!(buffer.to_vec().unwrap(), expected);
    });
}

#[test]
fn content_survives_the_way_to_the_device_and_back() {
    on_each_device("content_survives_the_way", |_| {
        // Larger than a staging piece, and no multiple of one.
        let data: Vec<u32> = (0..2_500_001).collect();
        let buffer = Buffer::from_slice(&data).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), data);
        let download = buffer.read_async().unwrap();
        buffer.fill(7).unwrap();
        assert_eq!(download.wait().unwrap(), data);
        assert!(buffer.to_vec().unwrap().iter().all(|&word| word == 7));
    });
}

#[test]
fn nothing_at_all_is_a_buffer_too() {
    on_each_device("nothing_at_all", |_| {
        let empty = Buffer::<u32>::from_slice(&[]).unwrap();
        assert!(empty.is_empty());
        empty.fill(1).unwrap();
        empty.write(&[]).unwrap();
        empty.read(&mut []).unwrap();
        empty.copy_from(empty.view(..).unwrap()).unwrap();
        assert!(empty.to_vec().unwrap().is_empty());
        assert!(empty.read_async().unwrap().wait().unwrap().is_empty());
        assert_eq!(empty.cast::<f64>().unwrap().len(), 0);

        let units = Buffer::from_slice(&[(); 5]).unwrap();
        assert_eq!(units.to_vec().unwrap().len(), 5);
        units.fill(()).unwrap();
        // Any number of them, in no time.
        let units = Buffer::<()>::zeroed(usize::MAX).unwrap();
        assert_eq!(units.to_vec().unwrap().len(), usize::MAX);
        assert_eq!(
            units.read_async().unwrap().wait().unwrap().len(),
            usize::MAX
        );

        let some = Buffer::from_slice(&[1u8, 2]).unwrap();
        some.view(2..2).unwrap().fill(9).unwrap();
        assert_eq!(some.to_vec().unwrap(), [1, 2]);
    });
}

#[test]
fn views_outside_of_the_buffer_and_other_lengths_are_refused() {
    on_each_device("views_outside", |_| {
        let buffer = Buffer::from_slice(&[1u32, 2, 3]).unwrap();
        #[allow(clippy::reversed_empty_ranges)]
        for refused in [buffer.view(2..5), buffer.view(4..), buffer.view(2..1)] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!(buffer.view(..=2).unwrap().to_vec().unwrap(), [1, 2, 3]);
        let error = buffer.write(&[1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let said = "the source has 1 element and the target 3; both sides of a copy must have the same length";
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(
            buffer.read(&mut [0; 4]).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            buffer.cast::<[u8; 5]>().unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    });
}

#[test]
fn a_buffer_that_can_never_fit_is_refused_with_figures() {
    on_each_device("a_buffer_that_can_never_fit", |_| {
        for len in [usize::MAX, usize::MAX / 8, 1 << 46] {
            let error = Buffer::<u64>::uninit(len).unwrap_err();
            assert!(error.is_out_of_memory(), "{error}");
            let figures = error.out_of_memory().unwrap();
            assert_eq!(figures.reason, vkaccel::OutOfMemoryReason::NeverFits);
        }
    });
}

#[test]
fn buffers_may_be_dropped_while_the_device_uses_them() {
    on_each_device("buffers_may_be_dropped", |_| {
        let last = Buffer::<u32>::zeroed(1 << 16).unwrap();
        for round in 0..50u32 {
            let source = Buffer::from_slice(&vec![round; 1 << 16]).unwrap();
            last.copy_from(source.view(..).unwrap()).unwrap();
        }
        assert!(last.to_vec().unwrap().iter().all(|&word| word == 49));
    });
}

#[test]
fn a_buffer_of_another_device_or_runtime_is_refused() {
    on_each_device("a_buffer_of_another_runtime", |_| {
        let here = Buffer::from_slice(&[1u8]).unwrap();
        let other = support::TestRuntime::new(support::builder());
        let stream = Stream::new(0).unwrap();
        assert_eq!(
            stream.fill(&here, 1).unwrap_err().kind(),
            ErrorKind::InvalidDevice
        );
        drop(stream);
        drop(other);
        assert_eq!(here.to_vec().unwrap(), [1]);
    });
}

#[test]
fn objects_outlive_the_shutdown_of_their_runtime_and_refuse_to_work() {
    on_each_device("objects_outlive_the_shutdown", |_| {
        let runtime = Runtime::builder().build();
        let entered = runtime.enter();
        let buffer = Buffer::from_slice(&[1u8, 2, 3]).unwrap();
        let stream = Stream::new(0).unwrap();
        stream.fill(&buffer, 4).unwrap();
        runtime.shutdown().unwrap();
        assert_eq!(buffer.to_vec().unwrap_err().kind(), ErrorKind::ShutDown);
        assert_eq!(
            stream.fill(&buffer, 1).unwrap_err().kind(),
            ErrorKind::ShutDown
        );
        assert_eq!(
            Buffer::<u8>::zeroed(1).unwrap_err().kind(),
            ErrorKind::ShutDown
        );
        drop(entered);
        // Where all else is alive, they are what is over, not what is on another device.
        let (here, mine) = (Stream::new(0).unwrap(), Buffer::from_slice(&[1u8]).unwrap());
        let event = here.record_event().unwrap();
        for (call, result) in [
            ("a buffer", here.to_vec(&buffer).map(drop)),
            ("a copy", here.copy(&buffer, &mine)),
            ("a stream", stream.to_vec(&mine).map(drop)),
            ("waiting for it", here.wait_stream(&stream)),
            ("its waiting", stream.wait_stream(&here)),
            ("its waiting for an event", stream.wait_event(&event)),
            ("making it current", vkaccel::set_stream(&stream)),
        ] {
            let error = result.expect_err(call);
            assert_eq!(error.kind(), ErrorKind::ShutDown, "{call}: {error}");
            assert!(error.to_string().contains("Runtime::builder"), "{error}");
        }
        drop(buffer);
        drop(stream);
    });
}

#[test]
fn an_empty_buffer_is_an_empty_array_to_a_kernel() {
    on_each_device("an_empty_buffer_is_an_empty_array", |_| {
        // SAFETY: a valid module; its accesses past the end are kept inside by the device.
        let kernel = unsafe { Kernel::from_spirv(support::spirv("lengths")) }.unwrap();
        let empty = Buffer::<u32>::zeroed(0).unwrap();
        let one = Buffer::<u32>::zeroed(1).unwrap();
        let result = Buffer::from_slice(&[u32::MAX; 4]).unwrap();
        kernel.launch(Grid::groups(4), (&empty, &result)).unwrap();
        let seen = result.to_vec().unwrap();
        assert_eq!(
            seen.iter().map(|word| word / 1000).collect::<Vec<_>>(),
            [0; 4]
        );
        kernel.launch(Grid::groups(1), (&one, &result)).unwrap();
        assert_eq!(result.to_vec().unwrap()[0], 1007);
        kernel.launch(Grid::groups(0), (&empty, &empty)).unwrap();
        kernel.launch(Grid::groups(1), (&empty, &empty)).unwrap();
        vkaccel::synchronize(None).unwrap();
    });
}

#[test]
fn a_full_device_refuses_before_the_driver_is_asked_and_goes_on_once_there_is_room() {
    on_each_device("a_full_device_refuses", |_| {
        let limits = *vkaccel::get_device_capability(None).unwrap().limits();
        let total = vkaccel::get_memory_info(None).unwrap().total;
        let largest = limits
            .max_buffer_size
            .min(limits.max_memory_allocation_size);
        let bytes = usize::try_from(largest.min(total) / 2).unwrap();
        let mut held = Vec::new();
        let error = loop {
            match Buffer::<u8>::uninit(bytes) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
            assert!(
                held.len() as u64 * bytes as u64 <= total,
                "more than there is was given"
            );
        };
        let figures = error.out_of_memory().unwrap();
        assert_eq!(
            figures.reason,
            vkaccel::OutOfMemoryReason::FullNow,
            "{error}"
        );
        assert_eq!(figures.reserved, held.len() as u64 * bytes as u64);
        held.clear();
        assert_eq!(
            Buffer::from_slice(&[1u8, 2]).unwrap().to_vec().unwrap(),
            [1, 2]
        );
    });
}

#[test]
fn free_memory_falls_by_what_buffers_hold_and_never_leaves_the_total() {
    on_each_device("free_memory_falls", |runtime| {
        let before = vkaccel::get_memory_info(None).unwrap();
        assert!(before.free <= before.total && before.total > 0);
        assert!(!runtime.runtime().is_initialized(), "asking opens nothing");
        runtime.runtime().init(0).unwrap();
        let opened = vkaccel::get_memory_info(0).unwrap();
        let held = Buffer::<u8>::uninit(32 << 20).unwrap();
        let with = vkaccel::get_memory_info(0).unwrap();
        assert_eq!(with.total, before.total);
        // Where the driver keeps the books, other processes move them too.
        if with.source == vkaccel::MemoryInfoSource::OwnAccounting {
            // What the runtime holds for itself is little.
            assert!(before.free - opened.free < 1 << 20);
            assert_eq!(opened.free - with.free, 32 << 20);
            drop(held);
            vkaccel::empty_cache().unwrap();
            assert_eq!(vkaccel::get_memory_info(0).unwrap().free, opened.free);
        }
        assert_eq!(
            vkaccel::get_memory_info(1).unwrap_err().kind(),
            ErrorKind::InvalidDevice
        );
    });
}
