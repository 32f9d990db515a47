//! Random programs on many streams, ordered by every means there is, beside a model that runs them in
//! the order they were written.

use super::kernels::chosen as kernel;
use super::random::Random;
use vkaccel::{Buffer, Download, Event, Grid, Kernel, Stream};

/// The words of each buffer.
const WORDS: usize = 257;

/// A buffer that streams share.
struct Shared {
    buffer: Buffer<u32>,
    model: Vec<u32>,
    /// The command that wrote it last.
    written: Option<Done>,
    /// Those that have read it since.
    read: Vec<Done>,
}

/// A command that others depend on.
#[derive(Clone)]
struct Done {
    event: Event,
    stream: Stream,
}

/// The streams and what they work on.
pub struct Crowd {
    random: Random,
    streams: Vec<Stream>,
    shared: Vec<Shared>,
    downloads: Vec<(Download<u32>, Vec<u32>)>,
    affine: Kernel,
    map: Kernel,
}

impl Crowd {
    pub fn new(seed: u64, streams: usize, buffers: usize) -> Self {
        Self::with_kernels(
            seed,
            streams,
            buffers,
            [kernel("affine"), kernel("affine_map")],
        )
    }

    /// The same with a kernel that works in place, and one that does not.
    pub fn with_kernels(
        seed: u64,
        streams: usize,
        buffers: usize,
        [affine, map]: [Kernel; 2],
    ) -> Self {
        let new_stream = |_| Stream::new(0).unwrap();
        let setup = Stream::new(0).unwrap();
        let shared = (0..buffers).map(|index| {
            let model = vec![u32::try_from(index).unwrap(); WORDS];
            Shared {
                buffer: setup.upload(&model).unwrap(),
                model,
                written: None,
                read: Vec::new(),
            }
        });
        let shared = shared.collect();
        setup.synchronize().unwrap();
        Self {
            random: Random::new(seed),
            streams: (0..streams).map(new_stream).collect(),
            shared,
            downloads: Vec::new(),
            affine,
            map,
        }
    }

    /// Runs a program of so many steps, and compares.
    pub fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        for (download, expected) in self.downloads {
            assert_eq!(download.wait().unwrap(), expected);
        }
        let last = Stream::new(0).unwrap();
        for shared in &self.shared {
            for done in shared.written.iter() {
                last.wait_event(&done.event).unwrap();
            }
            assert_eq!(last.to_vec(&shared.buffer).unwrap(), shared.model);
        }
    }

    fn step(&mut self) {
        let stream = self.streams[self.random.below(self.streams.len())].clone();
        let (from, to) = self.two();
        let value = u32::try_from(self.random.below(1000)).unwrap();
        match self.random.below(10) {
            0 => {
                self.order(&stream, &[], to);
                stream.fill(&self.shared[to].buffer, value).unwrap();
                self.shared[to].model.fill(value);
                self.wrote(&stream, &[], to);
            }
            1 => {
                self.order(&stream, &[], to);
                let data: Vec<u32> = (value..).take(WORDS).collect();
                stream.write(&self.shared[to].buffer, &data).unwrap();
                self.shared[to].model = data;
                self.wrote(&stream, &[], to);
            }
            2 | 3 => {
                self.order(&stream, &[from], to);
                let (src, dst) = (&self.shared[from].buffer, &self.shared[to].buffer);
                stream.copy(src, dst).unwrap();
                self.shared[to].model = self.shared[from].model.clone();
                self.wrote(&stream, &[from], to);
            }
            4 | 5 => {
                self.order(&stream, &[from], to);
                let (src, dst) = (&self.shared[from].buffer, &self.shared[to].buffer);
                let args = (src, dst, 3, value, 257);
                stream
                    .launch(&self.map, Grid::elements(WORDS), args)
                    .unwrap();
                let mapped = self.shared[from]
                    .model
                    .iter()
                    .map(|word| affine(*word, value));
                self.shared[to].model = mapped.collect();
                self.wrote(&stream, &[from], to);
            }
            6 | 7 => {
                self.order(&stream, &[], to);
                let args = (&self.shared[to].buffer, 3, value, 257);
                stream
                    .launch(&self.affine, Grid::elements(WORDS), args)
                    .unwrap();
                for word in &mut self.shared[to].model {
                    *word = affine(*word, value);
                }
                self.wrote(&stream, &[], to);
            }
            8 => {
                self.order_reads(&stream, &[from]);
                let download = stream.read_async(&self.shared[from].buffer).unwrap();
                let expected = self.shared[from].model.clone();
                self.downloads.push((download, expected));
                self.did(&stream, &[from]);
            }
            _ => self.disturb(),
        }
    }

    fn two(&mut self) -> (usize, usize) {
        let count = self.shared.len();
        let from = self.random.below(count);
        (from, (from + 1 + self.random.below(count - 1)) % count)
    }

    /// Things that change no result.
    fn disturb(&mut self) {
        let at = self.random.below(self.streams.len());
        match self.random.below(6) {
            0 => self.streams[at].flush().unwrap(),
            1 => drop(self.streams[at].query().unwrap()),
            2 => self.streams[at].synchronize().unwrap(),
            // Its work goes on without it.
            3 => self.streams[at] = Stream::new(0).unwrap(),
            4 => {
                let other = self.random.below(self.streams.len());
                self.streams[at].wait_stream(&self.streams[other]).unwrap();
            }
            _ => vkaccel::synchronize(0).unwrap(),
        }
    }

    /// Puts a stream behind all that wrote what it reads.
    fn order_reads(&mut self, stream: &Stream, reads: &[usize]) {
        for &index in reads {
            if let Some(done) = self.shared[index].written.clone() {
                self.order_behind(stream, &done);
            }
        }
    }

    /// Puts a stream behind all that it must not overtake.
    fn order(&mut self, stream: &Stream, reads: &[usize], writes: usize) {
        self.order_reads(stream, reads);
        self.order_reads(stream, &[writes]);
        for done in self.shared[writes].read.clone() {
            self.order_behind(stream, &done);
        }
    }

    /// By any means.
    fn order_behind(&mut self, stream: &Stream, done: &Done) {
        if *stream == done.stream {
            return;
        }
        match self.random.below(12) {
            0 => done.event.synchronize().unwrap(),
            1 => {
                while !done.event.query().unwrap() {
                    std::thread::yield_now();
                }
            }
            2 => done.stream.synchronize().unwrap(),
            3 | 4 => stream.wait_stream(&done.stream).unwrap(),
            _ => stream.wait_event(&done.event).unwrap(),
        }
    }

    fn did(&mut self, stream: &Stream, reads: &[usize]) -> Done {
        let done = Done {
            event: stream.record_event().unwrap(),
            stream: stream.clone(),
        };
        for &index in reads {
            self.shared[index].read.push(done.clone());
        }
        done
    }

    fn wrote(&mut self, stream: &Stream, reads: &[usize], writes: usize) {
        let done = self.did(stream, reads);
        self.shared[writes].read.clear();
        self.shared[writes].written = Some(done);
    }
}

fn affine(word: u32, value: u32) -> u32 {
    word.wrapping_mul(3).wrapping_add(value)
}
