//! Normal numbers out of draws, by Box and Muller's transform, the same on every machine.
//!
//! The drivers' own logarithms, sines and roots differ, so none of them is used. Additions and
//! multiplications are rounded to nearest everywhere, and here nothing but these and operations on
//! integers makes the numbers; the shaders `random_normal_f32.comp` and `random_normal_f64.comp` do the
//! same in the same order, with contraction into fused operations forbidden. Change them together.
//!
//! Two uniform numbers u and v give sqrt(-2 ln u) times the cosine and the sine of 2 pi v. u is never
//! 0 or 1, and v no multiple of a quarter, so that the results are finite and not 0.

/// (ln(1 + f) - f + f²/2) / f³ on [sqrt(1/2) - 1, sqrt(2) - 1], in powers of f from 0 on:
/// interpolated at Chebyshev's nodes.
const LOG: [f32; 9] = [
    0.333_333_3,
    -0.249_999_97,
    0.200_007_16,
    -0.166_678_03,
    0.142_490_58,
    -0.124_256_87,
    0.116_854_2,
    -0.114_797_34,
    0.069_716_11,
];
/// sin(2 pi t) / t and (cos(2 pi t) - 1) / t² on [-1/8, 1/8], in powers of t²: interpolated too.
const SIN: [f32; 4] = [6.283_185_5, -41.341_663, 81.592_545, -75.401_61];
const COS: [f32; 4] = [-19.739_208, 64.939_37, -85.448_82, 59.424_107];
/// ln 2 in two parts, the first of which has few bits.
const LN_2: [f32; 2] = [0.693_359_4, -0.000_212_194_44];

const TWO_TO_MINUS_32: f64 = 1.0 / (1u64 << 32) as f64;

