//! A program that grows as it runs, beside what plain Rust makes of it.

use std::sync::mpsc::channel;

use super::call::{BUFFERS, Call, Kit, WORDS};
use super::support::random::Random;
use vkaccel::{CaptureErrorMode, Event, Graph, Philox, PoolId, Stream, memory};

/// How many streams there are, and the most graphs.
const STREAMS: usize = 3;
const GRAPHS: usize = 4;

/// A graph, and what it does.
struct Captured {
    graph: Graph,
    keeps: bool,
    calls: Vec<Call>,
}

/// Streams, graphs and memory, and what all of it has to be.
pub struct Program {
    seed: u64,
    random: Random,
    streams: Vec<Stream>,
    /// The stream of the newest call.
    last: Stream,
    kit: Kit,
    graphs: Vec<Captured>,
    /// A pool that graphs share.
    shared: PoolId,
    words: Vec<Vec<u32>>,
    philox: Philox,
    /// How many workgroups indirect launches have.
    groups: usize,
}

impl Program {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let streams: Vec<_> = (0..STREAMS).map(|_| Stream::new(0).unwrap()).collect();
        let any = |_| (0..WORDS).map(|_| random.word()).collect();
        let words: Vec<Vec<u32>> = (0..BUFFERS).map(any).collect();
        let last = streams[0].clone();
        Self {
            seed,
            kit: Kit::new(seed, &last, &words),
            random,
            streams,
            last,
            graphs: Vec::new(),
            shared: Graph::new().pool(),
            words,
            philox: Philox::new(seed),
            groups: 1,
        }
    }

    /// Makes so many calls, and looks at everything in the end.
    pub fn run(mut self, steps: usize) {
        for _ in 0..steps {
            let stream = self.next_stream();
            match self.random.below(20) {
                0 | 1 => self.capture(&stream),
                2..=5 => self.replay(&stream),
                6 => {
                    self.groups = self.random.below(11);
                    let groups = [self.groups as u32, 1, 1];
                    stream.write(&self.kit.groups, &groups).unwrap();
                }
                7 => {
                    let renewed = self.random.below(STREAMS);
                    self.streams[renewed] = Stream::new(0).unwrap();
                }
                8 | 9 => self.look(&stream),
                10 => memory::empty_cache().unwrap(),
                _ => {
                    let call = Call::any(&mut self.random);
                    self.kit.make(&call, &stream).unwrap();
                    call.apply(&mut self.words, &mut self.philox, self.groups);
                }
            }
        }
        // What comes next of the generator is seen, too.
        let last = self.last.clone();
        let drawn = &self.kit.buffers[0];
        last.fill_bits(&self.kit.generator, drawn).unwrap();
        self.philox.fill_bits(&mut self.words[0]).unwrap();
        for (buffer, words) in self.kit.buffers.iter().zip(&self.words) {
            assert!(last.to_vec(buffer).unwrap() == *words, "seed {}", self.seed);
        }
    }

    /// A stream whose calls come after all so far.
    fn next_stream(&mut self) -> Stream {
        let stream = self.streams[self.random.below(STREAMS)].clone();
        if stream != self.last {
            match self.random.below(3) {
                0 => stream.wait_stream(&self.last).unwrap(),
                kind => {
                    let event = if kind == 1 {
                        Event::new()
                    } else {
                        Event::with_timing()
                    };
                    event.record(&self.last).unwrap();
                    stream.wait_event(&event).unwrap();
                }
            }
            self.last = stream.clone();
        }
        stream
    }

    /// Compares a buffer, or some words of it, by one of the ways to read.
    fn look(&mut self, stream: &Stream) {
        let at = self.random.below(BUFFERS);
        let (buffer, words) = (&self.kit.buffers[at], &self.words[at]);
        let found = if self.random.below(2) == 0 {
            stream.to_vec(buffer).unwrap()
        } else {
            stream.read_async(buffer).unwrap().wait().unwrap()
        };
        assert!(found == *words, "seed {}, buffer {at}", self.seed);
    }

    fn capture(&mut self, stream: &Stream) {
        let random = &mut self.random;
        let calls: Vec<_> = (0..1 + random.below(6))
            .map(|_| Call::any(random))
            .collect();
        let keeps = random.below(2) == 0;
        let builder = Graph::builder()
            .keep_graph(keeps)
            .capture_error_mode(CaptureErrorMode::Relaxed);
        let mut graph = match random.below(4) {
            0 => builder.pool(self.kit.pool.id()),
            1 | 2 => builder.pool(self.shared),
            _ => builder,
        }
        .build();
        let side = Stream::new(0).unwrap();
        graph.capture_begin_on(stream).unwrap();
        for call in &calls {
            if random.below(3) == 0 {
                side.wait_stream(stream).unwrap();
                self.kit.make(call, &side).unwrap();
                stream.wait_stream(&side).unwrap();
            } else {
                self.kit.make(call, stream).unwrap();
            }
        }
        graph.capture_end().unwrap();
        if self.graphs.len() == GRAPHS {
            self.graphs.swap_remove(random.below(GRAPHS));
        }
        self.graphs.push(Captured {
            graph,
            keeps,
            calls,
        });
    }

    fn replay(&mut self, stream: &Stream) {
        if self.graphs.is_empty() {
            return;
        }
        let at = self.random.below(self.graphs.len());
        let Captured {
            graph,
            keeps,
            calls,
        } = &mut self.graphs[at];
        if *keeps && self.random.below(4) == 0 {
            graph.instantiate().unwrap();
        }
        match self.random.below(4) {
            0 => stream.concurrent(|| stream.replay(graph)).unwrap(),
            1 => {
                let (sender, receiver) = channel();
                let (moved, on) = (std::mem::replace(graph, Graph::new()), stream.clone());
                let replays = move || sender.send((on.replay(&moved), moved)).unwrap();
                stream.add_callback(replays).unwrap();
                let (replayed, moved) = receiver.recv().unwrap();
                replayed.unwrap();
                *graph = moved;
            }
            _ => stream.replay(graph).unwrap(),
        }
        for call in calls {
            call.apply(&mut self.words, &mut self.philox, self.groups);
        }
    }
}
