//! NumPy arrays in .npy files: read in any order, written in C order, little-endian.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use crate::dtype::{Dtype, NAMES};

/// NumPy's own limit on the dimensions of an array.
const MOST_DIMENSIONS: usize = 64;
/// Larger than any header of a plain array; NumPy itself stops at 10,000.
const MOST_HEADER_BYTES: usize = 1 << 16;
/// A plain array's header has one level of brackets inside its braces.
const MOST_NESTING: usize = 8;

/// What an array is, without its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayType {
    /// The type of its elements.
    pub dtype: Dtype,
    /// The extent of each dimension, outermost first.
    pub shape: Vec<u64>,
    /// The bytes of all elements.
    pub bytes: usize,
}

impl ArrayType {
    /// An array type; refused where its size does not fit into memory's address range.
    pub fn new(dtype: Dtype, shape: Vec<u64>) -> Result<Self, String> {
        if shape.len() > MOST_DIMENSIONS {
            let given = shape.len();
            return Err(format!(
                "{given} dimensions; NumPy has at most {MOST_DIMENSIONS}"
            ));
        }
        let elements = if shape.contains(&0) {
            Some(0)
        } else {
            shape.iter().try_fold(1u64, |all, &n| all.checked_mul(n))
        };
        let bytes = elements
            .and_then(|n| usize::try_from(n).ok())
            .and_then(|n| n.checked_mul(dtype.size_bytes()))
            .filter(|&n| isize::try_from(n).is_ok())
            .ok_or_else(|| format!("{dtype}{shape:?} is larger than any memory"))?;
        Ok(Self {
            dtype,
            shape,
            bytes,
        })
    }
}

/// An array: its numbers in C order, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// What it is.
    pub ty: ArrayType,
    /// Its numbers.
    pub data: Vec<u8>,
}

/// Reads a .npy file. The text of an error names neither the file nor ends in a full stop.
pub fn read_file(path: &Path) -> Result<Array, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    read(BufReader::new(file))
}

/// Reads an array from the bytes of a .npy file.
pub fn read(mut from: impl Read) -> Result<Array, String> {
    let header = read_header(&mut from)?;
    let (dtype, endianness) = element_type(&header.dtype())?;
    let ty = ArrayType::new(dtype, header.shape().to_vec())?;

    let mut data = Vec::new();
    let wanted = u64::try_from(ty.bytes).map_err(|error| error.to_string())?;
    from.take(wanted)
        .read_to_end(&mut data)
        .map_err(|error| error.to_string())?;
    if data.len() < ty.bytes {
        return Err(format!(
            "the file is cut short: {dtype}{:?} takes {} bytes, and it holds {}",
            ty.shape,
            ty.bytes,
            data.len()
        ));
    }
    if endianness == Endianness::Big {
        for element in data.chunks_exact_mut(dtype.size_bytes()) {
            element.reverse();
        }
    }
    if header.order() == Order::Fortran {
        data = to_c_order(&data, &ty.shape, dtype.size_bytes());
    }
    Ok(Array { ty, data })
}

/// Reads everything before the numbers.
///
/// The crate npyz trusts a header's length, its nesting and the product of its shape, so the first
/// two are bounded here and an overflow of the third is caught.
fn read_header(from: &mut impl Read) -> Result<NpyHeader, String> {
    let cut_short = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file is cut short inside its header".to_owned(),
        _ => error.to_string(),
    };
    let mut start = Vec::new();
    from.take(8)
        .read_to_end(&mut start)
        .map_err(|error| error.to_string())?;
    if start.starts_with(b"PK") {
        return Err("this is a .npz archive; save one array with numpy.save".to_owned());
    }
    if start.len() < 8 || !start.starts_with(b"\x93NUMPY") {
        return Err("this is not a .npy file".to_owned());
    }
    let length_bytes = if start[6] == 1 { 2 } else { 4 };
    let mut length = [0; 4];
    from.read_exact(&mut length[..length_bytes])
        .map_err(cut_short)?;
    start.extend_from_slice(&length[..length_bytes]);
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MOST_HEADER_BYTES {
        return Err(format!(
            "its header claims {length} bytes; this is no plain array"
        ));
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).map_err(cut_short)?;
    if text.iter().filter(|&&byte| b"([{".contains(&byte)).count() > MOST_NESTING {
        return Err("its header is no plain array's".to_owned());
    }
    start.extend_from_slice(&text);
    std::panic::catch_unwind(|| NpyHeader::from_reader(&start[..]))
        .map_err(|_| "its header is damaged or its shape too large".to_owned())?
        .map_err(|error| format!("its header is damaged: {error}"))
}

