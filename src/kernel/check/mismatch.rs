//! The errors of arguments that don't fit; all of them off the path of a good launch.

use super::describe::{Slot, given, given_memory, signature, verb};
use crate::error::{Details, Error, ErrorKind, text};
use crate::kernel::interface::{Access, Binding, BindingKind, Interface, Member, Scalar, Type};
use crate::kernel::scalar::Number;
use crate::kernel::value::{ArgValue, MemoryArg, Misuse, Owner};

fn mismatch(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::ArgumentMismatch, text)
}

fn argument(index: usize, slot: Slot<'_>) -> String {
    format!("argument {index} ({})", slot.label())
}

/// The number of arguments is wrong.
#[cold]
pub(super) fn count(interface: &Interface, given: usize) -> Error {
    let expected = interface.argument_count();
    let arguments = match expected {
        0 => String::from("no arguments"),
        1 => format!("1 argument ({})", signature(interface)),
        _ => format!("{expected} arguments ({})", signature(interface)),
    };
    let was = match given {
        0 => String::from("none was"),
        1 => String::from("1 was"),
        _ => format!("{given} were"),
    };
    mismatch(format!("it takes {arguments}, and {was} given"))
        .with_details(Details::Count { expected, given })
}

/// An argument's kind is wrong, or its value does not fit.
#[cold]
pub(super) fn kind<M>(index: usize, slot: Slot<'_>, value: &ArgValue<'_, M>) -> Error {
    let expected = slot.takes();
    let given = given(value);
    let advice = advice(slot, value).map_or_else(String::new, |advice| format!("; {advice}"));
    mismatch(format!(
        "{} is {expected}, and {given} was given{advice}",
        argument(index, slot)
    ))
    .with_details(Details::Argument {
        index,
        name: slot.name().to_owned(),
        expected,
        given,
    })
}

fn advice<M>(slot: Slot<'_>, value: &ArgValue<'_, M>) -> Option<String> {
    let ty = match slot {
        Slot::Binding(_) => return Some("pass a buffer or a view".into()),
        Slot::Member(member) => &member.ty,
    };
    match (ty, value) {
        (Type::Scalar(scalar), ArgValue::Number(number)) => number_advice(*scalar, *number),
        (Type::Scalar(_), _) => None,
        (Type::Address { .. }, _) => Some("pass a buffer or a view".into()),
        (_, ArgValue::Number(_)) => Some("pass all of it with `Arg::block`".into()),
        _ => Some("pass its bytes with `Arg::block`".into()),
    }
}

fn number_advice(scalar: Scalar, number: Number) -> Option<String> {
    match (scalar, number) {
        (Scalar::F64, Number::F16(_) | Number::F32(_)) => {
            Some("make it with `Arg::f64`, which keeps its precision".into())
        }
        (Scalar::F16, Number::F32(_) | Number::F64(_)) => Some("make it with `Arg::f16`".into()),
        (Scalar::F32, Number::F16(_) | Number::F64(_)) => Some("pass a bare `f32`".into()),
        (Scalar::F16 | Scalar::F32 | Scalar::F64, _) => {
            Some("integers are not made floats; pass a float".into())
        }
        (_, Number::F16(_) | Number::F32(_) | Number::F64(_)) => {
            Some("floats are not made integers; pass an integer".into())
        }
        _ => Some(format!("the value does not fit {}", scalar.name())),
    }
}

/// An access was promised that the shader's declaration excludes.
#[cold]
pub(super) fn access(index: usize, slot: Slot<'_>, declared: Access, promised: Access) -> Error {
    mismatch(format!(
        "{} is memory that the shader {} by its declaration, and the launch promises that it only \
         {} it; leave the promise out",
        argument(index, slot),
        only(declared),
        verb(promised),
    ))
    .with_details(Details::Argument {
        index,
        name: slot.name().to_owned(),
        expected: format!("memory that the shader {}", only(declared)),
        given: format!("the promise that it only {} it", verb(promised)),
    })
}

const fn only(access: Access) -> &'static str {
    match access {
        Access::Read => "only reads",
        Access::Write => "only writes",
        Access::ReadWrite => "reads and writes",
    }
}

/// An argument was put together in a way that means nothing.
#[cold]
pub(super) fn misuse(index: usize, misuse: Misuse) -> Error {
    match misuse {
        Misuse::NotMemory { method, given } => mismatch(format!(
            "argument {index}: `{method}` is for a buffer or a view, and was used on {given}"
        ))
        .with_details(Details::Argument {
            index,
            name: String::new(),
            expected: String::from("a buffer or a view"),
            given: String::from(given),
        }),
        Misuse::ReadAndWrite => mismatch(format!(
            "argument {index}: `Arg::read` and `Arg::write` together leave no access; use neither \
             for memory that is read and written"
        )),
    }
}

/// A block of bytes has another size than the member, or the rest of the push-constant block.
#[cold]
pub(super) fn block_size(
    index: usize,
    member: &Member,
    block_end: Option<u32>,
    expected: u32,
    given: usize,
) -> Error {
    let slot = Slot::Member(member);
    let what = match block_end {
        Some(end) => format!(
            "is the last one, so it fills the push-constant block from byte {} to byte {end}: \
             {}",
            member.offset_bytes,
            text::count(expected, "byte")
        ),
        None => format!("is {}", slot.takes()),
    };
    mismatch(format!(
        "{} {what}, and a block of {} was given; the shader's offsets count, with the \
         padding between members, and only padding at the end, up to a multiple of 16, is optional",
        argument(index, slot),
        text::count(given, "byte"),
    ))
    .with_details(Details::Size {
        expected: u64::from(expected),
        given: given as u64,
    })
}

