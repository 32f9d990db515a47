//! What a kernel is built from.

use std::borrow::Cow;

use spirv::ExecutionModel;

use super::interface::{Scalar, SpecConstant};
use super::scalar::Number;
use super::spirv::{Module, words_from_bytes};
use crate::error::{Error, ErrorKind, Result};

/// What a kernel is built from: GLSL text, or a SPIR-V module.
///
/// Text is GLSL; a module is given as [`Spirv`].
///
/// # Example
///
/// ```
/// use vkaccel::{Source, Spirv};
///
/// let glsl = Source::from("void main() {}");
/// let words = vec![0x0723_0203u32, 0x0001_0300, 0, 1, 0];
/// let module = Source::from(Spirv::from(&words));
/// # let _ = (glsl, module);
/// ```
#[derive(Clone, Debug)]
pub struct Source<'a>(pub(crate) SourceKind<'a>);

/// The kinds of a [`Source`].
#[derive(Clone, Debug)]
pub(crate) enum SourceKind<'a> {
    /// GLSL text.
    Glsl(Cow<'a, str>),
    /// A SPIR-V module.
    Spirv(Spirv<'a>),
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(glsl: &'a str) -> Self {
        Self(SourceKind::Glsl(Cow::Borrowed(glsl)))
    }
}

impl<'a> From<&'a String> for Source<'a> {
    fn from(glsl: &'a String) -> Self {
        Self::from(glsl.as_str())
    }
}

impl From<String> for Source<'_> {
    fn from(glsl: String) -> Self {
        Self(SourceKind::Glsl(Cow::Owned(glsl)))
    }
}

impl<'a> From<Spirv<'a>> for Source<'a> {
    fn from(module: Spirv<'a>) -> Self {
        Self(SourceKind::Spirv(module))
    }
}

/// A SPIR-V module, as words or as bytes.
///
/// Bytes need no alignment; they are in the machine's byte order, as compilers write them. Whether
/// they are a module is found out when a kernel is built from them.
///
/// # Example
///
/// ```no_run
/// use vkaccel::Spirv;
///
/// let bytes = std::fs::read("saxpy.spv")?;
/// let module = Spirv::from(&bytes);
/// # let _ = module;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Spirv<'a>(pub(crate) SpirvKind<'a>);

/// The forms of a [`Spirv`].
#[derive(Clone, Debug)]
pub(crate) enum SpirvKind<'a> {
    /// The words.
    Words(Cow<'a, [u32]>),
    /// The bytes of the words, in the machine's order.
    Bytes(Cow<'a, [u8]>),
}

macro_rules! spirv_from {
    ($word:ty, $kind:ident) => {
        impl<'a> From<&'a [$word]> for Spirv<'a> {
            fn from(module: &'a [$word]) -> Self {
                Self(SpirvKind::$kind(Cow::Borrowed(module)))
            }
        }

        impl<'a> From<&'a Vec<$word>> for Spirv<'a> {
            fn from(module: &'a Vec<$word>) -> Self {
                Self::from(module.as_slice())
            }
        }

        impl<'a, const N: usize> From<&'a [$word; N]> for Spirv<'a> {
            fn from(module: &'a [$word; N]) -> Self {
                Self::from(module.as_slice())
            }
        }

        impl From<Vec<$word>> for Spirv<'_> {
            fn from(module: Vec<$word>) -> Self {
                Self(SpirvKind::$kind(Cow::Owned(module)))
            }
        }
    };
}

spirv_from!(u32, Words);
spirv_from!(u8, Bytes);

impl Spirv<'_> {
    /// The names of the module's compute entry points, in its order.
    ///
    /// # Errors
    ///
    /// [`InvalidModule`](crate::ErrorKind::InvalidModule) if it is no SPIR-V or damaged.
    ///
    /// # Example
    ///
    /// ```
    /// let text = vkaccel::Spirv::from(b"#version 450");
    /// assert!(text.entry_points().is_err());
    /// ```
    pub fn entry_points(&self) -> Result<Vec<String>> {
        let module = Module::parse(&self.words()?)?;
        let points = module.entry_points().into_iter();
        let compute = points.filter(|(_, stage)| *stage == ExecutionModel::GLCompute);
        Ok(compute.map(|(name, _)| name.to_owned()).collect())
    }

    /// The words; bytes are copied, since they may lie anywhere.
    ///
    /// # Errors
    ///
    /// `InvalidModule` for bytes that are no SPIR-V, with what they are instead.
    pub(crate) fn words(&self) -> Result<Cow<'_, [u32]>> {
        match &self.0 {
            SpirvKind::Words(words) => Ok(Cow::Borrowed(words)),
            SpirvKind::Bytes(bytes) => words_from_bytes(bytes).map(Cow::Owned),
        }
    }
}

/// The value of a specialization constant.
///
/// It comes from a `bool`, an integer or a float. Integers fit every integer constant that holds
/// their value and every float that is equal to it; floats are rounded to the constant's precision;
/// 0 and 1 fit truth values.
///
/// # Example
///
/// ```
/// use vkaccel::SpecValue;
///
/// let block = SpecValue::from(64);
/// let scale = SpecValue::from(0.5);
/// # let _ = (block, scale);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpecValue(Number);

