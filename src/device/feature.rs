//! The device features that the crate knows, by their Vulkan names.

/// A device feature of Vulkan that kernels or the crate itself can need.
///
/// Every one that a device has is enabled when it is opened, unless the runtime's builder leaves
/// it out. The subgroup operations are no features to Vulkan, which always has them on where a device
/// reports them; here they are asked for and left out like the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Feature {
    /// Accesses through descriptors never leave the buffer.
    RobustBufferAccess,
    /// 64-bit floats in shaders.
    ShaderFloat64,
    /// 64-bit integers in shaders.
    ShaderInt64,
    /// 16-bit integers in shaders.
    ShaderInt16,
    /// Storage buffers chosen from an array by a computed index.
    ShaderStorageBufferArrayDynamicIndexing,
    /// Uniform buffers chosen from an array by a computed index.
    ShaderUniformBufferArrayDynamicIndexing,
    /// 16-bit members in storage buffers.
    StorageBuffer16BitAccess,
    /// 16-bit members in uniform buffers.
    UniformAndStorageBuffer16BitAccess,
    /// 16-bit members in push constants.
    StoragePushConstant16,
    /// Pointers into storage buffers as values.
    VariablePointersStorageBuffer,
    /// Pointers into storage buffers and shared memory as values.
    VariablePointers,
    /// 8-bit members in storage buffers.
    StorageBuffer8BitAccess,
    /// 8-bit members in uniform buffers.
    UniformAndStorageBuffer8BitAccess,
    /// 8-bit members in push constants.
    StoragePushConstant8,
    /// 64-bit atomics on storage buffers.
    ShaderBufferInt64Atomics,
    /// 64-bit atomics on shared memory.
    ShaderSharedInt64Atomics,
    /// 16-bit floats in shaders.
    ShaderFloat16,
    /// 8-bit integers in shaders.
    ShaderInt8,
    /// Uniform buffers laid out by the rules of storage buffers.
    UniformBufferStandardLayout,
    /// Blocks laid out as C lays out structs.
    ScalarBlockLayout,
    /// Subgroup operations on 8-, 16- and 64-bit types.
    ShaderSubgroupExtendedTypes,
    /// Timeline semaphores.
    TimelineSemaphore,
    /// Device addresses of buffers.
    BufferDeviceAddress,
    /// The Vulkan memory model.
    VulkanMemoryModel,
    /// Device scope in the Vulkan memory model.
    VulkanMemoryModelDeviceScope,
    /// Integer dot products.
    ShaderIntegerDotProduct,
    /// Choosing the subgroup size of a pipeline, which [`KernelBuilder`](crate::KernelBuilder) has no setting for.
    SubgroupSizeControl,
    /// Subgroups that are always full, which [`KernelBuilder`](crate::KernelBuilder) has no setting for.
    ComputeFullSubgroups,
    /// Workgroup sizes through `LocalSizeId`, and queries of buffer sizes.
    Maintenance4,
    /// Atomic loads and stores of 32-bit floats in storage buffers.
    ShaderBufferFloat32Atomics,
    /// Atomic addition of 32-bit floats in storage buffers.
    ShaderBufferFloat32AtomicAdd,
    /// Atomic loads and stores of 32-bit floats in shared memory.
    ShaderSharedFloat32Atomics,
    /// Atomic addition of 32-bit floats in shared memory.
    ShaderSharedFloat32AtomicAdd,
    /// Subgroups, and electing one invocation of each.
    SubgroupBasic,
    /// Votes in a subgroup.
    SubgroupVote,
    /// Sums and the like over a subgroup.
    SubgroupArithmetic,
    /// Ballots and broadcasts in a subgroup.
    SubgroupBallot,
    /// Values from any invocation of a subgroup.
    SubgroupShuffle,
    /// Values from invocations nearby in a subgroup.
    SubgroupShuffleRelative,
    /// Sums and the like over parts of a subgroup.
    SubgroupClustered,
    /// Values from the other invocations of a group of four.
    SubgroupQuad,
}

