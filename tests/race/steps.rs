//! Random programs whose steps stand in one order, on one stream or handed from stream to stream.

use vkaccel::{
    Arg, Buffer, Download, Event, Generator, Graph, Grid, Kernel, PinnedBuffer, Stream, View,
};

use crate::race::Log;
use crate::support::kernels::kernel;
use crate::support::random::Random;

/// How kernels get their buffers.
#[derive(Clone, Copy, Debug)]
pub enum By {
    Descriptors,
    Addresses,
}

impl By {
    pub const BOTH: [Self; 2] = [Self::Descriptors, Self::Addresses];

    pub fn kernel(self, by_descriptors: &str, by_addresses: &str) -> Kernel {
        match self {
            Self::Descriptors => kernel(by_descriptors),
            Self::Addresses => kernel(by_addresses),
        }
    }

    /// A kernel that works in place, and one that does not.
    pub fn affine(self) -> [Kernel; 2] {
        [
            self.kernel("affine", "affine_here_at"),
            self.kernel("affine_map", "affine_at"),
        ]
    }
}

/// How a stream comes to be behind the one that had the turn before.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Events,
    /// The host waits.
    Host,
    /// The host asks until it is told.
    Polls,
}

pub const ORDERS: [Order; 3] = [Order::Events, Order::Host, Order::Polls];

/// The words of each of the buffers that are worked on in parts.
const WORDS: usize = 4096;
/// Those of a part, which starts at a multiple of a quarter of that: descriptors of any device may.
const PART: usize = 1024;

/// A program under way; what a stream records is labelled with its number.
pub struct Program {
    random: Random,
    log: Log,
    streams: Vec<Stream>,
    turn: usize,
    order: Order,
    buffers: [Buffer<u32>; 2],
    /// The groups of a launch, what it counts up, and what kernels read as a uniform block.
    counts: Buffer<u32>,
    ticks: Buffer<u32>,
    params: Buffer<u32>,
    pinned: PinnedBuffer<u32>,
    downloads: Vec<Download<u32>>,
    generator: Generator,
    affine: Kernel,
    map: Kernel,
    put: Kernel,
    tick: Kernel,
    gaps: Kernel,
}

impl Program {
    /// A program on new streams; all its memory belongs to the first of them.
    pub fn new(log: &Log, seed: u64, streams: usize, by: By, order: Order) -> Self {
        let streams = (0..streams).map(|_| Stream::new(0).unwrap());
        Self::on(log, streams.collect(), seed, by, order)
    }

    /// The same on streams that share a queue.
    pub fn on_one_queue(log: &Log, streams: usize, by: By, order: Order) -> Self {
        let mut found = Vec::new();
        let mut queue = None;
        while found.len() < streams {
            let stream = Stream::new(0).unwrap();
            drop(stream.zeroed::<u32>(1).unwrap());
            stream.synchronize().unwrap();
            let history = log.history();
            let (_, newest) = history.submissions().last().unwrap();
            if *queue.get_or_insert(newest.queue) == newest.queue {
                found.push(stream);
            }
        }
        Self::on(log, found, 1, by, order)
    }

    fn on(log: &Log, streams: Vec<Stream>, seed: u64, by: By, order: Order) -> Self {
        let [affine, map] = by.affine();
        let first = &streams[0];
        log.label(0);
        Self {
            log: log.clone(),
            random: Random::new(seed),
            turn: 0,
            order,
            buffers: [(); 2].map(|()| first.zeroed(WORDS).unwrap()),
            counts: first.zeroed(3).unwrap(),
            ticks: first.zeroed(1).unwrap(),
            params: first.zeroed(2).unwrap(),
            pinned: PinnedBuffer::new(PART).unwrap(),
            downloads: Vec::new(),
            generator: Generator::new(seed, 0).unwrap(),
            affine,
            map,
            put: by.kernel("put_three", "put_three_at"),
            tick: by.kernel("tick", "tick_at"),
            gaps: kernel("sets_with_gaps"),
            streams,
        }
    }

    fn stream(&self) -> Stream {
        self.streams[self.turn].clone()
    }

    /// Gives the turn to a random stream, which then is behind all that was done.
    pub fn hand_on(&mut self) {
        let next = self.random.below(self.streams.len());
        self.hand_on_to(next);
    }

