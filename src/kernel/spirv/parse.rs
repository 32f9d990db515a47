//! The one pass over a module's words.

use spirv::{AddressingModel, Capability, ExecutionModel, Op, StorageClass};

use super::shape::shape;
use super::{
    Decorated, EntryPoint, Function, HEADER_WORDS, Instruction, Module, Shape, Span, bytes,
    capability, damaged, unsupported,
};
use crate::error::{Error, ErrorKind, Result};

/// The largest bound that every tool must take (SPIR-V, «Universal Limits»).
pub(crate) const MAX_BOUND: u32 = 0x3f_ffff;

/// The newest version of SPIR-V 1 that the reader knows.
const MAX_MINOR: u8 = 6;

/// See [`Module::parse`].
pub(super) fn parse(words: &[u32]) -> Result<Module> {
    let bound = header(words)?;
    let mut module = Module {
        words: words.to_vec(),
        spans: Vec::new(),
        definitions: vec![0; bound as usize],
        names: Default::default(),
        member_names: Default::default(),
        decorations: Default::default(),
        member_decorations: Default::default(),
        capabilities: Vec::new(),
        addressing: AddressingModel::Logical,
        entry_points: Vec::new(),
        functions: Vec::new(),
    };
    let mut memory_models = 0;
    let mut open: Option<(u32, usize)> = None;
    let mut idle_at = Vec::new();
    let mut at = HEADER_WORDS;
    while at < words.len() {
        let span = cut(words, at)?;
        let instruction = Instruction {
            op: span.op,
            number: module.spans.len(),
            start: at,
            shape: span.shape,
            words: &words[at..at + span.len as usize],
        };
        if instruction.words == RUNTIME_ARRAYS {
            // Judged at the end, when the variables are known.
            idle_at.push(at);
            module.spans.push(span);
            at += RUNTIME_ARRAYS.len();
            continue;
        }
        define(&mut module, &instruction)?;
        match instruction.op {
            Op::MemoryModel => memory_models += 1,
            Op::Function if open.is_some() => {
                return Err(damaged(format_args!(
                    "a function begins at word {at} before the one before it has ended"
                )));
            }
            Op::Function => open = Some((instruction.result(), instruction.number)),
            Op::FunctionEnd => {
                let (id, first) = open.take().ok_or_else(|| {
                    damaged(format_args!(
                        "a function ends at word {at} that has not begun"
                    ))
                })?;
                module.functions.push(Function {
                    id,
                    first,
                    last: instruction.number,
                });
            }
            _ => {}
        }
        note(&mut module, &instruction)?;
        module.spans.push(span);
        at += span.len as usize;
    }
    if memory_models != 1 {
        return Err(match memory_models {
            0 => truncated("it has no OpMemoryModel"),
            _ => damaged("it has more than one OpMemoryModel"),
        });
    }
    if module.entry_points.is_empty() {
        return Err(truncated("it has no entry point"));
    }
    if open.is_some() {
        return Err(truncated("its last function has no end"));
    }
    functions_are_there(&module)?;
    if !idle_at.is_empty() && has_runtime_descriptor_array(&module) {
        return Err(capability::refusal(RUNTIME_ARRAYS[1]));
    }
    for at in idle_at {
        // A driver must not see it either: it would want the feature. Every module has `Shader`.
        module.words[at + 1] = Capability::Shader as u32;
    }
    Ok(module)
}

/// The instruction that declares arrays of descriptors without a size. glslang also writes it for
/// an array without a size of addresses, which asks nothing of a device.
const RUNTIME_ARRAYS: [u32; 2] = [
    (2 << 16) | Op::Capability as u32,
    Capability::RuntimeDescriptorArray as u32,
];

/// Whether a variable is an array of descriptors without a size.
fn has_runtime_descriptor_array(module: &Module) -> bool {
    let descriptors = [
        StorageClass::UniformConstant as u32,
        StorageClass::Uniform as u32,
        StorageClass::StorageBuffer as u32,
    ];
    module.globals().any(|variable| {
        let array = module
            .find(variable.result_type())
            .filter(|pointer| variable.op == Op::Variable && pointer.op == Op::TypePointer)
            .filter(|pointer| pointer.operand(0).is_ok_and(|c| descriptors.contains(&c)))
            .and_then(|pointer| module.find(pointer.operand(1).ok()?));
        array.is_some_and(|pointee| pointee.op == Op::TypeRuntimeArray)
    })
}

/// Whether every function that is called is there.
fn functions_are_there(module: &Module) -> Result<()> {
    let is_function = |id| module.find(id).is_some_and(|i| i.op == Op::Function);
    for entry in &module.entry_points {
        if !is_function(entry.function) {
            return Err(truncated(format_args!(
                "the function of its entry point `{}` is missing",
                entry.name
            )));
        }
    }
    for instruction in module.instructions() {
        if instruction.op == Op::FunctionCall && !is_function(instruction.operand(0)?) {
            return Err(truncated(format_args!(
                "the function that is called at word {} is missing",
                instruction.start
            )));
        }
    }
    Ok(())
}

