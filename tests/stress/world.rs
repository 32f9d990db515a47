//! The world of one thread: its streams, blocks and graphs, and what it does with them.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use super::block::{Block, Done, Place};
use super::command::{Command, Kit};
use super::support::random::Random;
use vkaccel::{Download, Graph, Philox, PinnedBuffer, Stream, memory};

/// How many streams and blocks a world has, and the most graphs.
const STREAMS: usize = 4;
const BLOCKS: usize = 5;
const GRAPHS: usize = 3;
/// The most downloads that nobody has looked at.
const DOWNLOADS: usize = 12;
/// How often memory goes from thread to thread, in steps.
const HANDED_ON: usize = 40;
/// How long another thread takes at most.
const LONG: Duration = Duration::from_secs(100);

/// What a thread has, and what it has to be.
pub struct World {
    random: Random,
    thread: usize,
    /// The first one is used by all threads.
    streams: Vec<Stream>,
    blocks: Vec<Block>,
    graphs: Vec<Captured>,
    downloads: VecDeque<(Content, Vec<u8>)>,
    kit: Kit,
    /// Where the generator is by the end of all commands so far.
    philox: Philox,
    next: Sender<Block>,
    previous: Receiver<Block>,
}

/// A graph, and the commands that it runs.
struct Captured {
    graph: Graph,
    commands: Vec<Command>,
}

/// What was read of a block.
enum Content {
    Download(Download<u8>),
    Pinned(PinnedBuffer<u8>, Done),
}

/// One kind of thing that a thread can do: how often, of all that it does, and how.
type Kind = (usize, fn(&mut World));

/// What a thread can do. Each leaves memory and models alike.
const KINDS: &[Kind] = &[
    (50, World::command),
    (8, World::download),
    (4, World::pinned_download),
    (4, World::pinned_upload),
    (4, World::renew),
    (4, World::capture),
    (12, World::replay),
    (14, World::disturb),
];

