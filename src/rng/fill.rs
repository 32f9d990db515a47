//! Fills: which shader makes the numbers, with what, over which memory, in which launches.

use core::ops::RangeBounds;
use std::sync::Arc;

use super::element::{RandomFloat, RandomInteger, RandomTruth};
use super::kernels::{FromMemory, Kernel};
use super::parameters::{Bernoulli, IntegerRange, Normal};
use super::philox::{high, low};
use super::state::RngState;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Capture, StreamCore};
use crate::kernel::program::Program;
use crate::kernel::value::{Memory, MemoryArg};
use crate::kernel::{Arg, Grid};
use crate::mem::block::Range;

/// The most blocks of one launch: indexes of words stay far below 2^31, which shaders take as signed.
const BLOCKS_MAX: u64 = 1 << 26;
/// The most workgroups along x; the rest goes along y. Every device allows that many.
const GROUPS_X: u64 = 1 << 15;
/// How many blocks a workgroup makes, as the shaders declare it.
const GROUP: u64 = 64;

/// What to fill memory with, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) kernel: Kernel,
    /// The 32-bit draws that an element takes.
    pub(crate) draws_each: u32,
    element_bytes: u64,
    /// What the shader takes beside the rest.
    parameters: Bytes,
}

impl Fill {
    pub(crate) fn bits<T: RandomInteger>() -> Self {
        Self::new::<T>(Kernel::Bits, T::DRAWS)
    }

    pub(crate) fn uniform<T: RandomFloat>() -> Self {
        let kernel = match T::DRAWS {
            1 => Kernel::UniformF32,
            _ => Kernel::UniformF64,
        };
        Self::new::<T>(kernel, T::DRAWS)
    }

