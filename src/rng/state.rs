//! The state of a generator: 16 bytes.

use crate::error::{Details, Error, ErrorKind, Result, text};

/// The 16 bytes of a generator: the seed, then the offset, both as 64-bit little-endian numbers.
///
/// The offset counts 32-bit draws since the seed was set. It is a multiple of 4 wherever a generator
/// takes it.
///
/// # Example
///
/// ```
/// use vkaccel::RngState;
///
/// let state = RngState::from_parts(123, 40);
/// assert_eq!(state.as_bytes()[..2], [123, 0]);
/// assert_eq!(RngState::from_bytes(state.as_bytes())?, state);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RngState([u8; Self::LEN_BYTES]);

impl RngState {
    /// The seed of a generator that was not seeded.
    pub const DEFAULT_SEED: u64 = 67_280_421_310_721;

    /// How many bytes it has.
    pub const LEN_BYTES: usize = 16;

    /// A state of these parts. Whether the offset is one that a generator can have is found out when
    /// it is set.
    pub const fn from_parts(seed: u64, offset: u64) -> Self {
        let both = (seed as u128) | (offset as u128) << 64;
        Self(both.to_le_bytes())
    }

    /// A state from its bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] unless there are 16 of them, with
    /// [`Details::Size`], and the offset is a multiple of 4.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Ok(bytes) = <[u8; Self::LEN_BYTES]>::try_from(bytes) else {
            return Err(wrong_length(bytes.len()));
        };
        let state = Self(bytes);
        check_offset(state.offset())?;
        Ok(state)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN_BYTES] {
        &self.0
    }

    /// The seed.
    #[expect(clippy::cast_possible_truncation, reason = "the seed is the low half")]
    pub const fn seed(&self) -> u64 {
        u128::from_le_bytes(self.0) as u64
    }

    /// The offset, in 32-bit draws.
    pub const fn offset(&self) -> u64 {
        (u128::from_le_bytes(self.0) >> 64) as u64
    }

    /// What launches take from memory: the seed, then the counter of the next block.
    pub(crate) const fn in_memory(&self) -> [u8; Self::LEN_BYTES] {
        Self::from_parts(self.seed(), self.offset() / 4).0
    }

    /// The state behind `draws` more, rounded up to whole blocks of four.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` if so many are not left.
    pub(crate) fn advanced(&self, draws: u64) -> Result<Self> {
        let offset = draws
            .checked_next_multiple_of(4)
            .and_then(|draws| self.offset().checked_add(draws))
            .ok_or_else(|| used_up(self.offset(), draws))?;
        Ok(Self::from_parts(self.seed(), offset))
    }
}

/// An error unless the offset is a multiple of 4.
pub(crate) fn check_offset(offset: u64) -> Result<()> {
    if offset.is_multiple_of(4) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "an offset of {offset} draws is no multiple of 4; every fill starts with a block of four \
             draws, so the nearest offsets are {} and {}",
            offset - offset % 4,
            offset.saturating_add(4 - offset % 4),
        ),
    ))
}

#[cold]
fn wrong_length(given: usize) -> Error {
    let expected = RngState::LEN_BYTES as u64;
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "the state of a generator has {expected} bytes, 8 of the seed and 8 of the offset, and \
             one of {} was given",
            text::count(given, "byte")
        ),
    )
    .with_details(Details::Size {
        expected,
        given: given as u64,
    })
}

#[cold]
fn used_up(offset: u64, asked: u64) -> Error {
    let limit = u64::MAX - offset;
    Error::new(
        ErrorKind::LimitExceeded,
        format!(
            "the generator is at draw {offset} of 2^64, and {asked} more do not fit; give it another \
             seed"
        ),
    )
    .with_details(Details::Limit {
        name: "draws of one seed".into(),
        asked,
        limit,
    })
}

/// The seed that a text means: a decimal number from -2^63 to 2^64 - 1, or a hexadecimal one behind
/// `0x`. A negative number means the seed with the same 64 bits: `-1` is 2^64 - 1.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] for anything else.
pub(crate) fn parse_seed(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let hexadecimal = trimmed
        .strip_prefix("0x")
        .or_else(|| trimmed.strip_prefix("0X"));
    let parsed = match hexadecimal {
        // `from_str_radix` takes a sign.
        Some(digits) if !digits.starts_with(['+', '-']) => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => trimmed
            .parse::<u64>()
            .ok()
            .or_else(|| trimmed.parse::<i64>().ok().map(i64::cast_unsigned)),
    };
    parsed.ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{text:?} is no seed; a seed is a whole number from -9223372036854775808 to \
                 18446744073709551615, or a hexadecimal one as 0x1f of up to 16 digits"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_the_seed_and_the_offset_in_sixteen_bytes() {
        let mut expected = [0; 16];
        expected[0] = 0x7B;
        let state = RngState::from_parts(123, 0);
        assert_eq!(state.as_bytes(), &expected);
        expected[8] = 0x28;
        let state = RngState::from_parts(123, 40);
        assert_eq!(state.as_bytes(), &expected);
        for (seed, offset) in [(0, 0), (u64::MAX, 4), (1 << 63 | 5, u64::MAX - 3)] {
            let state = RngState::from_parts(seed, offset);
            assert_eq!((state.seed(), state.offset()), (seed, offset));
            assert_eq!(RngState::from_bytes(state.as_bytes()).unwrap(), state);
        }
        assert_eq!(RngState::from_parts(u64::MAX, 0).as_bytes()[..8], [0xFF; 8]);
    }

    #[test]
    fn other_lengths_and_odd_offsets_are_refused_with_the_right_ones() {
        for len in [0, 8, 15, 17, 24] {
            let error = RngState::from_bytes(&vec![0; len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let size = Details::Size {
                expected: 16,
                given: len as u64,
            };
            assert_eq!(error.details(), Some(&size));
            assert!(error.to_string().contains("16 bytes"), "{error}");
        }
        let error = RngState::from_bytes(RngState::from_parts(1, 41).as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("40 and 44"), "{error}");
    }

    #[test]
    fn draws_are_taken_in_whole_blocks_and_never_wrap() {
        let state = RngState::from_parts(7, 8);
        for (draws, offset) in [(0, 8), (1, 12), (4, 12), (5, 16)] {
            assert_eq!(
                state.advanced(draws).unwrap(),
                RngState::from_parts(7, offset)
            );
        }
        let last = RngState::from_parts(7, u64::MAX - 7);
        assert!(last.advanced(4).is_ok());
        for draws in [5, u64::MAX] {
            let error = last.advanced(draws).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        }
    }

    #[test]
    fn a_seed_in_text_has_all_64_bits() {
        for (text, seed) in [
            ("0", 0),
            ("-1", u64::MAX),
            ("18446744073709551615", u64::MAX),
            ("9223372036854775813", (1 << 63) + 5),
            ("-9223372036854775808", 1 << 63),
            ("0x10", 16),
            (" 42 ", 42),
        ] {
            assert_eq!(parse_seed(text).unwrap(), seed, "{text}");
        }
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "",
            "0x",
            "0x-1",
            "0x10000000000000000",
            "1.5",
            "ten",
        ] {
            let error = parse_seed(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }
}
