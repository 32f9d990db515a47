//! Philox4x32-10, and the reference for what fills draw from it.
//!
//! Salmon, Moraes, Dror and Shaw, «Parallel random numbers: as easy as 1, 2, 3» (SC 2011).

use core::ops::RangeBounds;

use super::convert;
use super::element::{RandomFloat, RandomInteger, RandomTruth};
use super::parameters::{Bernoulli, IntegerRange, Normal};
use super::state::{self, RngState};
use crate::error::Result;

/// One block: four words, a function of the key and the counter alone.
#[inline]
pub(crate) const fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let [mut k0, mut k1] = key;
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let mut round = 0;
    while round < 10 {
        let a = 0xD251_1F53 * c0 as u64;
        let b = 0xCD9E_8D57 * c2 as u64;
        (c0, c1, c2, c3) = (high(b) ^ c1 ^ k0, low(b), high(a) ^ c3 ^ k1, low(a));
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
        round += 1;
    }
    [c0, c1, c2, c3]
}

#[inline]
pub(crate) const fn low(x: u64) -> u32 {
    (x & 0xFFFF_FFFF) as u32
}

#[inline]
pub(crate) const fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

/// The blocks of one fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    key: [u32; 2],
    /// The counter of the first.
    first: u64,
}

impl Blocks {
    /// The blocks from a state on.
    pub(crate) const fn from(state: &RngState) -> Self {
        Self {
            key: [low(state.seed()), high(state.seed())],
            first: state.offset() / 4,
        }
    }

    /// Block `index` of the fill, in a subsequence: the draws themselves are subsequence 0.
    #[inline]
    pub(crate) const fn at(&self, index: u64, subsequence: u32) -> [u32; 4] {
        let counter = self.first + index;
        block(self.key, [low(counter), high(counter), subsequence, 0])
    }
}

/// The random numbers of a [`Generator`](crate::Generator), made on the CPU: the reference that every
/// device agrees with, bit for bit.
///
/// It has a generator's methods for slices of the host's memory, takes as many draws for each, and
/// needs no device. The crate's documentation says how elements are made from draws.
///
/// # Example
///
/// ```
/// use vkaccel::Philox;
///
/// let mut numbers = [0.0f32; 5];
/// let mut philox = Philox::new(42);
/// philox.fill_uniform(&mut numbers)?;
/// assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
/// assert_eq!(philox.state().offset(), 8);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    state: RngState,
}

impl Philox {
    /// The generator with this seed, before its first draw.
    pub const fn new(seed: u64) -> Self {
        Self {
            state: RngState::from_parts(seed, 0),
        }
    }

    /// The generator in a state.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless its offset is a multiple of 4.
    pub fn from_state(state: &RngState) -> Result<Self> {
        state::check_offset(state.offset())?;
        Ok(Self { state: *state })
    }

    /// The function itself, Philox4x32-10: four words out of a key and a counter, low words first.
    ///
    /// # Example
    ///
    /// ```
    /// let words = vkaccel::Philox::block([0; 2], [0; 4]);
    /// assert_eq!(words, [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
    /// ```
    pub const fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
        block(key, counter)
    }

    /// Where it stands.
    pub const fn state(&self) -> RngState {
        self.state
    }

    /// Takes the blocks of a fill.
    fn take(&mut self, len: usize, draws_each: u32) -> Result<Blocks> {
        let blocks = Blocks::from(&self.state);
        self.state = self.state.advanced(super::draws(len, draws_each)?)?;
        Ok(blocks)
    }

    /// Raw bits; see [`Generator::fill_bits`](crate::Generator::fill_bits).
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left.
    pub fn fill_bits<T: RandomInteger>(&mut self, out: &mut [T]) -> Result<()> {
        let blocks = self.take(out.len(), T::DRAWS)?;
        each(out, T::DRAWS, blocks, |draws, lane, _| {
            T::from_bits(convert::bits(draws, lane, T::DRAWS))
        });
        Ok(())
    }

    /// Uniform numbers in [0, 1); see [`Generator::fill_uniform`](crate::Generator::fill_uniform).
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left.
    pub fn fill_uniform<T: RandomFloat>(&mut self, out: &mut [T]) -> Result<()> {
        let blocks = self.take(out.len(), T::DRAWS)?;
        each(out, T::DRAWS, blocks, |draws, lane, _| {
            T::uniform(convert::bits(draws, lane, T::DRAWS))
        });
        Ok(())
    }

    /// Uniform 16-bit floats in [0, 1), as their bits; see
    /// [`Generator::fill_uniform_f16`](crate::Generator::fill_uniform_f16).
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left.
    pub fn fill_uniform_f16(&mut self, out: &mut [u16]) -> Result<()> {
        let blocks = self.take(out.len(), 1)?;
        each(out, 1, blocks, |draws, lane, _| {
            convert::uniform_f16(draws[lane])
        });
        Ok(())
    }

    /// Uniform integers of a range; see
    /// [`Generator::fill_integers`](crate::Generator::fill_integers).
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the range is empty,
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left.
    pub fn fill_integers<T: RandomInteger>(
        &mut self,
        out: &mut [T],
        range: impl RangeBounds<T>,
    ) -> Result<()> {
        let range = IntegerRange::new(range)?;
        let blocks = self.take(out.len(), T::DRAWS)?;
        each(out, T::DRAWS, blocks, |draws, lane, index| {
            T::from_bits(range.pick(|attempt| match attempt {
                0 => convert::bits(draws, lane, T::DRAWS),
                _ => convert::bits(blocks.at(index, attempt), lane, T::DRAWS),
            }))
        });
        Ok(())
    }

    /// Normal numbers; see [`Generator::fill_normal`](crate::Generator::fill_normal).
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the results would not all be finite,
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left.
    pub fn fill_normal<T: RandomFloat>(
        &mut self,
        out: &mut [T],
        mean: T,
        deviation: T,
    ) -> Result<()> {
        let Normal { mean, deviation } = Normal::new(mean, deviation)?;
        let blocks = self.take(out.len(), T::DRAWS)?;
        for (block, index) in out.chunks_mut(per_block(T::DRAWS)).zip(0..) {
            T::normal(blocks.at(index, 0), mean, deviation, block);
        }
        Ok(())
    }

    /// Ones with a probability, else zeros; see
    /// [`Generator::fill_bernoulli`](crate::Generator::fill_bernoulli).
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) unless `p` is from 0 to 1,
    /// [`LimitExceeded`](crate::ErrorKind::LimitExceeded) if the seed has not so many draws left.
    pub fn fill_bernoulli<T: RandomTruth>(&mut self, out: &mut [T], p: f64) -> Result<()> {
        let bernoulli = Bernoulli::new(p)?;
        let blocks = self.take(out.len(), 1)?;
        each(out, 1, blocks, |draws, lane, _| {
            T::truth(bernoulli.of(draws[lane]))
        });
        Ok(())
    }
}

