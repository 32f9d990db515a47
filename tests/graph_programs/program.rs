//! Programs: what is done on which stream, in which order, and what waits for what.

use std::ops::Range;

use super::support::random::Random;

/// The bytes of what a kernel is given: a view may start at each multiple of them on any device.
pub const CHUNK: usize = 256;
/// What buffers may have in bytes: whole chunks, and whole elements of every class.
pub const SIZES: [usize; 3] = [3 * CHUNK, 6 * CHUNK, 24 * CHUNK];

/// What a buffer is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Bytes,
    Halves,
    Threes,
    Words,
    Floats,
}

impl Class {
    pub const ALL: [Self; 5] = [
        Self::Bytes,
        Self::Halves,
        Self::Threes,
        Self::Words,
        Self::Floats,
    ];

    /// The bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Halves => 2,
            Self::Threes => 3,
            Self::Words | Self::Floats => 4,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub class: Class,
    pub bytes: usize,
}

impl Shape {
    pub fn len(self) -> usize {
        self.bytes / self.class.size()
    }
}

/// What there is outside of a program.
#[derive(Clone, Debug)]
pub struct Layout {
    pub streams: usize,
    /// The first one is for the counts of indirect launches.
    pub buffers: Vec<Shape>,
    /// Words each, by their bytes.
    pub pinned: Vec<usize>,
    pub generators: usize,
}

/// A range of a buffer, in elements.
#[derive(Clone, Debug)]
pub struct Place {
    pub slot: usize,
    pub range: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    Bits,
    Integers,
    Uniform,
    Normal,
    Bernoulli,
    Halves,
}

#[derive(Clone, Debug)]
pub enum Launch {
    /// `data = scale * data + offset`.
    Affine {
        data: Place,
        scale: u32,
        offset: u32,
    },
    /// `to = scale * from + offset`.
    Map {
        from: Place,
        to: Place,
        scale: u32,
        offset: u32,
    },
    /// Adds to the word of this number in the place.
    Add {
        data: Place,
        index: usize,
        value: u32,
    },
}

#[derive(Clone, Debug)]
pub enum Part {
    Launch(Launch),
    Fill(Place, u64),
    /// As a launch of this kind twice, over memory that is allocated between launches, and dropped.
    Twice {
        from: Place,
        to: Place,
        scale: u32,
        offset: u32,
    },
}

#[derive(Clone, Debug)]
pub enum Content {
    Zeros,
    Uploaded(u64),
    Filled(u64),
}

#[derive(Clone, Debug)]
pub enum Op {
    Launch(usize, Launch),
    /// Launches that are independent of each other, with others between them that are not.
    Concurrent(usize, Vec<Part>),
    Counts(usize, u32, bool),
    /// Counts invocations in the first word of the place.
    Indirect(usize, Place),
    Fill(usize, Place, u64),
    /// Of as many elements from one place to another, maybe of the same buffer.
    Copy(usize, Place, Place),
    Upload(usize, Place, u64),
    FromPinned(usize, usize, Place),
    ToPinned(usize, Place, usize),
    Random(usize, usize, Numbers, Place),
    Allocate(usize, usize, Shape, Content),
    Drop(usize),
    Record(usize, usize),
    WaitEvent(usize, usize),
    WaitStream(usize, usize),
}

#[derive(Clone, Debug)]
pub struct Program {
    pub ops: Vec<Op>,
    /// How many slots there are, those of the outside included.
    pub slots: usize,
    pub events: usize,
}

impl Program {
    /// Whether the host can say what comes out: what is normal may differ from it in the last bits.
    pub fn is_certain(&self) -> bool {
        let is_normal = |op: &Op| matches!(op, Op::Random(_, _, Numbers::Normal, _));
        !self.ops.iter().any(is_normal)
    }
}

impl Layout {
    pub fn new(random: &mut Random) -> Self {
        let shape = |class, random: &mut Random| Shape {
            class,
            bytes: SIZES[random.below(SIZES.len())],
        };
        let mut buffers = vec![Shape {
            class: Class::Words,
            bytes: SIZES[0],
        }];
        for class in [&Class::ALL[..], &[Class::Words; 2]].concat() {
            buffers.push(shape(class, random));
        }
        Self {
            streams: 1 + random.below(4),
            buffers,
            pinned: (0..2).map(|_| SIZES[random.below(2)]).collect(),
            generators: 3,
        }
    }
}
