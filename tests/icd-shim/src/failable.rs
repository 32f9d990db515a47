//! Functions that are the driver's own, but can be made to fail.
//!
//! # Safety
//!
//! As at the root of the crate.

use ash::vk::{self, AllocationCallbacks};

use crate::device;

/// Each line: our name, Vulkan's, the table with the driver's, the arguments behind the device.
macro_rules! failable {
    ($($ours:ident = $name:literal in $table:ident($($argument:ident: $kind:ty),*);)*) => {$(
        pub(crate) unsafe extern "system" fn $ours(
            handle: vk::Device,
            $($argument: $kind),*
        ) -> vk::Result {
            let Some(device) = device::get(handle) else {
                return vk::Result::ERROR_DEVICE_LOST;
            };
            if let Err(result) = device.core.fault($name) {
                return result;
            }
            let real = device.core.raw().$table().$ours;
            // SAFETY: as the loader called.
            unsafe { real(handle, $($argument),*) }
        }
    )*};
}

failable! {
    bind_buffer_memory = "vkBindBufferMemory" in fp_v1_0(
        buffer: vk::Buffer, memory: vk::DeviceMemory, offset: vk::DeviceSize);
    bind_buffer_memory2 = "vkBindBufferMemory2" in fp_v1_1(
        count: u32, infos: *const vk::BindBufferMemoryInfo<'_>);
    allocate_command_buffers = "vkAllocateCommandBuffers" in fp_v1_0(
        info: *const vk::CommandBufferAllocateInfo<'_>, out: *mut vk::CommandBuffer);
    reset_command_pool = "vkResetCommandPool" in fp_v1_0(
        pool: vk::CommandPool, flags: vk::CommandPoolResetFlags);
    create_descriptor_pool = "vkCreateDescriptorPool" in fp_v1_0(
        info: *const vk::DescriptorPoolCreateInfo<'_>, allocator: *const AllocationCallbacks<'_>,
        out: *mut vk::DescriptorPool);
    create_descriptor_set_layout = "vkCreateDescriptorSetLayout" in fp_v1_0(
        info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
        allocator: *const AllocationCallbacks<'_>, out: *mut vk::DescriptorSetLayout);
    allocate_descriptor_sets = "vkAllocateDescriptorSets" in fp_v1_0(
        info: *const vk::DescriptorSetAllocateInfo<'_>, out: *mut vk::DescriptorSet);
    create_pipeline_layout = "vkCreatePipelineLayout" in fp_v1_0(
        info: *const vk::PipelineLayoutCreateInfo<'_>, allocator: *const AllocationCallbacks<'_>,
        out: *mut vk::PipelineLayout);
    create_pipeline_cache = "vkCreatePipelineCache" in fp_v1_0(
        info: *const vk::PipelineCacheCreateInfo<'_>, allocator: *const AllocationCallbacks<'_>,
        out: *mut vk::PipelineCache);
    create_shader_module = "vkCreateShaderModule" in fp_v1_0(
        info: *const vk::ShaderModuleCreateInfo<'_>, allocator: *const AllocationCallbacks<'_>,
        out: *mut vk::ShaderModule);
    create_query_pool = "vkCreateQueryPool" in fp_v1_0(
        info: *const vk::QueryPoolCreateInfo<'_>, allocator: *const AllocationCallbacks<'_>,
        out: *mut vk::QueryPool);
    create_fence = "vkCreateFence" in fp_v1_0(
        info: *const vk::FenceCreateInfo<'_>, allocator: *const AllocationCallbacks<'_>,
        out: *mut vk::Fence);
    reset_fences = "vkResetFences" in fp_v1_0(count: u32, fences: *const vk::Fence);
    signal_semaphore = "vkSignalSemaphore" in fp_v1_2(info: *const vk::SemaphoreSignalInfo<'_>);
}

/// Like the others, but says by null that none of the pipelines was made.
pub(crate) unsafe extern "system" fn create_compute_pipelines(
    handle: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: *const AllocationCallbacks<'_>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkCreateComputePipelines") {
        // SAFETY: as the loader called; there is room for so many.
        let out = unsafe { core::slice::from_raw_parts_mut(out, count as usize) };
        out.fill(vk::Pipeline::null());
        return result;
    }
    let real = device.core.raw().fp_v1_0().create_compute_pipelines;
    // SAFETY: as the loader called.
    unsafe { real(handle, cache, count, infos, allocator, out) }
}
