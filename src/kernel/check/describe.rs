//! The words for slots, types and arguments in error texts.

use std::fmt::Write as _;
use std::path::Path;

use crate::error::text::count;
use crate::kernel::interface::{Access, Binding, BindingKind, Interface, Member, Scalar, Type};
use crate::kernel::value::{ArgValue, MemoryArg};

/// A kernel, as errors call it; `file` is where its source came from, where that is known.
pub(crate) fn kernel_name(entry: &str, file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("kernel `{entry}` of {}", file.display()),
        None => format!("kernel `{entry}`"),
    }
}

/// What one argument of a launch fills.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot<'i> {
    /// A descriptor.
    Binding(&'i Binding),
    /// A member of the push-constant block.
    Member(&'i Member),
}

impl<'i> Slot<'i> {
    /// The slots of a kernel, in the order of arguments.
    pub(super) fn all(interface: &'i Interface) -> impl Iterator<Item = Self> {
        let block = interface.push_constants.as_ref();
        let members = block.map_or(&[][..], |block| &block.members);
        let bindings = interface.bindings.iter().map(Self::Binding);
        bindings.chain(members.iter().map(Self::Member))
    }

    /// The name in the shader; empty where it has none.
    pub(super) fn name(self) -> &'i str {
        match self {
            Self::Binding(binding) if binding.name.is_empty() => &binding.block_name,
            Self::Binding(binding) => &binding.name,
            Self::Member(member) => &member.name,
        }
    }

    /// The name in quotes, or where the slot is.
    pub(super) fn label(self) -> String {
        match (self.name(), self) {
            ("", Self::Binding(binding)) => {
                format!("set {}, binding {}", binding.set, binding.binding)
            }
            ("", Self::Member(member)) => format!("push constant at byte {}", member.offset_bytes),
            (name, _) => format!("`{name}`"),
        }
    }

    /// What it takes.
    pub(super) fn takes(self) -> String {
        match self {
            Self::Binding(binding) => {
                let kind = match binding.kind {
                    BindingKind::Storage => "a storage buffer",
                    BindingKind::Uniform => "a uniform buffer",
                };
                format!("{kind} that it {}", verb(binding.access))
            }
            Self::Member(member) => match &member.ty {
                Type::Address { block_name, .. } => {
                    let of = match block_name.as_str() {
                        "" => String::new(),
                        name => format!(" of `{name}`"),
                    };
                    format!("a buffer{of} by address that it {}", verb(member.reach()))
                }
                ty => type_name(ty, member.size_bytes),
            },
        }
    }
}

/// What a kernel takes, as a numbered list in one line.
pub(super) fn signature(interface: &Interface) -> String {
    let mut text = String::new();
    for (index, slot) in Slot::all(interface).enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let (label, takes) = (slot.label(), slot.takes());
        // Writing to a string can't fail.
        let _ = write!(text, "{separator}{index} {label}: {takes}");
    }
    text
}

pub(super) const fn verb(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::Write => "writes",
        Access::ReadWrite => "reads and writes",
    }
}

fn type_name(ty: &Type, size_bytes: u32) -> String {
    match ty {
        Type::Scalar(scalar) => scalar_name(*scalar),
        Type::Vector { scalar, len } => {
            format!("a vector of {len} {} ({size_bytes} bytes)", scalar.name())
        }
        Type::Matrix {
            scalar,
            columns,
            rows,
            ..
        } => format!(
            "a matrix of {columns} columns and {rows} rows of {} ({size_bytes} bytes)",
            scalar.name()
        ),
        Type::Array { .. } => format!("an array of {}", count(size_bytes, "byte")),
        Type::Struct { name, .. } if name.is_empty() => {
            format!("a struct of {}", count(size_bytes, "byte"))
        }
        Type::Struct { name, .. } => {
            format!("the struct `{name}` of {}", count(size_bytes, "byte"))
        }
        Type::Address { .. } => String::from("an address"),
    }
}

fn scalar_name(scalar: Scalar) -> String {
    let article = match scalar {
        Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => "a",
        _ => "an",
    };
    format!("{article} {}", scalar.name())
}

/// What was given.
pub(super) fn given<M>(value: &ArgValue<'_, M>) -> String {
    match value {
        ArgValue::Memory(memory) => given_memory(memory),
        ArgValue::Number(number) => number.to_string(),
        ArgValue::Block(bytes) => format!("a block of {}", count(bytes.len(), "byte")),
        ArgValue::Address(_) => String::from("a bare address"),
        ArgValue::Misused(_) => String::from("a contradiction"),
    }
}

pub(super) fn given_memory<M>(memory: &MemoryArg<'_, M>) -> String {
    let element = u64::from(memory.element_bytes.max(1));
    let (len, bytes) = (memory.len_bytes / element, memory.len_bytes);
    match element {
        1 => format!("a buffer of {}", count(bytes, "byte")),
        _ => format!(
            "a buffer of {} ({} of {element})",
            count(bytes, "byte"),
            count(len, "element")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_called_by_its_entry_point_and_its_file() {
        assert_eq!(kernel_name("main", None), "kernel `main`");
        let file = Path::new("shaders/scan.comp");
        assert_eq!(
            kernel_name("main", Some(file)),
            "kernel `main` of shaders/scan.comp"
        );
    }
}
