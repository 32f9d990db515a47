//! The number types of arrays and of push constants, by the names that the command line uses.

use std::fmt;

use half::f16;
use vkaccel::Scalar;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

/// The types that `zeros:` and `--push` take, for messages. A shader has no truth values in memory:
/// files may hold them (`bool`), a byte each, as `u8`.
pub const NAMES: &str = "f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64";

impl Dtype {
    /// The type of that name.
    pub fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "u8" => Self::U8,
            "i8" => Self::I8,
            "u16" => Self::U16,
            "i16" => Self::I16,
            "u32" => Self::U32,
            "i32" => Self::I32,
            "u64" => Self::U64,
            "i64" => Self::I64,
            "f16" => Self::F16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "bool" => {
                return Err(
                    "`bool` is for .npy files alone, whose truth values are bytes; write u8".into(),
                );
            }
            _ => return Err(format!("there is no type `{name}`; there are {NAMES}")),
        })
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The bytes of an element.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// NumPy's name for it, little-endian.
    pub const fn npy(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::U8 => "|u1",
            Self::I8 => "|i1",
            Self::U16 => "<u2",
            Self::I16 => "<i2",
            Self::U32 => "<u4",
            Self::I32 => "<i4",
            Self::U64 => "<u8",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }

    /// Whether a shader's number is this type.
    pub fn is(self, scalar: Scalar) -> bool {
        self.name() == scalar.name()
    }

    /// Whether an array of it given to a shader that reads `scalar` is likely a mistake.
    ///
    /// Bytes are how packed integers come, and signed and unsigned integers of a width are the same
    /// to a shader that only moves or adds them; a float of another width is garbage.
    pub fn is_unlike(self, scalar: Scalar) -> bool {
        let reads_float = matches!(scalar, Scalar::F16 | Scalar::F32 | Scalar::F64);
        let of_bytes = self.size_bytes() == 1 && !reads_float;
        let integer = !self.is_float() && !reads_float;
        let same_width = u32::try_from(self.size_bytes()) == Ok(scalar.size_bytes());
        !(of_bytes || self.is(scalar) || integer && same_width)
    }

    const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// The bytes of a number written as text, little-endian.
    pub fn parse_value(self, text: &str) -> Result<Vec<u8>, String> {
        let bytes = if self.is_float() {
            self.parse_float(text)
        } else {
            self.parse_integer(text)
        };
        bytes.ok_or_else(|| {
            let kind = if self.is_float() { "number" } else { "integer" };
            format!("`{text}` is no {kind} that {} can hold", self.name())
        })
    }

    fn parse_float(self, text: &str) -> Option<Vec<u8>> {
        let wide: f64 = text.parse().ok()?;
        let (bytes, finite) = match self {
            Self::F16 => {
                let value = f16::from_f64(wide);
                (value.to_le_bytes().to_vec(), value.is_finite())
            }
            Self::F32 => {
                let value: f32 = text.parse().ok()?;
                (value.to_le_bytes().to_vec(), value.is_finite())
            }
            _ => (wide.to_le_bytes().to_vec(), wide.is_finite()),
        };
        // Infinity is taken where it is asked for, and never made of a number too large.
        let asked_for = !text.contains(|c: char| c.is_ascii_digit());
        (finite || asked_for).then_some(bytes)
    }

    fn parse_integer(self, text: &str) -> Option<Vec<u8>> {
        let value = parse_integer(text)?;
        Some(match self {
            Self::Bool | Self::U8 => u8::try_from(value).ok()?.to_le_bytes().to_vec(),
            Self::I8 => i8::try_from(value).ok()?.to_le_bytes().to_vec(),
            Self::U16 => u16::try_from(value).ok()?.to_le_bytes().to_vec(),
            Self::I16 => i16::try_from(value).ok()?.to_le_bytes().to_vec(),
            Self::U32 => u32::try_from(value).ok()?.to_le_bytes().to_vec(),
            Self::I32 => i32::try_from(value).ok()?.to_le_bytes().to_vec(),
            Self::U64 => u64::try_from(value).ok()?.to_le_bytes().to_vec(),
            _ => i64::try_from(value).ok()?.to_le_bytes().to_vec(),
        })
    }
}

/// An integer, decimal or in hexadecimal with `0x`.
pub fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            i128::from_str_radix(hex, 16).ok()?
        }
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_list_parses_to_itself() {
        for name in NAMES.split(", ") {
            assert_eq!(Dtype::parse(name).unwrap().name(), name);
        }
        assert!(Dtype::parse("float").unwrap_err().contains("f16, f32"));
        assert!(Dtype::parse("bool").unwrap_err().contains("write u8"));
    }

    #[test]
    fn integers_are_range_checked() {
        assert_eq!(Dtype::U8.parse_value("255").unwrap(), [255]);
        assert_eq!(Dtype::I16.parse_value("-2").unwrap(), [0xfe, 0xff]);
        assert_eq!(Dtype::U32.parse_value("0xff").unwrap(), [255, 0, 0, 0]);
        for (dtype, text) in [
            (Dtype::U8, "256"),
            (Dtype::U32, "-1"),
            (Dtype::I8, "128"),
            (Dtype::U64, "18446744073709551616"),
            (Dtype::I32, "1.0"),
            (Dtype::I32, ""),
            (Dtype::I32, "+-1"),
            (Dtype::I32, "0x-1"),
        ] {
            let text = dtype.parse_value(text).unwrap_err();
            assert!(text.contains(dtype.name()), "{text}");
        }
    }

    #[test]
    fn a_number_too_large_does_not_become_infinity() {
        for (dtype, text) in [
            (Dtype::F16, "70000"),
            (Dtype::F32, "1e39"),
            (Dtype::F64, "1e400"),
        ] {
            assert!(dtype.parse_value(text).is_err(), "{dtype} {text}");
        }
        let infinity = Dtype::F32.parse_value("-inf").unwrap();
        assert_eq!(infinity, f32::NEG_INFINITY.to_le_bytes());
    }

    #[test]
    fn floats_have_the_bytes_of_their_type() {
        assert_eq!(Dtype::F16.parse_value("1.5").unwrap(), [0x00, 0x3e]);
        assert_eq!(Dtype::F32.parse_value("-2").unwrap(), (-2f32).to_le_bytes());
        assert_eq!(Dtype::F64.parse_value("0.1").unwrap(), 0.1f64.to_le_bytes());
    }

    #[test]
    fn a_mistaken_width_is_told_and_packed_bytes_are_not() {
        assert!(Dtype::F64.is_unlike(Scalar::F32));
        assert!(Dtype::I64.is_unlike(Scalar::I32));
        assert!(Dtype::F32.is_unlike(Scalar::U32));
        assert!(Dtype::U8.is_unlike(Scalar::F32));
        assert!(Dtype::Bool.is_unlike(Scalar::F32));
        assert!(!Dtype::U8.is_unlike(Scalar::U32));
        assert!(!Dtype::Bool.is_unlike(Scalar::U32));
        assert!(!Dtype::I32.is_unlike(Scalar::U32));
        assert!(!Dtype::F32.is_unlike(Scalar::F32));
    }
}
