//! How many bytes variables of the shader's own take: shared and private memory.

use std::collections::HashMap;

use spirv::StorageClass;

use super::lengths::array_len;
use crate::error::Result;
use crate::kernel::interface::Scalar;
use crate::kernel::spirv::{Constants, Module, Ty, Types, unsupported};

/// The size and the alignment of a type in bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    size: u64,
    align: u64,
}

/// The bytes that these variables take, laid out one after the other as std430 lays out the members
/// of a block.
///
/// # Errors
///
/// `Unsupported` where the length of an array cannot be computed.
pub(crate) fn bytes(
    module: &Module,
    types: &Types,
    constants: &Constants<'_>,
    variables: &[u32],
) -> Result<u64> {
    if variables.is_empty() {
        return Ok(0);
    }
    // Types come before what is made of them, so one pass in order knows all of them.
    let mut places: HashMap<u32, Place> = HashMap::new();
    for instruction in module.globals() {
        let id = instruction.result();
        if let Some(ty) = types.find(id)
            && let Some(place) = place(constants, &places, ty)
        {
            places.insert(id, place);
        }
    }
    let mut end = 0_u64;
    for &variable in variables {
        let (_, ty) = types.of(module, variable)?;
        let Ty::Pointer { pointee, .. } = ty else {
            continue;
        };
        let place = places.get(pointee).ok_or_else(|| {
            unsupported(format!(
                "the size of the variable `{}` (%{variable}) cannot be computed; its arrays need \
                 at least 1 element, and lengths made by integer arithmetic on specialization \
                 constants",
                module.name(variable)
            ))
        })?;
        end = padded(end, place.align).saturating_add(place.size);
    }
    Ok(end)
}

fn place(constants: &Constants<'_>, known: &HashMap<u32, Place>, ty: &Ty) -> Option<Place> {
    Some(match ty {
        Ty::Scalar(scalar) => of_scalar(*scalar),
        Ty::Vector { component, len } => vector(*component, *len),
        Ty::Matrix { column, columns } => {
            let column = *known.get(column)?;
            let stride = padded(column.size, column.align);
            Place {
                size: stride.saturating_mul(u64::from(*columns)),
                align: column.align,
            }
        }
        Ty::Array { element, len } => {
            let element = *known.get(element)?;
            let len = array_len(constants, *len).ok()?;
            Place {
                size: padded(element.size, element.align).saturating_mul(len),
                align: element.align,
            }
        }
        Ty::Struct { members } => {
            let mut all = Place { size: 0, align: 1 };
            for member in members {
                let member = *known.get(member)?;
                all.align = all.align.max(member.align);
                all.size = padded(all.size, member.align).saturating_add(member.size);
            }
            all.size = padded(all.size, all.align);
            all
        }
        Ty::Pointer {
            class: StorageClass::PhysicalStorageBuffer,
            ..
        } => Place { size: 8, align: 8 },
        Ty::Pointer { .. } | Ty::RuntimeArray { .. } | Ty::Other(_) => return None,
    })
}

fn of_scalar(scalar: Scalar) -> Place {
    let size = u64::from(scalar.size_bytes());
    Place { size, align: size }
}

fn vector(component: Scalar, len: u32) -> Place {
    let scalar = u64::from(component.size_bytes());
    Place {
        size: scalar * u64::from(len),
        align: scalar * if len == 2 { 2 } else { 4 },
    }
}

fn padded(size: u64, align: u64) -> u64 {
    size.checked_next_multiple_of(align).unwrap_or(u64::MAX)
}
