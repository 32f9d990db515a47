//! Over a driver that shows several queues, on which work is late and out of order, a second family, and
//! memory that is not coherent: the ICD shim (`tests/icd-shim`).

use std::time::Duration;

use vkaccel::{Graph, Stream, synchronize};

use crate::graphs::capture_and_replay;
use crate::process::over_the_shim;
use crate::programs::hand_round;
use crate::race::Log;
use crate::race::check::is_sound;
use crate::removal::{assert_barriers_of_streams_are_needed, assert_waits_are_needed};
use crate::steps::{By, ORDERS, Order, Program};
use crate::support::TestRuntime;
use crate::support::crowd::Crowd;
use crate::support::deadline::Deadline;
use crate::support::entry::Entry;
use crate::support::kernels::kernel;

/// Four queues that compute and a family for copies alone.
const FOUR_QUEUES: [(&str, &str); 5] = [
    ("QUEUES", "4"),
    ("FAMILY", "transfer"),
    ("DELAY_US", "1000"),
    ("SEED", "7"),
    ("MEMORY", "non_coherent"),
];

/// Two families that compute.
const TWO_FAMILIES: [(&str, &str); 4] = [
    ("QUEUES", "2"),
    ("FAMILY", "compute"),
    ("FAMILY_QUEUES", "2"),
    ("DELAY_US", "1000"),
];

const TWO_QUEUES: [(&str, &str); 2] = [("QUEUES", "2"), ("DELAY_US", "300")];

/// A log, and a runtime under it. What the host flushes and invalidates is what it touches, to the byte.
fn logged() -> (Log, TestRuntime) {
    let entry = Entry::new().unwrap();
    let log = Log::install(&entry);
    entry.let_atoms_be_bytes();
    // The layer is asked to look at the same elsewhere, and takes its time.
    let runtime = TestRuntime::new(entry.builder().validation(false));
    // The thread that first does is the one whose entry it is.
    drop(Stream::new(0).unwrap().zeroed::<u32>(1).unwrap());
    (log, runtime)
}

#[test]
fn random_programs_on_four_queues_are_ordered() {
    let test = "queues::random_programs_on_four_queues_are_ordered";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 240);
        for (seed, by) in (0..2).flat_map(|seed| By::BOTH.map(|by| (seed, by))) {
            let (log, runtime) = logged();
            Crowd::with_kernels(seed, 9, 5, by.affine()).run(150);
            drop(runtime);
            log.check();
        }
    });
}

#[test]
fn random_programs_of_threads_on_two_families_are_ordered() {
    let test = "queues::random_programs_of_threads_on_two_families_are_ordered";
    over_the_shim(test, &TWO_FAMILIES, || {
        let _deadline = Deadline::new(test, 240);
        for by in By::BOTH {
            let (log, runtime) = logged();
            std::thread::scope(|scope| {
                for seed in 0..3 {
                    let runtime = runtime.runtime().clone();
                    scope.spawn(move || {
                        let _entered = runtime.enter();
                        Crowd::with_kernels(200 + seed, 6, 4, by.affine()).run(100);
                    });
                }
            });
            drop(runtime);
            log.check();
        }
    });
}

#[test]
fn memory_that_goes_from_hand_to_hand_over_queues_is_ordered_and_ends_after_its_use() {
    let test =
        "queues::memory_that_goes_from_hand_to_hand_over_queues_is_ordered_and_ends_after_its_use";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 240);
        for by in By::BOTH {
            let (log, runtime) = logged();
            hand_round(&log, runtime.runtime(), by, 3, 100);
            drop(runtime);
            log.check();
        }
    });
}

/// Copies with the host among the steps: what it reads and writes is in the log here.
#[test]
fn programs_that_go_from_queue_to_queue_are_ordered_and_need_their_barriers() {
    let test = "queues::programs_that_go_from_queue_to_queue_are_ordered_and_need_their_barriers";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 240);
        for (by, order) in (By::BOTH.into_iter()).flat_map(|by| ORDERS.map(|order| (by, order))) {
            let (log, runtime) = logged();
            let mut program = Program::new(&log, 11, 6, by, order);
            for _ in 0..60 {
                program.step_with_host();
                program.step_with_host();
                program.hand_on();
            }
            program.end();
            assert_barriers_of_streams_are_needed(&log.history(), 6);
            drop(runtime);
            log.check();
        }
    });
}

#[test]
fn replays_on_four_queues_are_ordered() {
    let test = "queues::replays_on_four_queues_are_ordered";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 240);
        for (by, order) in (By::BOTH.into_iter()).flat_map(|by| ORDERS.map(|order| (by, order))) {
            let (log, runtime) = logged();
            let mut program = Program::new(&log, 12, 6, by, order);
            capture_and_replay(&mut program, 12, 12);
            program.end();
            drop(runtime);
            log.check();
        }
    });
}