fn element_type(dtype: &DType) -> Result<(Dtype, Endianness), String> {
    let refuse = || {
        format!(
            "arrays of {} are not supported; there are {NAMES} and bool. \
             Convert it in Python with array.astype(..)",
            dtype.descr()
        )
    };
    let DType::Plain(plain) = dtype else {
        return Err(refuse());
    };
    let element = match (plain.type_char(), plain.size_field()) {
        (TypeChar::Bool, 1) => Dtype::Bool,
        (TypeChar::Uint, 1) => Dtype::U8,
        (TypeChar::Uint, 2) => Dtype::U16,
        (TypeChar::Uint, 4) => Dtype::U32,
        (TypeChar::Uint, 8) => Dtype::U64,
        (TypeChar::Int, 1) => Dtype::I8,
        (TypeChar::Int, 2) => Dtype::I16,
        (TypeChar::Int, 4) => Dtype::I32,
        (TypeChar::Int, 8) => Dtype::I64,
        (TypeChar::Float, 2) => Dtype::F16,
        (TypeChar::Float, 4) => Dtype::F32,
        (TypeChar::Float, 8) => Dtype::F64,
        _ => return Err(refuse()),
    };
    Ok((element, plain.endianness()))
}

/// Reorders elements whose first dimension is contiguous so that the last one is.
fn to_c_order(data: &[u8], shape: &[u64], element_bytes: usize) -> Vec<u8> {
    let extents: Vec<usize> = shape
        .iter()
        .map(|&n| usize::try_from(n).unwrap_or(usize::MAX))
        .collect();
    let mut strides = Vec::with_capacity(extents.len());
    let mut stride = element_bytes;
    for &extent in &extents {
        strides.push(stride);
        stride = stride.saturating_mul(extent);
    }
    let mut index = vec![0; extents.len()];
    let mut from = 0;
    let mut out = Vec::with_capacity(data.len());
    while out.len() < data.len() {
        out.extend_from_slice(&data[from..from + element_bytes]);
        for axis in (0..extents.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < extents[axis] {
                break;
            }
            from -= strides[axis] * extents[axis];
            index[axis] = 0;
        }
    }
    out
}

/// Writes an array to a .npy file.
pub fn write_file(path: &Path, ty: &ArrayType, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&header(ty))?;
    file.write_all(data)?;
    file.flush()
}

