//! The lengths of arrays, after specialization.

use spirv::{Decoration, Op};

use crate::error::{Error, ErrorKind, Result};
use crate::kernel::spirv::{Constants, Module, Ty, Types, damaged, unsupported};

/// How deep constants may be computed from each other to be named in a text.
const MAX_DEPTH: u32 = 16;

/// Whether every array has an element.
///
/// # Errors
///
/// `InvalidArgument` where a specialization constant leaves it none; as [`array_len`].
pub(super) fn no_empty_arrays(
    module: &Module,
    types: &Types,
    constants: &Constants<'_>,
) -> Result<()> {
    for instruction in module.globals() {
        let array = instruction.result();
        let Some(Ty::Array { len, .. }) = types.find(array) else {
            continue;
        };
        if let Some(constant) = constants.get(*len)
            && constant.specialized
            && constant.integer() < 1
        {
            return Err(empty(module, types, array, *len, constant.integer()));
        }
        array_len(constants, *len)?;
    }
    Ok(())
}

/// The length of an array.
///
/// # Errors
///
/// `InvalidModule` where it is less than 1; `Unsupported` where it cannot be computed.
pub(super) fn array_len(constants: &Constants<'_>, id: u32) -> Result<u64> {
    let constant = constants.get(id).ok_or_else(|| {
        unsupported(format!(
            "an array's length is computed as %{id} in a way that cannot be followed; use integer \
             arithmetic on specialization constants"
        ))
    })?;
    match u64::try_from(constant.integer()) {
        Ok(len) if len >= 1 => Ok(len),
        _ => Err(damaged(format_args!(
            "an array has {} elements (%{id})",
            constant.integer()
        ))),
    }
}

#[cold]
fn empty(module: &Module, types: &Types, array: u32, len: u32, elements: i128) -> Error {
    let mut from = Vec::new();
    origins(module, len, 0, &mut from);
    let from = match from.len() {
        0 => "specialization constants".to_owned(),
        1 => format!("the specialization constant {}", from[0]),
        _ => format!("the specialization constants {}", from.join(", ")),
    };
    let array = match array_name(module, types, array) {
        Some(name) => format!("the array `{name}`"),
        None => format!("an array (%{array})"),
    };
    Error::new(
        ErrorKind::InvalidArgument,
        format!("{array} would have {elements} elements by {from}, and needs at least 1"),
    )
}

/// The specialization constants that a constant is made of, with their names.
fn origins(module: &Module, id: u32, depth: u32, found: &mut Vec<String>) {
    if let Some(spec_id) = module.decoration(id, Decoration::SpecId) {
        let text = match module.name(id) {
            "" => spec_id.to_string(),
            name => format!("{spec_id} (`{name}`)"),
        };
        if !found.contains(&text) {
            found.push(text);
        }
        return;
    }
    let computed = module.find(id).filter(|i| i.op == Op::SpecConstantOp);
    if let Some(instruction) = computed.filter(|_| depth < MAX_DEPTH && found.len() < 8) {
        for &operand in instruction.operands().iter().skip(1) {
            origins(module, operand, depth + 1, found);
        }
    }
}

/// The name of a variable that is such an array, or of a member.
fn array_name(module: &Module, types: &Types, array: u32) -> Option<String> {
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    module.instructions().find_map(|instruction| {
        let id = instruction.result();
        match (instruction.op, types.find(id)) {
            (Op::Variable, _) => match types.find(instruction.result_type())? {
                Ty::Pointer { pointee, .. } if *pointee == array => named(module.name(id)),
                _ => None,
            },
            (_, Some(Ty::Struct { members })) => (0..)
                .zip(members)
                .find(|&(_, &member)| member == array)
                .and_then(|(index, _)| named(module.member_name(id, index))),
            _ => None,
        }
    })
}
