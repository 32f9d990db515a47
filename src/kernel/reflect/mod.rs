//! Owns what a kernel's interface is: reads it from a module, for one entry point and one
//! specialization.

pub(crate) mod atomics;
mod entry;
mod flow;
mod layout;
mod lengths;
mod requirements;
mod rules;
pub(crate) mod shared;
mod specialization;
#[cfg(test)]
#[cfg(test_data)]
mod tests;
mod usage;

use std::collections::{BTreeMap, HashMap, HashSet};

use spirv::{AddressingModel, Capability, Decoration, Op, StorageClass};

use self::layout::{Layout, bytes, end_of};
use self::lengths::{array_len, no_empty_arrays};
use self::usage::{Effect, Usage};
use crate::device::{Feature, FeatureSet};
use crate::error::Result;
use crate::kernel::interface::{
    Access, Binding, BindingKind, Interface, PushBlock, SpecConstant, Type,
};
use crate::kernel::spirv::{Constants, EntryPoint, Module, Ty, Types, damaged, unsupported};

/// The first version of SPIR-V whose entry points name every variable that they use.
const FULL_INTERFACE: (u8, u8) = (1, 4);

/// Reads what an entry point takes.
///
/// `entry` is its name; without one it is `main`, or else the module's only compute entry point.
/// `specialization` gives bits to specialization constants by their ids.
///
/// # Errors
///
/// `EntryPointNotFound` and `InvalidArgument` for the entry point's name and for ids that no
/// specialization constant has; `Unsupported` for what kernels cannot have, as images;
/// `InvalidModule` for a module that breaks a rule which the reader relies on.
pub(crate) fn reflect(
    module: &Module,
    entry: Option<&str>,
    specialization: &[(u32, u64)],
) -> Result<Interface> {
    match module.addressing() {
        AddressingModel::Logical | AddressingModel::PhysicalStorageBuffer64 => {}
        other => {
            return Err(unsupported(format!(
                "the module addresses memory as {other:?}, as OpenCL does; kernels are compute \
                 shaders for Vulkan (Logical or PhysicalStorageBuffer64)"
            )));
        }
    }
    let entry = entry::select(module, entry)?;
    let types = Types::read(module)?;
    let spec_constants = specialization::constants(module, &types)?;
    specialization::check(&spec_constants, specialization)?;
    let constants = Constants::read(module, &types, specialization)?;
    no_empty_arrays(module, &types, &constants)?;
    let local_size = entry::local_size(module, &constants, entry)?;
    let usage = Usage::read(module, &types, entry.function)?;
    let mut reader = Reader {
        module,
        types: &types,
        constants: &constants,
        layout: Layout::new(module, &types, &constants),
        usage: &usage,
        used: used(module, entry, &usage),
        features: requirements::features(module, &types)?,
        bindings: BTreeMap::new(),
        push: None,
        shared: Vec::new(),
        atomic_tails: atomics::atomic_tails(module, &types, &constants)?,
    };
    if local_size.by_id {
        reader.features.insert(Feature::Maintenance4);
    }
    for instruction in module.globals() {
        if instruction.op == Op::Variable {
            reader.variable(instruction.result(), instruction.result_type())?;
        }
    }
    Ok(Interface {
        entry: entry.name.clone(),
        local_size: local_size.size,
        shared_memory_bytes: shared::bytes(module, &types, &constants, &reader.shared)?,
        bindings: reader.bindings.into_values().collect(),
        push_constants: reader.push,
        spec_constants,
        required_features: reader.features,
        uses_addresses: module
            .capabilities()
            .contains(&Capability::PhysicalStorageBufferAddresses),
        follows_stored_addresses: usage.follows_stored_addresses,
    })
}

/// The specialization constants of a module, by id; they do not depend on the entry point, nor on
/// each other's values.
///
/// # Errors
///
/// `InvalidModule` for a module that breaks a rule which the reader relies on.
pub(crate) fn spec_constants(module: &Module) -> Result<Vec<SpecConstant>> {
    specialization::constants(module, &Types::read(module)?)
}

/// The variables outside of functions that belong to an entry point.
///
/// Those that are declared and not used count where the module says so (from SPIR-V 1.4 on) or
/// where there is no other entry point that they could belong to: so a kernel's arguments stay the
/// same while its author comments lines out.
fn used(module: &Module, entry: &EntryPoint, usage: &Usage) -> HashSet<u32> {
    if module.version() >= FULL_INTERFACE {
        let named = entry.interface.iter().copied();
        named.chain(usage.variables.iter().copied()).collect()
    } else if module.entries().len() == 1 {
        let variables = module.globals().filter(|i| i.op == Op::Variable);
        variables.map(|i| i.result()).collect()
    } else {
        usage.variables.clone()
    }
}

