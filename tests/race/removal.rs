//! Each barrier and each wait is needed: the checker notices when one is taken out of what was done.
//!
//! Taken out of the log, that is: the program ran with all of them. What may be taken out unnoticed is
//! said at each test.

use ash::vk::PipelineStageFlags;

use crate::race::Log;
use crate::race::check::{faults, is_sound};
use crate::race::history::{History, Spot};
use crate::steps::{By, ORDERS, Order, Program};
use crate::support::entry::Entry;
use crate::support::{TestRuntime, on_each_device};

/// What a program of one stream did.
fn on_one_stream(test: &TestRuntime, seed: u64, by: By, step: fn(&mut Program)) -> History {
    let entry = Entry::new().unwrap();
    let log = Log::install(&entry);
    let _runtime = test.another(entry.builder());
    let mut program = Program::new(&log, seed, 1, by, Order::Events);
    for _ in 0..60 {
        step(&mut program);
    }
    program.end();
    log.check();
    log.history()
}

fn dividers(history: &History) -> Vec<Spot> {
    let barriers = history.barriers().into_iter();
    let dividers = barriers.filter(|(_, _, list)| list.is_divider());
    dividers.map(|(spot, ..)| spot).collect()
}

/// The barriers that streams have recorded, but for those that let the host see: the log sees what the
/// host looks at only where memory is not coherent.
fn of_streams(history: &History) -> Vec<Spot> {
    let barriers = history.barriers().into_iter();
    let ours = barriers.filter(|(_, barrier, list)| {
        !list.is_divider() && !barrier.to.contains(PipelineStageFlags::HOST)
    });
    ours.map(|(spot, ..)| spot).collect()
}

/// No program here touches so many ranges between two barriers that the crate's list of them is full,
/// which would give a barrier for nothing.
#[test]
fn every_barrier_of_a_stream_is_needed() {
    on_each_device("every_barrier_of_a_stream_is_needed", |test| {
        for (seed, by) in [
            (1, By::Descriptors),
            (1, By::Addresses),
            (2, By::Descriptors),
        ] {
            for step in [Program::step, Program::step_with_host] {
                let history = on_one_stream(test, seed, by, step);
                let barriers = of_streams(&history);
                assert!(barriers.len() > 20, "{}", barriers.len());
                for spot in barriers {
                    let left = history.without_barriers(&[spot]);
                    assert!(!is_sound(&left), "seed {seed} {by:?}: {spot:?}");
                }
            }
        }
    });
}

/// What a stream orders by a barrier of its own may be ordered once more: where another stream had the
/// queue in between, by a divider or that one's barriers, or else by a wait. So each stream is looked at
/// alone, as if it had not waited for others.
pub fn assert_barriers_of_streams_are_needed(history: &History, streams: usize) {
    let mut count = 0;
    for stream in 0..streams {
        let alone = history.of_label(stream);
        assert!(is_sound(&alone), "{:#?}", faults(&alone));
        for spot in of_streams(&alone) {
            let left = alone.without_barriers(&[spot]);
            assert!(!is_sound(&left), "stream {stream}: {spot:?}");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn every_barrier_of_many_streams_is_needed_but_for_what_orders_streams() {
    on_each_device("every_barrier_of_many_streams", |test| {
        for (by, order) in By::BOTH.into_iter().zip([Order::Events, Order::Polls]) {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let _runtime = test.another(entry.builder());
            let mut program = Program::new(&log, 5, 4, by, order);
            for _ in 0..30 {
                program.step();
                program.step();
                program.hand_on();
            }
            program.end();
            log.check();
            assert_barriers_of_streams_are_needed(&log.history(), 4);
        }
    });
}

/// Streams of one queue, each of which builds on the one before and was never there before, so that no
/// barrier of its own could stand in.
#[test]
fn every_divider_between_streams_that_build_on_each_other_is_needed() {
    on_each_device("every_divider_between_streams", |test| {
        for (by, order) in By::BOTH
            .into_iter()
            .flat_map(|by| ORDERS.map(|order| (by, order)))
        {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let _runtime = test.another(entry.builder());
            let mut program = Program::on_one_queue(&log, 8, by, order);
            let started = log.history().events.len();
            for next in 1..=8 {
                program.in_place_of_all();
                program.hand_on_to(next % 8);
            }
            program.end();
            log.check();
            let history = log.history();
            let dividers = dividers(&history).into_iter();
            let dividers: Vec<_> = dividers.filter(|spot| spot.event >= started).collect();
            // The first stream's own barrier orders the last turn.
            assert!(dividers.len() >= 7, "{dividers:?}");
            for spot in &dividers[..7] {
                let left = history.without_barriers(&[*spot]);
                assert!(!is_sound(&left), "{by:?} {order:?}: {spot:?}");
            }
        }
    });
}

/// Two queues that have turns: whatever a wait is for, nothing else orders the two.
pub fn assert_waits_are_needed(log: &Log, by: By, order: Order) {
    let mut program = Program::new(log, 3, 2, by, order);
    let started = log.history().events.len();
    for turn in 1..=12 {
        program.in_place_of_all();
        program.hand_on_to(turn % 2);
    }
    program.in_place_of_all();
    program.end();
    log.check();
    let history = log.history();
    let waits = history.waits().into_iter();
    let waits: Vec<_> = waits.filter(|(spot, _)| spot.event >= started).collect();
    assert!(waits.len() >= 12, "{waits:?}");
    for (spot, wait) in waits {
        let left = history.without_waits(&[spot]);
        assert!(!is_sound(&left), "{by:?} {order:?}: {wait:?} at {spot:?}");
    }
}

/// What is written down is what comes to the driver.
#[test]
fn a_barrier_that_does_not_come_to_the_driver_is_missed() {
    on_each_device("a_barrier_that_does_not_come", |test| {
        let entry = Entry::new().unwrap();
        let log = Log::install(&entry);
        // Under a layer it would be told of, too.
        let _runtime = test.another(entry.builder().validation(false));
        let mut program = Program::new(&log, 3, 1, By::Addresses, Order::Events);
        program.in_place_of_all();
        entry.leave_out_one("vkCmdPipelineBarrier", 1);
        program.in_place_of_all();
        program.end();
        assert!(!is_sound(&log.history()));
    });
}
