//! The chain of feature structures: what a device has is read from it, what to enable is written to
//! it, through one table.
//!
//! # Safety
//!
//! The one unsafe call asks a physical device for its features; its chain is built from fields of one
//! value that outlives the call, and holds only structures that the device knows.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use ash::vk;

use crate::device::extension::Extension;
use crate::device::info::Version;
use crate::device::plan::Plan;
use crate::device::{Feature, FeatureSet};

/// The feature structures of a device, and which of them it knows.
#[derive(Default)]
struct FeatureChain {
    core: vk::PhysicalDeviceFeatures2<'static>,
    vulkan11: vk::PhysicalDeviceVulkan11Features<'static>,
    vulkan12: vk::PhysicalDeviceVulkan12Features<'static>,
    subgroup_size_control: vk::PhysicalDeviceSubgroupSizeControlFeatures<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    integer_dot_product: vk::PhysicalDeviceShaderIntegerDotProductFeatures<'static>,
    atomic_float: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    knows: Known,
}

/// Which structures may be in the chain.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Those of Vulkan 1.1 and 1.2, both of which came with 1.2.
    vulkan12: bool,
    subgroup_size_control: bool,
    maintenance4: bool,
    integer_dot_product: bool,
    atomic_float: bool,
}

/// Hangs the structures that the device knows, but not the core one, on a head.
macro_rules! push_known {
    ($chain:expr => $head:ident) => {
        push_known!($chain => $head,
            vulkan12: vulkan11,
            vulkan12: vulkan12,
            subgroup_size_control: subgroup_size_control,
            maintenance4: maintenance4,
            integer_dot_product: integer_dot_product,
            atomic_float: atomic_float,
        )
    };
    ($chain:expr => $head:ident, $($known:ident: $structure:ident,)*) => {$(
        if $chain.knows.$known {
            $head = $head.push_next(&mut $chain.$structure);
        }
    )*};
}

/// What a device is opened with; for one use.
pub(crate) struct EnableChain(FeatureChain);

impl EnableChain {
    /// The chain that enables the features of the plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut chain = FeatureChain::new(plan.version, |extension| plan.has(extension));
        for feature in plan.features.iter() {
            if let Some(field) = chain.field(feature) {
                *field = vk::TRUE;
            }
        }
        Self(chain)
    }

    /// Hangs the features on what a device is made from, which must not name features otherwise.
    pub(crate) fn attach<'a>(
        &'a mut self,
        mut info: vk::DeviceCreateInfo<'a>,
    ) -> vk::DeviceCreateInfo<'a> {
        push_known!(self.0 => info);
        info.push_next(&mut self.0.core)
    }
}

/// The features that a physical device has, among those of [`Feature`].
pub(super) fn query(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    version: Version,
    extensions: &BTreeSet<String>,
) -> FeatureSet {
    let mut chain = FeatureChain::new(version, |extension| {
        extension.is_usable(version, extensions)
    });
    if chain.knows.vulkan12 {
        let mut head = vk::PhysicalDeviceFeatures2::default();
        push_known!(chain => head);
        // SAFETY: the physical device belongs to the instance and knows Vulkan 1.1, which has the
        // call; every structure of the chain is one that it knows and is alive.
        unsafe { instance.get_physical_device_features2(physical, &mut head) };
        chain.core.features = head.features;
    } else {
        // SAFETY: the physical device belongs to the instance.
        chain.core.features = unsafe { instance.get_physical_device_features(physical) };
    }
    chain.read()
}

/// The subgroup operations that compute shaders have, which Vulkan reports as a property.
pub(super) fn subgroup_operations(
    properties: &vk::PhysicalDeviceVulkan11Properties<'_>,
) -> impl Iterator<Item = Feature> {
    const OPERATIONS: [(vk::SubgroupFeatureFlags, Feature); 8] = [
        (vk::SubgroupFeatureFlags::BASIC, Feature::SubgroupBasic),
        (vk::SubgroupFeatureFlags::VOTE, Feature::SubgroupVote),
        (
            vk::SubgroupFeatureFlags::ARITHMETIC,
            Feature::SubgroupArithmetic,
        ),
        (vk::SubgroupFeatureFlags::BALLOT, Feature::SubgroupBallot),
        (vk::SubgroupFeatureFlags::SHUFFLE, Feature::SubgroupShuffle),
        (
            vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE,
            Feature::SubgroupShuffleRelative,
        ),
        (
            vk::SubgroupFeatureFlags::CLUSTERED,
            Feature::SubgroupClustered,
        ),
        (vk::SubgroupFeatureFlags::QUAD, Feature::SubgroupQuad),
    ];
    let stages = properties.subgroup_supported_stages;
    let operations = match stages.contains(vk::ShaderStageFlags::COMPUTE) {
        true => properties.subgroup_supported_operations,
        false => vk::SubgroupFeatureFlags::empty(),
    };
    let has = move |(bit, feature)| operations.contains(bit).then_some(feature);
    OPERATIONS.into_iter().filter_map(has)
}

impl FeatureChain {
    fn new(version: Version, has: impl Fn(Extension) -> bool) -> Self {
        let vulkan12 = version >= Version::NEEDED;
        let has = |extension: Extension| vulkan12 && has(extension);
        Self {
            knows: Known {
                vulkan12,
                subgroup_size_control: has(Extension::SubgroupSizeControl),
                maintenance4: has(Extension::Maintenance4),
                integer_dot_product: has(Extension::ShaderIntegerDotProduct),
                atomic_float: has(Extension::ShaderAtomicFloat),
            },
            ..Self::default()
        }
    }