/// Reads the variables of a module.
#[derive(Debug)]
struct Reader<'a> {
    module: &'a Module,
    types: &'a Types,
    constants: &'a Constants<'a>,
    layout: Layout<'a>,
    usage: &'a Usage,
    used: HashSet<u32>,
    features: FeatureSet,
    bindings: BTreeMap<(u32, u32), Binding>,
    push: Option<PushBlock>,
    shared: Vec<u32>,
    /// The variables of whose buffers atomics need an element.
    atomic_tails: HashSet<u32>,
}

impl Reader<'_> {
    fn variable(&mut self, id: u32, pointer: u32) -> Result<()> {
        let types = self.types;
        let Ty::Pointer { class, pointee } = types.get(pointer)? else {
            return Err(damaged(format_args!("the variable %{id} is no pointer")));
        };
        let used = self.used.contains(&id);
        match class {
            StorageClass::Uniform | StorageClass::StorageBuffer => {
                let binding = self.buffer(id, *class, *pointee)?;
                if used {
                    self.bind(binding)?;
                }
            }
            StorageClass::PushConstant => {
                let block = self.push_block(*pointee)?;
                if used && self.push.replace(block).is_some() {
                    return Err(damaged("the entry point uses two push-constant blocks"));
                }
            }
            StorageClass::Workgroup if used => self.shared.push(id),
            StorageClass::Workgroup
            | StorageClass::Private
            | StorageClass::Input
            | StorageClass::Output => {}
            _ if !used => {}
            other => {
                let what = match self.descriptor(*pointee)?.0 {
                    Ty::Other(op) => format!("Op{op:?}"),
                    _ => format!("storage class {other:?}"),
                };
                return Err(unsupported(format!(
                    "the entry point uses {}, which is neither a storage nor a uniform buffer \
                     ({what}); kernels take buffers, push constants and addresses",
                    self.describe(id)
                )));
            }
        }
        Ok(())
    }

    /// What a variable is called in an error.
    fn describe(&self, id: u32) -> String {
        let place = |decoration| self.module.decoration(id, decoration);
        let place = place(Decoration::DescriptorSet).zip(place(Decoration::Binding));
        match (self.module.name(id), place) {
            ("", Some((set, binding))) => format!("binding {binding} of set {set}"),
            ("", None) => format!("the variable %{id}"),
            (name, _) => format!("`{name}`"),
        }
    }

    /// The type behind an array of descriptors, its id, and how many descriptors those are.
    fn descriptor(&self, pointee: u32) -> Result<(&Ty, u32, u64)> {
        let types = self.types;
        match types.get(pointee)? {
            Ty::Array { element, len } => Ok((
                types.get(*element)?,
                *element,
                array_len(self.constants, *len)?,
            )),
            Ty::RuntimeArray { .. } => Err(unsupported(
                "the module has an array of descriptors without a length; give it one",
            )),
            ty => Ok((ty, pointee, 1)),
        }
    }

    fn buffer(&mut self, id: u32, class: StorageClass, pointee: u32) -> Result<Binding> {
        let module = self.module;
        let (_, block, count) = self.descriptor(pointee)?;
        let place = |decoration, what| {
            module.decoration(id, decoration).ok_or_else(|| {
                damaged(format_args!(
                    "the buffer {} has no {what}",
                    self.describe(id)
                ))
            })
        };
        let set = place(Decoration::DescriptorSet, "descriptor set")?;
        let binding = place(Decoration::Binding, "binding")?;
        let kind = match class {
            StorageClass::StorageBuffer => BindingKind::Storage,
            _ if module.has(block, Decoration::BufferBlock) => BindingKind::Storage,
            _ => BindingKind::Uniform,
        };
        let members = self.layout.block(block)?;
        let feature = match kind {
            BindingKind::Storage => rules::storage_feature(&members),
            BindingKind::Uniform => rules::uniform_feature(&members),
        };
        if let Some(feature) = feature {
            self.features.insert(feature);
        }
        let access = match kind {
            BindingKind::Uniform => Access::Read,
            BindingKind::Storage => {
                let allowed = self.allowed(Some(id), block)?;
                restrict(self.usage.buffer(id), allowed).access()
            }
        };
        let stride_bytes = members.last().map_or(0, |last| match &last.ty {
            Type::Array {
                len: None,
                stride_bytes,
                ..
            } => u64::from(*stride_bytes),
            _ => 0,
        });
        let fixed_bytes = end_of(&members);
        Ok(Binding {
            set,
            binding,
            name: module.name(id).to_owned(),
            block_name: module.name(block).to_owned(),
            kind,
            access,
            count: bytes(count)?,
            fixed_bytes,
            stride_bytes,
            atomic_bytes: match self.atomic_tails.contains(&id) {
                true => fixed_bytes + stride_bytes,
                false => 0,
            },
            members,
        })
    }

    /// Adds a binding; two variables may share one, as two views of the same buffer.
    fn bind(&mut self, new: Binding) -> Result<()> {
        let key = (new.set, new.binding);
        let Some(known) = self.bindings.get_mut(&key) else {
            self.bindings.insert(key, new);
            return Ok(());
        };
        if known.kind != new.kind {
            return Err(unsupported(format!(
                "binding {} of set {} is a storage buffer (`{}`) and a uniform buffer (`{}`) at \
                 once; give one of them another binding",
                new.binding, new.set, known.name, new.name
            )));
        }
        let mut effect = effect_of(known.access);
        effect.add(effect_of(new.access));
        known.access = effect.access();
        known.count = known.count.max(new.count);
        known.fixed_bytes = known.fixed_bytes.max(new.fixed_bytes);
        known.atomic_bytes = known.atomic_bytes.max(new.atomic_bytes);
        Ok(())
    }

    fn push_block(&mut self, block: u32) -> Result<PushBlock> {
        let mut members = self.layout.block(block)?;
        if let Some(feature) = rules::storage_feature(&members) {
            self.features.insert(feature);
        }
        let types = self.types;
        let Ty::Struct { members: declared } = types.get(block)? else {
            return Err(damaged("the push-constant block is no struct"));
        };
        // The members come by offset, the declaration by number.
        let numbers: HashMap<Option<u32>, (u32, u32)> = (0..)
            .zip(declared)
            .map(|(index, &ty)| {
                let module = self.module;
                let offset = module.member_decoration(block, index, Decoration::Offset);
                (offset, (index, ty))
            })
            .collect();
        for member in &mut members {
            let Some(&(index, ty)) = numbers.get(&Some(member.offset_bytes)) else {
                continue;
            };
            let allowed = match types.get(ty)? {
                Ty::Pointer { pointee, .. } => self.allowed(None, *pointee)?,
                _ => Effect::BOTH,
            };
            let access = restrict(self.usage.address(index), allowed).access();
            let align = self.usage.align(index);
            if reaches(&mut member.ty, access, align) {
                member.access = Some(access);
            }
        }
        Ok(PushBlock {
            size_bytes: bytes(end_of(&members))?,
            members,
        })
    }

    /// What the decorations of a variable and of its block's members allow.
    fn allowed(&self, variable: Option<u32>, block: u32) -> Result<Effect> {
        let module = self.module;
        let members = match self.types.get(block)? {
            Ty::Struct { members } => members.len(),
            _ => 0,
        };
        let forbidden = |decoration| {
            variable.is_some_and(|id| module.has(id, decoration))
                || members > 0
                    && (0..)
                        .take(members)
                        .all(|member| module.member_has(block, member, decoration))
        };
        Ok(Effect {
            read: !forbidden(Decoration::NonReadable),
            written: !forbidden(Decoration::NonWritable),
        })
    }
}

/// Notes access and alignment with the addresses in a type; whether there are any.
fn reaches(ty: &mut Type, access: Access, align: u32) -> bool {
    match ty {
        Type::Address { align_bytes, .. } => {
            *align_bytes = (*align_bytes).max(align);
            true
        }
        Type::Array { element, .. } => reaches(element, access, align),
        Type::Struct { members, .. } => members.iter_mut().fold(false, |any, member| {
            let one = reaches(&mut member.ty, access, align);
            if one {
                member.access = Some(access);
            }
            any | one
        }),
        Type::Scalar(_) | Type::Vector { .. } | Type::Matrix { .. } => false,
    }
}

fn restrict(effect: Effect, allowed: Effect) -> Effect {
    Effect {
        read: effect.read && allowed.read,
        written: effect.written && allowed.written,
    }
}

fn effect_of(access: Access) -> Effect {
    Effect {
        read: access.reads(),
        written: access.writes(),
    }
}
