//! What is measured, the same for both sides.

/// How a kernel gets its buffers.
#[derive(Clone, Copy, Debug)]
pub enum Abi {
    Descriptors,
    Addresses,
}

impl Abi {
    pub const ALL: [Self; 2] = [Self::Descriptors, Self::Addresses];
}

/// `target = scale * source + offset` for the first `n` words; by each [`Abi`].
pub const MODULES: [&[u8]; 2] = [
    include_bytes!("../../../../tests/data/spirv/affine_map.spv"),
    include_bytes!("../../../../tests/data/spirv/affine_at.spv"),
];

/// How many pieces each of the two buffers has, and how large one is: a workgroup's words.
pub const PIECES: usize = 1000;
pub const PIECE_WORDS: usize = 64;
pub const PIECE_BYTES: u64 = 256;
pub const BUFFER_BYTES: u64 = PIECE_BYTES * PIECES as u64;

pub type Result<T> = core::result::Result<T, Box<dyn core::error::Error>>;

/// One workgroup, which reads a piece of one buffer and writes that of the other.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    pub piece: usize,
    /// From the second buffer to the first.
    pub goes_back: bool,
    /// Scale, offset, and the number of words.
    pub numbers: [u32; 3],
}

/// Launches in order.
#[derive(Clone, Debug)]
pub struct Work {
    pub abi: Abi,
    /// Whether each needs what the one before it has written; else none needs another's.
    pub is_chained: bool,
    pub launches: Vec<Launch>,
}

impl Work {
    /// One piece goes back and forth.
    pub fn chained(abi: Abi, count: u32) -> Self {
        let launch = |index| Launch {
            piece: 0,
            goes_back: index % 2 == 1,
            numbers: [3, index, 64],
        };
        Self {
            abi,
            is_chained: true,
            launches: (0..count).map(launch).collect(),
        }
    }

    /// Every piece goes once.
    pub fn independent(abi: Abi) -> Self {
        let launch = |(piece, offset)| Launch {
            piece,
            goes_back: false,
            numbers: [3, offset, 64],
        };
        Self {
            abi,
            is_chained: false,
            launches: (0..PIECES).zip(0..).map(launch).collect(),
        }
    }

    /// The same the other way round.
    pub fn back(&self) -> Self {
        let mut back = self.clone();
        for launch in &mut back.launches {
            launch.goes_back = !launch.goes_back;
        }
        back
    }

    /// The first word of the first buffer behind a chain of an even number of launches, where it was
    /// `word` before.
    pub fn first_word(&self, word: u32) -> u32 {
        let through = |word: u32, launch: &Launch| {
            let [scale, offset, _] = launch.numbers;
            word.wrapping_mul(scale).wrapping_add(offset)
        };
        self.launches.iter().fold(word, through)
    }
}
