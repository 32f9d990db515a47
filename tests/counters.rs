//! Promises of the counters: they say what the driver was asked for, and how little that is.
//!
//! # Safety
//!
//! What a submission is called with is read while it is called.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use support::entry::{Entry, args};
use support::kernels::{APART, kernel};
use support::slow::{GROUPS, Slow};
use support::{TestRuntime, on_each_device};
use vkaccel::{Buffer, Counters, Event, Graph, Grid, Runtime, Stream, memory};

/// What `work` does, as counted.
fn counted(runtime: &Runtime, work: impl FnOnce()) -> Counters {
    let before = runtime.counters();
    work();
    runtime.counters().since(&before)
}

#[test]
fn what_is_counted_is_what_the_driver_was_asked_for() {
    on_each_device("what_is_counted", |test| {
        let entry = Entry::new().unwrap();
        let runtime = test.another(entry.builder());
        assert_eq!(runtime.runtime().counters(), Counters::default());
        let (first, second) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let kernel = kernel("affine");
        for round in 0..10 {
            let words = first.zeroed::<u32>(1000).unwrap();
            for stream in [&first, &second] {
                let args = (&words, 2, 1, 1000);
                stream.launch(&kernel, Grid::elements(1000), args).unwrap();
                second.wait_stream(&first).unwrap();
            }
            if round % 3 == 0 {
                second.synchronize().unwrap();
            }
        }
        vkaccel::synchronize(0).unwrap();
        let counted = runtime.runtime().counters();
        let asked = |name: &str| entry.calls(name);
        assert_eq!(counted.launches, 20);
        assert_eq!(counted.launches, asked("vkCmdDispatch"));
        let transfers = asked("vkCmdFillBuffer") + asked("vkCmdCopyBuffer");
        assert_eq!(counted.transfers, transfers);
        assert_eq!(counted.barriers, asked("vkCmdPipelineBarrier"));
        assert_eq!(counted.submits, asked("vkQueueSubmit"));
        assert_eq!(counted.descriptor_sets, asked("vkAllocateDescriptorSets"));
        assert_eq!(counted.driver_allocations, asked("vkAllocateMemory"));
        assert_eq!(counted.driver_frees, asked("vkFreeMemory"));
        assert_eq!(counted.pipeline_compiles, asked("vkCreateComputePipelines"));
        // The barrier between streams is recorded once for a lane.
        let divider = u64::from(counted.dividers > 0);
        let ended = asked("vkEndCommandBuffer");
        assert_eq!(counted.recordings + divider, ended);
        let seals = counted.seals_by_size
            + counted.seals_by_event
            + counted.seals_by_wait
            + counted.seals_by_host
            + counted.seals_by_flush
            + counted.seals_by_pacer;
        assert_eq!(counted.recordings, seals);
        assert!(counted.recordings >= counted.submits);
        assert_eq!(counted.host_waits_asked, 5);
    });
}

#[test]
fn a_replay_is_one_command_buffer() {
    on_each_device("a_replay_is_one_command_buffer", |test| {
        let entry = Entry::new().unwrap();
        let runtime = test.another(entry.builder());
        let buffers = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&buffers);
        entry.alter("vkQueueSubmit", move |args: &mut args::QueueSubmit| {
            for index in 0..args.1 as usize {
                // SAFETY: so many are there, as Vulkan was called.
                let info = unsafe { args.2.add(index) };
                // SAFETY: as above.
                let count = unsafe { (*info).command_buffer_count };
                counted.fetch_add(count, Ordering::Relaxed);
            }
        });
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine");
        let words = stream.zeroed::<u32>(1000).unwrap();
        let mut graph = Graph::new();
        let launch = || stream.launch(&kernel, Grid::elements(1000), (&words, 2, 1, 1000));
        graph.capture_on(&stream, launch).unwrap();
        stream.synchronize().unwrap();
        buffers.store(0, Ordering::Relaxed);
        (0..10).for_each(|_| stream.replay(&graph).unwrap());
        stream.synchronize().unwrap();
        assert_eq!(buffers.load(Ordering::Relaxed), 10);
        assert_eq!(stream.to_vec(&words).unwrap(), [1023; 1000]);
        drop((graph, words, kernel, runtime));
    });
}

