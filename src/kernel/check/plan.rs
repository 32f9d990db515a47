//! One launch: arguments matched to slots, bytes and ranges worked out, nothing recorded yet.

use super::describe::Slot;
use super::mismatch;
use crate::device::DeviceLimits;
use crate::error::Result;
use crate::kernel::grid::Grid;
use crate::kernel::interface::{
    Access, Binding, BindingKind, Interface, Member, PushBlock, STAND_IN_BYTES, Type,
};
use crate::kernel::value::{ArgValue, Argument, MemoryArg, Owner};

/// What a launch comes to. Used again and again, so that a launch allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The workgroups along each axis. All zero for a launch that runs nothing, of which nothing
    /// is recorded.
    pub(crate) groups: [u32; 3],
    /// The push constants from byte 0; a multiple of 4 bytes, empty for a kernel without.
    pub(crate) push: Vec<u8>,
    /// The descriptors, in the order of [`Interface::bindings`]. A launch that runs nothing lacks
    /// those of empty buffers.
    pub(crate) descriptors: Vec<DescriptorUse>,
    /// The memory that the launch touches.
    pub(crate) memory: Vec<MemoryUse>,
}

/// A descriptor of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptorUse {
    pub(crate) set: u32,
    pub(crate) binding: u32,
    pub(crate) kind: BindingKind,
    /// The position of the argument.
    pub(crate) arg: usize,
    /// The bytes from the start of the `VkBuffer`.
    pub(crate) offset_bytes: u64,
    /// The bytes that the descriptor reaches; never 0.
    pub(crate) len_bytes: u64,
    /// The argument has no bytes: any memory will do, of which the shader sees no element.
    pub(crate) is_stand_in: bool,
}

/// A piece of memory that a launch touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    /// The position of the argument.
    pub(crate) arg: usize,
    /// The bytes from the start of the `VkBuffer`.
    pub(crate) offset_bytes: u64,
    /// The size in bytes; never 0.
    pub(crate) len_bytes: u64,
    /// What the launch does with it.
    pub(crate) access: Access,
    /// Where the kernel reaches it; through an address as in a storage buffer.
    pub(crate) kind: BindingKind,
}

/// Checks a launch against the kernel's interface and the device's limits, and works out what it
/// comes to. After an error `plan` holds nothing of use.
///
/// The kernel has passed [`check_program`](super::check_program) with these limits.
///
/// # Errors
///
/// `ArgumentMismatch`, `LimitExceeded`, `Unsupported` (a view that the device can't bind) and
/// `InvalidArgument` (a negative count), each with figures and a text that names the argument and
/// what to do. Naming the kernel is left to the caller.
pub(crate) fn plan<'a, A: Argument<'a>>(
    interface: &Interface,
    limits: &DeviceLimits,
    grid: Grid,
    args: &[A],
    plan: &mut Plan,
) -> Result<()> {
    Planner {
        interface,
        limits,
        plan,
        runs: false,
        declares: false,
    }
    .run(grid, args)
}

struct Planner<'p> {
    interface: &'p Interface,
    limits: &'p DeviceLimits,
    plan: &'p mut Plan,
    /// Whether any workgroup runs.
    runs: bool,
    /// Whether the launch declares memory behind stored addresses.
    declares: bool,
}

