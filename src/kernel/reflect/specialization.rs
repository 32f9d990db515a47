//! The specialization constants of a module.

use std::collections::BTreeMap;

use spirv::{Decoration, Op};

use crate::error::{Error, ErrorKind, Result};
use crate::kernel::interface::{Scalar, SpecConstant};
use crate::kernel::spirv::{Module, Types, literal};

/// The specialization constants, by id. Several constants may share an id; the first that has a
/// name stands for them.
pub(super) fn constants(module: &Module, types: &Types) -> Result<Vec<SpecConstant>> {
    let mut found: BTreeMap<u32, SpecConstant> = BTreeMap::new();
    for instruction in module.globals() {
        let id = instruction.result();
        let Some(spec_id) = module.decoration(id, Decoration::SpecId) else {
            continue;
        };
        let Some(ty) = types.scalar_of(module, id) else {
            continue;
        };
        let default_bits = match instruction.op {
            Op::SpecConstant => literal(&instruction, ty)?,
            Op::SpecConstantTrue => 1,
            Op::SpecConstantFalse => 0,
            _ => continue,
        };
        let new = SpecConstant {
            id: spec_id,
            name: module.name(id).to_owned(),
            ty,
            default_bits,
        };
        let known = found.entry(spec_id).or_insert_with(|| new.clone());
        if known.name.is_empty() {
            *known = new;
        }
    }
    Ok(found.into_values().collect())
}

/// Whether every id that is given a value is one of a specialization constant.
///
/// # Errors
///
/// `InvalidArgument` listing those there are.
pub(super) fn check(constants: &[SpecConstant], given: &[(u32, u64)]) -> Result<()> {
    let unknown: Vec<String> = given
        .iter()
        .filter(|(id, _)| constants.binary_search_by_key(id, |c| c.id).is_err())
        .map(|(id, _)| id.to_string())
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let there: Vec<String> = constants.iter().map(describe).collect();
    let there = if there.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has {}", there.join(", "))
    };
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "the module has no specialization constant with the id {}; {there}",
            unknown.join(", ")
        ),
    ))
}

fn describe(constant: &SpecConstant) -> String {
    let ty = match constant.ty {
        Scalar::Bool => "bool",
        other => other.name(),
    };
    match constant.name.as_str() {
        "" => format!("{} ({ty})", constant.id),
        name => format!("{} (`{name}`, {ty})", constant.id),
    }
}
