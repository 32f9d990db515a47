//! Promises of events: what waiting for one orders, when one is reached, and the time between two.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use std::time::{Duration, Instant};

use support::crowd::Crowd;
use support::deadline::Deadline;
use support::kernels::{APART, chosen as kernel};
use support::random::Random;
use support::slow::Slow;
use support::{builder, on_each_device};
use vkaccel::{Buffer, ErrorKind, Event, Grid, Stream};

#[test]
fn an_event_that_was_never_recorded_holds_nobody_up() {
    on_each_device("an_event_that_was_never_recorded", |test| {
        for event in [Event::new(), Event::with_timing()] {
            let stream = Stream::new(0).unwrap();
            assert!(event.query().unwrap());
            event.synchronize().unwrap();
            assert!(event.synchronize_timeout(Duration::ZERO).unwrap());
            event.wait(&stream).unwrap();
            event.wait(None).unwrap();
            stream.wait_event(&event).unwrap();
            assert!(stream.query().unwrap());
        }
        // Nor does one of a stream that nothing was put on.
        let event = Stream::new(0).unwrap().record_event().unwrap();
        let stream = Stream::new(0).unwrap();
        stream.wait_event(&event).unwrap();
        stream.wait_stream(&Stream::new(0).unwrap()).unwrap();
        assert!(event.query().unwrap() && stream.query().unwrap());
        assert!(
            !test.runtime().is_initialized(),
            "none of that opens the device"
        );
    });
}

#[test]
fn an_event_is_reached_with_what_was_before_it_and_not_with_what_follows() {
    on_each_device("an_event_is_reached", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let words = stream.zeroed::<u32>(100).unwrap();
        stream.synchronize().unwrap();
        slow.launch(&stream);
        stream.fill(&words, 1).unwrap();
        let between = stream.record_event().unwrap();
        assert!(!between.query().unwrap());
        for _ in 0..4 {
            slow.launch(&stream);
        }
        let behind = stream.record_event().unwrap();
        between.synchronize().unwrap();
        assert!(between.query().unwrap());
        assert!(!behind.query().unwrap() && !stream.query().unwrap());
        behind.synchronize().unwrap();
        assert!(stream.query().unwrap());
    });
}

#[test]
fn a_stream_that_waits_for_an_event_sees_what_was_before_it() {
    on_each_device("a_stream_that_waits_for_an_event", |_| {
        let (ping, pong) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let kernel = kernel("affine");
        let words = ping.zeroed::<u32>(1000).unwrap();
        let copies: Vec<_> = (0..20).map(|_| pong.uninit::<u32>(1000).unwrap()).collect();
        for copy in &copies {
            let args = (&words, 2, 1, 1000);
            ping.launch(&kernel, Grid::elements(1000), args).unwrap();
            let there = Event::new();
            there.record(&ping).unwrap();
            there.wait(&pong).unwrap();
            pong.copy(&words, copy).unwrap();
            ping.wait_event(&pong.record_event().unwrap()).unwrap();
        }
        for (round, copy) in copies.iter().enumerate() {
            let expected = (2u32 << round) - 1;
            assert_eq!(pong.to_vec(copy).unwrap(), [expected; 1000]);
        }
    });
}

#[test]
fn a_stream_that_waits_for_another_sees_all_it_had_so_far() {
    on_each_device("a_stream_that_waits_for_another", |_| {
        let streams: Vec<_> = (0..5).map(|_| Stream::new(0).unwrap()).collect();
        let kernel = kernel("affine");
        let words = streams[0].zeroed::<u32>(1000).unwrap();
        for round in 0..20 {
            let (before, now) = (&streams[round % 5], &streams[(round + 1) % 5]);
            now.wait_stream(before).unwrap();
            now.wait_stream(now).unwrap();
            let args = (&words, 2, 1, 1000);
            now.launch(&kernel, Grid::elements(1000), args).unwrap();
        }
        assert_eq!(streams[0].to_vec(&words).unwrap(), [(1 << 20) - 1; 1000]);
    });
}

