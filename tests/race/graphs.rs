//! Graphs under a log: what is recorded once and submitted again and again, beside what streams do.

use vkaccel::Graph;

use crate::race::Log;
use crate::race::check::is_sound;
use crate::race::history::History;
use crate::steps::{By, Order, Program};
use crate::support::entry::Entry;
use crate::support::on_each_device;
use crate::support::random::Random;

/// A program that captures, replays and drops graphs on any stream, steps of its own in between.
pub fn capture_and_replay(program: &mut Program, seed: u64, rounds: usize) {
    let mut random = Random::new(seed);
    let mut graphs: Vec<Graph> = Vec::new();
    for _ in 0..rounds {
        let steps = 1 + random.below(12);
        let graph = program.capture(|program| {
            for _ in 0..steps {
                program.step_in_graph();
            }
            program.count();
        });
        graphs.push(graph);
        if graphs.len() > 3 {
            // It may still run.
            graphs.swap_remove(random.below(3));
        }
        for _ in 0..5 {
            match random.below(4) {
                0 => program.step_with_host(),
                1 => program.hand_on(),
                _ => program.replay(&graphs[random.below(graphs.len())]),
            }
        }
    }
}

#[test]
fn replays_are_ordered_beside_what_streams_do() {
    on_each_device("replays_are_ordered", |test| {
        for (seed, by) in (0..3).flat_map(|seed| By::BOTH.map(|by| (seed, by))) {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let runtime = test.another(entry.builder());
            let order = [Order::Events, Order::Host, Order::Polls][seed as usize];
            let mut program = Program::new(&log, seed, 3, by, order);
            capture_and_replay(&mut program, seed, 12);
            program.end();
            drop(runtime);
            log.check();
        }
    });
}

/// A stream that only replays one graph, and what that does.
fn replayed(test: &crate::support::TestRuntime, by: By) -> History {
    let entry = Entry::new().unwrap();
    let log = Log::install(&entry);
    let _runtime = test.another(entry.builder());
    let mut program = Program::new(&log, 6, 1, by, Order::Events);
    let graph = program.capture(|program| {
        for _ in 0..40 {
            program.step_in_its_memory();
        }
    });
    program.replay(&graph);
    program.replay(&graph);
    program.end();
    log.check();
    log.history()
}

/// What a graph's commands begin with is for what may come before them, and here there are barriers of the
/// stream's, too.
#[test]
fn every_barrier_of_a_graph_is_needed() {
    on_each_device("every_barrier_of_a_graph_is_needed", |test| {
        for by in By::BOTH {
            let history = replayed(test, by);
            let mut barriers = history.barriers();
            barriers.retain(|(spot, _, list)| list.again && spot.command > 0);
            assert!(barriers.len() > 30, "{}", barriers.len());
            for (spot, ..) in barriers {
                let left = history.without_barriers(&[spot]);
                assert!(!is_sound(&left), "{by:?}: {spot:?}");
            }
        }
    });
}

/// Between two replays there is nothing but it.
#[test]
fn the_barrier_that_a_graph_begins_with_is_needed() {
    on_each_device("the_barrier_that_a_graph_begins_with", |test| {
        let history = replayed(test, By::Addresses);
        let mut barriers = history.barriers();
        barriers.retain(|(spot, _, list)| list.again && spot.command == 0);
        assert_eq!(barriers.len(), 2);
        let left = history.without_barriers(&[barriers[1].0]);
        assert!(!is_sound(&left));
    });
}
