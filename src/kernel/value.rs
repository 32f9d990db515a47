//! The value behind an argument, generic over what owns memory so that checks run without a driver.

use core::fmt;

use super::args::Address;
use super::interface::Access;
use super::scalar::Number;

/// What owns the memory behind an argument.
pub(crate) type Memory = crate::mem::Block;

impl Owner for Memory {
    fn start_bytes(&self) -> u64 {
        self.offset()
    }
}

/// What the check of a launch asks the owner of an argument's memory.
pub(crate) trait Owner {
    /// Where the memory starts in its `VkBuffer`, in bytes.
    fn start_bytes(&self) -> u64;
}

/// A piece of memory as an argument.
pub(crate) struct MemoryArg<'a, M> {
    /// What owns the memory.
    pub(crate) owner: &'a M,
    /// The device address of the first byte.
    pub(crate) address: u64,
    /// The bytes from the start of the `VkBuffer` to the first byte.
    pub(crate) offset_bytes: u64,
    /// The size in bytes.
    pub(crate) len_bytes: u64,
    /// The size of an element in bytes, for texts; 0 counts as 1.
    pub(crate) element_bytes: u32,
    access: Access,
    role: Role,
}

/// What a piece of memory is an argument for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A slot of the kernel.
    Slot,
    /// Nothing but the order of commands: the kernel reaches it through stored addresses.
    Uses,
}

impl<M> Clone for MemoryArg<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for MemoryArg<'_, M> {}

impl<M> fmt::Debug for MemoryArg<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryArg")
            .field("address", &format_args!("{:#x}", self.address))
            .field("offset_bytes", &self.offset_bytes)
            .field("len_bytes", &self.len_bytes)
            .field("element_bytes", &self.element_bytes)
            .field("access", &self.access)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl<'a, M> MemoryArg<'a, M> {
    /// Memory for a slot of the kernel, with whatever access the shader declares.
    pub(crate) const fn new(
        owner: &'a M,
        address: u64,
        offset_bytes: u64,
        len_bytes: u64,
        element_bytes: u32,
    ) -> Self {
        Self {
            owner,
            address,
            offset_bytes,
            len_bytes,
            element_bytes,
            access: Access::ReadWrite,
            role: Role::Slot,
        }
    }

    /// The access that the caller left, [`Access::ReadWrite`] where nothing was said.
    pub(crate) const fn access(&self) -> Access {
        self.access
    }

    /// Whether it is declared for the order of commands alone, and fills no slot.
    pub(crate) const fn is_declared(&self) -> bool {
        matches!(self.role, Role::Uses)
    }
}

/// One argument, generic over what owns memory so that checks run without a driver.
pub(crate) enum ArgValue<'a, M> {
    /// A buffer or a view of one.
    Memory(MemoryArg<'a, M>),
    /// A number.
    Number(Number),
    /// Bytes for one or several members of the push-constant block.
    Block(&'a [u8]),
    /// A device address.
    Address(Address),
    /// What the caller put together wrongly; the launch says so.
    Misused(Misuse),
}

/// A combination that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// A method that is for memory, on something else.
    NotMemory {
        /// The method.
        method: &'static str,
        /// What it was called on.
        given: &'static str,
    },
    /// Both `read` and `write`, which leaves no access at all.
    ReadAndWrite,
}

impl<M> Clone for ArgValue<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for ArgValue<'_, M> {}

impl<M> fmt::Debug for ArgValue<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(memory) => fmt::Debug::fmt(memory, f),
            Self::Number(number) => write!(f, "Number({number})"),
            Self::Block(bytes) => write!(f, "Block({} bytes)", bytes.len()),
            Self::Address(address) => fmt::Debug::fmt(address, f),
            Self::Misused(misuse) => fmt::Debug::fmt(misuse, f),
        }
    }
}

impl<M> ArgValue<'_, M> {
    /// What it is, in words.
    const fn noun(&self) -> &'static str {
        match self {
            Self::Memory(_) | Self::Misused(_) => "a buffer",
            Self::Number(_) => "a number",
            Self::Block(_) => "a block of bytes",
            Self::Address(_) => "an address",
        }
    }

    /// Applies `change` to memory, and keeps the misuse of `method` on anything else.
    fn on_memory(mut self, method: &'static str, change: impl FnOnce(&mut Self)) -> Self {
        match self {
            Self::Memory(_) => change(&mut self),
            Self::Misused(_) => {}
            _ => {
                self = Self::Misused(Misuse::NotMemory {
                    method,
                    given: self.noun(),
                });
            }
        }
        self
    }

    pub(crate) fn uses(self, access: Access) -> Self {
        self.on_memory("Arg::uses", |value| {
            if let Self::Memory(memory) = value {
                memory.access = access;
                memory.role = Role::Uses;
            }
        })
    }

    pub(crate) fn read(self) -> Self {
        self.narrow("Arg::read", Access::Read)
    }

    pub(crate) fn write(self) -> Self {
        self.narrow("Arg::write", Access::Write)
    }

    fn narrow(self, method: &'static str, access: Access) -> Self {
        self.on_memory(method, |value| {
            if let Self::Memory(memory) = value {
                if memory.access == Access::ReadWrite || memory.access == access {
                    memory.access = access;
                } else {
                    *value = Self::Misused(Misuse::ReadAndWrite);
                }
            }
        })
    }
}

/// What holds an [`ArgValue`]: itself, or an [`Arg`](super::args::Arg).
pub(crate) trait Argument<'a>: Copy {
    /// What owns memory.
    type Owner: Owner + 'a;

    fn value(self) -> ArgValue<'a, Self::Owner>;
}

impl<'a, M: Owner + 'a> Argument<'a> for ArgValue<'a, M> {
    type Owner = M;

    fn value(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fake;

    impl Owner for Fake {
        fn start_bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn access_narrows_and_contradictions_are_kept_for_the_launch() {
        let fake = Fake;
        let memory = ArgValue::Memory(MemoryArg::new(&fake, 0, 0, 16, 4));
        let access = |value: ArgValue<'_, Fake>| match value {
            ArgValue::Memory(memory) => Ok((memory.access(), memory.is_declared())),
            ArgValue::Misused(misuse) => Err(misuse),
            other => panic!("{other:?}"),
        };
        assert_eq!(access(memory), Ok((Access::ReadWrite, false)));
        assert_eq!(access(memory.read().read()), Ok((Access::Read, false)));
        assert_eq!(access(memory.write()), Ok((Access::Write, false)));
        assert_eq!(access(memory.uses(Access::Read)), Ok((Access::Read, true)));
        assert_eq!(access(memory.read().write()), Err(Misuse::ReadAndWrite));
        let number = ArgValue::<Fake>::Number(Number::F32(1.0));
        let misuse = |method| {
            let given = "a number";
            Err(Misuse::NotMemory { method, given })
        };
        assert_eq!(access(number.read()), misuse("Arg::read"));
        assert_eq!(access(number.write()), misuse("Arg::write"));
        assert_eq!(access(number.uses(Access::Read)), misuse("Arg::uses"));
    }
}