    pub fn hand_on_to(&mut self, next: usize) {
        let (before, now) = (&self.streams[self.turn], &self.streams[next]);
        match self.order {
            Order::Events => {
                let event = Event::new();
                event.record(before).unwrap();
                self.log.label(next);
                event.wait(now).unwrap();
            }
            Order::Host => before.synchronize().unwrap(),
            Order::Polls => {
                while !before.query().unwrap() {
                    std::thread::yield_now();
                }
            }
        }
        self.turn = next;
        self.log.label(next);
    }

    /// One step that the device takes alone.
    pub fn step(&mut self) {
        match self.random.below(9) {
            0 => self.count(),
            _ => self.step_in_its_memory(),
        }
    }

    /// One of those that touch no memory but the program's.
    pub fn step_in_its_memory(&mut self) {
        match self.random.below(9) {
            0 => self.fill(),
            1 | 2 => self.copy(),
            3 | 4 => self.in_place(),
            5 => self.map(),
            6 => self.decide(),
            _ => self.uniform(),
        }
    }

    /// One of those that a capture takes.
    pub fn step_in_graph(&mut self) {
        match self.random.below(10) {
            0 => self.fork(),
            1 => self.draw(),
            2 => self.passing(),
            3 => self.overlapping(),
            4 => self.upload(),
            _ => self.step_in_its_memory(),
        }
    }

    /// A graph of what is done meanwhile, which may be on several streams.
    pub fn capture(&mut self, steps: impl FnOnce(&mut Self)) -> Graph {
        let stream = self.stream();
        let mut graph = Graph::new();
        let captured = graph.capture_on(&stream, || {
            steps(self);
            Ok(())
        });
        captured.unwrap();
        graph
    }

    pub fn replay(&self, graph: &Graph) {
        self.stream().replay(graph).unwrap();
    }

    /// One of those, or one with the host.
    pub fn step_with_host(&mut self) {
        match self.random.below(13) {
            0 => self.upload(),
            1 => self.download(),
            2 => self.out_to_pinned(),
            3 => self.in_from_pinned(),
            4 => self.overlapping(),
            5 => self.passing(),
            6 => self.draw(),
            _ => self.step(),
        }
    }

    /// Waits for all, and drops what the host has not looked at.
    pub fn end(mut self) {
        for download in self.downloads.drain(..) {
            download.wait().unwrap();
        }
        self.stream().synchronize().unwrap();
    }

    /// Which buffer, and a part of it.
    fn part(&mut self) -> (usize, core::ops::Range<usize>) {
        let start = self.random.below(4 * (WORDS / PART - 1) + 1) * (PART / 4);
        (self.random.below(2), start..start + PART)
    }

