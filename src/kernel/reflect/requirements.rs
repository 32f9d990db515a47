//! The device features that a module needs.

use spirv::{Op, StorageClass};

use crate::device::{Feature, FeatureSet};
use crate::error::Result;
use crate::kernel::interface::Scalar;
use crate::kernel::spirv::{Instruction, Module, Need, Ty, Types, need};

/// The features that a module's capabilities and instructions need; blocks' layouts and the
/// workgroup's size may add to them.
pub(super) fn features(module: &Module, types: &Types) -> Result<FeatureSet> {
    let mut features = FeatureSet::EMPTY;
    let (mut int64_atomics, mut float32_adds) = (false, false);
    for &capability in module.capabilities() {
        // Capabilities that nothing covers were refused when the module was read.
        match need(capability) {
            Some(Need::Feature(feature)) => features.insert(feature),
            Some(Need::Int64Atomics) => int64_atomics = true,
            Some(Need::Float32AtomicAdd) => float32_adds = true,
            Some(Need::Nothing) | None => {}
        }
    }
    for instruction in module.instructions() {
        if let Some(feature) = atomic(module, types, &instruction)? {
            features.insert(feature);
        }
        if subgroup(instruction.op) && extended(module, types, &instruction) {
            features.insert(Feature::ShaderSubgroupExtendedTypes);
        }
    }
    // The capability alone needs one of the two.
    let either = |a, b| !features.contains(a) && !features.contains(b);
    let (buffer, shared) = (
        Feature::ShaderBufferInt64Atomics,
        Feature::ShaderSharedInt64Atomics,
    );
    let no_int64 = int64_atomics && either(buffer, shared);
    let (buffer_add, shared_add) = (
        Feature::ShaderBufferFloat32AtomicAdd,
        Feature::ShaderSharedFloat32AtomicAdd,
    );
    let no_float32 = float32_adds && either(buffer_add, shared_add);
    if no_int64 {
        features.insert(buffer);
    }
    if no_float32 {
        features.insert(buffer_add);
    }
    Ok(features)
}

/// The feature that an atomic instruction needs, by its type and the memory it works on.
fn atomic(
    module: &Module,
    types: &Types,
    instruction: &Instruction<'_>,
) -> Result<Option<Feature>> {
    let number = instruction.op as u32;
    let core = (Op::AtomicLoad as u32..=Op::AtomicXor as u32).contains(&number);
    if !core && instruction.op != Op::AtomicFAddEXT {
        return Ok(None);
    }
    let (pointer, _) = types.of(module, instruction.operand(0)?)?;
    let Ty::Pointer { class, pointee } = types.get(pointer)? else {
        return Ok(None);
    };
    let shared = *class == StorageClass::Workgroup;
    let Ty::Scalar(scalar) = types.get(*pointee)? else {
        return Ok(None);
    };
    Ok(match (scalar, instruction.op, shared) {
        (Scalar::I64 | Scalar::U64, _, false) => Some(Feature::ShaderBufferInt64Atomics),
        (Scalar::I64 | Scalar::U64, _, true) => Some(Feature::ShaderSharedInt64Atomics),
        (Scalar::F32, Op::AtomicFAddEXT, false) => Some(Feature::ShaderBufferFloat32AtomicAdd),
        (Scalar::F32, Op::AtomicFAddEXT, true) => Some(Feature::ShaderSharedFloat32AtomicAdd),
        (Scalar::F32, _, false) => Some(Feature::ShaderBufferFloat32Atomics),
        (Scalar::F32, _, true) => Some(Feature::ShaderSharedFloat32Atomics),
        _ => None,
    })
}

/// Whether an instruction works across a subgroup.
fn subgroup(op: Op) -> bool {
    let number = op as u32;
    (Op::GroupNonUniformElect as u32..=Op::GroupNonUniformQuadSwap as u32).contains(&number)
}

/// Whether an instruction takes or gives numbers that are not 32 bits wide.
fn extended(module: &Module, types: &Types, instruction: &Instruction<'_>) -> bool {
    let narrow_or_wide = |scalar: &Scalar| {
        matches!(
            scalar,
            Scalar::U8
                | Scalar::I8
                | Scalar::U16
                | Scalar::I16
                | Scalar::U64
                | Scalar::I64
                | Scalar::F16
        )
    };
    let holds = |ty: u32| match types.find(ty) {
        Some(Ty::Scalar(scalar)) => narrow_or_wide(scalar),
        Some(Ty::Vector { component, .. }) => narrow_or_wide(component),
        _ => false,
    };
    // The value, where there is one, follows the scope, or the scope and the kind of operation.
    let operands = instruction
        .operands()
        .get(1..3.min(instruction.operands().len()));
    holds(instruction.result_type())
        || operands.unwrap_or(&[]).iter().any(|&id| {
            module
                .find(id)
                .is_some_and(|defined| holds(defined.result_type()))
        })
}
