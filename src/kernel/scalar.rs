//! A number on its way into a slot of a shader: a launch's argument or a specialization constant.

use core::fmt;

use super::interface::Scalar;

/// A number with the type that it was given in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A truth value.
    Bool(bool),
    /// An unsigned integer and its type.
    Unsigned(u64, Scalar),
    /// A signed integer and its type.
    Signed(i64, Scalar),
    /// A number that is meant for a 16-bit float; it is rounded when it is stored.
    F16(f32),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
}

impl Number {
    /// The bits in an argument's slot, or `None` where the slot can't hold it.
    ///
    /// Integers fit any integer slot that holds their value. Floats fit slots of their own type
    /// alone: `0.1f32` widened to 64 bits would not be 0.1, and two arguments in the wrong order
    /// should not be converted into each other's slots.
    #[inline]
    pub(crate) fn argument_bits(self, slot: Scalar) -> Option<u64> {
        match (self, slot) {
            (Self::F16(value), Scalar::F16) => Some(u64::from(f16_bits(f64::from(value)))),
            (Self::F32(value), Scalar::F32) => Some(u64::from(value.to_bits())),
            (Self::F64(value), Scalar::F64) => Some(value.to_bits()),
            // The most common by far, without wide numbers.
            (Self::Unsigned(value, _), Scalar::U32) => u32::try_from(value).ok().map(u64::from),
            (Self::Signed(value, _), Scalar::U32) => u32::try_from(value).ok().map(u64::from),
            _ => integer_bits(self.as_integer()?, slot),
        }
    }

    /// The bits in a specialization constant, or `None` where the constant can't hold it.
    ///
    /// Integers fit any integer that holds their value and any float that is equal to it; floats are
    /// rounded to the constant's precision, but a finite one never becomes infinite.
    pub(crate) fn constant_bits(self, slot: Scalar) -> Option<u64> {
        let float = match self {
            Self::F16(value) | Self::F32(value) => f64::from(value),
            Self::F64(value) => value,
            Self::Bool(_) | Self::Unsigned(..) | Self::Signed(..) => {
                let integer = self.as_integer()?;
                return match slot {
                    Scalar::F16 | Scalar::F32 | Scalar::F64 => {
                        let (bits, kept) = rounded(integer as f64, slot)?;
                        is_equal(kept, integer).then_some(bits)
                    }
                    _ => integer_bits(integer, slot),
                };
            }
        };
        let (bits, kept) = rounded(float, slot)?;
        (kept.is_finite() == float.is_finite()).then_some(bits)
    }

    fn as_integer(self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(value)),
            Self::Unsigned(value, _) => Some(i128::from(value)),
            Self::Signed(value, _) => Some(i128::from(value)),
            Self::F16(_) | Self::F32(_) | Self::F64(_) => None,
        }
    }

    /// The type that it was given in.
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            Self::Bool(_) => Scalar::Bool,
            Self::Unsigned(_, scalar) | Self::Signed(_, scalar) => scalar,
            Self::F16(_) => Scalar::F16,
            Self::F32(_) => Scalar::F32,
            Self::F64(_) => Scalar::F64,
        }
    }
}

/// As `u32 7`.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.scalar().name();
        match self {
            Self::Bool(value) => write!(f, "{name} {value}"),
            Self::Unsigned(value, _) => write!(f, "{name} {value}"),
            Self::Signed(value, _) => write!(f, "{name} {value}"),
            Self::F16(value) | Self::F32(value) => write!(f, "{name} {value:?}"),
            Self::F64(value) => write!(f, "{name} {value:?}"),
        }
    }
}

macro_rules! integers {
    ($($integer:ty as $scalar:ident in $variant:ident($wide:ty)),* $(,)?) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Self {
                Self::$variant(<$wide>::from(value), Scalar::$scalar)
            }
        }
    )*};
}

