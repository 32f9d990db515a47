//! The values of options, parsed from text. Pure.

use std::path::PathBuf;

use crate::dtype::{Dtype, parse_integer};
use crate::npy::ArrayType;

/// `NAME=FILE.npy` or `NAME=zeros:DTYPE:SHAPE`.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferOption {
    /// The name to bind it by.
    pub name: String,
    /// Where its numbers come from.
    pub source: BufferSource,
}

/// Where a buffer's numbers come from.
#[derive(Clone, Debug, PartialEq)]
pub enum BufferSource {
    /// A .npy file.
    File(PathBuf),
    /// Nothing: it starts as zeros.
    Zeros(ArrayType),
}

/// Parses the value of `--buffer`.
pub fn buffer(text: &str) -> Result<BufferOption, String> {
    let (name, source) = named(text, "NAME=FILE.npy or NAME=zeros:DTYPE:SHAPE")?;
    let source = match source.strip_prefix("zeros:") {
        Some(array) => BufferSource::Zeros(zeros(array)?),
        None => BufferSource::File(source.into()),
    };
    Ok(BufferOption { name, source })
}

fn zeros(text: &str) -> Result<ArrayType, String> {
    let (dtype, shape) = text
        .split_once(':')
        .ok_or("write zeros:DTYPE:SHAPE, as zeros:f32:480,640")?;
    let dtype = Dtype::parse(dtype)?;
    let shape: Result<Vec<u64>, String> = shape
        .split(',')
        .map(|extent| {
            let extent = decimal(extent)
                .ok_or_else(|| format!("`{extent}` is no extent; SHAPE is as 480,640"))?;
            Ok(extent)
        })
        .collect();
    ArrayType::new(dtype, shape?)
}

/// `NAME=FILE.npy`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOption {
    /// The buffer's name.
    pub name: String,
    /// The file to write.
    pub file: PathBuf,
}

/// Parses the value of `--out`.
pub fn out(text: &str) -> Result<OutOption, String> {
    let (name, file) = named(text, "NAME=FILE.npy")?;
    let file = file.into();
    Ok(OutOption { name, file })
}

fn named<'a>(text: &'a str, form: &str) -> Result<(String, &'a str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value))
        }
        _ => Err(format!("write {form}")),
    }
}

/// `K` or `K=V`.
#[derive(Clone, Debug, PartialEq)]
pub struct DefineOption {
    /// The macro.
    pub name: String,
    /// What it stands for.
    pub value: String,
}

/// Parses the value of `--define`; a macro without a value is 1, as C compilers have it.
pub fn define(text: &str) -> Result<DefineOption, String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let mut bytes = name.bytes();
    let starts = bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    if !starts || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!(
            "`{name}` is no macro name; write NAME or NAME=VALUE"
        ));
    }
    Ok(DefineOption {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

/// `ID=V`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstOption {
    /// The specialization constant's id.
    pub id: u32,
    /// Its value; whether it fits the constant's type is the shader's to say.
    pub value: ConstValue,
}

/// The value of a specialization constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConstValue {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

/// Parses the value of `--const`.
pub fn constant(text: &str) -> Result<ConstOption, String> {
    let (id, value) = named(text, "ID=VALUE, as 0=64")?;
    let id = decimal(&id)
        .and_then(|id| u32::try_from(id).ok())
        .ok_or_else(|| format!("`{id}` is no id of a specialization constant; write ID=VALUE"))?;
    let value = constant_value(value)
        .ok_or_else(|| format!("`{value}` is neither a number nor true or false"))?;
    Ok(ConstOption { id, value })
}

fn constant_value(text: &str) -> Option<ConstValue> {
    if let Ok(truth) = text.parse() {
        return Some(ConstValue::Bool(truth));
    }
    if let Some(value) = parse_integer(text) {
        return match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => Some(ConstValue::Signed(value)),
            (_, Ok(value)) => Some(ConstValue::Unsigned(value)),
            _ => None,
        };
    }
    text.parse().ok().map(ConstValue::Float)
}

/// `TYPE=V`.
#[derive(Clone, Debug, PartialEq)]
pub struct PushOption {
    /// The value's type.
    pub dtype: Dtype,
    /// The value as given, for messages.
    pub text: String,
    /// Its bytes, little-endian.
    pub bytes: Vec<u8>,
}

