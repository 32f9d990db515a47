//! Kernels that take descriptors and kernels that take addresses get the same barriers.

use std::collections::BTreeMap;

use crate::race::Log;
use crate::race::history::{Command, Touch};
use crate::steps::{By, Order, Program};
use crate::support::entry::Entry;
use crate::support::{TestRuntime, on_each_device};

/// What a program records, in the order in which it does, and last the commands of its graph, as text; and how
/// many barriers are among it.
fn record(test: &TestRuntime, seed: u64, streams: usize, by: By) -> (Vec<String>, usize) {
    let entry = Entry::new().unwrap();
    let log = Log::install(&entry);
    let _runtime = test.another(entry.builder());
    let mut program = Program::new(&log, seed, streams, by, Order::Events);
    // Where the crate keeps the groups of a second one depends on how far the first one is.
    program.count();
    for _ in 0..30 {
        program.step_in_its_memory();
        program.step_in_its_memory();
        program.step_in_its_memory();
        program.hand_on();
    }
    let graph = program.capture(|program| {
        for _ in 0..30 {
            program.step_in_its_memory();
        }
    });
    program.replay(&graph);
    program.end();
    log.check();
    let mut commands = log.recorded();
    let history = log.history();
    let mut lists = history.submissions().flat_map(|(_, one)| &one.lists);
    let body = lists.find(|list| list.again && !list.is_divider());
    commands.extend_from_slice(&body.unwrap().commands);
    let is_barrier = |command: &&Command| matches!(command, Command::Barrier(_));
    let barriers = commands.iter().filter(is_barrier).count();
    (text(&commands), barriers)
}

/// Memory is called by when it comes up first.
fn text(commands: &[Command]) -> Vec<String> {
    let mut names = BTreeMap::new();
    let mut name = |memory| {
        let next = names.len();
        *names.entry(memory).or_insert(next)
    };
    let text = commands.iter().map(|command| match command {
        Command::Barrier(barrier) => format!("{barrier:?}"),
        Command::Work(work) => {
            let touch = |touch: &Touch| {
                let range = touch.range;
                let (memory, len) = (name(range.memory), range.hi - range.lo);
                let (stage, access, lo) = (touch.stage, touch.access, range.lo);
                format!("{stage:?} {access:?} {memory}: {lo} + {len}")
            };
            let touches: Vec<_> = work.touches.iter().map(touch).collect();
            format!("{} {touches:?}", work.name)
        }
    });
    text.collect()
}

/// No layer sees accesses by address, so that what it sees of descriptors has to hold for both.
#[test]
fn a_program_has_the_same_barriers_by_descriptors_and_by_addresses() {
    on_each_device("the_same_barriers", |test| {
        for (seed, streams) in [(7, 1), (8, 1), (9, 3)] {
            let [(by_descriptors, barriers), (by_addresses, _)] =
                By::BOTH.map(|by| record(test, seed, streams, by));
            assert_eq!(by_descriptors, by_addresses);
            assert!(barriers > 50, "{by_addresses:#?}");
        }
    });
}