integers! {
    u8 as U8 in Unsigned(u64),
    u16 as U16 in Unsigned(u64),
    u32 as U32 in Unsigned(u64),
    u64 as U64 in Unsigned(u64),
    i8 as I8 in Signed(i64),
    i16 as I16 in Signed(i64),
    i32 as I32 in Signed(i64),
    i64 as I64 in Signed(i64),
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        // A `usize` has 64 bits at most on every target of Rust's.
        Self::Unsigned(value as u64, Scalar::U64)
    }
}

impl From<bool> for Number {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

fn integer_bits(value: i128, slot: Scalar) -> Option<u64> {
    Some(match slot {
        Scalar::Bool => u64::from(u8::try_from(value).ok().filter(|&bit| bit <= 1)?),
        Scalar::U8 => u64::from(u8::try_from(value).ok()?),
        Scalar::U16 => u64::from(u16::try_from(value).ok()?),
        Scalar::U32 => u64::from(u32::try_from(value).ok()?),
        Scalar::U64 => u64::try_from(value).ok()?,
        Scalar::I8 => u64::from(i8::try_from(value).ok()?.cast_unsigned()),
        Scalar::I16 => u64::from(i16::try_from(value).ok()?.cast_unsigned()),
        Scalar::I32 => u64::from(i32::try_from(value).ok()?.cast_unsigned()),
        Scalar::I64 => i64::try_from(value).ok()?.cast_unsigned(),
        Scalar::F16 | Scalar::F32 | Scalar::F64 => return None,
    })
}

/// The bits of the nearest float of the slot's type, and its value; `None` for other slots.
fn rounded(value: f64, slot: Scalar) -> Option<(u64, f64)> {
    match slot {
        Scalar::F16 => {
            let bits = f16_bits(value);
            Some((u64::from(bits), f16_value(bits)))
        }
        Scalar::F32 => {
            let rounded = f32_rounded(value);
            Some((u64::from(rounded.to_bits()), f64::from(rounded)))
        }
        Scalar::F64 => Some((value.to_bits(), value)),
        _ => None,
    }
}

/// Whether a float is equal to an integer of 64 bits, signed or not.
#[expect(
    clippy::cast_possible_truncation,
    reason = "infinity becomes the largest i128, which no integer of 64 bits is equal to"
)]
fn is_equal(float: f64, integer: i128) -> bool {
    float as i128 == integer
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to the nearest 32-bit float is what is wanted"
)]
fn f32_rounded(value: f64) -> f32 {
    value as f32
}

/// The nearest 16-bit float, ties to even.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most 2048 units of the last place"
)]
fn f16_bits(value: f64) -> u16 {
    const FRACTION_BITS: i32 = 10;
    const MAX_EXPONENT: i32 = 15;
    const MIN_EXPONENT: i32 = -14;
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    if value.is_nan() {
        return sign | 0x7e00;
    }
    // The exponent of an f64; that of its subnormals is far below what matters here.
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    if exponent > MAX_EXPONENT {
        return sign | 0x7c00;
    }
    // Counted in units of the last place, the number is an integer after rounding. The exponent's
    // field continues the fraction's, so a carry out of the fraction lands where it should, up to
    // infinity.
    let exponent = exponent.max(MIN_EXPONENT);
    let units = (value.abs() * f64::powi(2.0, FRACTION_BITS - exponent)).round_ties_even();
    let field = (exponent - MIN_EXPONENT) << FRACTION_BITS;
    let magnitude = units as i32 + field;
    sign | u16::try_from(magnitude).unwrap_or(0x7c00)
}

