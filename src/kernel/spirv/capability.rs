//! What each capability of a module asks of a device.

use spirv::Capability;

use crate::device::Feature;
use crate::error::{Error, ErrorKind, Result};

/// What a capability asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing that a device of ours lacks.
    Nothing,
    /// One feature.
    Feature(Feature),
    /// 64-bit integer atomics; which feature depends on the memory they are used on.
    Int64Atomics,
    /// Atomic addition of floats; which feature depends on the memory it is used on.
    Float32AtomicAdd,
}

/// What a capability asks for; `None` where the crate has nothing for it.
pub(crate) fn need(capability: Capability) -> Option<Need> {
    use Capability as C;
    Some(match capability {
        C::Matrix | C::Shader => Need::Nothing,
        C::GroupNonUniform => Need::Feature(Feature::SubgroupBasic),
        C::GroupNonUniformVote => Need::Feature(Feature::SubgroupVote),
        C::GroupNonUniformArithmetic => Need::Feature(Feature::SubgroupArithmetic),
        C::GroupNonUniformBallot => Need::Feature(Feature::SubgroupBallot),
        C::GroupNonUniformShuffle => Need::Feature(Feature::SubgroupShuffle),
        C::GroupNonUniformShuffleRelative => Need::Feature(Feature::SubgroupShuffleRelative),
        C::GroupNonUniformClustered => Need::Feature(Feature::SubgroupClustered),
        C::GroupNonUniformQuad => Need::Feature(Feature::SubgroupQuad),
        C::Float64 => Need::Feature(Feature::ShaderFloat64),
        C::Int64 => Need::Feature(Feature::ShaderInt64),
        C::Int16 => Need::Feature(Feature::ShaderInt16),
        C::Int8 => Need::Feature(Feature::ShaderInt8),
        C::Float16 => Need::Feature(Feature::ShaderFloat16),
        C::StorageBufferArrayDynamicIndexing => {
            Need::Feature(Feature::ShaderStorageBufferArrayDynamicIndexing)
        }
        C::UniformBufferArrayDynamicIndexing => {
            Need::Feature(Feature::ShaderUniformBufferArrayDynamicIndexing)
        }
        C::StorageBuffer16BitAccess => Need::Feature(Feature::StorageBuffer16BitAccess),
        C::UniformAndStorageBuffer16BitAccess => {
            Need::Feature(Feature::UniformAndStorageBuffer16BitAccess)
        }
        C::StoragePushConstant16 => Need::Feature(Feature::StoragePushConstant16),
        C::StorageBuffer8BitAccess => Need::Feature(Feature::StorageBuffer8BitAccess),
        C::UniformAndStorageBuffer8BitAccess => {
            Need::Feature(Feature::UniformAndStorageBuffer8BitAccess)
        }
        C::StoragePushConstant8 => Need::Feature(Feature::StoragePushConstant8),
        C::VariablePointersStorageBuffer => Need::Feature(Feature::VariablePointersStorageBuffer),
        C::VariablePointers => Need::Feature(Feature::VariablePointers),
        C::PhysicalStorageBufferAddresses => Need::Feature(Feature::BufferDeviceAddress),
        C::VulkanMemoryModel => Need::Feature(Feature::VulkanMemoryModel),
        C::VulkanMemoryModelDeviceScope => Need::Feature(Feature::VulkanMemoryModelDeviceScope),
        C::DotProduct
        | C::DotProductInput4x8Bit
        | C::DotProductInput4x8BitPacked
        | C::DotProductInputAll => Need::Feature(Feature::ShaderIntegerDotProduct),
        C::Int64Atomics => Need::Int64Atomics,
        C::AtomicFloat32AddEXT => Need::Float32AtomicAdd,
        _ => return None,
    })
}

/// The error for a capability that the crate has nothing for.
pub(super) fn refusal(number: u32) -> Error {
    let name = Capability::from_u32(number).map_or_else(
        || format!("number {number}"),
        |capability| format!("{capability:?}"),
    );
    let why = match Capability::from_u32(number) {
        Some(
            Capability::Kernel | Capability::Addresses | Capability::Linkage | Capability::Groups,
        ) => "it is made for OpenCL, or not linked yet; kernels are compute shaders for Vulkan",
        _ => {
            "kernels take storage and uniform buffers, push constants and addresses, with the \
             features of `Feature::ALL`"
        }
    };
    Error::new(
        ErrorKind::Unsupported,
        format!("the SPIR-V module needs the capability {name}, which kernels cannot have: {why}"),
    )
}

/// The capability of this number.
///
/// # Errors
///
/// `Unsupported` where the crate has nothing for it.
pub(super) fn covered(number: u32) -> Result<Capability> {
    Capability::from_u32(number)
        .filter(|&capability| need(capability).is_some())
        .ok_or_else(|| refusal(number))
}