    fn read(&mut self) -> FeatureSet {
        Feature::ALL
            .iter()
            .copied()
            .filter(|&feature| self.field(feature).is_some_and(|field| *field != vk::FALSE))
            .collect()
    }

    /// The table: where Vulkan keeps each feature. Nothing for what it has as a property, which is
    /// read elsewhere and never enabled.
    fn field(&mut self, feature: Feature) -> Option<&mut vk::Bool32> {
        let core = &mut self.core.features;
        let v11 = &mut self.vulkan11;
        let v12 = &mut self.vulkan12;
        let subgroup_size = &mut self.subgroup_size_control;
        let float = &mut self.atomic_float;
        Some(match feature {
            Feature::RobustBufferAccess => &mut core.robust_buffer_access,
            Feature::ShaderFloat64 => &mut core.shader_float64,
            Feature::ShaderInt64 => &mut core.shader_int64,
            Feature::ShaderInt16 => &mut core.shader_int16,
            Feature::ShaderStorageBufferArrayDynamicIndexing => {
                &mut core.shader_storage_buffer_array_dynamic_indexing
            }
            Feature::ShaderUniformBufferArrayDynamicIndexing => {
                &mut core.shader_uniform_buffer_array_dynamic_indexing
            }
            Feature::StorageBuffer16BitAccess => &mut v11.storage_buffer16_bit_access,
            Feature::UniformAndStorageBuffer16BitAccess => {
                &mut v11.uniform_and_storage_buffer16_bit_access
            }
            Feature::StoragePushConstant16 => &mut v11.storage_push_constant16,
            Feature::VariablePointersStorageBuffer => &mut v11.variable_pointers_storage_buffer,
            Feature::VariablePointers => &mut v11.variable_pointers,
            Feature::StorageBuffer8BitAccess => &mut v12.storage_buffer8_bit_access,
            Feature::UniformAndStorageBuffer8BitAccess => {
                &mut v12.uniform_and_storage_buffer8_bit_access
            }
            Feature::StoragePushConstant8 => &mut v12.storage_push_constant8,
            Feature::ShaderBufferInt64Atomics => &mut v12.shader_buffer_int64_atomics,
            Feature::ShaderSharedInt64Atomics => &mut v12.shader_shared_int64_atomics,
            Feature::ShaderFloat16 => &mut v12.shader_float16,
            Feature::ShaderInt8 => &mut v12.shader_int8,
            Feature::UniformBufferStandardLayout => &mut v12.uniform_buffer_standard_layout,
            Feature::ScalarBlockLayout => &mut v12.scalar_block_layout,
            Feature::ShaderSubgroupExtendedTypes => &mut v12.shader_subgroup_extended_types,
            Feature::TimelineSemaphore => &mut v12.timeline_semaphore,
            Feature::BufferDeviceAddress => &mut v12.buffer_device_address,
            Feature::VulkanMemoryModel => &mut v12.vulkan_memory_model,
            Feature::VulkanMemoryModelDeviceScope => &mut v12.vulkan_memory_model_device_scope,
            Feature::ShaderIntegerDotProduct => {
                &mut self.integer_dot_product.shader_integer_dot_product
            }
            Feature::SubgroupSizeControl => &mut subgroup_size.subgroup_size_control,
            Feature::ComputeFullSubgroups => &mut subgroup_size.compute_full_subgroups,
            Feature::Maintenance4 => &mut self.maintenance4.maintenance4,
            Feature::ShaderBufferFloat32Atomics => &mut float.shader_buffer_float32_atomics,
            Feature::ShaderBufferFloat32AtomicAdd => &mut float.shader_buffer_float32_atomic_add,
            Feature::ShaderSharedFloat32Atomics => &mut float.shader_shared_float32_atomics,
            Feature::ShaderSharedFloat32AtomicAdd => &mut float.shader_shared_float32_atomic_add,
            Feature::SubgroupBasic
            | Feature::SubgroupVote
            | Feature::SubgroupArithmetic
            | Feature::SubgroupBallot
            | Feature::SubgroupShuffle
            | Feature::SubgroupShuffleRelative
            | Feature::SubgroupClustered
            | Feature::SubgroupQuad => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_field_of_its_own() {
        for &feature in Feature::ALL {
            let mut chain = FeatureChain::default();
            let Some(field) = chain.field(feature) else {
                assert!(feature.name().starts_with("VK_SUBGROUP_FEATURE_"));
                continue;
            };
            *field = vk::TRUE;
            assert_eq!(chain.read().iter().collect::<Vec<_>>(), [feature]);
        }
    }

    fn length(version: Version, extension: Option<Extension>) -> usize {
        let mut chain = FeatureChain::new(version, |asked| {
            asked.is_core_in(version) || Some(asked) == extension
        });
        let mut head = vk::PhysicalDeviceFeatures2::default();
        push_known!(chain => head);
        let mut next: *const vk::BaseInStructure<'_> = head.p_next.cast_const().cast();
        let mut length = 0;
        while !next.is_null() {
            length += 1;
            // SAFETY: the structures of the chain are fields of `chain`, which `head` borrows.
            next = unsafe { (*next).p_next };
        }
        length
    }

    #[test]
    fn the_chain_holds_only_structures_that_the_device_knows() {
        let atomics = Some(Extension::ShaderAtomicFloat);
        assert_eq!(length(Version::V1_1, atomics), 0);
        assert_eq!(length(Version::NEEDED, None), 2);
        assert_eq!(length(Version::NEEDED, atomics), 3);
        assert_eq!(length(Version::V1_3, atomics), 6);
    }
}