#[test]
fn waiting_for_a_stream_that_waits_includes_what_it_waits_for() {
    on_each_device("waiting_for_a_stream_that_waits", |_| {
        let (busy, idle) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let slow = Slow::new(&busy);
        slow.launch(&busy);
        let done = busy.record_event().unwrap();
        idle.wait_event(&done).unwrap();
        let behind = idle.record_event().unwrap();
        assert!(!idle.query().unwrap() && !behind.query().unwrap());
        idle.synchronize().unwrap();
        assert!(done.query().unwrap() && behind.query().unwrap());
    });
}

#[test]
fn a_wait_is_for_where_the_event_was_when_it_was_made() {
    on_each_device("a_wait_is_for_where_the_event_was", |_| {
        let streams: Vec<_> = (0..3).map(|_| Stream::new(0).unwrap()).collect();
        let [first, second, third] = &streams[..] else {
            unreachable!()
        };
        let event = Event::new();
        for round in 0..20u32 {
            let words = first.zeroed::<u32>(1000).unwrap();
            first.fill(&words, round).unwrap();
            event.record(first).unwrap();
            event.wait(second).unwrap();
            // From here on it is something else.
            event.record(third).unwrap();
            assert_eq!(second.to_vec(&words).unwrap(), [round; 1000]);
        }
    });
}

#[test]
fn what_an_event_has_become_since_is_not_waited_for() {
    on_each_device("what_an_event_has_become_since", |_| {
        let streams: Vec<_> = (0..2).map(|_| Stream::new(0).unwrap()).collect();
        let slow = Slow::new(&streams[1]);
        let words = streams[0].upload(&[7u32; 1000]).unwrap();
        let event = Event::new();
        event.record(&streams[0]).unwrap();
        let waiting = Stream::new(0).unwrap();
        event.wait(&waiting).unwrap();
        let download = waiting.read_async(&words).unwrap();
        waiting.flush().unwrap();
        // It has gone to the device, whatever becomes of the event.
        while !download.is_done().unwrap() {
            std::thread::yield_now();
        }
        slow.launch(&streams[1]);
        event.record(&streams[1]).unwrap();
        assert!(waiting.query().unwrap() && !event.query().unwrap());
        assert_eq!(download.wait().unwrap(), [7; 1000]);
        event.synchronize().unwrap();
    });
}

#[test]
fn waiting_for_an_event_ends_with_it_or_with_the_time() {
    on_each_device("waiting_for_an_event_ends", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let done = stream.record_event().unwrap();
        stream.synchronize().unwrap();
        assert!(done.synchronize_timeout(Duration::ZERO).unwrap());
        for _ in 0..3 {
            slow.launch(&stream);
        }
        let late = stream.record_event().unwrap();
        assert!(!late.synchronize_timeout(Duration::ZERO).unwrap());
        assert!(!late.synchronize_timeout(Duration::from_millis(1)).unwrap());
        // It is as good as before; and this is longer than any clock counts.
        assert!(late.synchronize_timeout(Duration::MAX).unwrap());
        assert!(late.query().unwrap());
    });
}

#[test]
fn the_time_between_two_events_or_what_stands_in_the_way() {
    on_each_device("the_time_between_two_events", |_| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let (plain, unrecorded) = (Event::new(), Event::with_timing());
        let [early, start, end] = [(); 3].map(|()| Event::with_timing());
        early.record(&stream).unwrap();
        early.synchronize().unwrap();
        start.record(&stream).unwrap();
        slow.launch(&stream);
        end.record(&stream).unwrap();
        for (from, to, kind, which) in [
            (
                &plain,
                &start,
                ErrorKind::TimingNotEnabled,
                "this event was",
            ),
            (
                &unrecorded,
                &plain,
                ErrorKind::TimingNotEnabled,
                "`end` was",
            ),
            (
                &unrecorded,
                &start,
                ErrorKind::NotRecorded,
                "this event was",
            ),
            (&start, &unrecorded, ErrorKind::NotRecorded, "`end` was"),
        ] {
            let error = from.elapsed_time(to).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().starts_with(which), "{error}");
        }
        let asked = start.elapsed_time(&end);
        if asked
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::Unsupported)
        {
            return support::skip("the_time_between_two_events", "no timestamps");
        }
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::NotReady);
        for (from, to, which) in [(&early, &end, "`end` is"), (&end, &early, "this event is")] {
            let error = from.elapsed_time(to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotReady);
            assert!(error.to_string().starts_with(which), "{error}");
        }
        let started = Instant::now();
        end.synchronize().unwrap();
        let forth = start.elapsed_time(&end).unwrap();
        let back = end.elapsed_time(&start).unwrap();
        assert!(
            forth >= 0.0 && back <= 0.0 && forth == -back,
            "{forth} and {back} ms"
        );
        // No more than the host has seen, with room for clocks that run apart.
        let most = (slow.took + started.elapsed()).as_secs_f64() * 1e4 + 1e3;
        assert!(forth > 1.0 && forth < most, "{forth} of {most} ms");
        assert!(start.elapsed_time(&start).unwrap() == 0.0);
        assert!(unrecorded.query().unwrap());
    });
}