macro_rules! spec_value_from {
    ($($integer:ty),*) => {$(
        impl From<$integer> for SpecValue {
            fn from(value: $integer) -> Self {
                Self(Number::from(value))
            }
        }
    )*};
}

spec_value_from!(u8, u16, u32, u64, usize, i8, i16, i32, i64, bool);

impl From<f32> for SpecValue {
    fn from(value: f32) -> Self {
        Self(Number::F32(value))
    }
}

impl From<f64> for SpecValue {
    fn from(value: f64) -> Self {
        Self(Number::F64(value))
    }
}

impl SpecValue {
    /// The bits of the value in a constant of this type, zero-extended.
    pub(crate) fn bits_for(self, constant: Scalar) -> Result<u64> {
        self.0.constant_bits(constant).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "{} is not a value of a constant of type {}",
                    self.0,
                    constant.name()
                ),
            )
        })
    }
}

/// The bits of each value in the constant with its id. A value for an id that no constant has is
/// kept, with no bits: reflection refuses it.
///
/// # Errors
///
/// `InvalidArgument` for a value that its constant can't hold.
pub(crate) fn constant_bits(
    constants: &[SpecConstant],
    values: &[(u32, SpecValue)],
) -> Result<Vec<(u32, u64)>> {
    let bits = values.iter().map(|&(id, value)| {
        let Some(constant) = constants.iter().find(|constant| constant.id == id) else {
            return Ok((id, 0));
        };
        let bits = value.bits_for(constant.ty).map_err(|error| {
            error.context(match constant.name.as_str() {
                "" => format!("specialization constant {id}"),
                name => format!("specialization constant {id} (`{name}`)"),
            })
        })?;
        Ok((id, bits))
    });
    bits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_glsl_and_modules_are_kept_as_they_came() {
        for source in [
            Source::from("void main() {}"),
            Source::from(&String::from("void main() {}")),
            Source::from(String::from("void main() {}")),
        ] {
            assert!(matches!(source.0, SourceKind::Glsl(text) if text == "void main() {}"));
        }
        let words = [1u32, 2];
        for module in [
            Spirv::from(&words),
            Spirv::from(&words[..]),
            Spirv::from(&words.to_vec()),
            Spirv::from(words.to_vec()),
        ] {
            let Source(SourceKind::Spirv(Spirv(SpirvKind::Words(kept)))) = Source::from(module)
            else {
                panic!("not words");
            };
            assert_eq!(*kept, words);
        }
        let bytes = b"\x03\x02#\x07x";
        for module in [
            Spirv::from(bytes),
            Spirv::from(&bytes[..]),
            Spirv::from(&bytes.to_vec()),
            Spirv::from(bytes.to_vec()),
        ] {
            assert!(matches!(module.0, SpirvKind::Bytes(kept) if *kept == bytes[..]));
        }
    }

    #[test]
    fn a_constant_takes_what_it_can_hold_and_says_what_it_was_given() {
        assert_eq!(SpecValue::from(7).bits_for(Scalar::U32).unwrap(), 7);
        assert_eq!(SpecValue::from(true).bits_for(Scalar::Bool).unwrap(), 1);
        assert_eq!(
            SpecValue::from(0.5).bits_for(Scalar::F32).unwrap(),
            u64::from(0.5f32.to_bits())
        );
        assert_eq!(
            SpecValue::from(0.5f32).bits_for(Scalar::F64).unwrap(),
            0.5f64.to_bits()
        );
        let error = SpecValue::from(-1).bits_for(Scalar::U32).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(
            error.to_string(),
            "i32 -1 is not a value of a constant of type u32"
        );
    }

    #[test]
    fn bytes_at_any_address_become_words_or_the_readers_error() {
        let mut bytes = vec![0xff];
        for word in [0x0723_0203u32, 0x0001_0300, 0, 1, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        let module = Spirv::from(&bytes[1..]);
        assert_eq!(
            *module.words().unwrap(),
            [0x0723_0203, 0x0001_0300, 0, 1, 0]
        );
        assert_eq!(*Spirv::from(&[7u32]).words().unwrap(), [7]);
        let error = Spirv::from(b"void main() {}").words().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
    }

    #[test]
    fn values_meet_the_types_of_the_constants_with_their_ids() {
        let constant = |id, name: &str, ty| SpecConstant {
            id,
            name: name.into(),
            ty,
            default_bits: 0,
        };
        let constants = [
            constant(0, "", Scalar::U32),
            constant(7, "SCALE", Scalar::F32),
        ];
        let scale = u64::from(2.0f32.to_bits());
        assert_eq!(
            constant_bits(&constants, &[(7, 2.into()), (0, 64.into()), (9, 1.into())]).unwrap(),
            [(7, scale), (0, 64), (9, 0)]
        );
        let text = |id, value: SpecValue| {
            let error = constant_bits(&constants, &[(id, value)]).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            text(7, 1e300.into()),
            "specialization constant 7 (`SCALE`): f64 1e300 is not a value of a constant of type \
             f32"
        );
        assert!(text(0, 0.5.into()).starts_with("specialization constant 0: f64 0.5"));
    }
}
