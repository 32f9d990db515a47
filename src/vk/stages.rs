//! The stages and accesses of barriers in Vulkan's bits.

use ash::vk;

use crate::exec::hazard::{Scope, Stages};

const STAGES: [(Stages, vk::PipelineStageFlags); 5] = [
    (Stages::COMPUTE, vk::PipelineStageFlags::COMPUTE_SHADER),
    (Stages::UNIFORM, vk::PipelineStageFlags::COMPUTE_SHADER),
    (Stages::TRANSFER, vk::PipelineStageFlags::TRANSFER),
    (Stages::INDIRECT, vk::PipelineStageFlags::DRAW_INDIRECT),
    (Stages::HOST, vk::PipelineStageFlags::HOST),
];

const READS: [(Stages, vk::AccessFlags); 5] = [
    (Stages::COMPUTE, vk::AccessFlags::SHADER_READ),
    (Stages::UNIFORM, vk::AccessFlags::UNIFORM_READ),
    (Stages::TRANSFER, vk::AccessFlags::TRANSFER_READ),
    (Stages::INDIRECT, vk::AccessFlags::INDIRECT_COMMAND_READ),
    (Stages::HOST, vk::AccessFlags::HOST_READ),
];

const WRITES: [(Stages, vk::AccessFlags); 3] = [
    (Stages::COMPUTE, vk::AccessFlags::SHADER_WRITE),
    (Stages::TRANSFER, vk::AccessFlags::TRANSFER_WRITE),
    (Stages::HOST, vk::AccessFlags::HOST_WRITE),
];

/// What each set comes to by a table of single stages, in order of the sets' numbers; worked out beforehand,
/// since every barrier asks.
macro_rules! of_every_set {
    ($table:ident: $bits:ty) => {{
        let mut of = [<$bits>::empty(); Stages::SETS];
        let mut number = 0;
        while number < of.len() {
            let mut at = 0;
            while at < $table.len() {
                let (stage, bits) = $table[at];
                if Stages::numbered(number).contains(stage) {
                    of[number] = <$bits>::from_raw(of[number].as_raw() | bits.as_raw());
                }
                at += 1;
            }
            number += 1;
        }
        of
    }};
}

/// Vulkan's bits for a set of stages.
pub(super) fn stages(set: Stages) -> vk::PipelineStageFlags {
    const ALL: [vk::PipelineStageFlags; Stages::SETS] =
        of_every_set!(STAGES: vk::PipelineStageFlags);
    ALL[set.number()]
}

/// Vulkan's bits for what a scope does.
pub(super) fn accesses(scope: Scope) -> vk::AccessFlags {
    const ALL_READS: [vk::AccessFlags; Stages::SETS] = of_every_set!(READS: vk::AccessFlags);
    const ALL_WRITES: [vk::AccessFlags; Stages::SETS] = of_every_set!(WRITES: vk::AccessFlags);
    ALL_READS[scope.reads.number()] | ALL_WRITES[scope.writes.number()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_accesses_map_to_vulkans_bits() {
        let set = Stages::COMPUTE.union(Stages::TRANSFER);
        assert_eq!(
            stages(set),
            vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER
        );
        let scope = Scope {
            reads: Stages::HOST,
            writes: Stages::TRANSFER,
        };
        assert_eq!(
            accesses(scope),
            vk::AccessFlags::HOST_READ | vk::AccessFlags::TRANSFER_WRITE
        );
        assert_eq!(accesses(Scope::default()), vk::AccessFlags::empty());
    }
}