    fn view(&self, (which, range): &(usize, core::ops::Range<usize>)) -> View<'_, u32> {
        self.buffers[*which].view(range.clone()).unwrap()
    }

    /// Two parts that share nothing.
    fn two(&mut self) -> [(usize, core::ops::Range<usize>); 2] {
        loop {
            let two = [self.part(), self.part()];
            let [(a, from), (b, to)] = &two;
            if a != b || from.start.abs_diff(to.start) >= PART {
                return two;
            }
        }
    }

    fn fill(&mut self) {
        let part = self.part();
        self.stream().fill(self.view(&part), 7).unwrap();
    }

    fn copy(&mut self) {
        let [from, to] = self.two();
        let stream = self.stream();
        stream.copy(self.view(&from), self.view(&to)).unwrap();
    }

    fn in_place(&mut self) {
        let part = self.part();
        let args = (self.view(&part), 3, 1, PART);
        self.stream()
            .launch(&self.affine, Grid::elements(PART), args)
            .unwrap();
    }

    /// A launch that no other can stand beside.
    pub fn in_place_of_all(&mut self) {
        let args = (&self.buffers[0], 3, 1, WORDS);
        self.stream()
            .launch(&self.affine, Grid::elements(WORDS), args)
            .unwrap();
    }

    fn map(&mut self) {
        let [from, to] = self.two();
        let to = Arg::from(self.view(&to)).write();
        let args = (self.view(&from), to, 3, 1, PART);
        self.stream()
            .launch(&self.map, Grid::elements(PART), args)
            .unwrap();
    }

    /// Writes the groups of later launches.
    fn decide(&mut self) {
        let args = (&self.counts, 2, 1, 1);
        self.stream()
            .launch(&self.put, Grid::groups(1), args)
            .unwrap();
    }

    /// A launch with those groups.
    pub fn count(&mut self) {
        self.stream()
            .launch_indirect(&self.tick, &self.counts, (&self.ticks,))
            .unwrap();
    }

    /// Writes what launches read as a uniform block, or makes one.
    fn uniform(&mut self) {
        let [from, to] = self.two();
        let stream = self.stream();
        if self.random.below(3) == 0 {
            let head = self.buffers[from.0].view(0..2).unwrap();
            return stream.copy(head, &self.params).unwrap();
        }
        let from = self.view(&from);
        let args = (&self.params, from, self.view(&to), self.view(&to));
        stream.launch(&self.gaps, Grid::groups(1), args).unwrap();
    }

    /// Two streams side by side, each on a buffer.
    fn fork(&mut self) {
        let main = self.stream();
        let side = Stream::new(0).unwrap();
        side.wait_stream(&main).unwrap();
        for (stream, buffer) in [(&main, &self.buffers[0]), (&side, &self.buffers[1])] {
            let args = (buffer, 3, 1, WORDS);
            let grid = Grid::elements(WORDS);
            stream.launch(&self.affine, grid, args).unwrap();
        }
        main.wait_stream(&side).unwrap();
    }

    /// Random numbers, by a kernel of the crate's own.
    fn draw(&mut self) {
        let part = self.part();
        self.stream()
            .fill_bits(&self.generator, self.view(&part))
            .unwrap();
    }

    fn upload(&mut self) {
        let part = self.part();
        let value = self.random.below(1000) as u32;
        self.stream()
            .write(self.view(&part), &[value; PART])
            .unwrap();
    }

    fn download(&mut self) {
        let part = self.part();
        let stream = self.stream();
        if self.random.below(2) == 0 {
            stream.to_vec(self.view(&part)).unwrap();
        } else {
            let download = stream.read_async(self.view(&part)).unwrap();
            self.downloads.push(download);
        }
        // Some are waited for, some dropped before they are done.
        match self.random.below(4) {
            0 => self.downloads.clear(),
            1 => {
                for download in self.downloads.drain(..) {
                    download.wait().unwrap();
                }
            }
            _ => {}
        }
    }

    /// Three ways to look at a part.
    pub fn look(&mut self) {
        let (part, stream) = (self.part(), self.stream());
        stream.to_vec(self.view(&part)).unwrap();
        let download = stream.read_async(self.view(&part)).unwrap();
        download.wait().unwrap();
        stream
            .copy_to_pinned(self.view(&part), &self.pinned)
            .unwrap();
        assert_eq!(self.pinned.read().unwrap().len(), PART);
    }

    fn out_to_pinned(&mut self) {
        let part = self.part();
        let stream = self.stream();
        stream
            .copy_to_pinned(self.view(&part), &self.pinned)
            .unwrap();
        if self.random.below(2) == 0 {
            assert_eq!(self.pinned.read().unwrap().len(), PART);
        }
    }

    fn in_from_pinned(&mut self) {
        if self.random.below(2) == 0 {
            self.pinned.write().unwrap().fill(5);
        }
        let part = self.part();
        let stream = self.stream();
        stream
            .copy_from_pinned(&self.pinned, self.view(&part))
            .unwrap();
    }

    /// A copy within a buffer whose ends overlap.
    fn overlapping(&mut self) {
        let stream = self.stream();
        let (which, by) = (self.random.below(2), 1 + self.random.below(300));
        let buffer = &self.buffers[which];
        let from = buffer.view(0..WORDS - by).unwrap();
        stream.copy(from, buffer.view(by..).unwrap()).unwrap();
    }

    /// A buffer that is dropped as soon as it is in use, so that its memory is another's next.
    fn passing(&mut self) {
        let (part, stream) = (self.part(), self.stream());
        let passing = stream.uninit::<u32>(PART).unwrap();
        let to = Arg::from(&passing).write();
        let args = (self.view(&part), to, 3, 1, PART);
        stream
            .launch(&self.map, Grid::elements(PART), args)
            .unwrap();
        drop(passing);
        let next = stream.uninit::<u32>(PART).unwrap();
        stream.copy(self.view(&part), &next).unwrap();
    }
}
