//! Draws as bits and as uniform floats. The shaders do the same, on words.

use super::philox::{high, low};

/// The bits of the element at a place in its block: one draw, or two with the low one first.
#[inline]
pub(crate) const fn bits(draws: [u32; 4], lane: usize, draws_each: u32) -> u64 {
    match draws_each {
        1 => draws[lane] as u64,
        _ => (draws[2 * lane + 1] as u64) << 32 | draws[2 * lane] as u64,
    }
}

/// The upper 24 bits of a draw as a part of 1.
#[inline]
pub(crate) const fn uniform_f32(draw: u64) -> f32 {
    (low(draw) >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// The upper 53 bits of two draws as a part of 1.
#[inline]
pub(crate) const fn uniform_f64(draws: u64) -> f64 {
    (draws >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The upper 11 bits of a draw as a part of 1: the bits of a 16-bit float.
#[inline]
pub(crate) const fn uniform_f16(draw: u32) -> u16 {
    let part = draw >> 21;
    if part == 0 {
        return 0;
    }
    // The highest bit is hidden in the exponent, which is biased by 15.
    let highest = part.ilog2();
    (((highest + 4) << 10 | (part << (10 - highest) & 0x3FF)) & 0xFFFF) as u16
}

/// The high and the low half of a product of 64-bit numbers.
#[inline]
pub(crate) const fn product(a: u64, b: u64) -> (u64, u64) {
    let both = a as u128 * b as u128;
    // The low half is the product that wraps.
    ((both >> 64) as u64, a.wrapping_mul(b))
}

/// The same for 32-bit numbers.
#[inline]
pub(crate) const fn product_32(a: u64, b: u64) -> (u64, u64) {
    let both = low(a) as u64 * low(b) as u64;
    (high(both) as u64, low(both) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_floats_start_at_0_and_stay_below_1() {
        assert_eq!(uniform_f32(0), 0.0);
        assert_eq!(uniform_f32(0xFFFF_FFFF), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(uniform_f32(0x8000_00FF), 0.5);
        assert_eq!(uniform_f64(0), 0.0);
        assert_eq!(uniform_f64(u64::MAX), 1.0 - f64::EPSILON / 2.0);
        assert_eq!(uniform_f64(1 << 63), 0.5);
    }

    /// A positive, normal 16-bit float.
    fn value(half: u16) -> f32 {
        let (exponent, fraction) = (i32::from(half >> 10), f32::from(half & 0x3FF));
        match half {
            0 => 0.0,
            _ => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
        }
    }

    #[test]
    fn every_16_bit_float_is_its_part_of_1() {
        for part in 0..2048u32 {
            let half = uniform_f16(part << 21 | 0x1F_FFFF);
            assert_eq!(value(half), part as f32 / 2048.0);
        }
        assert_eq!(uniform_f16(u32::MAX), 0x3BFF);
    }

    #[test]
    fn products_have_both_halves() {
        assert_eq!(product(u64::MAX, u64::MAX), (u64::MAX - 1, 1));
        assert_eq!(product(1 << 40, 1 << 30), (1 << 6, 0));
        let (high, low) = product_32(0xFFFF_FFFF, 0xFFFF_FFFF);
        assert_eq!((high, low), (0xFFFF_FFFE, 1));
    }
}
