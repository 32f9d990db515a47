//! Random graphs of waits: streams, events and threads of all kinds at once, beside what every stream
//! must have seen. No order of them hangs, and a wait is for all that was before it.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use support::kernels::{APART, chosen as kernel};
use support::on_each_device;
use support::random::Random;
use support::seeds::for_seeds;
use vkaccel::{Buffer, Download, Event, Grid, Kernel, Stream, View, memory};

/// How many numbers a log has.
const NUMBERS: usize = 24;

/// A number in a log: written once, by one stream, and never changed.
#[derive(Clone)]
struct Number {
    log: Arc<Buffer<u32>>,
    at: usize,
    value: u32,
}

impl Number {
    fn view(&self) -> View<'_, u32> {
        let at = self.at * APART;
        self.log.view(at..=at).unwrap()
    }
}

/// A stream, and the log in which each of its steps writes the next number.
struct Line {
    stream: Stream,
    last: Number,
    values: Vec<u32>,
    /// Those of other streams that this one has waited for.
    known: Vec<Number>,
}

/// An event, and what is written by the time that it is reached.
struct Mark {
    event: Event,
    last: Option<Number>,
}

/// What all threads work on. A line is locked before a mark, and two lines in their order.
struct Graph {
    lines: Vec<Mutex<Line>>,
    marks: Vec<Mutex<Mark>>,
    /// Events that are recorded and waited for, whatever they mean.
    loose: Vec<Event>,
    logs: Mutex<Vec<(Download<u32>, Vec<u32>)>>,
    map: Kernel,
}

/// A panic of one thread is enough to fail the test.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn new(first: u32) -> Self {
        let stream = Stream::new(0).unwrap();
        let log = stream.zeroed(NUMBERS * APART).unwrap();
        stream.fill(log.view(..1).unwrap(), first).unwrap();
        Self {
            last: Number {
                log: Arc::new(log),
                at: 0,
                value: first,
            },
            values: vec![first],
            known: Vec::new(),
            stream,
        }
    }

    /// Writes the next number, made from one that is there by now.
    fn step(&mut self, from: &Number, map: &Kernel) {
        let offset = u32::try_from(self.values.len()).unwrap();
        let next = Number {
            log: Arc::clone(&self.last.log),
            at: self.last.at + 1,
            value: from.value.wrapping_mul(3).wrapping_add(offset),
        };
        let args = (from.view(), next.view(), 3, offset, 1);
        self.stream.launch(map, Grid::elements(1), args).unwrap();
        self.values.push(next.value);
        self.last = next;
    }

    /// The log as it has to be.
    fn expected(&self) -> Vec<u32> {
        let mut words = vec![0; NUMBERS * APART];
        for (word, value) in words.iter_mut().step_by(APART).zip(&self.values) {
            *word = *value;
        }
        words
    }
}

impl Graph {
    fn new(lines: usize, marks: usize) -> Self {
        let mark = |_| Mark {
            event: Event::new(),
            last: None,
        };
        let firsts = 1..=u32::try_from(lines).unwrap();
        Self {
            lines: firsts.map(Line::new).map(Mutex::new).collect(),
            marks: (0..marks).map(mark).map(Mutex::new).collect(),
            loose: (0..marks).map(|_| Event::new()).collect(),
            logs: Mutex::default(),
            map: kernel("affine_map"),
        }
    }

    /// One line is done; its stream is dropped, with whatever is open or in flight.
    fn replace(&self, line: &mut Line) {
        let new = Line::new(line.last.value);
        let old = core::mem::replace(line, new);
        let download = old.stream.read_async(&*old.last.log).unwrap();
        lock(&self.logs).push((download, old.expected()));
    }

    /// What a thread does with the graph.
    fn work(&self, mut random: Random, steps: usize) {
        for _ in 0..steps {
            let line = random.below(self.lines.len());
            let mark = random.below(self.marks.len());
            match random.below(16) {
                0..=3 => self.step(&mut random, line),
                4 | 5 => self.record(line, mark),
                6..=8 => self.wait(line, mark),
                9 => self.wait_for_line(line, random.below(self.lines.len())),
                10 => self.ask(mark, line),
                11 => self.synchronize(mark, line),
                12 => self.come_and_go(&mut random, line),
                13 => self.replace(&mut lock(&self.lines[line])),
                _ => self.disturb(&mut random, line),
            }
        }
    }

    fn step(&self, random: &mut Random, line: usize) {
        let mut line = lock(&self.lines[line]);
        if line.values.len() == NUMBERS {
            return self.replace(&mut line);
        }
        // From its own last number, or from any that it has waited for.
        let from = match random.below(line.known.len() + 1) {
            0 => line.last.clone(),
            _ => line.known[random.below(line.known.len())].clone(),
        };
        line.step(&from, &self.map);
    }

    fn record(&self, line: usize, mark: usize) {
        let line = lock(&self.lines[line]);
        let mut mark = lock(&self.marks[mark]);
        mark.event.record(&line.stream).unwrap();
        mark.last = Some(line.last.clone());
    }

    /// Waits for where the event is now; it may be somewhere else when that is made use of.
    fn wait(&self, line: usize, mark: usize) {
        let mut line = lock(&self.lines[line]);
        let mark = lock(&self.marks[mark]);
        line.stream.wait_event(&mark.event).unwrap();
        line.known.extend(mark.last.clone());
    }