#[test]
fn every_wait_between_two_queues_that_build_on_each_other_is_needed() {
    let test = "queues::every_wait_between_two_queues_that_build_on_each_other_is_needed";
    over_the_shim(test, &TWO_QUEUES, || {
        let _deadline = Deadline::new(test, 60);
        for (by, order) in (By::BOTH.into_iter()).flat_map(|by| ORDERS.map(|order| (by, order))) {
            let (log, _runtime) = logged();
            assert_waits_are_needed(&log, by, order);
        }
    });
}

/// A stream alone, which no other's barriers help.
#[test]
fn what_the_host_reads_and_writes_is_over_and_visible_to_it() {
    let test = "queues::what_the_host_reads_and_writes_is_over_and_visible_to_it";
    over_the_shim(test, &[("MEMORY", "non_coherent")], || {
        let _deadline = Deadline::new(test, 60);
        for (seed, by) in (1..=2).flat_map(|seed| By::BOTH.map(|by| (seed, by))) {
            let (log, runtime) = logged();
            let mut program = Program::new(&log, seed, 1, by, Order::Events);
            for _ in 0..200 {
                program.step_with_host();
            }
            program.end();
            drop(runtime);
            log.check();
        }
    });
}

/// What overlaps goes through staging memory, which the host writes next.
#[test]
fn the_host_writes_memory_that_copies_went_through_once_it_sees_them() {
    let test = "queues::the_host_writes_memory_that_copies_went_through_once_it_sees_them";
    let settings = [("MEMORY", "non_coherent"), ("DELAY_US", "2000")];
    over_the_shim(test, &settings, || {
        let _deadline = Deadline::new(test, 60);
        let (log, _runtime) = logged();
        let stream = Stream::new(0).unwrap();
        let words = stream.zeroed::<u32>(4096).unwrap();
        let others = stream.zeroed::<u32>(4096).unwrap();
        // Three pieces of memory that has room for four.
        for round in 0..12 {
            let from = words.view(..4093).unwrap();
            stream.copy(from, words.view(3..).unwrap()).unwrap();
            stream.synchronize().unwrap();
            for _ in 0..2 {
                // What is in use is written through staging memory.
                stream.fill(&others, round).unwrap();
                stream.write(&others, &[round; 4096]).unwrap();
            }
            stream.synchronize().unwrap();
        }
        log.check();
    });
}

/// All barriers of a program whose every result the host looks at, those for it among them.
#[test]
fn every_barrier_before_what_the_host_looks_at_is_needed() {
    let test = "queues::every_barrier_before_what_the_host_looks_at_is_needed";
    over_the_shim(test, &[("MEMORY", "non_coherent")], || {
        let _deadline = Deadline::new(test, 60);
        for by in By::BOTH {
            let (log, _runtime) = logged();
            let mut program = Program::new(&log, 4, 1, by, Order::Events);
            for _ in 0..10 {
                program.step();
                program.look();
            }
            program.end();
            log.check();
            let history = log.history();
            let mut barriers = history.barriers();
            barriers.retain(|(_, _, list)| !list.is_divider());
            assert!(barriers.len() > 20, "{}", barriers.len());
            for (spot, ..) in barriers {
                let left = history.without_barriers(&[spot]);
                assert!(!is_sound(&left), "{by:?}: {spot:?}");
            }
        }
    });
}

/// What a replay has found is copied by a recording behind it, and the graph may be gone by then.
#[test]
fn what_a_replay_notes_is_not_noted_over_before_it_is_taken() {
    let test = "queues::what_a_replay_notes_is_not_noted_over_before_it_is_taken";
    over_the_shim(test, &FOUR_QUEUES, || {
        let _deadline = Deadline::new(test, 240);
        let (log, runtime) = logged();
        let streams: Vec<_> = (0..4).map(|_| Stream::new(0).unwrap()).collect();
        let counts = streams[0].upload(&[1u32, 1, 1]).unwrap();
        let ticks: Vec<_> = (0..4)
            .map(|at| streams[at].zeroed::<u32>(1).unwrap())
            .collect();
        let tick = kernel("tick");
        synchronize(0).unwrap();
        for round in 0..20 {
            let replays = &streams[round % 4];
            let mut graph = Graph::new();
            let captured = || {
                // The first note is the one that is taken first, and given back with the others.
                (0..8)
                    .try_for_each(|_| replays.launch_indirect(&tick, &counts, (&ticks[round % 4],)))
            };
            graph.capture_on(replays, captured).unwrap();
            replays.replay(&graph).unwrap();
            drop(graph);
            let mut next = 1;
            while !replays.query().unwrap() {
                let at = (round + next) % 4;
                let on = (&streams[at], &ticks[at]);
                on.0.launch_indirect(&tick, &counts, (on.1,)).unwrap();
                next = next % 3 + 1;
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        drop(runtime);
        log.check();
    });
}
