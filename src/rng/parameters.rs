//! What a distribution is given, checked.

use core::fmt::Debug;
use core::ops::{Bound, RangeBounds};

use super::convert;
use super::element::{RandomFloat, RandomInteger};
use crate::error::{Error, ErrorKind, Result, text};

/// How often an integer outside of the whole copies of its range is drawn anew.
///
/// A draw is refused with a chance of less than a half, so all of them are with one below 2^-128: the
/// last one is then taken as it is, so that every loop ends.
pub(crate) const ATTEMPTS: u32 = 128;

/// A range of integers, and what is needed to pick one of it without bias.
///
/// Lemire's method: the draw times the size of the range has the pick in its upper half; in its lower
/// half the first `2^bits mod size` values are refused, which leaves as many draws for each pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntegerRange {
    /// The bits of the lowest.
    pub(crate) lowest: u64,
    /// How many there are; 0: all of the type.
    pub(crate) size: u64,
    /// Lower halves below this are refused.
    pub(crate) refused: u64,
    is_wide: bool,
}

impl IntegerRange {
    /// # Errors
    ///
    /// `InvalidArgument` for a range without an element.
    pub(crate) fn new<T: RandomInteger>(range: impl RangeBounds<T>) -> Result<Self> {
        let lowest = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(start) => start.after(),
            Bound::Unbounded => Some(T::MIN),
        };
        let highest = match range.end_bound() {
            Bound::Included(&end) => Some(end),
            Bound::Excluded(end) => end.before(),
            Bound::Unbounded => Some(T::MAX),
        };
        let (Some(lowest), Some(highest)) = (lowest, highest) else {
            return Err(empty(range.start_bound(), range.end_bound()));
        };
        if lowest.is_above(highest) {
            return Err(empty(range.start_bound(), range.end_bound()));
        }
        let is_wide = T::DRAWS == 2;
        let mask = if is_wide {
            u64::MAX
        } else {
            u64::from(u32::MAX)
        };
        // Modulo the type's own size, which 0 then stands for.
        let size = highest.bits().wrapping_sub(lowest.bits()).wrapping_add(1) & mask;
        Ok(Self {
            lowest: lowest.bits(),
            size,
            refused: (size.wrapping_neg() & mask).checked_rem(size).unwrap_or(0),
            is_wide,
        })
    }

    /// The bits of one of the range; `draw` gives the bits of an attempt, from 0 on.
    #[inline]
    pub(crate) fn pick(&self, draw: impl Fn(u32) -> u64) -> u64 {
        let mut bits = draw(0);
        if self.size == 0 {
            return self.lowest.wrapping_add(bits);
        }
        let product = match self.is_wide {
            true => convert::product,
            false => convert::product_32,
        };
        let (mut pick, mut rest) = product(bits, self.size);
        let mut attempt = 1;
        while rest < self.refused && attempt < ATTEMPTS {
            bits = draw(attempt);
            (pick, rest) = product(bits, self.size);
            attempt += 1;
        }
        self.lowest.wrapping_add(pick)
    }
}

#[cold]
fn empty<T: Debug>(start: Bound<&T>, end: Bound<&T>) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "the range {} has no integer to pick",
            text::range(start, end)
        ),
    )
}

/// A mean and a deviation with which every normal number is finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normal<T> {
    pub(crate) mean: T,
    pub(crate) deviation: T,
}

impl<T: RandomFloat> Normal<T> {
    /// # Errors
    ///
    /// `InvalidArgument`.
    pub(crate) fn new(mean: T, deviation: T) -> Result<Self> {
        let (at, spread) = (mean.to_f64(), deviation.to_f64());
        // A bit less than the largest, for what rounding adds.
        let most = T::largest() * (1.0 - 1e-6);
        let is_finite = at.abs() <= most && spread * (T::MOST / most) + at.abs() / most <= 1.0;
        if spread >= 0.0 && is_finite {
            return Ok(Self { mean, deviation });
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "normal numbers with a mean of {mean:?} and a deviation of {deviation:?} can't all be \
                 finite; the deviation is 0 or more, and {} times it added to the mean has to fit the \
                 type",
                T::MOST
            ),
        ))
    }
}

/// A probability, as the draws that count as true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bernoulli {
    /// Draws below this are true; 2^32: all.
    below: u64,
}

