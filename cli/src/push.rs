//! Push constants from the command line: values in order into the bytes of the block. Pure.

use vkaccel::{Member, PushBlock, Scalar, Type};

use crate::values::PushOption;

/// A number inside the push-constant block.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    /// As `params.scale[1]`.
    path: String,
    scalar: Scalar,
    offset: usize,
}

/// The bytes of the block, from offset 0, filled with the values in the order of members.
///
/// Members that are addresses are left as zeros: buffers go there.
pub fn fill(block: Option<&PushBlock>, values: &[PushOption]) -> Result<Vec<u8>, String> {
    let mut places = Vec::new();
    let mut bytes = Vec::new();
    if let Some(block) = block {
        bytes.resize(
            usize::try_from(block.size_bytes).map_err(|e| e.to_string())?,
            0,
        );
        for (position, member) in block.members.iter().enumerate() {
            if !matches!(member.ty, Type::Address { .. }) {
                let path = member_name(position, member);
                walk(&member.ty, path, offset_of(member), &mut places)?;
            }
        }
    }
    write(&places, values, &mut bytes)?;
    Ok(bytes)
}

fn member_name(position: usize, member: &Member) -> String {
    if member.name.is_empty() {
        format!("member {position}")
    } else {
        member.name.clone()
    }
}

fn offset_of(member: &Member) -> usize {
    usize::try_from(member.offset_bytes).unwrap_or(usize::MAX)
}

/// Adds each number of `ty`: vectors by component, matrices by column, arrays and structs in order.
fn walk(ty: &Type, path: String, offset: usize, out: &mut Vec<Place>) -> Result<(), String> {
    let step = |bytes: u32, times: u32| {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        offset.saturating_add(bytes.saturating_mul(times))
    };
    match ty {
        Type::Scalar(scalar) => out.push(Place {
            path,
            scalar: *scalar,
            offset,
        }),
        Type::Vector { scalar, len } => {
            for index in 0..*len {
                let offset = step(scalar.size_bytes(), index);
                walk(
                    &Type::Scalar(*scalar),
                    format!("{path}[{index}]"),
                    offset,
                    out,
                )?;
            }
        }
        Type::Matrix {
            scalar,
            columns,
            rows,
            stride_bytes,
            row_major,
        } => {
            for column in 0..*columns {
                for row in 0..*rows {
                    let (line, within) = if *row_major {
                        (row, column)
                    } else {
                        (column, row)
                    };
                    let offset =
                        step(*stride_bytes, line) + step(scalar.size_bytes(), within) - offset;
                    let path = format!("{path}[{column}][{row}]");
                    walk(&Type::Scalar(*scalar), path, offset, out)?;
                }
            }
        }
        Type::Array {
            element,
            len: Some(len),
            stride_bytes,
        } => {
            for index in 0..*len {
                let offset = step(*stride_bytes, index);
                walk(element, format!("{path}[{index}]"), offset, out)?;
            }
        }
        Type::Struct { members, .. } => {
            for (position, member) in members.iter().enumerate() {
                let path = format!("{path}.{}", member_name(position, member));
                let offset = offset.saturating_add(offset_of(member));
                walk(&member.ty, path, offset, out)?;
            }
        }
        _ => {
            return Err(format!(
                "the push constant `{path}` cannot be given on the command line: \
                 only numbers can, and addresses that are members of their own"
            ));
        }
    }
    Ok(())
}

fn write(places: &[Place], values: &[PushOption], bytes: &mut [u8]) -> Result<(), String> {
    if places.len() != values.len() {
        return Err(wrong_number(places, values.len()));
    }
    for (place, value) in places.iter().zip(values) {
        if !value.dtype.is(place.scalar) {
            return Err(format!(
                "--push {}={}: the push constant `{}` is {}; the shader takes {}",
                value.dtype,
                value.text,
                place.path,
                place.scalar.name(),
                list(places)
            ));
        }
        bytes
            .get_mut(place.offset..place.offset + value.bytes.len())
            .ok_or_else(|| format!("the push constant `{}` is outside its block", place.path))?
            .copy_from_slice(&value.bytes);
    }
    Ok(())
}

