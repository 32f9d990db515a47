//! Where pointers come from: they are followed through the functions that an entry point reaches,
//! without regard to the order of instructions. Whatever is not followed counts as reading and
//! writing.

use std::collections::{BTreeSet, HashMap, HashSet};

use spirv::{MemoryAccess, Op, StorageClass};

use super::usage::{Effect, Usage};
use crate::error::Result;
use crate::kernel::spirv::{Instruction, Module, Ty, Types};

/// From how many places a pointer may come before it counts as unclear.
const MAX_ORIGINS: usize = 64;

/// The largest alignment that is believed, in bytes.
const MAX_ALIGN: u32 = 1 << 16;

/// Where a pointer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A variable bound to a buffer.
    Buffer(u32),
    /// The push-constant block as a whole.
    Push,
    /// A member of the push-constant block.
    PushMember(u32),
    /// The address in a member of the push-constant block.
    Address(u32),
    /// A variable of the shader's own: private, shared, or of a function.
    Own(u32),
    /// An address found in memory or computed.
    Stored,
    /// Too many places to tell.
    Unclear,
}

type Origins = BTreeSet<Origin>;

/// The state of one analysis.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    module: &'a Module,
    types: &'a Types,
    /// What was found.
    pub(super) usage: Usage,
    /// By id of a value: where the pointers in it come from.
    values: HashMap<u32, Origins>,
    /// By id of a variable of the shader's own: where the pointers kept in it come from.
    kept: HashMap<u32, Origins>,
    /// By id of a function: where the pointers that it returns come from.
    returned: HashMap<u32, Origins>,
    /// The types that hold pointers.
    holders: HashSet<u32>,
    /// The members of push-constant blocks that hold addresses.
    address_members: Vec<u32>,
    /// Whether something new was found since this was last cleared.
    pub(super) changed: bool,
}

impl<'a> Flow<'a> {
    /// Notes the variables outside of functions.
    pub(super) fn new(module: &'a Module, types: &'a Types) -> Self {
        let mut flow = Self {
            module,
            types,
            usage: Usage::default(),
            values: HashMap::new(),
            kept: HashMap::new(),
            returned: HashMap::new(),
            holders: HashSet::new(),
            address_members: Vec::new(),
            changed: false,
        };
        for instruction in module.globals() {
            let id = instruction.result();
            if let Some(ty) = types.find(id) {
                if flow.holds(ty) {
                    flow.holders.insert(id);
                }
            } else if instruction.op == Op::Variable {
                flow.variable(&instruction);
            }
        }
        flow
    }

