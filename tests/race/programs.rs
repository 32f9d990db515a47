//! Programs of many streams and threads under a log.

use std::sync::{Mutex, PoisonError};

use vkaccel::{Arg, Buffer, Event, Generator, Grid, Kernel, Stream};

use crate::race::Log;
use crate::steps::By;
use crate::support::crowd::Crowd;
use crate::support::entry::Entry;
use crate::support::on_each_device;
use crate::support::random::Random;

#[test]
fn random_programs_on_many_streams_are_ordered() {
    on_each_device("random_programs_on_many_streams_are_ordered", |test| {
        for (seed, by) in (0..3).flat_map(|seed| By::BOTH.map(|by| (seed, by))) {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let runtime = test.another(entry.builder());
            Crowd::with_kernels(seed, 5, 4, by.affine()).run(120);
            drop(runtime);
            log.check();
        }
    });
}

#[test]
fn memory_that_goes_from_hand_to_hand_is_ordered_and_ends_after_its_use() {
    on_each_device("memory_that_goes_from_hand_to_hand", |test| {
        for by in By::BOTH {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let runtime = test.another(entry.builder());
            // The thread that uses the runtime first is the one whose entry it is.
            drop(Buffer::<u32>::zeroed(1).unwrap());
            hand_round(&log, runtime.runtime(), by, 3, 100);
            drop(runtime);
            log.check();
        }
    });
}

/// Threads that make memory, use it on any stream, hand it to each other, and drop it at any time.
pub fn hand_round(log: &Log, runtime: &vkaccel::Runtime, by: By, threads: u64, steps: usize) {
    let table = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (runtime, table) = (runtime.clone(), &table);
            scope.spawn(move || {
                let _entered = runtime.enter();
                let mut hands = Hands::new(log, seed, by, table);
                for _ in 0..steps {
                    hands.step();
                }
            });
        }
    });
}

/// A buffer, and what is behind its last use.
struct Held {
    buffer: Buffer<u32>,
    done: Event,
}

/// What a thread has in its hands.
struct Hands<'a> {
    log: &'a Log,
    random: Random,
    streams: Vec<Stream>,
    held: Vec<Held>,
    /// Where threads put things down for each other.
    table: &'a Mutex<Vec<Held>>,
    generator: Generator,
    affine: Kernel,
    map: Kernel,
}

impl<'a> Hands<'a> {
    fn new(log: &'a Log, seed: u64, by: By, table: &'a Mutex<Vec<Held>>) -> Self {
        let [affine, map] = by.affine();
        Self {
            log,
            random: Random::new(seed + 50),
            streams: (0..3).map(|_| Stream::new(0).unwrap()).collect(),
            held: Vec::new(),
            table,
            generator: Generator::new(seed, 0).unwrap(),
            affine,
            map,
        }
    }

    fn stream(&mut self) -> Stream {
        let at = self.random.below(self.streams.len());
        self.streams[at].clone()
    }

    fn step(&mut self) {
        if self.held.len() < 2 {
            return self.make();
        }
        match self.random.below(14) {
            0..=2 => self.make(),
            3 | 4 => self.in_place(),
            5..=7 => self.map(),
            8 => self.draw(),
            9 => {
                let dropped = self.random.below(self.held.len());
                self.held.swap_remove(dropped);
            }
            10 => self.swap(),
            11 => self.look(),
            12 => self.apart(),
            _ => self.disturb(),
        }
    }

    fn make(&mut self) {
        let stream = self.stream();
        let len = [1, 64, 300, 5000, 300_000][self.random.below(5)];
        let buffer = match self.random.below(3) {
            0 => stream.zeroed(len),
            1 => stream.upload(&vec![7; len]),
            _ => stream.uninit(len),
        };
        let buffer = buffer.unwrap();
        self.log.know_memory(buffer.address().get(), 4 * len as u64);
        let done = stream.record_event().unwrap();
        self.held.push(Held { buffer, done });
        if self.held.len() > 8 {
            self.held.remove(0);
        }
    }

    fn in_place(&mut self) {
        let stream = self.stream();
        let at = self.random.below(self.held.len());
        let held = &mut self.held[at];
        stream.wait_event(&held.done).unwrap();
        let len = held.buffer.len();
        let args = (&held.buffer, 3, 1, len);
        stream
            .launch(&self.affine, Grid::elements(len), args)
            .unwrap();
        held.done = stream.record_event().unwrap();
    }

    fn map(&mut self) {
        let stream = self.stream();
        let from = self.random.below(self.held.len());
        let to = (from + 1 + self.random.below(self.held.len() - 1)) % self.held.len();
        let [from_held, to_held] = self.held.get_disjoint_mut([from, to]).unwrap();
        let len = from_held.buffer.len().min(to_held.buffer.len());
        for held in [&*from_held, &*to_held] {
            stream.wait_event(&held.done).unwrap();
        }
        let source = from_held.buffer.view(..len).unwrap();
        let target = to_held.buffer.view(..len).unwrap();
        if self.random.below(2) == 0 {
            stream.copy(source, target).unwrap();
        } else {
            let args = (source, Arg::from(target).write(), 3, 1, len);
            stream.launch(&self.map, Grid::elements(len), args).unwrap();
        }
        let done = stream.record_event().unwrap();
        (from_held.done, to_held.done) = (done.clone(), done);
    }

    /// Random numbers, by kernels of the crate's own.
    fn draw(&mut self) {
        let stream = self.stream();
        let at = self.random.below(self.held.len());
        let held = &mut self.held[at];
        stream.wait_event(&held.done).unwrap();
        stream
            .fill_integers(&self.generator, &held.buffer, 1..7)
            .unwrap();
        held.done = stream.record_event().unwrap();
    }

    fn swap(&mut self) {
        let at = self.random.below(self.held.len());
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.push(self.held.swap_remove(at));
        if table.len() > 2 {
            self.held.push(table.remove(0));
        }
    }

    fn look(&mut self) {
        let stream = self.stream();
        let at = self.random.below(self.held.len());
        let held = &mut self.held[at];
        stream.wait_event(&held.done).unwrap();
        if self.random.below(2) == 0 {
            stream.to_vec(&held.buffer).unwrap();
        } else {
            // Nobody waits for it.
            drop(stream.read_async(&held.buffer).unwrap());
        }
        held.done = stream.record_event().unwrap();
    }

    /// Launches that the program says are independent of each other.
    fn apart(&mut self) {
        let stream = self.stream();
        for held in &self.held {
            stream.wait_event(&held.done).unwrap();
        }
        let launched = stream.concurrent(|| {
            self.held.iter().try_for_each(|held| {
                let len = held.buffer.len();
                let args = (&held.buffer, 3, 1, len);
                stream.launch(&self.affine, Grid::elements(len), args)
            })
        });
        launched.unwrap();
        let done = stream.record_event().unwrap();
        for held in &mut self.held {
            held.done = done.clone();
        }
    }

    fn disturb(&mut self) {
        let at = self.random.below(self.streams.len());
        match self.random.below(5) {
            0 => self.streams[at].flush().unwrap(),
            1 => drop(self.streams[at].query().unwrap()),
            2 => self.streams[at].synchronize().unwrap(),
            // Its work goes on without it, and its memory is others'.
            3 => self.streams[at] = Stream::new(0).unwrap(),
            _ => vkaccel::empty_cache().unwrap(),
        }
    }
}
