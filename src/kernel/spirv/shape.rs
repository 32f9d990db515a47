//! Which instructions give an id, and whether a type comes before it.

use spirv::Op;

/// What stands before an instruction's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No result.
    Bare,
    /// The result's id.
    Id,
    /// The result's type, then its id.
    Typed,
}

impl Shape {
    /// How many words stand before the operands.
    pub(crate) const fn words(self) -> usize {
        match self {
            Self::Bare => 0,
            Self::Id => 1,
            Self::Typed => 2,
        }
    }
}

/// The last of the instructions that need no extension, before the first of a vendor.
const LAST_CORE: u32 = 403;

/// The shape of an instruction; `None` for one that belongs to a capability outside of compute.
pub(crate) fn shape(op: Op) -> Option<Shape> {
    use Op::{
        AtomicFAddEXT, AtomicStore, Branch, BranchConditional, Capability, ControlBarrier,
        CopyMemory, CopyMemorySized, Decorate, DecorateId, DecorateString, DecorationGroup,
        DemoteToHelperInvocation, EmitStreamVertex, EmitVertex, EndPrimitive, EndStreamPrimitive,
        EntryPoint, ExecutionMode, ExecutionModeId, ExtInstImport, Extension, FunctionEnd,
        GroupDecorate, GroupMemberDecorate, ImageWrite, Kill, Label, LifetimeStart, LifetimeStop,
        Line, LoopMerge, MemberDecorate, MemberDecorateString, MemberName, MemoryBarrier,
        MemoryModel, ModuleProcessed, Name, NoLine, Nop, Return, ReturnValue, SDot, SDotAccSat,
        SUDot, SUDotAccSat, SelectionMerge, Source, SourceContinued, SourceExtension, Store,
        String, Switch, TerminateInvocation, TypeArray, TypeBool, TypeFloat, TypeForwardPointer,
        TypeFunction, TypeImage, TypeInt, TypeMatrix, TypeOpaque, TypePointer, TypeRuntimeArray,
        TypeSampledImage, TypeSampler, TypeStruct, TypeVector, TypeVoid, UDot, UDotAccSat,
        Unreachable,
    };
    Some(match op {
        Nop
        | SourceContinued
        | Source
        | SourceExtension
        | Name
        | MemberName
        | Line
        | Extension
        | MemoryModel
        | EntryPoint
        | ExecutionMode
        | Capability
        | TypeForwardPointer
        | FunctionEnd
        | Store
        | CopyMemory
        | CopyMemorySized
        | Decorate
        | MemberDecorate
        | GroupDecorate
        | GroupMemberDecorate
        | ImageWrite
        | EmitVertex
        | EndPrimitive
        | EmitStreamVertex
        | EndStreamPrimitive
        | ControlBarrier
        | MemoryBarrier
        | AtomicStore
        | LoopMerge
        | SelectionMerge
        | Branch
        | BranchConditional
        | Switch
        | Kill
        | Return
        | ReturnValue
        | Unreachable
        | LifetimeStart
        | LifetimeStop
        | NoLine
        | ModuleProcessed
        | ExecutionModeId
        | DecorateId
        | DecorateString
        | MemberDecorateString
        | TerminateInvocation
        | DemoteToHelperInvocation => Shape::Bare,
        String | ExtInstImport | TypeVoid | TypeBool | TypeInt | TypeFloat | TypeVector
        | TypeMatrix | TypeImage | TypeSampler | TypeSampledImage | TypeArray
        | TypeRuntimeArray | TypeStruct | TypeOpaque | TypePointer | TypeFunction
        | DecorationGroup | Label => Shape::Id,
        SDot | UDot | SUDot | SDotAccSat | UDotAccSat | SUDotAccSat | AtomicFAddEXT => Shape::Typed,
        // What is left of the core either gives a typed result or needs the capability `Kernel`.
        other if (other as u32) <= LAST_CORE && !kernel_only(other) => Shape::Typed,
        _ => return None,
    })
}

/// Instructions of OpenCL in the core's range.
fn kernel_only(op: Op) -> bool {
    let number = op as u32;
    // The types of events, queues and pipes; copies by groups; pipes and queues; atomic flags;
    // OpSizeOf, pipe storage, sizes of subgroups and named barriers.
    matches!(number, 34..=38 | 259 | 260 | 274..=304 | 318 | 319 | 321..=329)
}