    fn holds(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Pointer { .. } => true,
            Ty::Array { element, .. } | Ty::RuntimeArray { element } => {
                self.holders.contains(element)
            }
            // A pointer that is announced and comes later is not among the holders yet.
            Ty::Struct { members } => members.iter().any(|id| {
                self.holders.contains(id)
                    || matches!(self.types.find(*id), Some(Ty::Pointer { .. }))
            }),
            _ => false,
        }
    }

    fn variable(&mut self, instruction: &Instruction<'_>) {
        let id = instruction.result();
        let Some(Ty::Pointer { class, pointee }) = self.types.find(instruction.result_type())
        else {
            return;
        };
        let origin = match class {
            StorageClass::Uniform | StorageClass::StorageBuffer => Origin::Buffer(id),
            StorageClass::PushConstant => {
                if let Some(Ty::Struct { members }) = self.types.find(*pointee) {
                    for (index, member) in (0..).zip(members) {
                        if self.holders.contains(member) {
                            self.address_members.push(index);
                        }
                    }
                }
                Origin::Push
            }
            StorageClass::Private | StorageClass::Function | StorageClass::Workgroup => {
                Origin::Own(id)
            }
            _ => return,
        };
        self.give(id, [origin].into());
    }

    fn origins(&self, id: u32) -> Origins {
        self.values.get(&id).cloned().unwrap_or_default()
    }

    /// Notes where the pointers in a value come from.
    fn give(&mut self, id: u32, origins: Origins) {
        self.changed |= join(self.values.entry(id).or_default(), origins);
    }

    /// What an instruction does to memory, and where the pointers in its result come from.
    pub(super) fn follow(&mut self, function: u32, instruction: &Instruction<'_>) -> Result<()> {
        for &id in ids(instruction) {
            if self.module.find(id).is_some_and(|i| i.op == Op::Variable) {
                self.usage.variables.insert(id);
            }
        }
        let result = instruction.result();
        match instruction.op {
            Op::Variable => self.variable(instruction),
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain => self.chain(instruction)?,
            Op::Load => {
                let pointer = instruction.operand(0)?;
                self.touch(pointer, Effect::READ);
                self.rely(pointer, instruction.operands().get(1..));
                if self.holders.contains(&instruction.result_type()) {
                    let loaded = self.loaded(pointer);
                    self.give(result, loaded);
                }
            }
            Op::Store => {
                let pointer = instruction.operand(0)?;
                self.touch(pointer, Effect::WRITTEN);
                self.rely(pointer, instruction.operands().get(2..));
                let value = self.origins(instruction.operand(1)?);
                self.keep(pointer, value);
            }
            Op::CopyMemory => {
                let (target, source) = (instruction.operand(0)?, instruction.operand(1)?);
                self.touch(target, Effect::WRITTEN);
                self.touch(source, Effect::READ);
                let (ty, _) = self.types.of(self.module, source)?;
                if let Ty::Pointer { pointee, .. } = self.types.get(ty)?
                    && self.holders.contains(pointee)
                {
                    let loaded = self.loaded(source);
                    self.keep(target, loaded);
                }
            }
            Op::AtomicLoad => self.touch(instruction.operand(0)?, Effect::READ),
            Op::AtomicStore => self.touch(instruction.operand(0)?, Effect::WRITTEN),
            Op::ArrayLength | Op::FunctionParameter => {}
            Op::FunctionCall => self.call(instruction)?,
            Op::ReturnValue => {
                let value = self.origins(instruction.operand(0)?);
                self.changed |= join(self.returned.entry(function).or_default(), value);
            }
            Op::ConvertUToPtr => self.made(instruction),
            Op::Bitcast if self.holders.contains(&instruction.result_type()) => {
                self.made(instruction);
            }
            // An address with an offset comes from where the address came from.
            Op::ConvertPtrToU
            | Op::Bitcast
            | Op::IAdd
            | Op::ISub
            | Op::Phi
            | Op::Select
            | Op::CopyObject
            | Op::CopyLogical
            | Op::CompositeConstruct
            | Op::CompositeExtract
            | Op::CompositeInsert => {
                let all = self.origins_of_operands(instruction);
                if !all.is_empty() {
                    self.give(result, all);
                }
            }
            // Atomics, and whatever else takes a pointer.
            _ => self.escape(instruction),
        }
        Ok(())
    }

    fn origins_of_operands(&self, instruction: &Instruction<'_>) -> Origins {
        let mut all = Origins::new();
        for &id in ids(instruction) {
            join(&mut all, self.origins(id));
        }
        all
    }

    /// A pointer is made of a number: one that was a pointer, or one that was found somewhere.
    fn made(&mut self, instruction: &Instruction<'_>) {
        let mut origins = self.origins_of_operands(instruction);
        if origins.is_empty() {
            origins.insert(Origin::Stored);
        }
        self.give(instruction.result(), origins);
    }

    fn chain(&mut self, instruction: &Instruction<'_>) -> Result<()> {
        let first_index = instruction.operands().get(1).and_then(|&id| {
            let constant = self.module.find(id)?;
            matches!(constant.op, Op::Constant)
                .then(|| constant.operands().first().copied())
                .flatten()
        });
        let base = self.origins(instruction.operand(0)?);
        let origins = base
            .into_iter()
            .map(|origin| match (origin, first_index) {
                (Origin::Push, Some(index)) => Origin::PushMember(index),
                (other, _) => other,
            })
            .collect();
        self.give(instruction.result(), origins);
        Ok(())
    }

    fn call(&mut self, instruction: &Instruction<'_>) -> Result<()> {
        let callee = instruction.operand(0)?;
        let arguments = instruction.operands().get(1..).unwrap_or(&[]);
        // The parameters follow their function's first instruction.
        let first = self.module.definition(callee)?.number;
        let parameters = self
            .module
            .numbered(first + 1)
            .take_while(|i| i.op == Op::FunctionParameter)
            .map(|i| i.result());
        for (parameter, &argument) in parameters.zip(arguments) {
            let origins = self.origins(argument);
            if !origins.is_empty() {
                self.give(parameter, origins);
            }
        }
        if let Some(returned) = self.returned.get(&callee).cloned() {
            self.give(instruction.result(), returned);
        }
        Ok(())
    }

    /// Where the pointers come from that a load finds.
    fn loaded(&self, pointer: u32) -> Origins {
        let mut found = Origins::new();
        for origin in self.origins(pointer) {
            match origin {
                Origin::Push => {
                    let all = self.address_members.iter().take(MAX_ORIGINS + 1);
                    join(&mut found, all.map(|&m| Origin::Address(m)).collect());
                }
                Origin::PushMember(member) => {
                    join(&mut found, [Origin::Address(member)].into());
                }
                Origin::Own(variable) => {
                    let kept = self.kept.get(&variable).cloned();
                    join(&mut found, kept.unwrap_or_default());
                }
                Origin::Buffer(_) | Origin::Address(_) | Origin::Stored => {
                    join(&mut found, [Origin::Stored].into());
                }
                Origin::Unclear => {
                    join(&mut found, [Origin::Unclear].into());
                }
            }
        }
        found
    }

    /// Pointers are stored through a pointer.
    fn keep(&mut self, pointer: u32, value: Origins) {
        if value.is_empty() {
            return;
        }
        for origin in self.origins(pointer) {
            if let Origin::Own(variable) = origin {
                self.changed |= join(self.kept.entry(variable).or_default(), value.clone());
            } else {
                // Found again, they count as stored; so it must be known by now what they may do.
                for &origin in &value {
                    self.effect(origin, Effect::BOTH);
                }
            }
        }
    }

    /// The instruction may do anything with the pointers that it takes.
    fn escape(&mut self, instruction: &Instruction<'_>) {
        for &id in ids(instruction) {
            self.touch(id, Effect::BOTH);
        }
    }

    fn touch(&mut self, pointer: u32, effect: Effect) {
        for origin in self.origins(pointer) {
            self.effect(origin, effect);
        }
    }

    fn effect(&mut self, origin: Origin, effect: Effect) {
        match origin {
            Origin::Buffer(variable) => self.usage.buffers.entry(variable).or_default().add(effect),
            Origin::Address(member) => self.usage.addresses.entry(member).or_default().add(effect),
            Origin::Stored => self.usage.follows_stored_addresses = true,
            Origin::Unclear => {
                self.usage.follows_stored_addresses = true;
                self.usage.everything = true;
            }
            Origin::Push | Origin::PushMember(_) | Origin::Own(_) => {}
        }
    }

    /// Notes the alignment that a load or store states for a pointer.
    fn rely(&mut self, pointer: u32, memory_operands: Option<&[u32]>) {
        let Some([mask, align, ..]) = memory_operands else {
            return;
        };
        // The alignment is the first operand after the mask, whatever else that has.
        let stated = MemoryAccess::ALIGNED.bits() & mask != 0;
        if !stated || !align.is_power_of_two() || *align > MAX_ALIGN {
            return;
        }
        for origin in self.origins(pointer) {
            if let Origin::Address(member) = origin {
                let known = self.usage.aligns.entry(member).or_insert(1);
                *known = (*known).max(*align);
            }
        }
    }
}