/// Parses the value of `--push`.
pub fn push(text: &str) -> Result<PushOption, String> {
    let (dtype, value) = text.split_once('=').ok_or("write TYPE=VALUE, as f32=0.5")?;
    let dtype = Dtype::parse(dtype)?;
    let bytes = dtype.parse_value(value)?;
    let text = value.to_owned();
    Ok(PushOption { dtype, text, bytes })
}

/// Parses `X[,Y[,Z]]`; axes that are left out are 1.
pub fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let axes: Vec<&str> = text.split(',').collect();
    if axes.len() > 3 {
        return Err("write X, X,Y or X,Y,Z".to_owned());
    }
    for (axis, text) in extent.iter_mut().zip(axes) {
        *axis = decimal(text)
            .ok_or_else(|| format!("`{text}` is no number; write X, X,Y or X,Y,Z"))
            .and_then(|n| {
                u32::try_from(n).map_err(|_| format!("{n} is above {}, the most", u32::MAX))
            })?;
    }
    Ok(extent)
}

/// Parses the value of `--repeat`.
pub fn repeat(text: &str) -> Result<u32, String> {
    match decimal(text).map(u32::try_from) {
        Some(Ok(n)) if n > 0 => Ok(n),
        _ => Err(format!("write how many launches, from 1 to {}", u32::MAX)),
    }
}

/// Digits and nothing else.
fn decimal(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_a_file_or_zeros() {
        let file = buffer("x=a=b.npy").unwrap();
        assert_eq!(file.name, "x");
        assert_eq!(file.source, BufferSource::File("a=b.npy".into()));
        let BufferSource::Zeros(ty) = buffer("0.1=zeros:f16:3,0").unwrap().source else {
            panic!("not zeros");
        };
        assert_eq!((ty.dtype, ty.shape, ty.bytes), (Dtype::F16, vec![3, 0], 0));
    }

    #[test]
    fn malformed_buffers_say_the_form() {
        for (text, says) in [
            ("x", "NAME=FILE.npy or NAME=zeros:DTYPE:SHAPE"),
            ("=x.npy", "NAME=FILE.npy"),
            ("x=", "NAME=FILE.npy"),
            ("x=zeros:f32", "zeros:f32:480,640"),
            ("x=zeros:float:3", "no type `float`; there are f16"),
            ("x=zeros:f32:", "`` is no extent"),
            ("x=zeros:f32:3,", "`` is no extent"),
            ("x=zeros:f32:-3", "`-3` is no extent"),
            ("x=zeros:f64:9223372036854775808", "larger than any memory"),
        ] {
            let error = buffer(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_macro_without_a_value_is_1() {
        assert_eq!(define("FAST").unwrap().value, "1");
        assert_eq!(define("N=a=b").unwrap().value, "a=b");
        assert_eq!(define("N=").unwrap().value, "");
        for text in ["", "=1", "2N", "A B", "F(x)=x"] {
            assert!(define(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_constant_has_a_numeric_id_and_a_plain_value() {
        assert_eq!(constant("3=true").unwrap().id, 3);
        for (text, value) in [
            ("0=0x10", ConstValue::Signed(16)),
            ("0=-1", ConstValue::Signed(-1)),
            ("0=18446744073709551615", ConstValue::Unsigned(u64::MAX)),
            ("0=1.5", ConstValue::Float(1.5)),
            ("0=false", ConstValue::Bool(false)),
        ] {
            assert_eq!(constant(text).unwrap().value, value);
        }
        for text in [
            "N=3",
            "-1=3",
            "4294967296=1",
            "1",
            "1=",
            "1=yes",
            "0=99999999999999999999",
        ] {
            assert!(constant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_push_value_is_checked_against_its_type() {
        assert_eq!(push("u8=7").unwrap().bytes, [7]);
        assert_eq!(push("f32=-1").unwrap().text, "-1");
        for text in ["7", "u8=256", "u32=", "vec3=1", "bool=1", "f32=one"] {
            assert!(push(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_extent_has_one_to_three_axes() {
        assert_eq!(extent("7").unwrap(), [7, 1, 1]);
        assert_eq!(extent("7,0,9").unwrap(), [7, 0, 9]);
        for text in ["", "1,", "1,2,3,4", "-1", "4294967296", "1.5", "+1", " 1"] {
            assert!(extent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn at_least_one_launch() {
        assert_eq!(repeat("3"), Ok(3));
        assert!(repeat("0").is_err());
        assert!(repeat("99999999999").is_err());
    }
}
