//! Which entry point a kernel is, and how large its workgroups are.

use spirv::{BuiltIn, Decoration, ExecutionMode, ExecutionModel, Op};

use crate::error::{Details, Error, ErrorKind, Result};
use crate::kernel::spirv::{Constants, EntryPoint, Module, damaged, unsupported};

/// The name that is tried where none is given.
const DEFAULT_NAME: &str = "main";

/// The entry point that is meant.
///
/// # Errors
///
/// `InvalidArgument` for a name that no entry point can have; `EntryPointNotFound` where the module
/// has none of that name for compute, or several and none was named.
pub(super) fn select<'a>(module: &'a Module, asked: Option<&str>) -> Result<&'a EntryPoint> {
    if let Some(name) = asked {
        if name.is_empty() {
            return Err(invalid_name("the entry point's name is empty"));
        }
        if name.contains('\0') {
            return Err(invalid_name(format!(
                "the entry point's name {name:?} has a NUL in it, which SPIR-V names cannot have"
            )));
        }
    }
    let compute: Vec<&EntryPoint> = module
        .entries()
        .iter()
        .filter(|entry| entry.stage == ExecutionModel::GLCompute)
        .collect();
    let name = asked.unwrap_or(DEFAULT_NAME);
    if let Some(entry) = compute.iter().find(|entry| entry.name == name) {
        return Ok(entry);
    }
    if let (None, [only]) = (asked, compute.as_slice()) {
        return Ok(only);
    }
    Err(not_found(module, asked, &compute))
}

fn invalid_name(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, text)
}

#[cold]
fn not_found(module: &Module, asked: Option<&str>, compute: &[&EntryPoint]) -> Error {
    let available: Vec<String> = compute.iter().map(|entry| entry.name.clone()).collect();
    let name = asked.unwrap_or(DEFAULT_NAME);
    let other_stage = module.entries().iter().find(|entry| entry.name == name);
    let mut text = match (other_stage, asked) {
        (Some(entry), _) => format!(
            "the entry point `{name}` is of the stage {:?}, kernels are compute shaders \
             (GLCompute)",
            entry.stage
        ),
        (None, Some(_)) => format!("the module has no entry point `{name}`"),
        (None, None) => "no entry point was named, and the module has no `main`".to_owned(),
    };
    text.push_str(&if available.is_empty() {
        "; the module has no compute entry point at all".to_owned()
    } else {
        format!(
            "; its compute entry points are `{}`: choose one with `KernelBuilder::entry`",
            available.join("`, `")
        )
    });
    Error::new(ErrorKind::EntryPointNotFound, text).with_details(Details::EntryPoint {
        asked: name.to_owned(),
        available,
    })
}

/// A workgroup's size, and whether it was given by ids (which needs a feature).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalSize {
    /// The size on each axis.
    pub(super) size: [u32; 3],
    /// Whether the mode `LocalSizeId` gave it.
    pub(super) by_id: bool,
}

/// The size of a workgroup after specialization.
///
/// # Errors
///
/// `InvalidModule` where the entry point has none; `InvalidArgument` where specialization made an
/// axis 0; `Unsupported` for execution modes that kernels cannot have.
pub(super) fn local_size(
    module: &Module,
    constants: &Constants<'_>,
    entry: &EntryPoint,
) -> Result<LocalSize> {
    let mut literal = None;
    let mut ids = None;
    for instruction in module.globals() {
        if !matches!(instruction.op, Op::ExecutionMode | Op::ExecutionModeId)
            || instruction.operand(0)? != entry.function
        {
            continue;
        }
        let axes = |first: usize| -> Result<[u32; 3]> {
            Ok([
                instruction.operand(first)?,
                instruction.operand(first + 1)?,
                instruction.operand(first + 2)?,
            ])
        };
        let mode = instruction.operand(1)?;
        match ExecutionMode::from_u32(mode) {
            Some(ExecutionMode::LocalSize) => literal = Some(axes(2)?),
            Some(ExecutionMode::LocalSizeId) => ids = Some(axes(2)?),
            Some(other) => {
                return Err(unsupported(format!(
                    "the entry point `{}` has the execution mode {other:?}, which kernels cannot \
                     have",
                    entry.name
                )));
            }
            None => return Err(damaged(format_args!("an execution mode is {mode}"))),
        }
    }
    let by_id = ids.is_some();
    // The constant that is the built-in overrules the mode.
    let size = if let Some(parts) = workgroup_size_constant(module)? {
        values(constants, entry, parts)?
    } else if let Some(ids) = ids {
        values(constants, entry, ids)?
    } else {
        literal.ok_or_else(|| {
            damaged(format_args!(
                "the entry point `{}` has no workgroup size",
                entry.name
            ))
        })?
    };
    if size.contains(&0) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "the workgroups of `{}` are {} x {} x {}: every axis must be at least 1; set the \
                 specialization constants that give it",
                entry.name, size[0], size[1], size[2]
            ),
        ));
    }
    Ok(LocalSize { size, by_id })
}

/// The three parts of the constant that is decorated as the workgroup's size, if there is one.
fn workgroup_size_constant(module: &Module) -> Result<Option<[u32; 3]>> {
    for instruction in module.globals() {
        if !matches!(
            instruction.op,
            Op::ConstantComposite | Op::SpecConstantComposite
        ) {
            continue;
        }
        let built_in = module.decoration(instruction.result(), Decoration::BuiltIn);
        if built_in == Some(BuiltIn::WorkgroupSize as u32) {
            return Ok(Some([
                instruction.operand(0)?,
                instruction.operand(1)?,
                instruction.operand(2)?,
            ]));
        }
    }
    Ok(None)
}

fn values(constants: &Constants<'_>, entry: &EntryPoint, ids: [u32; 3]) -> Result<[u32; 3]> {
    let mut size = [0; 3];
    for (axis, id) in size.iter_mut().zip(ids) {
        let constant = constants.get(id).ok_or_else(|| {
            unsupported(format!(
                "the workgroup size of `{}` is computed from %{id} in a way that cannot be \
                 followed; use integer arithmetic on specialization constants",
                entry.name
            ))
        })?;
        *axis = u32::try_from(constant.integer()).map_err(|_| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the workgroup size of `{}` is {} on one axis",
                    entry.name,
                    constant.integer()
                ),
            )
        })?;
    }
    Ok(size)
}
