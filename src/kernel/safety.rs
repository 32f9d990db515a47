//! Whether a module may be loaded without `unsafe`.

use spirv::{AddressingModel, Capability, Op};

use crate::error::{Details, Error, ErrorKind, Result};
use crate::kernel::clamp;
use crate::kernel::glsl::ANY_INSTRUCTION;
use crate::kernel::inlined;
use crate::kernel::spirv::Module;

/// The bytes that the private variables of an invocation may take, those of each call counted. Vulkan has no limit for them;
/// SwiftShader ends the process at 128 KiB («Local variable exceeds stack size limit»), lavapipe
/// compiles for minutes.
const MAX_PRIVATE_BYTES: u64 = 64 << 10;

/// The instructions of a kernel with all its calls replaced.
const MAX_INSTRUCTIONS: u64 = 1 << 20;

/// Whether everything that a valid module does to memory can be kept inside: through descriptors
/// by robust buffer access, in its own variables by the clamping of indices.
///
/// # Errors
///
/// `Unsupported` where it cannot, saying what stands in the way; `LimitExceeded` where its private
/// variables, after specialization, are larger than every driver takes; `InvalidModule` where the
/// module is damaged.
pub(crate) fn check(module: &Module, specialization: &[(u32, u64)]) -> Result<()> {
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
            return Err(any_instruction());
        }
        if computes_pointers(instruction.op) {
            return Err(refusal(format!(
                "it computes with pointers (Op{:?} at word {})",
                instruction.op, instruction.start
            )));
        }
    }
    size(module, specialization)?;
    clamp::check(module).map_err(unchecked)
}

/// Whether the kernel, with every call replaced by what it calls, is as small as every driver takes
/// it.
fn size(module: &Module, specialization: &[(u32, u64)]) -> Result<()> {
    let whole = inlined::measure(module, specialization)?;
    if whole.instructions > MAX_INSTRUCTIONS {
        let asked = whole.instructions;
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            format!(
                "the kernel has {asked} instructions once its calls are replaced by what they \
                 call, checked kernels may have {MAX_INSTRUCTIONS}: beyond, drivers compile for \
                 minutes or run out of memory; call less from within what is called often"
            ),
        )
        .with_details(Details::Limit {
            name: "instructions of a kernel".to_owned(),
            asked,
            limit: MAX_INSTRUCTIONS,
        }));
    }
    let asked = whole.private_bytes;
    if asked <= MAX_PRIVATE_BYTES {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::LimitExceeded,
        format!(
            "the kernel's private variables take {asked} bytes an invocation, checked kernels may \
             take {MAX_PRIVATE_BYTES}: beyond, drivers that run on the CPU end the process; keep \
             large arrays in buffers or in shared memory, or load the kernel with the unsafe \
             `KernelBuilder::build_unchecked`"
        ),
    )
    .with_details(Details::Limit {
        name: "private memory of an invocation".to_owned(),
        asked,
        limit: MAX_PRIVATE_BYTES,
    }))
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

/// The refusal of a module that holds instructions which no compiler has checked.
#[cold]
pub(crate) fn any_instruction() -> Error {
    refusal(format_args!(
        "{ANY_INSTRUCTION} lets it hold any instruction, valid or not"
    ))
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

#[cfg(test)]
#[cfg(test_data)]
mod tests {
    use super::*;
    use crate::kernel::spirv::test_data::module;

    #[test]
    fn addresses_are_refused_with_the_way_on() {
        let error = check(&module("addresses"), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains("addresses"), "{text}");
        assert!(text.contains("`KernelBuilder::build_unchecked`"), "{text}");
    }

    #[test]
    fn private_arrays_that_drivers_die_of_are_refused() {
        let module = module("private_array");
        assert!(check(&module, &[]).is_ok());
        assert!(check(&module, &[(0, 8 << 10)]).is_ok());
        let error = check(&module, &[(0, 16 << 10)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        let Some(Details::Limit { asked, limit, .. }) = error.details() else {
            panic!("{error:?} has no limit");
        };
        assert!(*asked > 64 << 10 && *limit == 64 << 10, "{asked} {limit}");
    }
}
