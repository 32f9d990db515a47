//! The numbers that bound what a device takes.

/// The limits of a device, under Vulkan's names.
///
/// Three of them bound memory, and differ: a *shader* reaches [`max_storage_buffer_range`] bytes
/// through one descriptor (more through an address), a *buffer* has at most [`max_buffer_size`]
/// bytes, and the *driver* gives at most [`max_memory_allocation_size`] bytes at once.
///
/// [`max_storage_buffer_range`]: Self::max_storage_buffer_range
/// [`max_buffer_size`]: Self::max_buffer_size
/// [`max_memory_allocation_size`]: Self::max_memory_allocation_size
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceLimits {
    /// The most bytes that a storage buffer descriptor reaches.
    pub max_storage_buffer_range: u64,
    /// The most bytes that a uniform buffer descriptor reaches.
    pub max_uniform_buffer_range: u64,
    /// The most bytes of one buffer; where the driver does not say, as much as one allocation.
    pub max_buffer_size: u64,
    /// The most bytes that the driver gives in one allocation.
    pub max_memory_allocation_size: u64,
    /// The most allocations that may live at once, of all users of the device in this process.
    pub max_memory_allocation_count: u32,
    /// The most workgroups of a launch along x, y and z.
    pub max_compute_work_group_count: [u32; 3],
    /// The most invocations of a workgroup along x, y and z.
    pub max_compute_work_group_size: [u32; 3],
    /// The most invocations of a workgroup in all.
    pub max_compute_work_group_invocations: u32,
    /// The most bytes of shared memory of a workgroup.
    pub max_compute_shared_memory_size: u32,
    /// The most bytes of push constants.
    pub max_push_constants_size: u32,
    /// The most descriptor sets of a kernel.
    pub max_bound_descriptor_sets: u32,
    /// The most descriptors of all kinds of a kernel.
    pub max_per_stage_resources: u32,
    /// The most storage buffer descriptors of a kernel.
    pub max_per_stage_descriptor_storage_buffers: u32,
    /// The most uniform buffer descriptors of a kernel.
    pub max_per_stage_descriptor_uniform_buffers: u32,
    /// What the offset of a storage buffer descriptor is a multiple of, in bytes; a power of two.
    pub min_storage_buffer_offset_alignment: u64,
    /// What the offset of a uniform buffer descriptor is a multiple of, in bytes; a power of two.
    pub min_uniform_buffer_offset_alignment: u64,
    /// What ranges of host memory that is not coherent are rounded to, in bytes; a power of two.
    pub non_coherent_atom_size: u64,
    /// What the offsets of copies best are a multiple of, in bytes; a power of two.
    pub optimal_buffer_copy_offset_alignment: u64,
    /// Nanoseconds of one step of a timestamp.
    pub timestamp_period: f32,
    /// The invocations of a subgroup, as kernels get it.
    pub subgroup_size: u32,
    /// The least invocations of a subgroup that Vulkan lets a pipeline choose; kernels of this crate don't.
    pub min_subgroup_size: u32,
    /// The most invocations of a subgroup that Vulkan lets a pipeline choose; kernels of this crate don't.
    pub max_subgroup_size: u32,
    /// The most subgroups of a workgroup, where a pipeline chooses the subgroup size; kernels of this crate don't.
    pub max_compute_workgroup_subgroups: u32,
}

impl DeviceLimits {
    /// Fills in what the device was not asked for, as its version does not know it; it is 0 here,
    /// which no device reports.
    pub(crate) fn with_gaps_filled(self) -> Self {
        let or = |value: u64, otherwise: u64| if value == 0 { otherwise } else { value };
        let or_32 = |value: u32, otherwise: u32| if value == 0 { otherwise } else { value };
        // What every Vulkan 1.1 device gives at least.
        let allocation = or(self.max_memory_allocation_size, 1 << 30);
        let subgroup_size = or_32(self.subgroup_size, 1);
        Self {
            max_buffer_size: or(self.max_buffer_size, allocation),
            max_memory_allocation_size: allocation,
            subgroup_size,
            min_subgroup_size: or_32(self.min_subgroup_size, subgroup_size),
            max_subgroup_size: or_32(self.max_subgroup_size, subgroup_size),
            max_compute_workgroup_subgroups: or_32(
                self.max_compute_workgroup_subgroups,
                self.max_compute_work_group_invocations / subgroup_size,
            ),
            ..self
        }
    }
}