fn f16_value(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let exponent = i32::from((bits >> 10) & 0x1f);
    let magnitude = match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::powi(2.0, exponent - 25),
    };
    if bits & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_argument_fits_every_integer_slot_that_holds_its_value() {
        assert_eq!(Number::from(7usize).argument_bits(Scalar::U32), Some(7));
        assert_eq!(
            Number::from(-1).argument_bits(Scalar::I32),
            Some(0xffff_ffff)
        );
        assert_eq!(Number::from(-1).argument_bits(Scalar::I8), Some(0xff));
        assert_eq!(
            Number::from(-1i8).argument_bits(Scalar::I64),
            Some(u64::MAX)
        );
        assert_eq!(Number::from(true).argument_bits(Scalar::U32), Some(1));
        assert_eq!(Number::from(-1).argument_bits(Scalar::U32), None);
        assert_eq!(Number::from(1u64 << 32).argument_bits(Scalar::U32), None);
        assert_eq!(Number::from(300).argument_bits(Scalar::U8), None);
        assert_eq!(Number::from(u64::MAX).argument_bits(Scalar::I64), None);
        assert_eq!(Number::from(2).argument_bits(Scalar::F32), None);
    }

    #[test]
    fn a_float_argument_fits_its_own_type_alone() {
        assert_eq!(
            Number::F32(0.1).argument_bits(Scalar::F32),
            Some(u64::from(0.1f32.to_bits()))
        );
        assert_eq!(
            Number::F64(0.1).argument_bits(Scalar::F64),
            Some(0.1f64.to_bits())
        );
        assert_eq!(Number::F16(1.5).argument_bits(Scalar::F16), Some(0x3e00));
        assert_eq!(Number::F32(0.1).argument_bits(Scalar::F64), None);
        assert_eq!(Number::F64(0.5).argument_bits(Scalar::F32), None);
        assert_eq!(Number::F32(2.0).argument_bits(Scalar::U32), None);
    }

    #[test]
    fn a_constant_is_converted_where_its_value_survives() {
        assert_eq!(Number::from(7).constant_bits(Scalar::U32), Some(7));
        assert_eq!(Number::from(1).constant_bits(Scalar::Bool), Some(1));
        assert_eq!(Number::from(2).constant_bits(Scalar::Bool), None);
        assert_eq!(Number::from(-1).constant_bits(Scalar::U32), None);
        assert_eq!(
            Number::from(3).constant_bits(Scalar::F32),
            Some(u64::from(3.0f32.to_bits()))
        );
        let odd = (1i64 << 24) + 1;
        assert_eq!(Number::from(odd).constant_bits(Scalar::F32), None);
        assert_eq!(
            Number::from(odd).constant_bits(Scalar::F64),
            Some(16_777_217.0f64.to_bits())
        );
        assert_eq!(Number::from(u64::MAX).constant_bits(Scalar::F64), None);
        assert_eq!(
            Number::F64(0.1).constant_bits(Scalar::F32),
            Some(u64::from(0.1f32.to_bits()))
        );
        assert_eq!(Number::F64(1e300).constant_bits(Scalar::F32), None);
        assert_eq!(Number::F64(70000.0).constant_bits(Scalar::F16), None);
        assert_eq!(
            Number::F64(f64::INFINITY).constant_bits(Scalar::F16),
            Some(0x7c00)
        );
        assert_eq!(Number::F32(1.0).constant_bits(Scalar::U32), None);
    }

    #[test]
    fn half_floats_are_rounded_to_the_nearest_even() {
        for (value, bits) in [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.25, 0xc080),
            (65504.0, 0x7bff),
            (65519.9, 0x7bff),
            (65520.0, 0x7c00),
            (1e9, 0x7c00),
            (f64::NEG_INFINITY, 0xfc00),
            (0.1, 0x2e66),
            (1.0 + 1.0 / 2048.0, 0x3c00),
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (2.0 - 1.0 / 4096.0, 0x4000),
            (f64::powi(2.0, -14), 0x0400),
            (f64::powi(2.0, -24), 0x0001),
            (f64::powi(2.0, -25), 0x0000),
            (1.5 * f64::powi(2.0, -25), 0x0001),
            (f64::powi(2.0, -14) - f64::powi(2.0, -26), 0x0400),
            (f64::MIN_POSITIVE, 0x0000),
        ] {
            assert_eq!(f16_bits(value), bits, "{value}");
        }
        assert_eq!(f16_bits(f64::NAN) & 0x7e00, 0x7e00);
        for bits in 0..=0xffffu16 {
            let value = f16_value(bits);
            if !value.is_nan() {
                assert_eq!(f16_bits(value), bits, "{value}");
            }
        }
    }
}