impl World {
    /// A world that hands blocks on to another one, and gets some.
    pub fn new(
        seed: u64,
        thread: usize,
        shared: Stream,
        next: Sender<Block>,
        previous: Receiver<Block>,
    ) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            thread,
            streams: vec![shared],
            blocks: Vec::new(),
            graphs: Vec::new(),
            downloads: VecDeque::new(),
            kit: Kit::new(seed),
            philox: Philox::new(seed),
            next,
            previous,
        };
        let own = (1..STREAMS).map(|_| Stream::new(0).unwrap());
        world.streams.extend(own);
        for _ in 0..BLOCKS {
            let block = world.new_block();
            world.blocks.push(block);
        }
        world
    }

    /// Does so many things, and looks at every byte in the end.
    pub fn run(mut self, steps: usize) {
        let all: usize = KINDS.iter().map(|(weight, _)| weight).sum();
        for step in 1..=steps {
            let mut left = self.random.below(all);
            let kind = KINDS.iter().find(|(weight, _)| {
                let found = left < *weight;
                left = left.saturating_sub(*weight);
                found
            });
            kind.unwrap().1(&mut self);
            if step % HANDED_ON == 0 {
                self.hand_on();
            }
        }
        self.graphs.clear();
        while self.look() {}
        for block in 0..BLOCKS {
            let bytes = 0..self.blocks[block].bytes.len();
            let place = Place { block, bytes };
            let stream = Stream::new(0).unwrap();
            self.order_reading(&stream, &place);
            let found = stream.to_vec(self.blocks[block].buffer()).unwrap();
            compare(&found, &self.blocks[block].bytes);
        }
    }

    fn stream(&mut self) -> Stream {
        self.streams[self.random.below(STREAMS)].clone()
    }

    /// One that no other thread uses.
    fn own_stream(&mut self) -> Stream {
        self.streams[1 + self.random.below(STREAMS - 1)].clone()
    }

    fn new_block(&mut self) -> Block {
        let stream = self.stream();
        let (mut block, content) = Block::new(&mut self.random, &stream);
        stream.write(block.buffer(), &content).unwrap();
        let done = self.done(&stream);
        block.was_written(&(0..content.len()), &done);
        block
    }

    fn done(&self, stream: &Stream) -> Done {
        Done {
            event: stream.record_event().unwrap(),
            stream: stream.clone(),
            thread: self.thread,
        }
    }

    fn some_place(&mut self) -> Place {
        let block = self.random.below(BLOCKS);
        let bytes = self.blocks[block].some_bytes(&mut self.random);
        Place { block, bytes }
    }

    /// Puts a stream behind a command, by any means.
    fn order_behind(&mut self, stream: &Stream, done: &Done) {
        if *stream == done.stream {
            return;
        }
        // The stream of another thread may be captured by now, for whatever comes behind the event.
        let means = if done.thread == self.thread { 12 } else { 9 };
        match self.random.below(means) {
            0 => done.event.synchronize().unwrap(),
            1 => {
                while !done.event.query().unwrap() {
                    std::thread::yield_now();
                }
            }
            9 => done.stream.synchronize().unwrap(),
            10 | 11 => stream.wait_stream(&done.stream).unwrap(),
            _ => stream.wait_event(&done.event).unwrap(),
        }
    }

    fn order_reading(&mut self, stream: &Stream, place: &Place) {
        for done in self.blocks[place.block].before_reading(&place.bytes) {
            self.order_behind(stream, &done);
        }
    }

    fn order_writing(&mut self, stream: &Stream, place: &Place) {
        for done in self.blocks[place.block].before_writing(&place.bytes) {
            self.order_behind(stream, &done);
        }
    }

    /// Puts a stream behind all that commands depend on.
    fn order(&mut self, stream: &Stream, commands: &[Command]) {
        for command in commands {
            if let Some(place) = command.reads() {
                self.order_reading(stream, place);
            }
            self.order_writing(stream, command.writes());
        }
    }

    /// Commands are on a stream: they have their effect, and others come behind them.
    fn did(&mut self, stream: &Stream, commands: &[Command]) {
        let done = self.done(stream);
        for command in commands {
            command.apply(&mut self.blocks, &mut self.philox);
            if let Some(place) = command.reads() {
                self.blocks[place.block].was_read(&place.bytes, &done);
            }
        }
        for place in commands.iter().map(Command::writes) {
            self.blocks[place.block].was_written(&place.bytes, &done);
        }
    }

    fn command(&mut self) {
        let stream = self.stream();
        let command = Command::any(&mut self.random, &self.blocks);
        let commands = [command];
        self.order(&stream, &commands);
        commands[0].issue(&stream, &mut self.blocks, &self.kit);
        self.did(&stream, &commands);
    }

    fn download(&mut self) {
        let (stream, place) = (self.stream(), self.some_place());
        self.order_reading(&stream, &place);
        let block = &mut self.blocks[place.block];
        let download = stream.read_async(block.view(&place)).unwrap();
        let expected = block.model(&place).to_vec();
        self.read(&stream, &place);
        self.expect(Content::Download(download), expected);
    }

    fn pinned_download(&mut self) {
        let (stream, place) = (self.stream(), self.some_place());
        self.order_reading(&stream, &place);
        let pinned = PinnedBuffer::new(place.bytes.len()).unwrap();
        let block = &mut self.blocks[place.block];
        stream.copy_to_pinned(block.view(&place), &pinned).unwrap();
        let expected = block.model(&place).to_vec();
        let done = self.read(&stream, &place);
        self.expect(Content::Pinned(pinned, done), expected);
    }

    fn read(&mut self, stream: &Stream, place: &Place) -> Done {
        let done = self.done(stream);
        self.blocks[place.block].was_read(&place.bytes, &done);
        done
    }

    /// What is read is looked at later.
    fn expect(&mut self, content: Content, expected: Vec<u8>) {
        self.downloads.push_back((content, expected));
        if self.downloads.len() > DOWNLOADS {
            self.look();
        }
    }

    /// Looks at the oldest download; whether there was one.
    fn look(&mut self) -> bool {
        let Some((content, expected)) = self.downloads.pop_front() else {
            return false;
        };
        match content {
            Content::Download(download) => compare(&download.wait().unwrap(), &expected),
            Content::Pinned(pinned, done) => {
                // Reading waits for the copy, as this does.
                if self.random.below(2) == 0 {
                    done.event.synchronize().unwrap();
                }
                compare(&pinned.read().unwrap(), &expected);
            }
        }
        true
    }

    fn pinned_upload(&mut self) {
        let (stream, place) = (self.stream(), self.some_place());
        let data = self.random.bytes(place.bytes.len());
        let pinned = PinnedBuffer::from_slice(&data).unwrap();
        self.order_writing(&stream, &place);
        let block = &mut self.blocks[place.block];
        stream
            .copy_from_pinned(&pinned, block.view(&place))
            .unwrap();
        block.model(&place).copy_from_slice(&data);
        let done = self.done(&stream);
        self.blocks[place.block].was_written(&place.bytes, &done);
    }

    /// A buffer goes, with whatever is in flight, and the graphs that use it, before it or behind it.
    fn renew(&mut self) {
        let place = self.random.below(BLOCKS);
        let new = self.new_block();
        if self.random.below(2) == 0 {
            self.forget_graphs_of(place);
        }
        self.blocks[place] = new;
        self.forget_graphs_of(place);
    }

    fn forget_graphs_of(&mut self, block: usize) {
        let uses = |captured: &Captured| captured.commands.iter().any(|one| one.uses(block));
        self.graphs.retain(|captured| !uses(captured));
    }

    /// Another thread goes on with a block, and this one with another's.
    fn hand_on(&mut self) {
        self.forget_graphs_of(0);
        let new = self.new_block();
        let mine = core::mem::replace(&mut self.blocks[0], new);
        self.next.send(mine).unwrap();
        self.blocks[0] = self.previous.recv_timeout(LONG).unwrap();
    }

    /// Captures commands, some of them on a second stream.
    fn capture(&mut self) {
        let count = 1 + self.random.below(5);
        let any = |_| Command::any(&mut self.random, &self.blocks);
        let commands: Vec<_> = (0..count).map(any).collect();
        let (first, second) = (self.own_stream(), Stream::new(0).unwrap());
        let mut graph = Graph::builder()
            .keep_graph(self.random.below(2) == 0)
            .build();
        graph.capture_begin_on(&first).unwrap();
        let mut left = &commands[..];
        while let Some((command, rest)) = left.split_first() {
            left = rest;
            if self.random.below(2) == 0 {
                command.issue(&first, &mut self.blocks, &self.kit);
                continue;
            }
            second.wait_stream(&first).unwrap();
            command.issue(&second, &mut self.blocks, &self.kit);
            // Beside it, what has nothing to do with it.
            if let Some((other, rest)) = left.split_first()
                && !other.meets(command, &self.blocks)
            {
                left = rest;
                other.issue(&first, &mut self.blocks, &self.kit);
            }
            first.wait_stream(&second).unwrap();
        }
        graph.capture_end().unwrap();
        if self.graphs.len() == GRAPHS {
            self.graphs.swap_remove(self.random.below(GRAPHS));
        }
        self.graphs.push(Captured { graph, commands });
    }

    fn replay(&mut self) {
        if self.graphs.is_empty() {
            return;
        }
        let place = self.random.below(self.graphs.len());
        let captured = self.graphs.swap_remove(place);
        let stream = self.stream();
        self.order(&stream, &captured.commands);
        stream.replay(&captured.graph).unwrap();
        self.did(&stream, &captured.commands);
        // It may go while it runs.
        if self.random.below(4) > 0 {
            self.graphs.push(captured);
        }
    }

    /// What changes no byte.
    fn disturb(&mut self) {
        let (stream, other) = (self.own_stream(), self.own_stream());
        let moment = Duration::from_micros(self.random.below(500) as u64);
        match self.random.below(10) {
            0 => stream.flush().unwrap(),
            1 => drop(stream.query().unwrap()),
            2 => stream.synchronize().unwrap(),
            3 => drop(stream.synchronize_timeout(moment).unwrap()),
            4 => {
                let at = 1 + self.random.below(STREAMS - 1);
                self.streams[at] = Stream::new(0).unwrap();
            }
            5 => stream.wait_stream(&other).unwrap(),
            6 => memory::empty_cache().unwrap(),
            7 => memory::empty_host_cache().unwrap(),
            8 => stream.add_callback(|| ()).unwrap(),
            _ => vkaccel::synchronize(0).unwrap(),
        }
    }
}

/// Panics with the first byte that is wrong, and how many are.
#[track_caller]
fn compare(found: &[u8], expected: &[u8]) {
    assert_eq!(found.len(), expected.len());
    let wrong: Vec<_> = (0..found.len())
        .filter(|&at| found[at] != expected[at])
        .collect();
    if let Some(&first) = wrong.first() {
        let last = wrong[wrong.len() - 1];
        panic!(
            "{} of {} bytes are wrong, from {first} to {last}: {} instead of {} at first",
            wrong.len(),
            found.len(),
            found[first],
            expected[first]
        );
    }
}
