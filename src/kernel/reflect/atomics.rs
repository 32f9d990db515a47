//! Where the atomic instructions of a module work.

use std::collections::HashSet;

use spirv::Op;

use crate::error::Result;
use crate::kernel::spirv::{Constants, Module, Ty, Types};

/// The variables whose blocks end in an array of the buffer's length that atomics work on.
pub(super) fn atomic_tails(
    module: &Module,
    types: &Types,
    constants: &Constants<'_>,
) -> Result<HashSet<u32>> {
    let atomics = atomic_pointers(module);
    let mut found = HashSet::new();
    for instruction in module.instructions() {
        let is_chain = matches!(instruction.op, Op::AccessChain | Op::InBoundsAccessChain);
        if !is_chain || !atomics.contains(&instruction.result()) {
            continue;
        }
        let block = instruction.operand(0)?;
        let (_, pointer) = types.of(module, block)?;
        let Ty::Pointer { pointee, .. } = pointer else {
            continue;
        };
        let Ty::Struct { members } = types.get(*pointee)? else {
            continue;
        };
        let member = instruction
            .operands()
            .get(1)
            .and_then(|&id| constants.get(id));
        let member = member.and_then(|member| usize::try_from(member.integer()).ok());
        let ty = member.and_then(|member| members.get(member));
        if let Some(&ty) = ty
            && matches!(types.get(ty)?, Ty::RuntimeArray { .. })
        {
            found.insert(block);
        }
    }
    Ok(found)
}

/// The pointers that the atomic instructions of a module use.
pub(crate) fn atomic_pointers(module: &Module) -> HashSet<u32> {
    module
        .instructions()
        .filter(|instruction| is_atomic(instruction.op))
        .filter_map(|instruction| instruction.operand(0).ok())
        .collect()
}

pub(crate) fn is_atomic(op: Op) -> bool {
    matches!(
        op,
        Op::AtomicLoad
            | Op::AtomicStore
            | Op::AtomicExchange
            | Op::AtomicCompareExchange
            | Op::AtomicCompareExchangeWeak
            | Op::AtomicIIncrement
            | Op::AtomicIDecrement
            | Op::AtomicIAdd
            | Op::AtomicISub
            | Op::AtomicSMin
            | Op::AtomicUMin
            | Op::AtomicSMax
            | Op::AtomicUMax
            | Op::AtomicAnd
            | Op::AtomicOr
            | Op::AtomicXor
            | Op::AtomicFlagTestAndSet
            | Op::AtomicFlagClear
            | Op::AtomicFMinEXT
            | Op::AtomicFMaxEXT
            | Op::AtomicFAddEXT
    )
}