macro_rules! names {
    ($($variant:ident = $name:literal),* $(,)?) => {
        impl Feature {
            /// Every feature, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name that Vulkan gives it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }
    };
}

names! {
    RobustBufferAccess = "robustBufferAccess",
    ShaderFloat64 = "shaderFloat64",
    ShaderInt64 = "shaderInt64",
    ShaderInt16 = "shaderInt16",
    ShaderStorageBufferArrayDynamicIndexing = "shaderStorageBufferArrayDynamicIndexing",
    ShaderUniformBufferArrayDynamicIndexing = "shaderUniformBufferArrayDynamicIndexing",
    StorageBuffer16BitAccess = "storageBuffer16BitAccess",
    UniformAndStorageBuffer16BitAccess = "uniformAndStorageBuffer16BitAccess",
    StoragePushConstant16 = "storagePushConstant16",
    VariablePointersStorageBuffer = "variablePointersStorageBuffer",
    VariablePointers = "variablePointers",
    StorageBuffer8BitAccess = "storageBuffer8BitAccess",
    UniformAndStorageBuffer8BitAccess = "uniformAndStorageBuffer8BitAccess",
    StoragePushConstant8 = "storagePushConstant8",
    ShaderBufferInt64Atomics = "shaderBufferInt64Atomics",
    ShaderSharedInt64Atomics = "shaderSharedInt64Atomics",
    ShaderFloat16 = "shaderFloat16",
    ShaderInt8 = "shaderInt8",
    UniformBufferStandardLayout = "uniformBufferStandardLayout",
    ScalarBlockLayout = "scalarBlockLayout",
    ShaderSubgroupExtendedTypes = "shaderSubgroupExtendedTypes",
    TimelineSemaphore = "timelineSemaphore",
    BufferDeviceAddress = "bufferDeviceAddress",
    VulkanMemoryModel = "vulkanMemoryModel",
    VulkanMemoryModelDeviceScope = "vulkanMemoryModelDeviceScope",
    ShaderIntegerDotProduct = "shaderIntegerDotProduct",
    SubgroupSizeControl = "subgroupSizeControl",
    ComputeFullSubgroups = "computeFullSubgroups",
    Maintenance4 = "maintenance4",
    ShaderBufferFloat32Atomics = "shaderBufferFloat32Atomics",
    ShaderBufferFloat32AtomicAdd = "shaderBufferFloat32AtomicAdd",
    ShaderSharedFloat32Atomics = "shaderSharedFloat32Atomics",
    ShaderSharedFloat32AtomicAdd = "shaderSharedFloat32AtomicAdd",
    SubgroupBasic = "VK_SUBGROUP_FEATURE_BASIC_BIT",
    SubgroupVote = "VK_SUBGROUP_FEATURE_VOTE_BIT",
    SubgroupArithmetic = "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT",
    SubgroupBallot = "VK_SUBGROUP_FEATURE_BALLOT_BIT",
    SubgroupShuffle = "VK_SUBGROUP_FEATURE_SHUFFLE_BIT",
    SubgroupShuffleRelative = "VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT",
    SubgroupClustered = "VK_SUBGROUP_FEATURE_CLUSTERED_BIT",
    SubgroupQuad = "VK_SUBGROUP_FEATURE_QUAD_BIT",
}

/// A set of features.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// The set of none.
    pub const EMPTY: Self = Self(0);

    /// Whether the set has the feature.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u64) != 0
    }

    /// Adds a feature.
    pub const fn insert(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u64;
    }

    /// Takes a feature out.
    pub const fn remove(&mut self, feature: Feature) {
        self.0 &= !(1 << feature as u64);
    }

    /// How many features the set has.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set has none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The features, in the order of declaration.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL
            .iter()
            .copied()
            .filter(move |&feature| self.contains(feature))
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        let mut set = Self::EMPTY;
        for feature in features {
            set.insert(feature);
        }
        set
    }
}

impl core::fmt::Debug for FeatureSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set()
            .entries(self.iter().map(Feature::name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_bit_and_a_name_of_its_own() {
        let all: FeatureSet = Feature::ALL.iter().copied().collect();
        assert_eq!(all.len(), Feature::ALL.len());
        let names: std::collections::BTreeSet<_> = Feature::ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), Feature::ALL.len());
    }
}
