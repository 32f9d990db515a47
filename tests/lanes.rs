//! Promises of streams on a device with several queues: what they order holds between queues whose work
//! is late and out of order. The ICD shim (`tests/icd-shim`) shows such a device.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use process::over_the_shim;
use support::crowd::Crowd;
use support::deadline::Deadline;
use support::kernels::chosen as kernel;
use support::random::Random;
use support::{TestRuntime, builder};
use vkaccel::{ErrorKind, Event, Grid, Result, Stream};

/// Four queues that compute and a family for copies alone; submissions are up to two milliseconds late.
const FOUR_QUEUES: [(&str, &str); 4] = [
    ("QUEUES", "4"),
    ("FAMILY", "transfer"),
    ("DELAY_US", "2000"),
    ("SEED", "7"),
];

/// Two families that compute, the second without timestamps.
const TWO_FAMILIES: [(&str, &str); 4] = [
    ("QUEUES", "2"),
    ("FAMILY", "compute"),
    ("FAMILY_QUEUES", "2"),
    ("DELAY_US", "2000"),
];

#[test]
fn programs_on_four_queues_give_what_they_give_in_a_row() {
    let test = "programs_on_four_queues_give_what_they_give_in_a_row";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 120);
        let _runtime = TestRuntime::new(builder());
        for seed in 0..6 {
            Crowd::new(seed, 9, 5).run(120);
        }
    });
}

#[test]
fn programs_on_two_families_give_what_they_give_in_a_row() {
    let test = "programs_on_two_families_give_what_they_give_in_a_row";
    over_the_shim(test, &TWO_FAMILIES, || {
        let _deadline = Deadline::new(test, 120);
        let runtime = TestRuntime::new(builder());
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let runtime = runtime.runtime().clone();
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    Crowd::new(200 + seed, 6, 4).run(100);
                });
            }
        });
    });
}

/// The second stream's queue would overtake the first's if anything of the wait were missing.
#[test]
fn a_wait_between_queues_holds_and_is_for_where_the_event_was() {
    let test = "a_wait_between_queues_holds_and_is_for_where_the_event_was";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        let streams: Vec<_> = (0..3).map(|_| Stream::new(0).unwrap()).collect();
        let kernel = kernel("affine");
        let event = Event::new();
        for round in 0..30u32 {
            let words = streams[0].upload(&[round; 1000]).unwrap();
            let args = (&words, 2, 1, 1000);
            let grid = Grid::elements(1000);
            streams[0].launch(&kernel, grid, args).unwrap();
            event.record(&streams[0]).unwrap();
            event.wait(&streams[1]).unwrap();
            event.record(&streams[2]).unwrap();
            streams[1].launch(&kernel, grid, args).unwrap();
            assert_eq!(streams[1].to_vec(&words).unwrap(), [4 * round + 3; 1000]);
        }
    });
}

/// The host has seen one queue's work finish, and another's builds on it without a wait of the user's.
#[test]
fn what_the_host_has_waited_for_is_seen_by_every_queue() {
    let test = "what_the_host_has_waited_for_is_seen_by_every_queue";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        let streams: Vec<_> = (0..8).map(|_| Stream::new(0).unwrap()).collect();
        let kernel = kernel("affine");
        let words = streams[0].zeroed::<u32>(1000).unwrap();
        streams[0].synchronize().unwrap();
        let mut random = Random::new(3);
        for _ in 0..30 {
            let stream = &streams[random.below(8)];
            let args = (&words, 2, 1, 1000);
            stream.launch(&kernel, Grid::elements(1000), args).unwrap();
            match random.below(3) {
                0 => stream.synchronize().unwrap(),
                1 => stream.record_event().unwrap().synchronize().unwrap(),
                _ => while !stream.query().unwrap() {},
            }
        }
        assert_eq!(streams[7].to_vec(&words).unwrap(), [(1 << 30) - 1; 1000]);
    });
}

#[test]
fn streams_that_wait_in_circles_over_queues_all_come_to_an_end() {
    let test = "streams_that_wait_in_circles_over_queues_all_come_to_an_end";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 60);
        let runtime = TestRuntime::new(builder());
        let streams: Vec<_> = (0..8).map(|_| Stream::new(0).unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (streams, runtime) = (&streams, runtime.runtime().clone());
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    let words = Stream::new(0).unwrap().zeroed::<u32>(8).unwrap();
                    vkaccel::synchronize(0).unwrap();
                    let mut random = Random::new(thread);
                    for _ in 0..200 {
                        let at = random.below(8);
                        let other = &streams[random.below(8)];
                        match random.below(6) {
                            0 => drop(Stream::new(0).unwrap().to_vec(&words).unwrap()),
                            1 => other.record_event().unwrap().synchronize().unwrap(),
                            _ => streams[at].wait_stream(other).unwrap(),
                        }
                    }
                });
            }
        });
        vkaccel::synchronize(0).unwrap();
        assert!(streams.iter().all(|stream| stream.query().unwrap()));
    });
}

/// The time between an event of one stream and one of another.
fn elapsed(from: &Stream, to: &Stream) -> Result<f64> {
    let (start, end) = (Event::with_timing(), Event::with_timing());
    start.record(from)?;
    let words = to.zeroed::<u32>(1000)?;
    end.record(to)?;
    start.synchronize()?;
    end.synchronize()?;
    drop(words);
    start.elapsed_time(&end)
}

/// Streams go to the queues in turn, the default one to the first.
#[test]
fn times_on_one_queue_compare_and_those_on_several_by_a_common_clock_alone() {
    let test = "times_on_one_queue_compare_and_those_on_several_by_a_common_clock_alone";
    let settings = [("QUEUES", "4"), ("DELAY_US", "500")];
    over_the_shim(test, &settings, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        let default = vkaccel::current_stream(0).unwrap();
        let made: Vec<_> = (0..8).map(|_| Stream::new(0).unwrap()).collect();
        let streams: Vec<_> = core::iter::once(&default).chain(&made).collect();
        // A driver has such a clock or not.
        let has_clock = elapsed(&default, &made[0]).is_ok();
        for (a, from) in streams.iter().enumerate() {
            for (b, to) in streams.iter().enumerate() {
                let elapsed = elapsed(from, to);
                if a % 4 == b % 4 || has_clock {
                    elapsed.unwrap();
                } else {
                    let error = elapsed.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                }
            }
        }
    });
}

#[test]
fn a_queue_without_timestamps_says_so_when_it_is_asked_for_a_time() {
    let test = "a_queue_without_timestamps_says_so_when_it_is_asked_for_a_time";
    over_the_shim(test, &TWO_FAMILIES, || {
        let _deadline = Deadline::new(test, 60);
        let _runtime = TestRuntime::new(builder());
        let default = vkaccel::current_stream(0).unwrap();
        // The families' queues follow each other.
        let [second, third] = [Stream::new(0).unwrap(), Stream::new(0).unwrap()];
        assert!(elapsed(&default, &default).is_ok() && elapsed(&second, &second).is_ok());
        for (from, to) in [(&third, &third), (&default, &third), (&third, &second)] {
            let error = elapsed(from, to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("no timestamps"), "{error}");
        }
    });
}