/// What stands in the way is told in the order in which it can be mended, and times are of the last record.
#[test]
fn the_time_of_an_event_is_that_of_its_last_record() {
    on_each_device("the_time_of_an_event", |test| {
        let (stream, idle) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let slow = Slow::new(&stream);
        let plain = Event::new();
        let (first, second) = (Event::with_timing(), Event::with_timing());
        let asked = |from: &Event, to: &Event| from.elapsed_time(to).map_err(|error| error.kind());
        for (from, to) in [(&plain, &plain), (&plain, &first), (&first, &plain)] {
            assert_eq!(asked(from, to), Err(ErrorKind::TimingNotEnabled));
        }
        assert_eq!(asked(&first, &first), Err(ErrorKind::NotRecorded));
        slow.launch(&stream);
        first.record(&stream).unwrap();
        if asked(&first, &first) == Err(ErrorKind::Unsupported) {
            return support::skip("the_time_of_an_event", "no timestamps");
        }
        assert_eq!(asked(&first, &first), Err(ErrorKind::NotReady));
        second.record(&stream).unwrap();
        second.synchronize().unwrap();
        assert!(asked(&first, &second).unwrap() >= 0.0);
        slow.launch(&stream);
        first.record(&stream).unwrap();
        assert_eq!(asked(&first, &second), Err(ErrorKind::NotReady));
        first.synchronize().unwrap();
        assert!(asked(&first, &second).unwrap() < -1.0);
        // On a stream that has nothing else, and then in another runtime.
        for event in [&first, &second] {
            event.record(&idle).unwrap();
            event.synchronize().unwrap();
        }
        assert!(asked(&first, &second).unwrap() >= 0.0);
        let other = test.another(builder());
        first.record(&Stream::new(0).unwrap()).unwrap();
        first.synchronize().unwrap();
        for (from, to) in [(&first, &second), (&second, &first)] {
            assert_eq!(asked(from, to), Err(ErrorKind::InvalidDevice));
        }
        drop(other);
        assert_eq!(asked(&first, &second), Err(ErrorKind::ShutDown));
    });
}

#[test]
fn events_of_other_devices_and_runtimes_are_refused() {
    on_each_device("events_of_other_devices", |test| {
        let stream = Stream::new(0).unwrap();
        let event = stream.record_event().unwrap();
        let other = test.another(builder());
        let stranger = Stream::new(0).unwrap();
        for refused in [
            stranger.wait_event(&event),
            event.wait(None),
            stranger.wait_stream(&stream),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidDevice);
        }
        drop(other);
        event.wait(&stream).unwrap();
        // Once its runtime is gone, an event says so.
        test.runtime().shutdown().unwrap();
        assert_eq!(event.query().unwrap_err().kind(), ErrorKind::ShutDown);
    });
}