#[test]
fn a_descriptor_set_is_written_once_for_memory_that_is_used_again() {
    on_each_device("a_descriptor_set_is_written_once", |test| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine");
        let launch = |words: &Buffer<u32>| {
            stream
                .launch(&kernel, Grid::elements(100), (words, 3, 1, 100))
                .unwrap();
            stream.synchronize().unwrap();
        };
        let sets = |work: &mut dyn FnMut()| counted(test.runtime(), work).descriptor_sets;
        let words = [0u32, 7].map(|word| stream.upload(&[word; 100]).unwrap());
        // A set belongs to a recording, of which a few take turns.
        let written = sets(&mut || {
            for _ in 0..50 {
                words.iter().for_each(&launch);
            }
        });
        assert!((2..=8).contains(&written), "{written}");
        for (words, first) in words.iter().zip([0u32, 7]) {
            let last = (0..50).fold(first, |word, _| word.wrapping_mul(3).wrapping_add(1));
            assert_eq!(stream.to_vec(words).unwrap(), [last; 100]);
        }
        // Memory that comes from the driver anew is other memory, also where it has the old one's handle.
        drop(words);
        for round in 1..10 {
            vkaccel::empty_cache().unwrap();
            let words = stream.upload(&[round; 100]).unwrap();
            assert_eq!(sets(&mut || launch(&words)), 1, "round {round}");
            assert_eq!(stream.to_vec(&words).unwrap(), [3 * round + 1; 100]);
        }
    });
}

#[test]
fn more_sets_than_are_kept_are_right_each_time() {
    on_each_device("more_sets_than_are_kept", |_| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine");
        let words = stream.zeroed::<u32>(700 * APART).unwrap();
        for round in 0..4 {
            for place in 0..700 {
                let start = place * APART;
                let view = words.view(start..start + 1 + place % APART).unwrap();
                let args = (view, 2, round, u32::MAX);
                stream.launch(&kernel, Grid::groups(1), args).unwrap();
            }
        }
        let result = (0..4).fold(0u32, |word, round| 2 * word + round);
        let read = stream.to_vec(&words).unwrap();
        for (place, words) in read.chunks(APART).enumerate() {
            let mut expected = [0; APART];
            expected[..=place % APART].fill(result);
            assert_eq!(words, expected, "piece {place}");
        }
    });
}

#[test]
fn many_launches_share_few_submissions_and_nobody_waits_unasked() {
    on_each_device("many_launches_share_few_submissions", |test| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let kernel = kernel("affine");
        let words = stream.zeroed::<u32>(1000).unwrap();
        stream.synchronize().unwrap();
        let done = counted(test.runtime(), || {
            // While the device is busy, the pacer leaves recordings to grow.
            slow.launch(&stream);
            for _ in 0..1000 {
                let args = (&words, 2, 1, 1000);
                stream.launch(&kernel, Grid::elements(1000), args).unwrap();
            }
            stream.synchronize().unwrap();
        });
        assert_eq!(done.launches, 1001);
        // 1, 2, 4, .. 256, then 256 each; the pacer may have added some.
        let by_size = done.seals_by_size + done.seals_by_host;
        assert!(by_size <= 12, "{done:?}");
        assert!(done.submits <= 12 + done.seals_by_pacer, "{done:?}");
        assert_eq!(done.host_waits_asked, 1);
        let unasked = done.host_waits_in_flight + done.host_waits_staging + done.host_waits_memory;
        assert_eq!(unasked, 0, "{done:?}");
    });
}