/// Adds origins to a set; whether that changed it.
fn join(set: &mut Origins, more: Origins) -> bool {
    if set.contains(&Origin::Unclear) {
        return false;
    }
    let before = set.len();
    set.extend(more);
    if set.len() > MAX_ORIGINS || set.contains(&Origin::Unclear) {
        *set = [Origin::Unclear].into();
        return true;
    }
    set.len() != before
}

/// The operands of an instruction in a function that are ids: those that are literal numbers, and
/// might look like ids, are left out.
fn ids<'a>(instruction: &Instruction<'a>) -> &'a [u32] {
    let operands = instruction.operands();
    let first = |count: usize| operands.get(..count.min(operands.len())).unwrap_or(&[]);
    match instruction.op {
        Op::Load | Op::CompositeExtract | Op::Switch | Op::SelectionMerge | Op::ArrayLength => {
            first(1)
        }
        Op::Store | Op::CopyMemory | Op::CompositeInsert | Op::VectorShuffle | Op::LoopMerge => {
            first(2)
        }
        Op::CopyMemorySized | Op::BranchConditional => first(3),
        Op::ExtInst => operands.get(2..).unwrap_or(&[]),
        Op::Variable => operands.get(1..).unwrap_or(&[]),
        Op::Line | Op::NoLine | Op::Function => &[],
        _ => operands,
    }
}