#[test]
fn events_may_be_dropped_and_recorded_anew_at_any_moment() {
    on_each_device("events_may_be_dropped", |_| {
        let streams: Vec<_> = (0..4).map(|_| Stream::new(0).unwrap()).collect();
        let words = streams[0].zeroed::<u32>(4).unwrap();
        streams[0].synchronize().unwrap();
        let mut random = Random::new(11);
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..1000 {
            let at = random.below(4);
            match random.below(5) {
                0 => events.push(Event::with_timing()),
                1 => events.push(streams[at].record_event().unwrap()),
                2 if !events.is_empty() => drop(events.swap_remove(random.below(events.len()))),
                3 if !events.is_empty() => {
                    let event = &events[random.below(events.len())];
                    event.record(&streams[at]).unwrap();
                }
                _ => streams[at].fill(words.view(at..=at).unwrap(), 1).unwrap(),
            }
            for event in events.iter().rev().take(2) {
                event.wait(&streams[at]).unwrap();
            }
        }
        drop(events);
        vkaccel::synchronize(0).unwrap();
    });
}

#[test]
fn programs_on_many_streams_give_what_they_give_in_a_row() {
    on_each_device("programs_on_many_streams", |_| {
        let _deadline = Deadline::new("programs_on_many_streams", 120);
        for seed in 0..6 {
            Crowd::new(seed, 5, 4).run(150);
        }
    });
}

#[test]
fn programs_on_many_threads_do_not_disturb_each_other() {
    on_each_device("programs_on_many_threads", |test| {
        let _deadline = Deadline::new("programs_on_many_threads", 120);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let runtime = test.runtime().clone();
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    Crowd::new(100 + seed, 4, 3).run(100);
                });
            }
        });
    });
}

/// Streams wait for each other in both directions, and for themselves.
#[test]
fn streams_that_wait_for_each_other_all_come_to_an_end() {
    on_each_device("streams_that_wait_for_each_other", |_| {
        let _deadline = Deadline::new("streams_that_wait_for_each_other", 60);
        let started = Instant::now();
        let kernel = kernel("add_at_index");
        let words = Buffer::<u32>::zeroed(100 * APART).unwrap();
        vkaccel::synchronize(None).unwrap();
        let streams: Vec<_> = (0..100).map(|_| Stream::new(0).unwrap()).collect();
        for (i, stream) in streams.iter().enumerate() {
            let word = words.view(i * APART..=i * APART).unwrap();
            let args = (word, 0, u32::try_from(i).unwrap());
            stream.launch(&kernel, Grid::groups(1), args).unwrap();
        }
        for pair in streams.windows(2) {
            pair[1].wait_stream(&pair[0]).unwrap();
            pair[0].wait_stream(&pair[1]).unwrap();
        }
        for stream in &streams {
            stream.wait_stream(stream).unwrap();
            let event = stream.record_event().unwrap();
            stream.wait_event(&event).unwrap();
        }
        for stream in &streams {
            stream.synchronize().unwrap();
            assert!(stream.query().unwrap());
        }
        let result = words.to_vec().unwrap();
        let result: Vec<u32> = result.into_iter().step_by(APART).collect();
        assert_eq!(result, (0..100).collect::<Vec<u32>>());
        assert!(started.elapsed() < Duration::from_secs(10));
    });
}

/// Threads record and wait for events of all streams at random: no order of it hangs.
#[test]
fn no_order_of_waits_between_threads_hangs() {
    on_each_device("no_order_of_waits", |test| {
        let _deadline = Deadline::new("no_order_of_waits", 60);
        let streams: Vec<_> = (0..12).map(|_| Stream::new(0).unwrap()).collect();
        let events: Vec<_> = (0..12).map(|_| Event::new()).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (streams, events, runtime) = (&streams, &events, test.runtime().clone());
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    let words = Stream::new(0).unwrap().zeroed::<u32>(1).unwrap();
                    vkaccel::synchronize(0).unwrap();
                    let mut random = Random::new(thread);
                    for _ in 0..300 {
                        let stream = &streams[random.below(12)];
                        let event = &events[random.below(12)];
                        match random.below(8) {
                            0 | 1 => event.record(stream).unwrap(),
                            2 | 3 => event.wait(stream).unwrap(),
                            4 => stream.wait_stream(&streams[random.below(12)]).unwrap(),
                            5 => drop(event.query().unwrap()),
                            6 => event.synchronize().unwrap(),
                            _ => drop(Stream::new(0).unwrap().to_vec(&words).unwrap()),
                        }
                    }
                });
            }
        });
        vkaccel::synchronize(0).unwrap();
        assert!(events.iter().all(|event| event.query().unwrap()));
    });
}
