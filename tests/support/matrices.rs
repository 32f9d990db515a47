//! Random copies of rows in every direction, beside a model that copies element by element.

use super::random::Random;
use vkaccel::{Buffer, Download, PinnedBuffer, Rows, Stream};

/// Rows as the model sees them.
#[derive(Clone, Copy, Debug)]
struct Shape {
    start: usize,
    count: usize,
    len: usize,
    stride: usize,
}

impl Shape {
    /// Rows in so many elements: often small ones.
    fn random(random: &mut Random, elements: usize) -> Self {
        let start = random.below(elements / 2);
        let room = elements - start;
        let mut one_of = |bounds: [usize; 3]| {
            let bound = bounds[random.below(3)];
            random.below(bound)
        };
        let len = 1 + one_of([3, 40, room].map(|bound| bound.min(room)));
        let stride = len + one_of([1, 4, 50]);
        let most = 1 + (room - len) / stride;
        Self {
            start,
            count: 1 + one_of([3, 20, most].map(|bound| bound.min(most))),
            len,
            stride,
        }
    }

    /// Other rows of the same number and length.
    fn moved(self, random: &mut Random, elements: usize) -> Self {
        let most = match self.count {
            1 => self.stride + 9,
            count => (elements - self.len) / (count - 1),
        };
        let stride = self.len + random.below((most - self.len + 1).min(60));
        let extent = (self.count - 1) * stride + self.len;
        // Often close by, so that they overlap.
        let far = random.below(elements - extent + 1);
        let near = (self.start + random.below(9)).saturating_sub(4);
        let start = if random.below(2) == 0 { far } else { near };
        Self {
            start: start.min(elements - extent),
            stride,
            ..self
        }
    }

    fn places(self) -> impl Iterator<Item = usize> {
        let rows = (0..self.count).map(move |row| self.start + row * self.stride);
        rows.flat_map(move |start| start..start + self.len)
    }

    fn of(self, buffer: &Buffer<u16>) -> Rows<'_, u16> {
        let view = buffer.view(self.start..).unwrap();
        view.rows(self.count, self.len, self.stride).unwrap()
    }
}

/// A stream, a few buffers, and what they should hold.
pub struct Matrices {
    random: Random,
    stream: Stream,
    buffers: Vec<(Buffer<u16>, Vec<u16>)>,
    downloads: Vec<(Download<u16>, Vec<u16>)>,
}

impl Matrices {
    pub fn new(seed: u64, elements: usize) -> Self {
        let stream = Stream::new(0).unwrap();
        let content: Vec<u16> = (0..elements)
            .map(|n| u16::try_from(n % 65_521).unwrap())
            .collect();
        let buffers = (0..2).map(|_| (stream.upload(&content).unwrap(), content.clone()));
        Self {
            random: Random::new(seed),
            buffers: buffers.collect(),
            downloads: Vec::new(),
            stream,
        }
    }

    /// Makes so many copies, and compares.
    pub fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        for (download, expected) in self.downloads {
            assert!(download.wait().unwrap() == expected);
        }
        for (buffer, model) in &self.buffers {
            assert!(self.stream.to_vec(buffer).unwrap() == *model);
        }
    }

    fn step(&mut self) {
        let which = self.random.below(2);
        let (buffer, model) = &self.buffers[which];
        let shape = Shape::random(&mut self.random, model.len());
        let held: Vec<u16> = shape.places().map(|place| model[place]).collect();
        let new = u16::try_from(self.random.below(60_000)).unwrap();
        let counting = (0..u16::MAX).cycle().skip(usize::from(new));
        let data: Vec<u16> = counting.take(held.len()).collect();
        let (stream, rows) = (&self.stream, shape.of(buffer));
        match self.random.below(8) {
            0 => {
                stream.write_rows(rows, &data).unwrap();
                self.set(which, shape, &data);
            }
            1 => {
                let mut out = vec![0; held.len()];
                stream.read_rows(rows, &mut out).unwrap();
                assert!(out == held, "{shape:?}");
            }
            2 => {
                let download = stream.read_rows_async(rows).unwrap();
                self.downloads.push((download, held));
            }
            3 => {
                let host = PinnedBuffer::from_slice(&data).unwrap();
                stream.copy_rows_from_pinned(&host, rows).unwrap();
                self.set(which, shape, &data);
            }
            4 => {
                let host = PinnedBuffer::from_slice(&data).unwrap();
                stream.copy_rows_to_pinned(rows, &host).unwrap();
                assert!(*host.read().unwrap() == held, "{shape:?}");
            }
            5 => {
                // Keeps the host from writing the memory itself for a while.
                let place = shape.start;
                stream
                    .fill(buffer.view(place..place + 1).unwrap(), new)
                    .unwrap();
                self.buffers[which].1[place] = new;
            }
            _ => {
                let to = shape.moved(&mut self.random, model.len());
                let other = self.random.below(2);
                let target = to.of(&self.buffers[other].0);
                stream.copy_rows(rows, target).unwrap();
                self.set(other, to, &held);
            }
        }
    }

    fn set(&mut self, which: usize, shape: Shape, data: &[u16]) {
        for (place, value) in shape.places().zip(data) {
            self.buffers[which].1[place] = *value;
        }
    }
}