/// A buffer ends before the fixed part of the block that the shader lays over it.
#[cold]
pub(super) fn too_small<M>(
    index: usize,
    slot: Slot<'_>,
    fixed_bytes: u64,
    memory: &MemoryArg<'_, M>,
) -> Error {
    mismatch(format!(
        "{} needs at least the {} of the block that the shader declares, and {} \
         was given",
        argument(index, slot),
        text::count(fixed_bytes, "byte"),
        given_memory(memory),
    ))
    .with_details(Details::Size {
        expected: fixed_bytes,
        given: memory.len_bytes,
    })
}

/// A buffer without an element for atomics to work on.
#[cold]
pub(super) fn no_element<M>(
    index: usize,
    slot: Slot<'_>,
    binding: &Binding,
    memory: &MemoryArg<'_, M>,
) -> Error {
    mismatch(format!(
        "{} needs at least {}, since the shader's atomics work on the array at the block's end, whose \
         elements take {}; {} was given; pass a buffer of one element or more",
        argument(index, slot),
        text::count(binding.atomic_bytes, "byte"),
        text::count(binding.stride_bytes, "byte"),
        given_memory(memory),
    ))
    .with_details(Details::Size {
        expected: binding.atomic_bytes,
        given: memory.len_bytes,
    })
}

/// An empty buffer for a descriptor of a launch that runs something.
#[cold]
pub(super) fn empty(index: usize, slot: Slot<'_>) -> Error {
    let expected = slot.takes();
    mismatch(format!(
        "{} is {expected}, and an empty buffer was given, although the block holds more than an \
         array of elements of 2 bytes and more, or atomics work on large ones; launch no workgroups when there is nothing to do, \
         or pass a buffer of one element that the shader leaves alone",
        argument(index, slot),
    ))
    .with_details(Details::Argument {
        index,
        name: slot.name().to_owned(),
        expected,
        given: String::from("an empty buffer"),
    })
}

/// A view starts where the device takes no descriptor.
#[cold]
pub(super) fn misaligned<M: Owner>(
    index: usize,
    slot: Slot<'_>,
    kind: BindingKind,
    memory: &MemoryArg<'_, M>,
    alignment: u64,
) -> Error {
    let name = match kind {
        BindingKind::Storage => "minStorageBufferOffsetAlignment",
        BindingKind::Uniform => "minUniformBufferOffsetAlignment",
    };
    let offset = memory
        .offset_bytes
        .saturating_sub(memory.owner.start_bytes());
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "{} is a view that starts at byte {offset} of its buffer, and the device binds memory \
             at multiples of {alignment} bytes only ({name}); start the view at such a byte, pass \
             the whole buffer and an index, copy the view into a buffer of its own, or let the \
             shader take it by address",
            argument(index, slot),
        ),
    )
    .with_details(Details::Alignment {
        name: String::from(name),
        offset,
        alignment,
    })
}

/// More memory than a descriptor reaches.
#[cold]
pub(super) fn range(
    index: usize,
    slot: Slot<'_>,
    kind: BindingKind,
    asked: u64,
    limit: u64,
) -> Error {
    let (name, advice) = match kind {
        BindingKind::Storage => (
            "maxStorageBufferRange",
            "pass views and launch once for each, or let the shader take the buffer by address",
        ),
        BindingKind::Uniform => (
            "maxUniformBufferRange",
            "declare it as a storage buffer, or make the block smaller",
        ),
    };
    Error::new(
        ErrorKind::LimitExceeded,
        format!(
            "{} has {asked} bytes, and a descriptor of the device reaches {limit} ({name}); \
             {advice}",
            argument(index, slot),
        ),
    )
    .with_details(Details::Limit {
        name: String::from(name),
        asked,
        limit,
    })
}

/// An address that the shader's declaration of its alignment excludes.
#[cold]
pub(super) fn misaligned_address(
    index: usize,
    member: &Member,
    address: u64,
    alignment: u32,
) -> Error {
    mismatch(format!(
        "{} is the address {address:#x}, and the shader relies on a multiple of {alignment} bytes \
         (its buffer_reference_align, 16 where it says nothing); start the view at such a byte, or \
         declare the alignment of one element",
        argument(index, Slot::Member(member)),
    ))
    .with_details(Details::Alignment {
        name: String::from("buffer_reference_align"),
        offset: address,
        alignment: u64::from(alignment),
    })
}

/// The kernel follows addresses that the launch does not know of.
#[cold]
pub(super) fn uses_missing(cause: &str) -> Error {
    mismatch(format!(
        "{cause}, so the launch must say which memory that is, for commands to keep their order: \
         add `Arg::uses(&buffer, access)` for each buffer behind those addresses"
    ))
}

/// A bare address, of which the launch does not know what is behind it.
#[cold]
pub(super) fn bare_address(index: usize, member: &Member) -> Error {
    mismatch(format!(
        "{} is a bare address, which does not say what memory is behind it: pass the buffer itself, \
         whose address is taken then; or add `Arg::uses(&buffer, access)`, for commands to keep \
         their order",
        argument(index, Slot::Member(member))
    ))
}

/// The cause for [`uses_missing`]: the shader loads addresses from memory.
pub(super) const STORED: &str =
    "the shader follows addresses that it finds in memory or makes from numbers";

/// The cause for [`uses_missing`]: an argument carries addresses whose memory is not known.
#[cold]
pub(super) fn carries_addresses(index: usize, member: &Member) -> String {
    format!(
        "{} carries addresses as plain bytes",
        argument(index, Slot::Member(member))
    )
}

/// Memory was declared for a kernel that follows no address.
#[cold]
pub(super) fn uses_in_vain(index: usize) -> Error {
    mismatch(format!(
        "argument {index} is `Arg::uses`, and the shader follows no addresses; leave it out, or \
         pass the buffer itself"
    ))
}