    fn wait_for_line(&self, line: usize, other: usize) {
        if line == other {
            let line = lock(&self.lines[line]);
            return line.stream.wait_stream(&line.stream).unwrap();
        }
        let first = lock(&self.lines[line.min(other)]);
        let second = lock(&self.lines[line.max(other)]);
        let (mut line, other) = if line < other {
            (first, second)
        } else {
            (second, first)
        };
        line.stream.wait_stream(&other.stream).unwrap();
        line.known.push(other.last.clone());
    }

    /// What the host has seen reached can be read by any stream.
    fn ask(&self, mark: usize, line: usize) {
        let line = lock(&self.lines[line]);
        let mark = lock(&self.marks[mark]);
        if mark.event.query().unwrap() {
            Self::check(&line.stream, mark);
        }
    }

    fn synchronize(&self, mark: usize, line: usize) {
        let stream = lock(&self.lines[line]).stream.clone();
        let mark = lock(&self.marks[mark]);
        mark.event.synchronize().unwrap();
        Self::check(&stream, mark);
    }

    fn check(stream: &Stream, mark: MutexGuard<'_, Mark>) {
        let last = mark.last.clone();
        drop(mark);
        if let Some(last) = last {
            assert_eq!(stream.to_vec(last.view()).unwrap(), [last.value]);
        }
    }

    /// A stream that is gone before its work has begun, and that the line waits for.
    fn come_and_go(&self, random: &mut Random, line: usize) {
        let mut line = lock(&self.lines[line]);
        let mut new = Line::new(7);
        new.stream.wait_stream(&line.stream).unwrap();
        new.step(&line.last, &self.map);
        if random.below(2) == 0 {
            let event = new.stream.record_event().unwrap();
            line.stream.wait_event(&event).unwrap();
        } else {
            line.stream.wait_stream(&new.stream).unwrap();
        }
        line.known.push(new.last.clone());
        lock(&self.logs).push((
            new.stream.read_async(&*new.last.log).unwrap(),
            new.expected(),
        ));
    }

    /// What changes nothing about what is seen, with no lock held.
    fn disturb(&self, random: &mut Random, line: usize) {
        let stream = lock(&self.lines[line]).stream.clone();
        let loose = &self.loose[random.below(self.loose.len())];
        let moment = Duration::from_micros(random.below(500) as u64);
        match random.below(12) {
            0 => stream.flush().unwrap(),
            1 => drop(stream.query().unwrap()),
            2 => stream.synchronize().unwrap(),
            3 => drop(stream.synchronize_timeout(moment).unwrap()),
            4 => loose.record(&stream).unwrap(),
            5 | 6 => loose.wait(&stream).unwrap(),
            7 => drop(loose.synchronize_timeout(moment).unwrap()),
            8 => stream.wait_event(&Event::new()).unwrap(),
            9 => stream.wait_event(&stream.record_event().unwrap()).unwrap(),
            10 => memory::empty_cache().unwrap(),
            _ => stream.add_callback(|| ()).unwrap(),
        }
    }

    /// Everything that was written is right.
    fn finish(self) {
        for line in &self.lines {
            self.replace(&mut lock(line));
        }
        vkaccel::synchronize(0).unwrap();
        for mark in self.marks.iter().map(lock) {
            assert!(mark.event.query().unwrap());
        }
        for (download, expected) in self.logs.into_inner().unwrap() {
            assert!(download.is_done().unwrap());
            assert_eq!(download.wait().unwrap(), expected);
        }
    }
}

#[test]
fn no_graph_of_waits_hangs_and_each_stream_sees_what_it_has_waited_for() {
    const NAME: &str = "no_graph_of_waits_hangs";
    on_each_device(NAME, |test| {
        for_seeds(NAME, 6, |seed| {
            // Few and many of each.
            let mut random = Random::new(seed);
            let [threads, lines, marks] = [4, 12, 12].map(|most| 1 + random.below(most));
            let graph = Graph::new(lines, marks);
            std::thread::scope(|scope| {
                for thread in 0..threads as u64 {
                    let (graph, runtime) = (&graph, test.runtime().clone());
                    let random = Random::new(seed * 1000 + thread);
                    scope.spawn(move || {
                        let _entered = runtime.enter();
                        graph.work(random, 250);
                    });
                }
            });
            graph.finish();
        });
    });
}

/// Each waits for the one before it, in all the ways there are, and is dropped at once.
#[test]
fn a_chain_of_thousands_of_streams_comes_to_its_end() {
    const NAME: &str = "a_chain_of_thousands_of_streams";
    on_each_device(NAME, |_| {
        for_seeds(NAME, 1, |seed| {
            let (mut random, map) = (Random::new(seed), kernel("affine_map"));
            let mut line = Line::new(1);
            for _ in 0..2000 {
                let mut next = Line::new(2);
                match random.below(3) {
                    0 => next.stream.wait_stream(&line.stream).unwrap(),
                    1 => {
                        let event = line.stream.record_event().unwrap();
                        next.stream.wait_event(&event).unwrap();
                    }
                    _ => {
                        let event = Event::new();
                        event.record(&line.stream).unwrap();
                        next.stream.wait_event(&event).unwrap();
                        event.record(&next.stream).unwrap();
                    }
                }
                next.step(&line.last, &map);
                line = next;
            }
            let last = line.stream.to_vec(line.last.view()).unwrap();
            assert_eq!(last, [line.last.value]);
        });
    });
}
