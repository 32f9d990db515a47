//! Promises of launches whose group counts lie in device memory.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use process::over_the_shim;
use support::kernels::kernel;
use support::{TestRuntime, builder, on_each_device, skip_part};
use vkaccel::{
    Buffer, Details, Error, ErrorKind, Event, Grid, Kernel, Result, Stream, get_device_capability,
};

/// Kernels by descriptors and by addresses: one that writes three counts, one that counts its
/// invocations, 64 a workgroup.
const PAIRS: [(&str, &str); 2] = [("put_three", "tick"), ("put_three_at", "tick_at")];

/// The most groups along each axis.
fn limits() -> [u32; 3] {
    let capability = get_device_capability(None).unwrap();
    capability.limits().max_compute_work_group_count
}

/// The error that a wait tells of counts that are too large.
#[track_caller]
fn told<T: core::fmt::Debug>(result: Result<T>) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
    error
}

/// Counts of which the first is too large; none where there are no such numbers.
fn too_many() -> Option<[u32; 3]> {
    let x = limits()[0].checked_add(1);
    if x.is_none() {
        skip_part("counts that are too large", "the device takes every count");
    }
    x.map(|x| [x, 1, 1])
}

#[test]
fn a_kernel_decides_how_often_the_next_one_runs() {
    on_each_device("a_kernel_decides", |_| {
        for (put, tick) in PAIRS {
            let (put, tick) = (kernel(put), kernel(tick));
            let counts = Buffer::<u32>::zeroed(3).unwrap();
            let ticks = Buffer::<u32>::zeroed(1).unwrap();
            put.launch(Grid::groups(1), (&counts, 10, 1, 1)).unwrap();
            tick.launch_indirect(&counts, (&ticks,)).unwrap();
            assert_eq!(ticks.to_vec().unwrap(), [640]);
            // Each launch takes what is there by its turn, whatever comes behind it.
            for (x, y, z) in [(1, 2, 3), (0, 1, 1), (5, 1, 2)] {
                put.launch(Grid::groups(1), (&counts, x, y, z)).unwrap();
                tick.launch_indirect(&counts, (&ticks,)).unwrap();
            }
            put.launch(Grid::groups(1), (&counts, 9, 9, 9)).unwrap();
            assert_eq!(ticks.to_vec().unwrap(), [640 + (6 + 10) * 64]);
        }
    });
}

#[test]
fn copies_fills_and_the_host_decide_too() {
    on_each_device("copies_fills_and_the_host", |_| {
        for (_, tick) in PAIRS {
            let tick = kernel(tick);
            let ticks = Buffer::<u32>::zeroed(1).unwrap();
            let counts = Buffer::<u32>::uninit(3).unwrap();
            counts.write(&[2, 1, 1]).unwrap();
            tick.launch_indirect(&counts, (&ticks,)).unwrap();
            let source = Buffer::from_slice(&[1u32, 3, 1]).unwrap();
            counts.copy_from(source.view(..).unwrap()).unwrap();
            tick.launch_indirect(&counts, (&ticks,)).unwrap();
            counts.fill(2).unwrap();
            tick.launch_indirect(&counts, (&ticks,)).unwrap();
            counts.write(&[7, 7, 7]).unwrap();
            assert_eq!(ticks.to_vec().unwrap(), [(2 + 3 + 8) * 64]);
        }
    });
}

/// Descriptors start where the device lets them, counts anywhere.
#[test]
fn counts_may_start_at_any_element() {
    on_each_device("counts_may_start", |_| {
        let tick = kernel("tick");
        let words: Vec<u32> = (0..140).map(|at| 1 + at % 4).collect();
        let counts = Buffer::from_slice(&words).unwrap();
        for start in [0, 1, 5, 63, 64, 65, 137] {
            let ticks = Buffer::<u32>::zeroed(1).unwrap();
            let view = counts.view(start..start + 3).unwrap();
            tick.launch_indirect(view, (&ticks,)).unwrap();
            let groups: u32 = words[start..start + 3].iter().product();
            assert_eq!(ticks.to_vec().unwrap(), [groups * 64], "from {start}");
        }
    });
}

#[test]
fn a_zero_along_any_axis_runs_nothing_even_beside_a_count_that_is_too_large() {
    on_each_device("a_zero_along_any_axis", |_| {
        let tick = kernel("tick");
        let ticks = Buffer::<u32>::zeroed(1).unwrap();
        for zeros in [
            [0, 1, 1],
            [1, 0, 5],
            [1, 1, 0],
            [0, 0, 0],
            [u32::MAX, u32::MAX, 0],
        ] {
            let counts = Buffer::from_slice(&zeros).unwrap();
            tick.launch_indirect(&counts, (&ticks,)).unwrap();
        }
        assert_eq!(ticks.to_vec().unwrap(), [0]);
        vkaccel::synchronize(None).unwrap();
    });
}