    /// For elements of any type of two bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a type of another size.
    pub(crate) fn uniform_f16<T>() -> Result<Self> {
        match size_of::<T>() {
            2 => Ok(Self::new::<T>(Kernel::UniformF16, 1)),
            size => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "16-bit floats go to elements of 2 bytes, and those of {} have {size}; pass a \
                     view of `u16`, or of a type of half floats",
                    core::any::type_name::<T>()
                ),
            )),
        }
    }

    /// # Errors
    ///
    /// `InvalidArgument` for an empty range.
    pub(crate) fn integers<T: RandomInteger>(range: impl RangeBounds<T>) -> Result<Self> {
        let range = IntegerRange::new(range)?;
        let kernel = match T::DRAWS {
            1 => Kernel::Integers32,
            _ => Kernel::Integers64,
        };
        let mut fill = Self::new::<T>(kernel, T::DRAWS);
        for number in [range.lowest, range.size, range.refused] {
            // Their upper halves are 0 where an element has 32 bits.
            let bytes = number.to_le_bytes();
            fill.parameters.push(&bytes[..4 * T::DRAWS as usize]);
        }
        Ok(fill)
    }

    /// # Errors
    ///
    /// `InvalidArgument` unless all numbers are finite.
    pub(crate) fn normal<T: RandomFloat>(mean: T, deviation: T) -> Result<Self> {
        let Normal { mean, deviation } = Normal::new(mean, deviation)?;
        let kernel = match T::DRAWS {
            1 => Kernel::NormalF32,
            _ => Kernel::NormalF64,
        };
        let mut fill = Self::new::<T>(kernel, T::DRAWS);
        fill.parameters.push(bytemuck::bytes_of(&mean));
        fill.parameters.push(bytemuck::bytes_of(&deviation));
        Ok(fill)
    }

    /// # Errors
    ///
    /// `InvalidArgument` for what is no probability.
    pub(crate) fn bernoulli<T: RandomTruth>(p: f64) -> Result<Self> {
        let bernoulli = Bernoulli::new(p)?;
        let kernel = match size_of::<T>() {
            1 => Kernel::Bernoulli8,
            _ => Kernel::Bernoulli32,
        };
        let mut fill = Self::new::<T>(kernel, 1);
        let (highest, one) = match bernoulli.highest() {
            Some(highest) => (highest, T::TRUE_BITS),
            None => (0, 0),
        };
        fill.parameters.push(&highest.to_le_bytes());
        fill.parameters.push(&one.to_le_bytes());
        Ok(fill)
    }

    fn new<T>(kernel: Kernel, draws_each: u32) -> Self {
        Self {
            kernel,
            draws_each,
            element_bytes: size_of::<T>() as u64,
            parameters: Bytes::default(),
        }
    }

    /// An error if a range, of whole elements, can't be filled.
    ///
    /// # Errors
    ///
    /// `Unsupported`.
    pub(crate) fn check(&self, range: Range<'_>) -> Result<()> {
        // Blocks are whole words, but for one that takes all that the device allows.
        let end = (range.start + range.len).next_multiple_of(4);
        match end <= range.segment.size_bytes() {
            true => Ok(()),
            false => Err(ends_in_a_word()),
        }
    }

    /// Fills a range of a block, which passed [`check`](Self::check), with the numbers from a state on.
    ///
    /// # Errors
    ///
    /// Those of the launches.
    pub(crate) fn launch(
        &self,
        program: &Program,
        stream: &StreamCore,
        range: Range<'_>,
        state: &RngState,
    ) -> Result<()> {
        let start = Start {
            capture: None,
            seed: state.seed(),
            block: state.offset() / 4,
            // The program does not look at it.
            memory: MemoryArg::new(range.block, 0, 0, 0, 8),
        };
        self.launch_from(program, stream, range, &start)
    }

    /// Fills such a range with the numbers from a state on that is in memory by the time that the
    /// launches run, as [`RngState::in_memory`] gives its bytes, and so many draws, a multiple of 4,
    /// behind it; for a capture, or for none.
    ///
    /// # Errors
    ///
    /// Those of the launches, which want 16 bytes of memory at a multiple of 8.
    pub(crate) fn launch_from_memory(
        &self,
        program: &FromMemory,
        stream: &StreamCore,
        range: Range<'_>,
        first_draw: u64,
        state: Range<'_>,
        capture: Option<&Arc<Capture>>,
    ) -> Result<()> {
        let address = state.segment.address() + state.start;
        let start = Start {
            capture,
            seed: 0,
            block: first_draw / 4,
            memory: MemoryArg::new(state.block, address, state.start, state.len, 8),
        };
        self.launch_from(&program.0, stream, range, &start)
    }

    fn launch_from(
        &self,
        program: &Program,
        stream: &StreamCore,
        range: Range<'_>,
        start: &Start<'_>,
    ) -> Result<()> {
        let base = range.segment.address();
        for piece in self.pieces(range.start, range.len) {
            // Shaders that merge elements into words reach whole words.
            let words = piece.start - piece.start % 4..piece.end.next_multiple_of(4);
            let len = words.end - words.start;
            let memory = MemoryArg::new(range.block, base + words.start, words.start, len, 4);
            // Shaders are told whether they may write four words at once, and do not look at this if not.
            let quads = match self.is_aligned(base + piece.start) {
                true => memory,
                false => MemoryArg::new(range.block, 0, 0, 0, 4),
            };
            let rest = self.push_constants(base, &piece, start);
            let grid = Grid::groups(groups(piece.blocks));
            let args = [
                Arg::memory(memory),
                Arg::memory(quads),
                Arg::memory(start.memory),
                Arg::bytes(rest.as_slice()),
            ];
            // Numbers that were drawn once are none for replays.
            program.launch_if(stream, grid, &args, |sink| sink.check_is_for(start.capture))?;
        }
        Ok(())
    }

    /// The launches for so many bytes from a byte of a segment on.
    fn pieces(&self, start: u64, len: u64) -> impl Iterator<Item = Piece> {
        let block_bytes = self.element_bytes * u64::from(4 / self.draws_each);
        let blocks = len.div_ceil(block_bytes);
        (0..blocks.div_ceil(BLOCKS_MAX)).map(move |piece| {
            let first_block = piece * BLOCKS_MAX;
            let blocks = BLOCKS_MAX.min(blocks - first_block);
            let from = first_block * block_bytes;
            Piece {
                start: start + from,
                end: start + len.min(from + blocks * block_bytes),
                first_block,
                blocks,
            }
        })
    }

    /// Whether four words at once may be written, to memory that starts at an address.
    fn is_aligned(&self, address: u64) -> bool {
        self.element_bytes >= 4 && address.is_multiple_of(16)
    }

    /// The push constants behind the addresses of the memory.
    fn push_constants(&self, base: u64, piece: &Piece, from: &Start<'_>) -> Bytes {
        let counter = from.block + piece.first_block;
        let len = piece.end - piece.start;
        let (count, start) = match self.element_bytes {
            size @ 1..4 => (len / size, piece.start % 4 / size),
            _ => (len / 4, u64::from(!self.is_aligned(base + piece.start))),
        };
        let mut bytes = Bytes::default();
        bytes.push(&from.seed.to_le_bytes());
        for word in [low(counter), high(counter), low(count), low(start)] {
            bytes.push(&word.to_le_bytes());
        }
        bytes.push(self.parameters.as_slice());
        bytes
    }
}

