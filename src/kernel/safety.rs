//! Whether a module may be loaded without `unsafe`.

use spirv::{AddressingModel, Capability, Op};

use crate::error::{Details, Error, ErrorKind, Result};
use crate::kernel::clamp;
use crate::kernel::spirv::Module;

/// The extension of GLSL by which a shader puts instructions into its module that the compiler does
/// not check.
const ANY_INSTRUCTION: &str = "GL_EXT_spirv_intrinsics";

/// Whether everything that a valid module does to memory can be kept inside: through descriptors
/// by robust buffer access, in its own variables by the clamping of indices.
///
/// # Errors
///
/// `Unsupported` where it cannot, saying what stands in the way; `InvalidModule` where the module
/// is damaged.
pub(crate) fn check(module: &Module) -> Result<()> {
    for &capability in module.capabilities() {
        let why = match capability {
            Capability::PhysicalStorageBufferAddresses => {
                "it follows device addresses, which nothing keeps inside of a buffer"
            }
            Capability::VariablePointers | Capability::VariablePointersStorageBuffer => {
                "it computes with pointers (variable pointers), which cannot be followed to what \
                 they index"
            }
            _ => continue,
        };
        return Err(refusal(why));
    }
    if module.addressing() != AddressingModel::Logical {
        return Err(refusal("its addressing model is not Logical"));
    }
    for instruction in module.instructions() {
        if instruction.op == Op::SourceExtension
            && instruction
                .string(0)
                .is_ok_and(|(name, _)| name == ANY_INSTRUCTION)
        {
            return Err(refusal(format!(
                "{ANY_INSTRUCTION} lets it hold any instruction, valid or not"
            )));
        }
        if computes_pointers(instruction.op) {
            return Err(refusal(format!(
                "it computes with pointers (Op{:?} at word {})",
                instruction.op, instruction.start
            )));
        }
    }
    clamp::check(module).map_err(unchecked)
}

fn computes_pointers(op: Op) -> bool {
    matches!(
        op,
        Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain
            | Op::PtrDiff
            | Op::ConvertPtrToU
            | Op::ConvertUToPtr
            | Op::PtrCastToGeneric
            | Op::GenericCastToPtr
            | Op::GenericCastToPtrExplicit
            | Op::CopyMemorySized
            | Op::ImageTexelPointer
    )
}

#[cold]
pub(crate) fn refusal(why: impl core::fmt::Display) -> Error {
    let error = Error::new(
        ErrorKind::Unsupported,
        format!(
            "the kernel cannot be kept inside of its memory: {why}; load it with the unsafe \
             `KernelBuilder::build_unchecked`, whose contract you then keep"
        ),
    );
    error.with_details(Details::NotCheckable {
        why: why.to_string(),
    })
}

/// Adds the way on to an error for what cannot be kept inside.
#[cold]
fn unchecked(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unsupported => refusal(error).context("loading it safely"),
        _ => error,
    }
}