/// The bytes before the numbers: version 1.0, padded so that the numbers start at a multiple of 64.
///
/// 64 dimensions of 20 digits stay far below the 65,535 bytes of version 1.0.
fn header(ty: &ArrayType) -> Vec<u8> {
    let mut shape = String::new();
    for extent in &ty.shape {
        shape.push_str(&format!("{extent}, "));
    }
    let shape = match ty.shape.len() {
        1 => shape.trim_end_matches(' '),
        _ => shape.trim_end_matches(", "),
    };
    let descr = ty.dtype.npy();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if fortran { "True" } else { "False" };
        let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&u16::try_from(text.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for (dtype, shape) in [
            (Dtype::F32, vec![2, 3]),
            (Dtype::U8, vec![5]),
            (Dtype::I64, vec![]),
            (Dtype::F16, vec![0, 7]),
            (Dtype::Bool, vec![1, 1, 4]),
        ] {
            let ty = ArrayType::new(dtype, shape).unwrap();
            let data: Vec<u8> = (0..=255).cycle().take(ty.bytes).collect();
            let mut bytes = header(&ty);
            assert_eq!(bytes.len() % 64, 0);
            bytes.extend_from_slice(&data);
            assert_eq!(read(&bytes[..]).unwrap(), Array { ty, data });
        }
    }

    #[test]
    fn big_endian_becomes_little() {
        let array = read(&file("'>u2'", false, "(2,)", &[1, 2, 3, 4])[..]).unwrap();
        assert_eq!(array.data, [2, 1, 4, 3]);
        assert_eq!(array.ty.dtype, Dtype::U16);
    }

    #[test]
    fn fortran_order_becomes_c() {
        // The array [[0, 1, 2], [3, 4, 5]].
        let array = read(&file("'|u1'", true, "(2, 3)", &[0, 3, 1, 4, 2, 5])[..]).unwrap();
        assert_eq!(array.data, [0, 1, 2, 3, 4, 5]);
        let cube = read(&file("'|u1'", true, "(2, 2, 2)", &[0, 4, 2, 6, 1, 5, 3, 7])[..]).unwrap();
        assert_eq!(cube.data, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn an_empty_or_scalar_array_in_fortran_order_reads() {
        let empty = read(&file("'<f4'", true, "(3, 0)", &[])[..]).unwrap();
        assert!(empty.data.is_empty());
        assert_eq!(
            read(&file("'|u1'", true, "()", &[9])[..]).unwrap().data,
            [9]
        );
    }

    #[test]
    fn damaged_files_are_errors_that_say_what_is_wrong() {
        let nested = format!("'{}", "(".repeat(30_000));
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (Vec::new(), "not a .npy file"),
            (b"hello, world".to_vec(), "not a .npy file"),
            (b"PK\x03\x04abcdefgh".to_vec(), ".npz archive"),
            (
                b"\x93NUMPY\x01\x00\xff\x00{".to_vec(),
                "cut short inside its header",
            ),
            (
                b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
                "claims 4294967295 bytes",
            ),
            (
                b"\x93NUMPY\x09\x00\x01\x00\x00\x00\n".to_vec(),
                "unsupported version",
            ),
            (
                file("'<f4'", false, "(4,)", &[0; 12]),
                "takes 16 bytes, and it holds 12",
            ),
            (
                file("'<c8'", false, "(1,)", &[0; 8]),
                "arrays of '<c8' are not supported",
            ),
            (
                file("'|O'", false, "(1,)", &[0; 8]),
                "arrays of '|O' are not supported",
            ),
            (
                file("[('a', '<f4')]", false, "(1,)", &[0; 4]),
                "are not supported",
            ),
            (file("'<f4'", false, "(-1,)", &[]), "cannot be negative"),
            (file(&nested, false, "(1,)", &[]), "no plain array's"),
            (file("'<f4'", false, "(1,", &[]), "could not parse"),
            (
                file("'<f8'", false, "(4611686018427387904,)", &[]),
                "larger than any memory",
            ),
        ];
        for (bytes, says) in cases {
            let text = read(&bytes[..]).unwrap_err();
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn a_shape_whose_product_overflows_is_an_error() {
        let shape = "(4294967296, 4294967296, 4294967296)";
        assert!(read(&file("'<f4'", false, shape, &[])[..]).is_err());
    }

    #[test]
    fn zero_extents_hide_no_overflow() {
        let ty = ArrayType::new(Dtype::F32, vec![u64::MAX, u64::MAX, 0]).unwrap();
        assert_eq!(ty.bytes, 0);
        assert!(ArrayType::new(Dtype::U8, vec![1; 65]).is_err());
    }
}