impl Bernoulli {
    /// # Errors
    ///
    /// `InvalidArgument` unless `p` is from 0 to 1.
    #[expect(clippy::cast_possible_truncation, reason = "it is at most 2^32")]
    #[expect(clippy::cast_sign_loss, reason = "it is at least 0")]
    pub(crate) fn new(p: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{p:?} is no probability; it is from 0 to 1"),
            ));
        }
        let below = (p * (1u64 << 32) as f64).round() as u64;
        Ok(Self { below })
    }

    #[inline]
    pub(crate) const fn of(&self, draw: u32) -> bool {
        (draw as u64) < self.below
    }

    /// The highest draw that is true, unless none is.
    pub(crate) fn highest(&self) -> Option<u32> {
        let highest = self.below.checked_sub(1)?;
        u32::try_from(highest).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_sizes_of_its_bounds() {
        let parts = |range: IntegerRange| (range.lowest, range.size, range.refused);
        assert_eq!(parts(IntegerRange::new(3u32..10).unwrap()), (3, 7, 4));
        assert_eq!(
            parts(IntegerRange::new(-1i32..=1).unwrap()),
            (0xFFFF_FFFF, 3, 1)
        );
        assert_eq!(parts(IntegerRange::new(7u64..8).unwrap()), (7, 1, 0));
        assert_eq!(parts(IntegerRange::new(..=u32::MAX).unwrap()), (0, 0, 0));
        let all = IntegerRange::new::<i64>(..).unwrap();
        assert_eq!(parts(all), (1 << 63, 0, 0));
        let most = IntegerRange::new(0..u64::MAX).unwrap();
        assert_eq!(parts(most), (0, u64::MAX, 1));
        for (range, error) in [
            ("3..3", IntegerRange::new(3u32..3).unwrap_err()),
            (
                "5..=-4",
                IntegerRange::new((Bound::Included(5i32), Bound::Included(-4))).unwrap_err(),
            ),
            ("..0", IntegerRange::new(..0u64).unwrap_err()),
            (
                "4294967295+1..",
                IntegerRange::new((Bound::Excluded(u32::MAX), Bound::Unbounded)).unwrap_err(),
            ),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(
                error.to_string().contains(&format!("the range {range} ")),
                "{error}"
            );
        }
    }

    /// With draws of so few bits that all of them can be tried, each integer of a range is picked by
    /// equally many. The method is the same for 32 and 64 bits; this is its arithmetic for 8.
    #[test]
    fn every_integer_is_picked_by_as_many_draws() {
        for size in 1..256u32 {
            let refused = (256 - size) % size;
            let mut picked = vec![0; size as usize];
            for draw in 0..256u32 {
                let product = draw * size;
                if product % 256 >= refused {
                    picked[product as usize / 256] += 1;
                }
            }
            assert_eq!(picked, vec![256 / size; size as usize], "{size}");
        }
    }

    #[test]
    fn a_refused_draw_is_drawn_anew_and_the_last_one_is_taken() {
        // 2^32 mod 3 = 1: the draw 0 is refused.
        let range = IntegerRange::new(10u32..13).unwrap();
        assert_eq!(range.pick(|attempt| u64::from(attempt == 2) << 31), 11);
        assert_eq!(range.pick(|_| 0xFFFF_FFFF), 12);
        assert_eq!(range.pick(|_| 0), 10);
        let wide = IntegerRange::new(10u64..13).unwrap();
        assert_eq!(wide.pick(|attempt| u64::from(attempt == 1) << 63), 11);
        assert_eq!(wide.pick(|_| 0), 10);
    }

    #[test]
    fn what_could_overflow_is_no_normal_distribution() {
        assert!(Normal::new(0.0f32, 1.0).is_ok());
        assert!(Normal::new(-1e38f32, 1e37).is_ok());
        assert!(Normal::new(0.0f64, 2e307).is_ok());
        for (mean, deviation) in [
            (0.0f32, -1.0),
            (f32::NAN, 1.0),
            (0.0, f32::NAN),
            (f32::INFINITY, 0.0),
            (0.0, f32::MAX),
            (f32::MAX, 1.0),
            (3e38, 1e37),
        ] {
            let error = Normal::new(mean, deviation).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::InvalidArgument,
                "{mean} {deviation}"
            );
        }
        assert!(Normal::new(f64::MAX, f64::MAX).is_err());
    }

    #[test]
    fn a_probability_is_a_share_of_the_draws() {
        let never = Bernoulli::new(0.0).unwrap();
        assert!(!never.of(0) && never.highest().is_none());
        let always = Bernoulli::new(1.0).unwrap();
        assert!(always.of(u32::MAX));
        assert_eq!(always.highest(), Some(u32::MAX));
        let half = Bernoulli::new(0.5).unwrap();
        assert!(half.of(0x7FFF_FFFF) && !half.of(0x8000_0000));
        assert_eq!(half.highest(), Some(0x7FFF_FFFF));
        for p in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(
                Bernoulli::new(p).unwrap_err().kind(),
                ErrorKind::InvalidArgument
            );
        }
    }
}