#[test]
fn counts_past_a_limit_run_nothing_and_are_told_once_by_axis() {
    on_each_device("counts_past_a_limit", |_| {
        for (_, tick) in PAIRS {
            let tick = kernel(tick);
            let ticks = Buffer::<u32>::zeroed(1).unwrap();
            let stream = vkaccel::current_stream(None).unwrap();
            for (axis, limit) in limits().into_iter().enumerate() {
                let Some(past) = limit.checked_add(1) else {
                    skip_part("an axis", "the device takes every count along it");
                    continue;
                };
                for asked in [past, u32::MAX] {
                    let mut counts = [1; 3];
                    counts[axis] = asked;
                    let counts = Buffer::from_slice(&counts).unwrap();
                    let line = line!() + 1;
                    tick.launch_indirect(&counts, (&ticks,)).unwrap();
                    let error = told(stream.synchronize());
                    let Some(Details::Limit {
                        name,
                        asked: said,
                        limit: most,
                        ..
                    }) = error.details()
                    else {
                        panic!("{error:?}");
                    };
                    assert_eq!(*name, format!("maxComputeWorkGroupCount[{axis}]"));
                    assert_eq!((*said, *most), (u64::from(asked), u64::from(limit)));
                    let text = error.to_string();
                    for part in [
                        "`main`",
                        "ran nothing",
                        &format!("indirect.rs:{line}:"),
                        &format!("on stream {},", stream.id()),
                        &format!("along {}", ["x", "y", "z"][axis]),
                    ] {
                        assert!(text.contains(part), "{text}");
                    }
                    // Once, and nothing ran.
                    stream.synchronize().unwrap();
                    assert_eq!(ticks.to_vec().unwrap(), [0]);
                }
            }
            // The limit itself is a count like others.
            let counts = Buffer::from_slice(&[limits()[0].min(65535), 1, 1]).unwrap();
            tick.launch_indirect(&counts, (&ticks,)).unwrap();
            let invocations = limits()[0].min(65535) * 64;
            assert_eq!(ticks.to_vec().unwrap(), [invocations]);
        }
    });
}

/// Other calls do not fail for it, so that when it is found out changes nothing.
#[test]
fn every_kind_of_wait_tells_and_nothing_else_does() {
    on_each_device("every_kind_of_wait", |_| {
        let Some(counts) = too_many() else { return };
        let tick = kernel("tick");
        let stream = Stream::new(0).unwrap();
        let ticks = stream.zeroed::<u32>(1).unwrap();
        let counts = stream.upload(&counts).unwrap();
        let launch = || {
            stream.launch_indirect(&tick, &counts, (&ticks,)).unwrap();
            let event = Event::new();
            event.record(&stream).unwrap();
            event
        };
        launch();
        told(stream.to_vec(&ticks));
        assert_eq!(stream.to_vec(&ticks).unwrap(), [0]);
        launch();
        told(stream.read_async(&ticks).unwrap().wait());
        launch();
        told(vkaccel::synchronize(None));
        told(launch().synchronize());
        launch();
        let finished = loop {
            match stream.query() {
                Ok(false) => std::thread::yield_now(),
                other => break other,
            }
        };
        told(finished);
        // Long after it has finished, commands go on.
        launch();
        for round in 0..1000 {
            stream.fill(&ticks, round).unwrap();
            stream.flush().unwrap();
        }
        told(stream.synchronize());
        assert_eq!(stream.to_vec(&ticks).unwrap(), [999]);
        // Of several, the first is told.
        for _ in 0..20 {
            launch();
        }
        told(stream.synchronize());
        stream.synchronize().unwrap();
    });
}

/// What a stream that is gone has found is told to who waits for the device.
#[test]
fn a_stream_that_is_dropped_at_once_leaves_its_news_to_the_device() {
    on_each_device("a_stream_that_is_dropped", |_| {
        let tick = kernel("tick");
        let kept = Buffer::<u32>::zeroed(1).unwrap();
        vkaccel::synchronize(None).unwrap();
        for _ in 0..50 {
            let stream = Stream::new(0).unwrap();
            let counts = stream.upload(&[3u32, 1, 1]).unwrap();
            let tick = kernel("tick");
            stream.launch_indirect(&tick, &counts, (&kept,)).unwrap();
            drop((counts, tick, stream));
        }
        vkaccel::synchronize(None).unwrap();
        assert_eq!(kept.to_vec().unwrap(), [50 * 3 * 64]);
        let Some(counts) = too_many() else { return };
        let stream = Stream::new(0).unwrap();
        let counts = stream.upload(&counts).unwrap();
        stream.launch_indirect(&tick, &counts, (&kept,)).unwrap();
        drop((stream, counts));
        told(vkaccel::synchronize(None));
        vkaccel::synchronize(None).unwrap();
    });
}