impl<'p> Planner<'p> {
    fn run<'a, A: Argument<'a>>(mut self, grid: Grid, args: &[A]) -> Result<()> {
        self.plan.groups = grid.resolve(
            self.interface.local_size,
            self.limits.max_compute_work_group_count,
        )?;
        self.runs = self.plan.groups != [0; 3];
        let block = self.interface.push_constants.as_ref();
        let push_bytes = block.map_or(0, |block| block.size_bytes.next_multiple_of(4));
        self.plan.push.clear();
        self.plan.push.resize(push_bytes as usize, 0);
        self.plan.descriptors.clear();
        self.plan.memory.clear();

        let last = self.count(args)?;
        let mut slots = Slot::all(self.interface);
        for (index, arg) in args.iter().enumerate() {
            let value = arg.value();
            if let ArgValue::Memory(memory) = &value
                && memory.is_declared()
            {
                let (len, access) = (memory.len_bytes, memory.access());
                self.touch(index, memory, len, access, BindingKind::Storage);
                continue;
            }
            // `count` has seen that there are slots enough.
            match slots.next() {
                Some(Slot::Binding(binding)) => self.descriptor(index, binding, &value)?,
                Some(Slot::Member(member)) => self.member(index, member, &value, index == last)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Sees that the number of arguments is right; the position of the last one that fills a slot.
    fn count<'a, A: Argument<'a>>(&mut self, args: &[A]) -> Result<usize> {
        let mut filling = 0;
        let mut last = 0;
        let mut last_is_block = false;
        for (index, arg) in args.iter().enumerate() {
            match arg.value() {
                ArgValue::Misused(misuse) => return Err(mismatch::misuse(index, misuse)),
                ArgValue::Memory(memory) if memory.is_declared() => {
                    if !self.interface.uses_addresses {
                        return Err(mismatch::uses_in_vain(index));
                    }
                    self.declares = true;
                }
                value => {
                    filling += 1;
                    last = index;
                    last_is_block = matches!(value, ArgValue::Block(_));
                }
            }
        }
        let slots = self.interface.argument_count();
        // A block at the end may fill several members.
        let fills_rest = last_is_block && filling > self.interface.bindings.len();
        if filling > slots || (filling < slots && !fills_rest) {
            return Err(mismatch::count(self.interface, filling));
        }
        if self.interface.follows_stored_addresses && !self.declares {
            return Err(mismatch::uses_missing(mismatch::STORED));
        }
        Ok(last)
    }

    fn descriptor<M: Owner>(
        &mut self,
        index: usize,
        binding: &Binding,
        value: &ArgValue<'_, M>,
    ) -> Result<()> {
        let slot = Slot::Binding(binding);
        let ArgValue::Memory(memory) = value else {
            return Err(mismatch::kind(index, slot, value));
        };
        let access = narrowed(index, slot, binding.access, memory.access())?;
        if memory.len_bytes == 0 {
            return self.empty_descriptor(index, binding);
        }
        if memory.len_bytes < binding.fixed_bytes {
            return Err(mismatch::too_small(
                index,
                slot,
                binding.fixed_bytes,
                memory,
            ));
        }
        if memory.len_bytes < binding.atomic_bytes {
            return Err(mismatch::no_element(index, slot, binding, memory));
        }
        let (alignment, limit) = match binding.kind {
            BindingKind::Storage => (
                self.limits.min_storage_buffer_offset_alignment,
                self.limits.max_storage_buffer_range,
            ),
            BindingKind::Uniform => (
                self.limits.min_uniform_buffer_offset_alignment,
                self.limits.max_uniform_buffer_range,
            ),
        };
        if !is_aligned(memory.offset_bytes, alignment) {
            return Err(mismatch::misaligned(
                index,
                slot,
                binding.kind,
                memory,
                alignment,
            ));
        }
        let len_bytes = reach_bytes(binding, memory.len_bytes);
        if len_bytes > limit {
            return Err(mismatch::range(index, slot, binding.kind, len_bytes, limit));
        }
        self.plan.descriptors.push(DescriptorUse {
            set: binding.set,
            binding: binding.binding,
            kind: binding.kind,
            arg: index,
            offset_bytes: memory.offset_bytes,
            len_bytes,
            is_stand_in: false,
        });
        self.touch(index, memory, len_bytes, access, binding.kind);
        Ok(())
    }

    /// A descriptor can't be empty, but one of less than an element shows the shader an empty array.
    fn empty_descriptor(&mut self, index: usize, binding: &Binding) -> Result<()> {
        if !self.runs {
            return Ok(());
        }
        let holds_nothing_else = binding.kind == BindingKind::Storage && binding.fixed_bytes == 0;
        let fits_stand_in = binding.atomic_bytes <= STAND_IN_BYTES;
        if !holds_nothing_else || binding.stride_bytes <= 1 || !fits_stand_in {
            return Err(mismatch::empty(index, Slot::Binding(binding)));
        }
        self.plan.descriptors.push(DescriptorUse {
            set: binding.set,
            binding: binding.binding,
            kind: binding.kind,
            arg: index,
            offset_bytes: 0,
            len_bytes: 1,
            is_stand_in: true,
        });
        Ok(())
    }

    fn member<M: Owner>(
        &mut self,
        index: usize,
        member: &Member,
        value: &ArgValue<'_, M>,
        is_last: bool,
    ) -> Result<()> {
        match (&member.ty, value) {
            (_, ArgValue::Block(bytes)) => self.block(index, member, bytes, is_last),
            (Type::Scalar(scalar), ArgValue::Number(number)) => {
                let Some(bits) = number.argument_bits(*scalar) else {
                    return Err(mismatch::kind(index, Slot::Member(member), value));
                };
                self.put(member, &bits.to_le_bytes()[..scalar.size_bytes() as usize]);
                Ok(())
            }
            (Type::Address { .. }, ArgValue::Memory(memory)) => {
                self.address_of(index, member, memory)
            }
            (Type::Address { align_bytes, .. }, ArgValue::Address(address)) => {
                if !self.declares {
                    return Err(mismatch::bare_address(index, member));
                }
                self.address(index, member, address.get(), *align_bytes)
            }
            _ => Err(mismatch::kind(index, Slot::Member(member), value)),
        }
    }

    fn block(&mut self, index: usize, member: &Member, bytes: &[u8], is_last: bool) -> Result<()> {
        let block = self.interface.push_constants.as_ref();
        // The end of the push-constant block, where the bytes fill all of it that is left.
        let end = block.filter(|_| is_last).map(|block| block.size_bytes);
        let expected = end.map_or(member.size_bytes, |end| end - member.offset_bytes);
        let Some(bytes) = unpadded(bytes, expected) else {
            return Err(mismatch::block_size(
                index,
                member,
                end,
                expected,
                bytes.len(),
            ));
        };
        let carries_addresses = match block {
            Some(block) if is_last => covered(block, member).any(|member| has_address(&member.ty)),
            _ => has_address(&member.ty),
        };
        if carries_addresses && !self.declares {
            return Err(mismatch::uses_missing(&mismatch::carries_addresses(
                index, member,
            )));
        }
        self.put(member, bytes);
        Ok(())
    }

    fn address_of<M: Owner>(
        &mut self,
        index: usize,
        member: &Member,
        memory: &MemoryArg<'_, M>,
    ) -> Result<()> {
        let Type::Address {
            members,
            align_bytes,
            ..
        } = &member.ty
        else {
            return Ok(());
        };
        let slot = Slot::Member(member);
        let access = narrowed(index, slot, member.reach(), memory.access())?;
        // The shader may well not follow the address of nothing.
        if memory.len_bytes == 0 {
            self.put(member, &memory.address.to_le_bytes());
            return Ok(());
        }
        let fixed_bytes = fixed_bytes(members);
        if memory.len_bytes < fixed_bytes {
            return Err(mismatch::too_small(index, slot, fixed_bytes, memory));
        }
        let kind = BindingKind::Storage;
        self.touch(index, memory, memory.len_bytes, access, kind);
        self.address(index, member, memory.address, *align_bytes)
    }

    fn address(
        &mut self,
        index: usize,
        member: &Member,
        address: u64,
        align_bytes: u32,
    ) -> Result<()> {
        if !is_aligned(address, u64::from(align_bytes)) {
            return Err(mismatch::misaligned_address(
                index,
                member,
                address,
                align_bytes,
            ));
        }
        self.put(member, &address.to_le_bytes());
        Ok(())
    }

    fn touch<M>(
        &mut self,
        index: usize,
        memory: &MemoryArg<'_, M>,
        len_bytes: u64,
        access: Access,
        kind: BindingKind,
    ) {
        if len_bytes > 0 {
            self.plan.memory.push(MemoryUse {
                arg: index,
                offset_bytes: memory.offset_bytes,
                len_bytes,
                access,
                kind,
            });
        }
    }

    /// Writes bytes at the member; the program's check has seen that members end within the block.
    fn put(&mut self, member: &Member, bytes: &[u8]) {
        let start = member.offset_bytes as usize;
        if let Some(place) = self.plan.push.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

/// The bytes of a buffer that a descriptor reaches: a uniform block uses no more than itself, and
/// what devices bind as one is small.
fn reach_bytes(binding: &Binding, len_bytes: u64) -> u64 {
    match binding.kind {
        BindingKind::Storage => len_bytes,
        BindingKind::Uniform => len_bytes.min(binding.fixed_bytes.next_multiple_of(16)),
    }
}

/// Whether a place is a multiple of an alignment, where there is one.
fn is_aligned(place: u64, alignment: u64) -> bool {
    if alignment.is_power_of_two() {
        // As all are that devices have; a division takes many times as long.
        place & (alignment - 1) == 0
    } else {
        place.is_multiple_of(alignment.max(1))
    }
}

/// The access that is left of what the shader declares.
fn narrowed(index: usize, slot: Slot<'_>, declared: Access, promised: Access) -> Result<Access> {
    let possible = match promised {
        Access::ReadWrite => return Ok(declared),
        Access::Read => declared.reads(),
        Access::Write => declared.writes(),
    };
    if possible {
        return Ok(promised);
    }
    Err(mismatch::access(index, slot, declared, promised))
}

/// The bytes without padding at their end, or `None` where they are no struct of that size.
fn unpadded(bytes: &[u8], expected: u32) -> Option<&[u8]> {
    let expected = expected as usize;
    let fits = [1, 2, 4, 8, 16].map(|alignment| expected.next_multiple_of(alignment));
    fits.contains(&bytes.len()).then(|| &bytes[..expected])
}

/// The members from this one to the end of the block.
fn covered<'b>(block: &'b PushBlock, first: &Member) -> impl Iterator<Item = &'b Member> {
    let start = first.offset_bytes;
    block
        .members
        .iter()
        .filter(move |member| member.offset_bytes >= start)
}

fn has_address(ty: &Type) -> bool {
    match ty {
        Type::Scalar(_) | Type::Vector { .. } | Type::Matrix { .. } => false,
        Type::Array { element, .. } => has_address(element),
        Type::Struct { members, .. } => members.iter().any(|member| has_address(&member.ty)),
        Type::Address { .. } => true,
    }
}

/// The bytes of a block before its runtime-sized tail.
fn fixed_bytes(members: &[Member]) -> u64 {
    let ends = members
        .iter()
        .map(|member| u64::from(member.offset_bytes) + u64::from(member.size_bytes));
    ends.max().unwrap_or(0)
}