/// Horner's rule.
#[inline]
fn polynomial_f32(coefficients: &[f32], x: f32) -> f32 {
    let highest_first = coefficients.iter().rev();
    highest_first.fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// The number without what is below its first 24 bits, which a float holds exactly.
#[inline]
fn truncated(x: u32) -> f32 {
    let dropped = 8u32.saturating_sub(x.leading_zeros());
    (x >> dropped << dropped) as f32
}

/// ln(1 - x / 2^32) for an x that is not 0.
#[inline]
fn log_f32(x: u32) -> f32 {
    const SCALE: f32 = 1.0 / (1u64 << 32) as f32;
    let (f, exponent) = if x <= 0x4AFB_0CCC {
        // 1 - x / 2^32 is at least sqrt(1/2): f keeps bits that a float near 1 would lose.
        (-(truncated(x) * SCALE), 0.0)
    } else {
        let bits = (truncated(x.wrapping_neg()) * SCALE).to_bits();
        let exponent = (bits >> 23) as f32 - 127.0;
        let mantissa = f32::from_bits((bits & 0x007F_FFFF) | 0x3F80_0000);
        match mantissa > core::f32::consts::SQRT_2 {
            true => (mantissa * 0.5 - 1.0, exponent + 1.0),
            false => (mantissa - 1.0, exponent),
        }
    };
    let square = f * f;
    let tail = f * square * polynomial_f32(&LOG, f);
    let tail = tail + exponent * LN_2[1] - 0.5 * square;
    f + tail + exponent * LN_2[0]
}

/// The square root of a number that is neither 0 nor tiny.
#[inline]
fn root_f32(x: f32) -> f32 {
    // A first guess out of the bits, then Newton's steps for 1 / sqrt(x).
    let mut y = f32::from_bits(0x5F37_5A86 - (x.to_bits() >> 1));
    for _ in 0..3 {
        y = y * (1.5 - 0.5 * x * y * y);
    }
    x * y
}

/// The cosine and the sine of the angle, of which 2^32 are a turn, at the middle of its 128.
#[inline]
fn turn_f32(angle: u32) -> (f32, f32) {
    let quarter = angle.wrapping_add(1 << 29) >> 30;
    let rest = angle.wrapping_sub(quarter << 30).cast_signed();
    let t = (2 * (rest >> 7) + 1) as f32 * (1.0 / (1 << 26) as f32);
    let square = t * t;
    let cos = 1.0 + square * polynomial_f32(&COS, square);
    let sin = t * polynomial_f32(&SIN, square);
    turned(quarter, cos, sin)
}

/// The cosine and the sine of an angle that is so many quarters further.
#[inline]
fn turned<T: core::ops::Neg<Output = T>>(quarters: u32, cos: T, sin: T) -> (T, T) {
    match quarters {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// Two normal numbers out of two draws.
#[inline]
pub(crate) fn pair_f32(draws: [u32; 2]) -> [f32; 2] {
    let radius = root_f32(-2.0 * log_f32(draws[0].max(1)));
    let (cos, sin) = turn_f32(draws[1]);
    [radius * cos, radius * sin]
}

/// The most that a normal number is away from the mean, in deviations: sqrt(64 ln 2), rounded up.
pub(crate) const MOST_F32: f64 = 6.661;
/// The same for 64-bit floats: sqrt(106 ln 2).
pub(crate) const MOST_F64: f64 = 8.573;

/// 2/3, 2/5, ..: the series of ln(1 + f) = f - s (f - R), s = f / (2 + f), in powers of s².
const LOG_F64: [f64; 10] = [
    2.0 / 3.0,
    2.0 / 5.0,
    2.0 / 7.0,
    2.0 / 9.0,
    2.0 / 11.0,
    2.0 / 13.0,
    2.0 / 15.0,
    2.0 / 17.0,
    2.0 / 19.0,
    2.0 / 21.0,
];
/// The series of sin(2 pi t) / t and cos(2 pi t), in powers of t².
const SIN_F64: [f64; 9] = [
    core::f64::consts::TAU,
    -41.34170224039976,
    81.60524927607506,
    -76.70585975306139,
    42.058693944897655,
    -15.09464257682299,
    3.819952584848282,
    -0.7181223017785006,
    0.10422916220813984,
];
const COS_F64: [f64; 10] = [
    1.0,
    -19.739208802178716,
    64.9393940226683,
    -85.45681720669373,
    60.24464137187666,
    -26.4262567833744,
    7.903536371318469,
    -1.714390711088672,
    0.28200596845579123,
    -0.03638284114254567,
];
/// ln 2 in two parts, the first of which has few bits.
const LN_2_F64: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

#[inline]
fn polynomial_f64(coefficients: &[f64], x: f64) -> f64 {
    let highest_first = coefficients.iter().rev();
    highest_first.fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// ln(1 - v) for a v from 2^-53 to 1 - 2^-53.
#[inline]
fn log_f64(v: f64) -> f64 {
    let (f, exponent) = if v <= 0.292_893_218_813_452_4 {
        (-v, 0.0)
    } else {
        let bits = (1.0 - v).to_bits();
        let exponent = (bits >> 52) as f64 - 1023.0;
        let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1023 << 52);
        match mantissa > core::f64::consts::SQRT_2 {
            true => (mantissa * 0.5 - 1.0, exponent + 1.0),
            false => (mantissa - 1.0, exponent),
        }
    };
    // f / (2 + f): a straight line for the reciprocal, then Newton's steps.
    let divisor = 2.0 + f;
    let mut reciprocal = 0.98508 - 0.23902 * divisor;
    for _ in 0..4 {
        reciprocal = reciprocal * (2.0 - divisor * reciprocal);
    }
    let s = f * reciprocal;
    let square = s * s;
    let series = square * polynomial_f64(&LOG_F64, square);
    let small = s * (f - series) - exponent * LN_2_F64[1];
    exponent * LN_2_F64[0] - (small - f)
}

#[inline]
fn root_f64(x: f64) -> f64 {
    let guess = 0x5FE6_EB50 - (x.to_bits() >> 33);
    let mut y = f64::from_bits(guess << 32);
    for _ in 0..4 {
        y = y * (1.5 - 0.5 * x * y * y);
    }
    x * y
}

/// The cosine and the sine of the angle, of which 2^64 are a turn, at the middle of its 2048.
#[inline]
fn turn_f64(low: u32, high: u32) -> (f64, f64) {
    let quarter = high.wrapping_add(1 << 29) >> 30;
    let rest = high.wrapping_sub(quarter << 30).cast_signed();
    let below = (f64::from(low >> 11) + 0.5) * (1.0 / (1 << 21) as f64);
    let t = (f64::from(rest) + below) * TWO_TO_MINUS_32;
    let square = t * t;
    let cos = polynomial_f64(&COS_F64, square);
    let sin = t * polynomial_f64(&SIN_F64, square);
    turned(quarter, cos, sin)
}

/// Two normal numbers out of four draws.
#[inline]
pub(crate) fn pair_f64(draws: [u32; 4]) -> [f64; 2] {
    let [low, high, angle_low, angle_high] = draws;
    let v = f64::from(high) * TWO_TO_MINUS_32 + f64::from(low >> 11) * (1.0 / (1u64 << 53) as f64);
    let v = v.max(1.0 / (1u64 << 53) as f64);
    let radius = root_f64(-2.0 * log_f64(v));
    let (cos, sin) = turn_f64(angle_low, angle_high);
    [radius * cos, radius * sin]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::philox;

    /// The same transform of the same uniform numbers, with the library's functions of 64 bits.
    fn exact(draws: [u32; 2]) -> [f64; 2] {
        let v = f64::from(draws[0].max(1)) * TWO_TO_MINUS_32;
        let radius = (-2.0 * (-v).ln_1p()).sqrt();
        let angle = (f64::from(draws[1] >> 7) + 0.5) * (1.0 / (1 << 25) as f64);
        let (sin, cos) = (angle * core::f64::consts::TAU).sin_cos();
        [radius * cos, radius * sin]
    }

    /// The extremes, then draws that look random.
    fn draws() -> impl Iterator<Item = [u32; 4]> {
        let edges = [
            0,
            1,
            0x7F,
            0x80,
            0x1FFF_FFFF,
            0x2000_0000,
            0x4AFB_0CCC,
            0x4AFB_0CCD,
        ];
        let edges = edges.into_iter().flat_map(|x: u32| [x, !x]);
        let edges: Vec<u32> = edges.chain([1 << 30, 1 << 31, 3 << 30]).collect();
        let pairs = edges.clone().into_iter();
        let pairs = pairs.flat_map(move |a| edges.clone().into_iter().map(move |b| [a, b, b, a]));
        pairs.chain((0..200_000).map(|counter| philox::block([1, 2], [counter, 0, 0, 0])))
    }

    #[test]
    fn normal_numbers_are_near_the_exact_ones_finite_and_not_zero() {
        let mut worst = 0.0f64;
        for [a, b, ..] in draws() {
            for (normal, exact) in pair_f32([a, b]).into_iter().zip(exact([a, b])) {
                assert!(normal.is_finite() && normal != 0.0, "{a:#x} {b:#x}");
                assert!(f64::from(normal.abs()) <= MOST_F32);
                worst = worst.max((f64::from(normal) - exact).abs() / exact.abs());
            }
        }
        println!("32 bits: within {:.2} x 2^-24", worst * (1 << 24) as f64);
        assert!(worst < 8.0 / (1 << 24) as f64, "{worst:e}");
    }

    #[test]
    fn wide_normal_numbers_are_near_the_exact_ones_finite_and_not_zero() {
        let scale = (1u64 << 53) as f64;
        let mut worst = 0.0f64;
        for [a, b, c, d] in draws() {
            let v = ((u64::from(b) << 32 | u64::from(a)) >> 11).max(1) as f64 / scale;
            let radius = (-2.0 * (-v).ln_1p()).sqrt();
            // From the nearest quarter, so that the sine's argument is exact.
            let angle = (i128::from(d) << 32 | i128::from(c)) >> 11 << 11 | 1 << 10;
            let quarter = (angle + (1 << 61)) >> 62;
            let rest = (angle - (quarter << 62)) as f64 / (1u128 << 64) as f64;
            let (sin, cos) = (rest * core::f64::consts::TAU).sin_cos();
            let (cos, sin) = turned(u32::try_from(quarter % 4).unwrap(), cos, sin);
            for (normal, exact) in pair_f64([a, b, c, d]).into_iter().zip([cos, sin]) {
                let exact = exact * radius;
                assert!(
                    normal.is_finite() && normal != 0.0,
                    "{a:#x} {b:#x} {c:#x} {d:#x}"
                );
                assert!(normal.abs() <= MOST_F64);
                worst = worst.max((normal - exact).abs() / exact.abs());
            }
        }
        println!("64 bits: within {:.2} x 2^-53", worst * scale);
        assert!(worst < 16.0 / scale, "{worst:e}");
    }

    #[test]
    fn normal_numbers_have_the_moments_of_the_distribution() {
        let (mut count, mut sums) = (0.0, [0.0; 4]);
        for block in (0..250_000).map(|counter| philox::block([7, 0], [counter, 0, 0, 0])) {
            let [a, b] = pair_f32([block[0], block[1]]);
            let [c, d] = pair_f64(block);
            for x in [f64::from(a), f64::from(b), c, d] {
                count += 1.0;
                for (sum, power) in sums.iter_mut().zip(1..) {
                    *sum += x.powi(power);
                }
            }
        }
        // Five standard errors each; the numbers are the same in every run.
        let expected = [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)];
        for (sum, (mean, variance)) in sums.into_iter().zip(expected) {
            let error: f64 = sum / count - mean;
            assert!(error.abs() < 5.0 * f64::sqrt(variance / count), "{error}");
        }
    }
}
