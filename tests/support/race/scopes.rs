//! What masks of stages and accesses name. Pure.

use ash::vk::{AccessFlags, PipelineStageFlags};

/// The stages of a queue that any access is made in.
pub const DEVICE: PipelineStageFlags = PipelineStageFlags::from_raw(
    PipelineStageFlags::DRAW_INDIRECT.as_raw()
        | PipelineStageFlags::COMPUTE_SHADER.as_raw()
        | PipelineStageFlags::TRANSFER.as_raw(),
);

/// The stages that a mask names, of those that are told apart here.
pub fn named(mask: PipelineStageFlags) -> PipelineStageFlags {
    let mut stages = mask & (DEVICE | PipelineStageFlags::HOST);
    if mask.contains(PipelineStageFlags::ALL_COMMANDS) {
        stages |= DEVICE;
    }
    stages
}

/// What a barrier from these stages waits for: those that come before them in a pipeline, too.
pub fn first_scope(mask: PipelineStageFlags) -> PipelineStageFlags {
    let mut stages = named(mask);
    if stages.contains(PipelineStageFlags::COMPUTE_SHADER) {
        stages |= PipelineStageFlags::DRAW_INDIRECT;
    }
    if mask.contains(PipelineStageFlags::BOTTOM_OF_PIPE) {
        stages |= DEVICE;
    }
    stages
}

/// What waits for a barrier to these stages: those that come after them in a pipeline, too.
pub fn second_scope(mask: PipelineStageFlags) -> PipelineStageFlags {
    let mut stages = named(mask);
    if stages.contains(PipelineStageFlags::DRAW_INDIRECT) {
        stages |= PipelineStageFlags::COMPUTE_SHADER;
    }
    if mask.contains(PipelineStageFlags::TOP_OF_PIPE) {
        stages |= DEVICE;
    }
    stages
}

/// The accesses that a mask names.
pub fn accesses(mask: AccessFlags) -> AccessFlags {
    let mut all = mask;
    if mask.contains(AccessFlags::MEMORY_READ) {
        all |= AccessFlags::SHADER_READ
            | AccessFlags::UNIFORM_READ
            | AccessFlags::TRANSFER_READ
            | AccessFlags::INDIRECT_COMMAND_READ
            | AccessFlags::HOST_READ;
    }
    if mask.contains(AccessFlags::MEMORY_WRITE) {
        all |= AccessFlags::SHADER_WRITE | AccessFlags::TRANSFER_WRITE | AccessFlags::HOST_WRITE;
    }
    all
}