/// How many elements of so many draws a block gives.
const fn per_block(draws_each: u32) -> usize {
    4 / draws_each as usize
}

/// Sets each element to what `of` gives for its block's draws, its place in the block, and the
/// block's index.
fn each<T>(out: &mut [T], draws_each: u32, blocks: Blocks, of: impl Fn([u32; 4], usize, u64) -> T) {
    for (block, index) in out.chunks_mut(per_block(draws_each)).zip(0..) {
        let draws = blocks.at(index, 0);
        for (lane, element) in block.iter_mut().enumerate() {
            *element = of(draws, lane, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_gives_the_known_answers_of_its_authors() {
        let answers = [
            (
                [0; 2],
                [0; 4],
                [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8],
            ),
            (
                [u32::MAX; 2],
                [u32::MAX; 4],
                [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD],
            ),
            (
                [0xA409_3822, 0x299F_31D0],
                [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
                [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
            ),
        ];
        for (key, counter, words) in answers {
            assert_eq!(Philox::block(key, counter), words);
        }
    }

    fn first_block(state: RngState) -> [u32; 4] {
        let mut words = [0; 4];
        let mut philox = Philox::from_state(&state).unwrap();
        philox.fill_bits(&mut words).unwrap();
        words
    }

    #[test]
    fn every_seed_and_offset_has_its_block() {
        let block = first_block(RngState::from_parts(123, 40));
        assert_eq!(block, [0x00EB_BA72, 0x2363_C191, 0xDA6C_CA90, 0xC128_CF09]);
        let block = first_block(RngState::from_parts((1 << 63) + 5, 0));
        assert_eq!(block, [0xF880_2C11, 0x02D5_7A31, 0x4A22_C87B, 0x78E6_09C8]);
        let block = first_block(RngState::from_parts(u64::MAX, 0));
        assert_eq!(block, [0x72A4_7709, 0x1547_4739, 0x9F41_B01F, 0x2279_9A5A]);
        assert_eq!(first_block(RngState::from_parts(5, 0))[0], 0xC417_681D);
    }

    #[test]
    fn draws_are_laid_out_by_element_and_fills_follow_each_other() {
        let mut whole = [0u32; 40];
        Philox::new(9).fill_bits(&mut whole).unwrap();
        let mut philox = Philox::new(9);
        let mut at = 0;
        for len in [1usize, 3, 4, 5, 8, 0, 2] {
            let mut part = vec![0u32; len];
            philox.fill_bits(&mut part).unwrap();
            assert_eq!(part, whole[at..at + len]);
            at = (at + len).next_multiple_of(4);
            assert_eq!(philox.state(), RngState::from_parts(9, at as u64));
        }
        let mut wide = [0u64; 3];
        Philox::new(9).fill_bits(&mut wide).unwrap();
        for (wide, words) in wide.iter().zip(whole.chunks(2)) {
            assert_eq!(*wide, u64::from(words[1]) << 32 | u64::from(words[0]));
        }
    }

    #[test]
    fn the_counter_goes_past_32_bits() {
        let state = RngState::from_parts(1, (1 << 34) - 4);
        let mut words = [0u32; 8];
        let mut philox = Philox::from_state(&state).unwrap();
        philox.fill_bits(&mut words).unwrap();
        assert_eq!(words[..4], block([1, 0], [u32::MAX, 0, 0, 0]));
        assert_eq!(words[4..], block([1, 0], [0, 1, 0, 0]));
    }

    #[test]
    fn a_fill_that_fails_takes_no_draws() {
        let mut philox = Philox::from_state(&RngState::from_parts(1, u64::MAX - 3)).unwrap();
        let before = philox;
        assert!(philox.fill_bits(&mut [0u32; 5]).is_err());
        assert!(philox.fill_integers(&mut [0u32; 5], 3..3).is_err());
        assert!(philox.fill_normal(&mut [0.0f32; 5], 0.0, -1.0).is_err());
        assert!(philox.fill_bernoulli(&mut [0u8; 5], 1.5).is_err());
        assert_eq!(philox, before);
        assert!(Philox::from_state(&RngState::from_parts(0, 41)).is_err());
    }
}