/// Checks the header and gives the bound.
fn header(words: &[u32]) -> Result<u32> {
    if words.first() != Some(&super::MAGIC) {
        let head: Vec<u8> = words
            .iter()
            .take(64)
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        // Words that begin with the magic number are a module, so there always is an error here.
        return Err(bytes::not_a_module(&head)
            .unwrap_or_else(|| damaged("it does not begin with the magic number")));
    }
    let &[_, version, _, bound, schema, ..] = words else {
        return Err(truncated(format_args!(
            "its header takes {HEADER_WORDS} words, there are {}",
            words.len()
        )));
    };
    let [low, minor, major, high] = version.to_le_bytes();
    if low != 0 || high != 0 || major == 0 {
        return Err(damaged(format_args!("its version is {version:#010x}")));
    }
    if major != 1 || minor > MAX_MINOR {
        return Err(unsupported(format!(
            "the module is SPIR-V {major}.{minor}, the newest that can be read is 1.{MAX_MINOR}; \
             compile it for an older version, as with `glslc --target-env=vulkan1.2`"
        )));
    }
    if bound == 0 || bound > MAX_BOUND {
        return Err(damaged(format_args!(
            "its bound of ids is {bound}, it must be 1 to {MAX_BOUND}"
        )));
    }
    if schema != 0 {
        return Err(damaged(format_args!("its schema is {schema}, not 0")));
    }
    Ok(bound)
}

/// The instruction that begins at a word.
fn cut(words: &[u32], at: usize) -> Result<Span> {
    let first = words[at];
    let (len, number) = (first >> 16, first & 0xffff);
    if len == 0 {
        return Err(damaged(format_args!(
            "the instruction at word {at} has no length"
        )));
    }
    let left = words.len() - at;
    if len as usize > left {
        return Err(truncated(format_args!(
            "the instruction at word {at} takes {len} words, {left} are left"
        )));
    }
    let op = Op::from_u32(number).ok_or_else(|| {
        damaged(format_args!(
            "instruction {number} at word {at} is not known"
        ))
    })?;
    let shape = shape(op).ok_or_else(|| {
        unsupported(format!(
            "the SPIR-V module uses Op{op:?} (at word {at}), which kernels cannot have"
        ))
    })?;
    if (len as usize) <= shape.words() {
        return Err(damaged(format_args!("Op{op:?} at word {at} is too short")));
    }
    let start = u32::try_from(at).map_err(|_| damaged("it is larger than 16 GiB"))?;
    Ok(Span {
        op,
        shape,
        start,
        len,
    })
}

/// Notes which instruction gives an id.
fn define(module: &mut Module, instruction: &Instruction<'_>) -> Result<()> {
    if instruction.shape == Shape::Bare {
        return Ok(());
    }
    let id = instruction.result();
    let bound = module.bound();
    let slot = module
        .definitions
        .get_mut(id as usize)
        .filter(|_| id != 0)
        .ok_or_else(|| {
            damaged(format_args!(
                "Op{:?} at word {} gives the id %{id}, the bound is {bound}",
                instruction.op, instruction.start
            ))
        })?;
    if *slot != 0 {
        return Err(damaged(format_args!("the id %{id} is defined twice")));
    }
    *slot = u32::try_from(instruction.number + 1)
        .map_err(|_| damaged("it has more than 4294967295 instructions"))?;
    Ok(())
}

/// Notes names, decorations, capabilities and entry points.
fn note(module: &mut Module, instruction: &Instruction<'_>) -> Result<()> {
    match instruction.op {
        Op::Capability => {
            let capability = capability::covered(instruction.operand(0)?)?;
            module.capabilities.push(capability);
        }
        Op::MemoryModel => {
            let model = instruction.operand(0)?;
            module.addressing = AddressingModel::from_u32(model)
                .ok_or_else(|| damaged(format_args!("its addressing model is {model}")))?;
        }
        Op::EntryPoint => {
            let stage = instruction.operand(0)?;
            let stage = ExecutionModel::from_u32(stage)
                .ok_or_else(|| damaged(format_args!("an entry point's stage is {stage}")))?;
            let (name, taken) = instruction.string(2)?;
            module.entry_points.push(EntryPoint {
                name,
                stage,
                function: instruction.operand(1)?,
                interface: instruction
                    .operands()
                    .get(2 + taken..)
                    .unwrap_or(&[])
                    .to_vec(),
            });
        }
        Op::Name => {
            let (name, _) = instruction.string(1)?;
            module.names.insert(instruction.operand(0)?, name);
        }
        Op::MemberName => {
            let (name, _) = instruction.string(2)?;
            let key = (instruction.operand(0)?, instruction.operand(1)?);
            module.member_names.insert(key, name);
        }
        Op::Decorate => {
            let decorated = Decorated {
                decoration: instruction.operand(1)?,
                operand: instruction.operands().get(2).copied(),
            };
            let all = module.decorations.entry(instruction.operand(0)?);
            all.or_default().push(decorated);
        }
        Op::MemberDecorate => {
            let decorated = Decorated {
                decoration: instruction.operand(2)?,
                operand: instruction.operands().get(3).copied(),
            };
            let key = (instruction.operand(0)?, instruction.operand(1)?);
            let all = module.member_decorations.entry(key);
            all.or_default().push(decorated);
        }
        Op::GroupDecorate | Op::GroupMemberDecorate => {
            return Err(unsupported(
                "the SPIR-V module decorates groups of ids (OpGroupDecorate, deprecated), which \
                 the reader does not follow; `spirv-opt --flatten-decorations` takes them apart",
            ));
        }
        _ => {}
    }
    Ok(())
}

#[cold]
fn truncated(what: impl core::fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidModule,
        format!("the SPIR-V module is cut off: {what}; get or compile the file again"),
    )
}