#[test]
fn thousands_in_a_row_all_run_and_take_no_more_memory() {
    on_each_device("thousands_in_a_row", |test| {
        let (put, tick) = (kernel("put_three"), kernel("tick"));
        let ticks = Buffer::<u32>::zeroed(1).unwrap();
        let counts = Buffer::<u32>::zeroed(3).unwrap();
        let round = |launches: u32| {
            ticks.fill(0).unwrap();
            for number in 0..launches {
                let x = 1 + number % 3;
                put.launch(Grid::groups(1), (&counts, x, 1, 1)).unwrap();
                tick.launch_indirect(&counts, (&ticks,)).unwrap();
            }
            let groups: u32 = (0..launches).map(|number| 1 + number % 3).sum();
            assert_eq!(ticks.to_vec().unwrap(), [groups * 64]);
        };
        round(4000);
        let before = test.runtime().counters();
        for _ in 0..20 {
            round(200);
        }
        let since = test.runtime().counters().since(&before);
        // A launch makes two of ours: the program's and the one that looks at its counts.
        assert_eq!(since.launches, 20 * 200 * 3);
        assert_eq!(since.driver_allocations, 0, "{since:#?}");
        assert_eq!(since.pipeline_compiles, 0);
    });
}

/// Launches that are declared independent may hold one that is not: it takes effect in order.
#[test]
fn in_a_scope_of_independent_launches_it_takes_effect_in_order() {
    on_each_device("in_a_scope", |_| {
        let (put, tick) = (kernel("put_three"), kernel("tick"));
        let stream = Stream::new(0).unwrap();
        let ticks = stream.zeroed::<u32>(1).unwrap();
        let counts = stream.zeroed::<u32>(3).unwrap();
        let launched = stream.concurrent(|| {
            stream.launch(&put, Grid::groups(1), (&counts, 4, 1, 1))?;
            stream.launch_indirect(&tick, &counts, (&ticks,))?;
            stream.launch(&put, Grid::groups(1), (&counts, 5, 1, 1))?;
            stream.launch_indirect(&tick, &counts, (&ticks,))
        });
        launched.unwrap();
        assert_eq!(stream.to_vec(&ticks).unwrap(), [9 * 64]);
    });
}

#[test]
fn a_launch_that_is_wrong_is_refused_before_anything_is_recorded() {
    on_each_device("a_launch_that_is_wrong", |test| {
        let tick = kernel("tick");
        let ticks = Buffer::<u32>::zeroed(1).unwrap();
        let counts = Buffer::from_slice(&[1u32; 8]).unwrap();
        let refused = |result: Result<()>, kind| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        };
        for len in [0, 1, 2, 4, 8] {
            let view = counts.view(..len).unwrap();
            refused(
                tick.launch_indirect(view, (&ticks,)),
                ErrorKind::InvalidArgument,
            );
        }
        let three = counts.view(..3).unwrap();
        refused(tick.launch_indirect(three, ()), ErrorKind::ArgumentMismatch);
        refused(
            tick.launch_indirect(three, (1,)),
            ErrorKind::ArgumentMismatch,
        );
        {
            let _another = test.another(builder());
            let foreign = Buffer::from_slice(&[1u32; 3]).unwrap();
            refused(
                tick.launch_indirect(&foreign, (&ticks,)),
                ErrorKind::InvalidDevice,
            );
        }
        assert_eq!(ticks.to_vec().unwrap(), [0]);
    });
}

/// Streams on several queues hand the counts on, and places that others have used.
fn over_several_queues() {
    let _runtime = TestRuntime::new(builder());
    let pairs = PAIRS.map(|(put, tick)| (kernel(put), kernel(tick)));
    let streams = [(); 4].map(|()| Stream::new(0).unwrap());
    let ticks = streams[0].zeroed::<u32>(1).unwrap();
    let counts = streams[0].zeroed::<u32>(3).unwrap();
    let mut groups = 0;
    for number in 0..200u32 {
        let (put, tick): &(Kernel, Kernel) = &pairs[number as usize % 2];
        let one = &streams[number as usize % 4];
        let other = &streams[(number as usize + 1) % 4];
        one.launch(put, Grid::groups(1), (&counts, number % 5, 1, 2))
            .unwrap();
        other.wait_stream(one).unwrap();
        other.launch_indirect(tick, &counts, (&ticks,)).unwrap();
        groups += number % 5 * 2;
        if number % 50 == 49 {
            other.synchronize().unwrap();
        }
    }
    assert_eq!(streams[0].to_vec(&ticks).unwrap(), [groups * 64]);
    if let Some(counts) = too_many() {
        let counts = streams[1].upload(&counts).unwrap();
        streams[1]
            .launch_indirect(&pairs[0].1, &counts, (&ticks,))
            .unwrap();
        told(streams[1].synchronize());
    }
}

#[test]
fn counts_pass_between_streams_on_several_queues() {
    let test = "counts_pass_between_streams_on_several_queues";
    let settings = [("QUEUES", "4"), ("DELAY_US", "200")];
    over_the_shim(test, &settings, over_several_queues);
}
