//! The types of elements that random numbers fill.

use bytemuck::Pod;

use super::{convert, normal};

/// An integer that random bits, and integers of a range, can be: `u32`, `i32`, `u64` or `i64`.
pub trait RandomInteger: Pod + sealed::Integer {}

/// A float that uniform and normal numbers can be: `f32` or `f64`.
pub trait RandomFloat: Pod + sealed::Float {}

/// A number that stands for true and false, as 1 and 0: `u8`, `u32`, `i32` or `f32`.
pub trait RandomTruth: Pod + sealed::Truth {}

/// What the fills ask of a type of element.
pub(crate) mod sealed {
    pub trait Integer: Copy + core::fmt::Debug {
        /// The 32-bit draws that an element takes, as many as it has words.
        const DRAWS: u32;
        const MIN: Self;
        const MAX: Self;
        /// The value with these bits, the upper ones dropped.
        fn from_bits(bits: u64) -> Self;
        /// The bits, the upper ones 0.
        fn bits(self) -> u64;
        /// The values next to it, where there are such.
        fn before(self) -> Option<Self>;
        fn after(self) -> Option<Self>;
        /// Whether it is above another.
        fn is_above(self, other: Self) -> bool;
    }

    pub trait Float: Copy + core::fmt::Debug {
        /// The 32-bit draws that an element takes.
        const DRAWS: u32;
        /// The most that a normal number is away from its mean, in deviations.
        const MOST: f64;
        /// A number in [0, 1) out of the bits of its draws.
        fn uniform(bits: u64) -> Self;
        /// The first normal numbers out of a block.
        fn normal(draws: [u32; 4], mean: Self, deviation: Self, out: &mut [Self]);
        fn to_f64(self) -> f64;
        /// The largest finite one.
        fn largest() -> f64;
    }

    pub trait Truth: Copy {
        /// What stands for true: its bits, as a word.
        const TRUE_BITS: u32;
        fn truth(is_true: bool) -> Self;
    }
}

macro_rules! integer {
    ($($ty:ident, $unsigned:ident, $draws:literal;)*) => {$(
        impl RandomInteger for $ty {}

        impl sealed::Integer for $ty {
            const DRAWS: u32 = $draws;
            const MIN: Self = $ty::MIN;
            const MAX: Self = $ty::MAX;

            #[allow(clippy::cast_possible_truncation, reason = "the upper bits are to be dropped")]
            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }

            fn bits(self) -> u64 {
                // Through the unsigned type of the width, so that no sign is spread.
                u64::from(self as $unsigned)
            }

            fn before(self) -> Option<Self> {
                self.checked_sub(1)
            }

            fn after(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn is_above(self, other: Self) -> bool {
                self > other
            }
        }
    )*};
}

integer! {
    u32, u32, 1;
    i32, u32, 1;
    u64, u64, 2;
    i64, u64, 2;
}

impl RandomFloat for f32 {}

impl sealed::Float for f32 {
    const DRAWS: u32 = 1;
    const MOST: f64 = normal::MOST_F32;

    #[inline]
    fn uniform(bits: u64) -> Self {
        convert::uniform_f32(bits)
    }

    #[inline]
    fn normal(draws: [u32; 4], mean: Self, deviation: Self, out: &mut [Self]) {
        let [a, b] = normal::pair_f32([draws[0], draws[1]]);
        let [c, d] = normal::pair_f32([draws[2], draws[3]]);
        for (out, normal) in out.iter_mut().zip([a, b, c, d]) {
            *out = normal * deviation + mean;
        }
    }

    fn to_f64(self) -> f64 {
        self.into()
    }

    fn largest() -> f64 {
        Self::MAX.into()
    }
}

impl RandomFloat for f64 {}

impl sealed::Float for f64 {
    const DRAWS: u32 = 2;
    const MOST: f64 = normal::MOST_F64;

    #[inline]
    fn uniform(bits: u64) -> Self {
        convert::uniform_f64(bits)
    }

    #[inline]
    fn normal(draws: [u32; 4], mean: Self, deviation: Self, out: &mut [Self]) {
        for (out, normal) in out.iter_mut().zip(normal::pair_f64(draws)) {
            *out = normal * deviation + mean;
        }
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn largest() -> f64 {
        Self::MAX
    }
}

macro_rules! truth {
    ($($ty:ident, $one:expr, $bits:expr;)*) => {$(
        impl RandomTruth for $ty {}

        impl sealed::Truth for $ty {
            const TRUE_BITS: u32 = $bits;

            #[inline]
            fn truth(is_true: bool) -> Self {
                if is_true { $one } else { Self::default() }
            }
        }
    )*};
}

truth! {
    u8, 1, 1;
    u32, 1, 1;
    i32, 1, 1;
    f32, 1.0, 1f32.to_bits();
}