/// Each wait that the program did not ask for has its cause, and no other is counted with it.
#[test]
fn waits_that_nobody_asked_for_are_counted_by_their_cause() {
    on_each_device("waits_that_nobody_asked_for", |test| {
        let (stream, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let slow = Slow::new(&stream);
        let words = stream.zeroed::<u32>(1000).unwrap();
        stream.synchronize().unwrap();
        let waits = |work: &mut dyn FnMut()| {
            let done = counted(test.runtime(), work);
            let (asked, staging) = (done.host_waits_asked, done.host_waits_staging);
            assert_eq!((asked, staging), (0, 0), "{done:?}");
            [done.host_waits_in_flight, done.host_waits_memory].map(|waits| waits > 0)
        };
        let busy = || (0..3).for_each(|_| slow.launch(&stream));
        let in_flight = waits(&mut || {
            busy();
            for value in 0..100 {
                stream.fill(&words, value).unwrap();
                stream.flush().unwrap();
            }
        });
        assert_eq!(in_flight, [true, false]);
        stream.synchronize().unwrap();
        let given_back = waits(&mut || {
            busy();
            drop(stream.zeroed::<u32>(GROUPS << 10).unwrap());
            vkaccel::empty_cache().unwrap();
        });
        assert_eq!(given_back, [false, true]);
        // There is no room but in what another stream still uses.
        let lent = other.zeroed::<u32>(GROUPS << 10).unwrap();
        other.synchronize().unwrap();
        let reserved = memory::memory_reserved(None).unwrap();
        memory::set_memory_limit(Some(reserved), None).unwrap();
        let mut lent = Some(lent);
        let exhausted = waits(&mut || {
            busy();
            stream.fill(lent.as_ref().unwrap(), 1).unwrap();
            drop(lent.take());
            drop(other.uninit::<u32>(GROUPS << 10).unwrap());
        });
        assert_eq!(exhausted, [false, true]);
    });
}

#[test]
fn a_launch_and_a_wait_are_one_submission_in_which_the_pacer_has_no_part() {
    on_each_device("a_launch_and_a_wait", |test| {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("affine");
        let words = stream.zeroed::<u32>(1000).unwrap();
        stream.synchronize().unwrap();
        let done = counted(test.runtime(), || {
            for _ in 0..50 {
                let args = (&words, 2, 1, 1000);
                stream.launch(&kernel, Grid::elements(1000), args).unwrap();
                stream.synchronize().unwrap();
            }
        });
        assert_eq!((done.launches, done.submits, done.recordings), (50, 50, 50));
        assert_eq!(done.seals_by_pacer, 0);
    });
}

/// Each stream orders its own commands; a barrier stands between streams where they take turns on a lane.
#[test]
fn commands_without_a_conflict_get_no_barrier_over_any_number_of_submissions() {
    on_each_device("commands_without_a_conflict", |test| {
        let (stream, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let kernel = kernel("affine_map");
        let from = stream.upload(&[1u32; 1000]).unwrap();
        let to: Vec<_> = (0..40)
            .map(|_| stream.uninit::<u32>(1000).unwrap())
            .collect();
        let launch = |to: &Buffer<u32>| {
            let args = (&from, to, 2, 1, 1000);
            stream.launch(&kernel, Grid::elements(1000), args).unwrap();
            stream.synchronize().unwrap();
        };
        launch(&to[0]);
        let done = counted(test.runtime(), || to[1..].iter().for_each(launch));
        assert_eq!((done.submits, done.barriers, done.dividers), (39, 0, 0));
        // What the host has seen finish is not ordered on the device by that.
        let done = counted(test.runtime(), || (0..10).for_each(|_| launch(&to[0])));
        assert_eq!((done.submits, done.barriers, done.dividers), (10, 10, 0));
        let done = counted(test.runtime(), || {
            for to in &to[1..11] {
                other.fill(to, 0).unwrap();
                other.synchronize().unwrap();
                launch(to);
            }
        });
        assert!(done.submits == 20 && done.barriers <= 1, "{done:?}");
        assert!(done.dividers == 20 || done.waits == 20, "{done:?}");
    });
}

/// Recordings between events go to the driver together.
#[test]
fn events_seal_recordings_but_submit_nothing() {
    on_each_device("events_seal_recordings", |test| {
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        let words = stream.zeroed::<u32>(1000).unwrap();
        stream.synchronize().unwrap();
        let mut events = Vec::new();
        let done = counted(test.runtime(), || {
            slow.launch(&stream);
            for value in 0..100 {
                stream.fill(&words, value).unwrap();
                events.push(stream.record_event().unwrap());
            }
            // Nothing is between them: they share a recording.
            events.extend((0..100).map(|_| stream.record_event().unwrap()));
            stream.synchronize().unwrap();
        });
        assert_eq!(done.recordings, 101, "{done:?}");
        assert!(done.submits < 30, "{done:?}");
        assert!(events.iter().all(|event| event.query().unwrap()));
    });
}

#[test]
fn waiting_for_what_the_host_has_seen_costs_nothing() {
    on_each_device("waiting_for_what_the_host_has_seen", |test| {
        let (first, second) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = first.zeroed::<u32>(1000).unwrap();
        let event = Event::new();
        event.record(&first).unwrap();
        event.synchronize().unwrap();
        second.synchronize().unwrap();
        let done = counted(test.runtime(), || {
            for _ in 0..100 {
                event.wait(&second).unwrap();
                second.wait_stream(&first).unwrap();
                second.wait_stream(&second).unwrap();
            }
            second.synchronize().unwrap();
        });
        assert_eq!((done.recordings, done.submits, done.waits), (0, 0, 0));
        assert_eq!(second.to_vec(&words).unwrap(), [0; 1000]);
    });
}

#[test]
fn counters_begin_anew_with_a_device() {
    on_each_device("counters_begin_anew", |_| {
        let counters = |runtime: &TestRuntime| runtime.runtime().counters();
        let mut seen = Vec::new();
        for _ in 0..2 {
            let runtime = TestRuntime::new(support::builder());
            drop(Stream::new(0).unwrap().zeroed::<u32>(10).unwrap());
            vkaccel::synchronize(0).unwrap();
            let done = counters(&runtime);
            seen.push((done.transfers, done.host_waits_asked));
        }
        assert_eq!(seen, [(1, 1), (1, 1)]);
    });
}