/// Where the numbers of a fill start.
struct Start<'a> {
    /// The capture that the fill is for; none for one that runs once.
    capture: Option<&'a Arc<Capture>>,
    seed: u64,
    /// The counter of the first block, or how far it is behind the one in memory.
    block: u64,
    /// What the shaders take as `state`.
    memory: MemoryArg<'a, Memory>,
}

/// One launch of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The bytes that it writes, in the segment.
    start: u64,
    end: u64,
    /// How many blocks of the fill come before.
    first_block: u64,
    blocks: u64,
}

/// The workgroups along x and y for so many blocks.
fn groups(blocks: u64) -> [u64; 2] {
    let groups = blocks.div_ceil(GROUP);
    [groups.min(GROUPS_X), groups.div_ceil(GROUPS_X)]
}

/// Up to 56 bytes, put one behind the other.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    bytes: [[u8; 8]; 7],
    len: usize,
}

impl Bytes {
    fn push(&mut self, more: &[u8]) {
        for &byte in more {
            // No fill has more: the longest are those of 64-bit integers, with 24 + 24.
            if let Some(place) = self.bytes.as_flattened_mut().get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes.as_flattened()[..self.len]
    }
}

#[cold]
fn ends_in_a_word() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "the buffer is as large as the device allows, and ends within a word, which the shader would \
         reach past; fill a view that ends at a multiple of 4 bytes",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_fills_are_split_into_launches_that_follow_each_other() {
        for (fill, len) in [
            (Fill::bits::<u32>(), (BLOCKS_MAX * 2 + 7) * 16 + 4),
            (Fill::bits::<u64>(), BLOCKS_MAX * 16),
            (Fill::bernoulli::<u8>(0.5).unwrap(), BLOCKS_MAX * 4 + 1),
            (Fill::uniform_f16::<u16>().unwrap(), 2),
            (Fill::normal(0.0f64, 1.0).unwrap(), 8),
        ] {
            let block_bytes = fill.element_bytes * u64::from(4 / fill.draws_each);
            let mut end = 12;
            let mut blocks = 0;
            for piece in fill.pieces(12, len) {
                assert_eq!((piece.start, piece.first_block), (end, blocks));
                assert_eq!(piece.start, 12 + blocks * block_bytes);
                assert!(piece.blocks <= BLOCKS_MAX && piece.end > piece.start);
                end = piece.end;
                blocks += piece.blocks;
            }
            assert_eq!(end, 12 + len);
            assert_eq!(blocks, len.div_ceil(block_bytes));
        }
        assert_eq!(Fill::bits::<u32>().pieces(0, 0).count(), 0);
    }

    #[test]
    fn workgroups_are_enough_for_the_blocks_and_few_along_each_axis() {
        for blocks in [
            1,
            64,
            65,
            GROUPS_X * GROUP,
            GROUPS_X * GROUP + 1,
            BLOCKS_MAX,
        ] {
            let [x, y] = groups(blocks);
            assert!(x * y * GROUP >= blocks && x <= GROUPS_X && y <= 65535);
            assert!(x * y * GROUP < blocks + GROUPS_X * GROUP + GROUP);
        }
    }

    #[test]
    fn elements_of_another_size_are_no_16_bit_floats() {
        let error = Fill::uniform_f16::<u32>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("u32"), "{error}");
    }
}
