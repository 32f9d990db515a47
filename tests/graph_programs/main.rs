//! Random programs give the same results, bit by bit, when they are called, when they are captured and
//! replayed, and on the host.
//!
//! `VKACCEL_GRAPH_PROGRAMS` says how many there are for each device: a number, or `FROM..TO`.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod author;
mod machine;
mod model;
mod program;

#[path = "../icd-shim/tests/support/process.rs"]
mod process;
#[path = "../support/mod.rs"]
mod support;

use std::ops::Range;

use author::Author;
use machine::{Machine, Made};
use model::{Model, Seen};
use process::over_the_shim;
use program::{Layout, Program};
use support::deadline::Deadline;
use support::kernels::chosen as kernel;
use support::random::Random;
use support::{TestRuntime, builder, on_each_device};
use vkaccel::{CaptureErrorMode, Graph, Stream};

/// How often a program runs in a row.
const ROUNDS: usize = 3;

/// The seeds of the programs, of which there are `count` unless the environment wants others.
fn seeds(count: u64) -> Range<u64> {
    let Ok(text) = std::env::var("VKACCEL_GRAPH_PROGRAMS") else {
        return 0..count;
    };
    let number = |text: &str| text.parse().unwrap();
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}

/// What a seed gives, and who says so where something differs.
struct Trial {
    seed: u64,
    random: Random,
    layout: Layout,
    machine: Machine,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let layout = Layout::new(&mut random);
        Self {
            seed,
            machine: Machine::new(&layout),
            random,
            layout,
        }
    }

    fn program(&mut self) -> Program {
        let steps = 6 + self.random.below(40);
        Author::new(&mut self.random, &self.layout).write(steps)
    }

    /// A graph of a program, made in one of the ways that there are, with what it has made.
    fn capture(&mut self, mut graph: Graph, program: &Program) -> (Graph, Made) {
        let (machine, before) = (&self.machine, self.machine.states());
        let main = &machine.streams[0];
        let made = match self.random.below(3) {
            0 => {
                graph.set_capture_error_mode(CaptureErrorMode::Relaxed);
                graph.capture_begin_on(main).unwrap();
                let made = machine.run(program).unwrap();
                graph.capture_end().unwrap();
                made
            }
            1 => main
                .scope(|| graph.capture(|| machine.run(program)))
                .unwrap(),
            _ => graph.capture_on(main, || machine.run(program)).unwrap(),
        };
        assert!(machine.streams.iter().all(|stream| !stream.is_capturing()));
        assert_eq!(machine.states(), before, "a capture draws nothing");
        (graph, made)
    }

    fn compare(&self, how: &str, program: &Program, found: &Seen, expected: &Seen) {
        if let Some(text) = found.differs(expected) {
            let ops: Vec<_> = program.ops.iter().map(|op| format!("{op:?}")).collect();
            panic!(
                "seed {}, {how}: {text}\n{:?}\n{}",
                self.seed,
                self.layout,
                ops.join("\n")
            );
        }
    }

    /// What is to be seen after each of several rounds of calls, which is what the host says.
    fn calls(&mut self, program: &Program) -> Vec<Seen> {
        let mut model = Model::new(&self.layout);
        let rounds = (0..ROUNDS).map(|round| {
            let made = self.machine.run(program).unwrap();
            let seen = self.machine.seen(&made);
            model.run(program, &self.layout);
            if program.is_certain() {
                self.compare(
                    &format!("calls, round {round}"),
                    program,
                    &seen,
                    &model.seen(),
                );
            }
            seen
        });
        rounds.collect()
    }
}

/// The streams that replays are put on: the captured one, another that was captured, and one that was
/// never.
fn replaying(machine: &Machine) -> Vec<Stream> {
    let others = [Stream::new(0).unwrap(), Stream::new(0).unwrap()];
    let captured = machine.streams.iter().take(2).cloned();
    captured.chain(others).collect()
}

