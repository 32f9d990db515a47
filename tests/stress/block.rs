//! Memory, what it has to hold, and what has to be waited for before it is used.

use core::ops::Range;

use super::support::random::Random;
use vkaccel::{Buffer, Event, Pod, Stream, View};

/// The regions of a block, which streams can use side by side.
const REGIONS: usize = 4;

/// A buffer with what it has to hold.
pub struct Block {
    buffer: Option<Buffer<u8>>,
    /// By the end of all commands so far.
    pub bytes: Vec<u8>,
    regions: Vec<Uses>,
}

/// The commands that used a region last.
#[derive(Default)]
struct Uses {
    written: Option<Done>,
    /// Those that have read it since.
    read: Vec<Done>,
}

/// A command that others depend on.
#[derive(Clone)]
pub struct Done {
    pub event: Event,
    pub stream: Stream,
    /// The thread whose stream it is.
    pub thread: usize,
}

/// Bytes of a block.
#[derive(Clone, Debug)]
pub struct Place {
    pub block: usize,
    pub bytes: Range<usize>,
}

impl Block {
    /// A block of random length and content, made on a stream.
    pub fn new(random: &mut Random, stream: &Stream) -> (Self, Vec<u8>) {
        // Regions start where kernels can be given memory on any device.
        let len = REGIONS * 256 * (1 + random.below(6));
        let content = random.bytes(len);
        let block = Self {
            buffer: Some(stream.uninit(len).unwrap()),
            bytes: content.clone(),
            regions: (0..REGIONS).map(|_| Uses::default()).collect(),
        };
        (block, content)
    }

    pub fn buffer(&self) -> &Buffer<u8> {
        self.buffer.as_ref().unwrap()
    }

    pub fn view(&self, place: &Place) -> View<'_, u8> {
        self.buffer().view(place.bytes.clone()).unwrap()
    }

    /// Uses the bytes of a place as elements of another type.
    pub fn as_elements<T: Pod>(&mut self, place: &Place, f: impl FnOnce(View<'_, T>)) {
        let size = size_of::<T>();
        let elements = self.buffer.take().unwrap().cast::<T>().unwrap();
        f(elements
            .view(place.bytes.start / size..place.bytes.end / size)
            .unwrap());
        self.buffer = Some(elements.cast().unwrap());
    }

    /// The bytes of a place, as they have to be.
    pub fn model(&mut self, place: &Place) -> &mut [u8] {
        &mut self.bytes[place.bytes.clone()]
    }

    /// The bytes of a region and its number, of which it has so many.
    fn region_len(&self) -> usize {
        self.bytes.len() / REGIONS
    }

    /// The numbers of the regions that bytes are in.
    pub fn regions(&self, bytes: &Range<usize>) -> Range<usize> {
        let len = self.region_len();
        bytes.start / len..bytes.end.div_ceil(len)
    }

    /// Some bytes of the block.
    pub fn some_bytes(&self, random: &mut Random) -> Range<usize> {
        let start = random.below(self.bytes.len());
        // Often few.
        let most = (self.bytes.len() - start) >> (2 * random.below(4));
        start..start + 1 + random.below(most.max(1))
    }

    /// Some whole regions.
    pub fn some_regions(&self, random: &mut Random) -> Range<usize> {
        let first = random.below(REGIONS);
        let count = 1 + random.below(REGIONS - first);
        let len = self.region_len();
        first * len..(first + count) * len
    }

    /// What a command that reads the bytes is behind of.
    pub fn before_reading(&self, bytes: &Range<usize>) -> Vec<Done> {
        let regions = &self.regions[self.regions(bytes)];
        let written = regions.iter().filter_map(|uses| uses.written.clone());
        written.collect()
    }

    /// What a command that writes the bytes is behind of.
    pub fn before_writing(&self, bytes: &Range<usize>) -> Vec<Done> {
        let mut before = self.before_reading(bytes);
        let regions = &self.regions[self.regions(bytes)];
        before.extend(regions.iter().flat_map(|uses| uses.read.iter().cloned()));
        before
    }

    pub fn was_read(&mut self, bytes: &Range<usize>, done: &Done) {
        let regions = self.regions(bytes);
        for uses in &mut self.regions[regions] {
            uses.read.retain(|other| other.stream != done.stream);
            uses.read.push(done.clone());
        }
    }

    pub fn was_written(&mut self, bytes: &Range<usize>, done: &Done) {
        let regions = self.regions(bytes);
        for uses in &mut self.regions[regions] {
            uses.read.clear();
            uses.written = Some(done.clone());
        }
    }
}