fn wrong_number(places: &[Place], given: usize) -> String {
    if places.is_empty() {
        return format!("{given} --push given, and the shader takes no push constants");
    }
    let rest = match places.get(given) {
        Some(next) => format!(
            "the next is --push {}=.. for `{}`",
            next.scalar.name(),
            next.path
        ),
        None => format!("{} too many", given - places.len()),
    };
    format!(
        "{given} --push given, and the shader takes {}: {}; {rest}",
        places.len(),
        list(places)
    )
}

/// As `n: u32, scale: f32`.
fn list(places: &[Place]) -> String {
    let entries: Vec<String> = places
        .iter()
        .map(|place| format!("{}: {}", place.path, place.scalar.name()))
        .collect();
    entries.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::push;

    fn places(ty: &Type) -> Vec<(String, usize)> {
        let mut out = Vec::new();
        walk(ty, "m".to_owned(), 16, &mut out).unwrap();
        out.into_iter()
            .map(|place| (place.path, place.offset))
            .collect()
    }

    fn place(path: &str, scalar: Scalar, offset: usize) -> Place {
        let path = path.to_owned();
        Place {
            path,
            scalar,
            offset,
        }
    }

    #[test]
    fn vectors_and_arrays_are_filled_element_by_element() {
        let vector = Type::Vector {
            scalar: Scalar::F32,
            len: 2,
        };
        let expected = [("m[0]".to_owned(), 16), ("m[1]".to_owned(), 20)];
        assert_eq!(places(&vector), expected);
        let array = Type::Array {
            element: Box::new(vector),
            len: Some(2),
            stride_bytes: 16,
        };
        let offsets: Vec<usize> = places(&array).into_iter().map(|place| place.1).collect();
        assert_eq!(offsets, [16, 20, 32, 36]);
    }

    #[test]
    fn matrices_are_filled_by_column_however_they_are_stored() {
        let matrix = |row_major| Type::Matrix {
            scalar: Scalar::F32,
            columns: 2,
            rows: 3,
            stride_bytes: 16,
            row_major,
        };
        let by_column = [16, 20, 24, 32, 36, 40];
        let by_row = [16, 32, 48, 20, 36, 52];
        for (row_major, expected) in [(false, by_column), (true, by_row)] {
            let offsets: Vec<usize> = places(&matrix(row_major))
                .into_iter()
                .map(|place| place.1)
                .collect();
            assert_eq!(offsets, expected);
        }
        assert_eq!(places(&matrix(true))[1].0, "m[0][1]");
    }

    #[test]
    fn values_land_at_their_offsets() {
        let places = [place("n", Scalar::U32, 0), place("scale", Scalar::F32, 8)];
        let mut bytes = [0; 12];
        let values = [push("u32=7").unwrap(), push("f32=1").unwrap()];
        write(&places, &values, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f]);
    }

    #[test]
    fn a_value_of_another_type_says_what_the_shader_takes() {
        let places = [place("n", Scalar::I32, 0)];
        let text = write(&places, &[push("u32=7").unwrap()], &mut [0; 4]).unwrap_err();
        assert_eq!(
            text,
            "--push u32=7: the push constant `n` is i32; the shader takes n: i32"
        );
    }

    #[test]
    fn a_wrong_number_of_values_lists_what_the_shader_takes() {
        let places = [place("n", Scalar::U32, 0), place("scale", Scalar::F32, 4)];
        assert_eq!(
            wrong_number(&places, 1),
            "1 --push given, and the shader takes 2: n: u32, scale: f32; \
             the next is --push f32=.. for `scale`"
        );
        assert!(wrong_number(&places, 3).ends_with("1 too many"));
        assert!(
            fill(None, &[push("u32=1").unwrap()])
                .unwrap_err()
                .contains("no push constants")
        );
        assert_eq!(fill(None, &[]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        let address = Type::Address {
            block_name: String::new(),
            members: Vec::new(),
            align_bytes: 8,
        };
        let text = walk(&address, "p.q".to_owned(), 0, &mut Vec::new()).unwrap_err();
        assert!(text.contains("`p.q`"), "{text}");
    }
}