/// Calls and replays of one program, in all ways.
fn try_program(seed: u64) {
    let mut trial = Trial::new(seed);
    let program = trial.program();
    let expected = trial.calls(&program);
    trial.machine.reset();
    let keeps = trial.random.below(3) == 0;
    let graph = Graph::builder().keep_graph(keeps).build();
    let (mut graph, made) = trial.capture(graph, &program);
    let streams = replaying(&trial.machine);
    for (round, expected) in expected.iter().enumerate() {
        streams[0].replay(&graph).unwrap();
        let seen = trial.machine.seen(&made);
        trial.compare(&format!("replay {round}"), &program, &seen, expected);
    }
    // One behind the other, on whichever streams.
    trial.machine.reset();
    for _ in 0..ROUNDS {
        if keeps && trial.random.below(2) == 0 {
            graph.instantiate().unwrap();
        }
        let stream = trial.random.below(streams.len());
        streams[stream].replay(&graph).unwrap();
    }
    let seen = trial.machine.seen(&made);
    trial.compare(
        "replays on many streams",
        &program,
        &seen,
        &expected[ROUNDS - 1],
    );
    // In turn with calls.
    trial.machine.reset();
    let main = &streams[0];
    let mut called = Vec::new();
    for round in 0..ROUNDS {
        if round % 2 == 1 {
            called = trial.machine.run(&program).unwrap();
            continue;
        }
        let stream = &streams[trial.random.below(streams.len())];
        stream.wait_stream(main).unwrap();
        stream.replay(&graph).unwrap();
        main.wait_stream(stream).unwrap();
    }
    let seen = trial.machine.seen(&made);
    trial.compare("replays and calls", &program, &seen, &expected[ROUNDS - 1]);
    // What the calls have made is theirs.
    let mut others = trial.machine.seen(&called);
    let outside = trial.layout.buffers.len();
    others.buffers.retain(|(slot, _)| *slot >= outside);
    let mut before = expected[1].clone();
    before.buffers.retain(|(slot, _)| *slot >= outside);
    (before.pinned, before.states) = (others.pinned.clone(), others.states.clone());
    trial.compare("calls between replays", &program, &others, &before);
    drop((called, graph.reset()));
}

/// Two programs whose graphs share their memory, in turn.
fn try_two_programs(seed: u64) {
    let mut trial = Trial::new(seed);
    let programs = [trial.program(), trial.program()];
    let order: Vec<_> = (0..4).map(|_| trial.random.below(2)).collect();
    let mut model = Model::new(&trial.layout);
    let mut expected = Seen::default();
    for &which in &order {
        let made = trial.machine.run(&programs[which]).unwrap();
        expected = trial.machine.seen(&made);
        model.run(&programs[which], &trial.layout);
    }
    if programs.iter().all(Program::is_certain) {
        trial.compare("calls of two", &programs[0], &expected, &model.seen());
    }
    trial.machine.reset();
    let first = Graph::new();
    let second = Graph::builder().pool(first.pool()).build();
    let graphs = [(first, 0), (second, 1)];
    let graphs = graphs.map(|(graph, which)| trial.capture(graph, &programs[which]));
    let streams = replaying(&trial.machine);
    for &which in &order {
        let stream = trial.random.below(streams.len());
        streams[stream].replay(&graphs[which].0).unwrap();
    }
    // What the other one has made may lie where this one's temporary memory was.
    let last = order[3];
    let seen = trial.machine.seen(&graphs[last].1);
    trial.compare("replays of two", &programs[last], &seen, &expected);
}

#[test]
fn programs_give_the_same_called_and_replayed() {
    on_each_device("programs_give_the_same_called_and_replayed", |_| {
        seeds(24).for_each(try_program);
    });
}

#[test]
fn programs_whose_graphs_share_a_pool_give_the_same() {
    on_each_device("programs_whose_graphs_share_a_pool_give_the_same", |_| {
        seeds(24).for_each(|seed| try_two_programs(1_000_000 + seed));
    });
}

fn over_late_queues(test: &str, settings: &[(&str, &str)]) {
    over_the_shim(test, settings, || {
        let _deadline = Deadline::new(test, 3000);
        let _runtime = TestRuntime::new(builder());
        for seed in seeds(5) {
            try_program(2_000_000 + seed);
            try_two_programs(3_000_000 + seed);
        }
    });
}

#[test]
fn programs_give_the_same_on_four_late_queues() {
    let test = "programs_give_the_same_on_four_late_queues";
    let settings = [
        ("QUEUES", "4"),
        ("FAMILY", "transfer"),
        ("DELAY_US", "1000"),
        ("SEED", "7"),
    ];
    over_late_queues(test, &settings);
}

#[test]
fn programs_give_the_same_on_two_families_that_are_late() {
    let test = "programs_give_the_same_on_two_families_that_are_late";
    let settings = [
        ("QUEUES", "2"),
        ("FAMILY", "compute"),
        ("FAMILY_QUEUES", "2"),
        ("DELAY_US", "1000"),
    ];
    over_late_queues(test, &settings);
}
