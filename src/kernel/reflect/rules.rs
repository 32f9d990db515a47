//! By which rules a block is laid out, and which feature that needs.

use super::layout::size_of_type;
use crate::device::Feature;
use crate::kernel::interface::{Member, Type};

/// Rules for the places of members, each looser than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// std140: arrays and structs at multiples of 16 bytes.
    Extended,
    /// std430.
    Base,
    /// As C does: everything at multiples of its numbers' size.
    Scalar,
}

/// The feature that a uniform block's layout needs.
pub(super) fn uniform_feature(members: &[Member]) -> Option<Feature> {
    if follows(members, Rules::Extended) {
        None
    } else if follows(members, Rules::Base) {
        Some(Feature::UniformBufferStandardLayout)
    } else {
        Some(Feature::ScalarBlockLayout)
    }
}

/// The feature that the layout of a block in a storage buffer, in push constants or behind an
/// address needs.
pub(super) fn storage_feature(members: &[Member]) -> Option<Feature> {
    (!follows(members, Rules::Base)).then_some(Feature::ScalarBlockLayout)
}

/// Whether members, by offset, are placed by the rules; vectors may lie anywhere where they do not
/// cross a boundary of 16 bytes, as Vulkan 1.1 allows.
fn follows(members: &[Member], rules: Rules) -> bool {
    let mut free_from = 0;
    members.iter().all(|member| {
        let offset = u64::from(member.offset_bytes);
        let size = size_of_type(&member.ty);
        let placed = match &member.ty {
            Type::Vector { scalar, .. } if rules != Rules::Scalar => {
                let whole = if size <= 16 {
                    offset / 16 == (offset + size - 1) / 16
                } else {
                    offset % 16 == 0
                };
                whole && offset % u64::from(scalar.size_bytes()) == 0
            }
            ty => offset % align(ty, rules) == 0,
        };
        let fits = placed && offset >= free_from && inside(&member.ty, rules);
        free_from = offset + size;
        let padded = matches!(
            member.ty,
            Type::Array { .. } | Type::Struct { .. } | Type::Matrix { .. }
        );
        if padded && rules != Rules::Scalar {
            free_from = free_from.next_multiple_of(align(&member.ty, rules));
        }
        fits
    })
}

/// Whether what is inside of a type is placed by the rules.
fn inside(ty: &Type, rules: Rules) -> bool {
    match ty {
        Type::Scalar(_) | Type::Vector { .. } => true,
        Type::Matrix { stride_bytes, .. } => u64::from(*stride_bytes) % align(ty, rules) == 0,
        Type::Array {
            element,
            stride_bytes,
            ..
        } => u64::from(*stride_bytes) % align(ty, rules) == 0 && inside(element, rules),
        Type::Struct { members, .. } => follows(members, rules),
        // What lies behind an address is a storage block of its own.
        Type::Address { members, .. } => match rules {
            Rules::Scalar => follows(members, Rules::Scalar),
            Rules::Extended | Rules::Base => follows(members, Rules::Base),
        },
    }
}

fn align(ty: &Type, rules: Rules) -> u64 {
    let vector = |scalar: u32, len: u32| match (rules, len) {
        (Rules::Scalar, _) | (_, 1) => u64::from(scalar),
        (_, 2) => u64::from(scalar) * 2,
        _ => u64::from(scalar) * 4,
    };
    let extended = |align: u64| match rules {
        Rules::Extended => align.next_multiple_of(16),
        Rules::Base | Rules::Scalar => align,
    };
    match ty {
        Type::Scalar(scalar) => u64::from(scalar.size_bytes()),
        Type::Vector { scalar, len } => vector(scalar.size_bytes(), *len),
        Type::Matrix {
            scalar,
            columns,
            rows,
            row_major,
            ..
        } => {
            let len = if *row_major { *columns } else { *rows };
            extended(vector(scalar.size_bytes(), len))
        }
        Type::Array { element, .. } => extended(align(element, rules)),
        Type::Struct { members, .. } => {
            let all = members.iter().map(|member| align(&member.ty, rules));
            extended(all.max().unwrap_or(1))
        }
        Type::Address { .. } => 8,
    }
}
