//! Which functions are ours.
//!
//! # Safety
//!
//! As at the root of the crate. A function is handed out under a name whose type it has: the casts
//! below name the type.

use core::ffi::{CStr, c_char, c_void};

use ash::vk;

use crate::{VoidFunction, device, failable, instance, loose, memory, physical, queue, semaphore};

/// The function to hand out under a name for which the driver has `real`.
///
/// # Safety
///
/// The name is a string.
pub(crate) unsafe fn shown(name: *const c_char, real: VoidFunction) -> VoidFunction {
    // What the driver lacks is lacking.
    real?;
    // SAFETY: as the caller says.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    let Some(ours) = ours(name) else {
        // The driver does not know our queues.
        return real.filter(|_| !name.starts_with("vkQueue"));
    };
    // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
    Some(unsafe { core::mem::transmute::<*const c_void, unsafe extern "system" fn()>(ours) })
}

/// Each line: the names, the type, the function.
macro_rules! functions {
    ($name:ident; $($($wanted:literal)|+ => $kind:ident $ours:expr;)*) => {
        match $name {
            $($($wanted)|+ => {
                let function: vk::$kind = $ours;
                Some(function as *const c_void)
            })*
            _ => None,
        }
    };
}

fn ours(name: &str) -> Option<*const c_void> {
    functions! { name;
        "vkCreateInstance" => PFN_vkCreateInstance instance::create;
        "vkDestroyInstance" => PFN_vkDestroyInstance instance::destroy;
        "vkEnumeratePhysicalDevices" => PFN_vkEnumeratePhysicalDevices instance::enumerate;
        "vkEnumeratePhysicalDeviceGroups" | "vkEnumeratePhysicalDeviceGroupsKHR" =>
            PFN_vkEnumeratePhysicalDeviceGroups instance::enumerate_groups;
        "vkGetDeviceProcAddr" => PFN_vkGetDeviceProcAddr instance::device_function;

        "vkGetPhysicalDeviceProperties" => PFN_vkGetPhysicalDeviceProperties physical::properties;
        "vkGetPhysicalDeviceProperties2" | "vkGetPhysicalDeviceProperties2KHR" =>
            PFN_vkGetPhysicalDeviceProperties2 physical::properties2;
        "vkGetPhysicalDeviceQueueFamilyProperties" =>
            PFN_vkGetPhysicalDeviceQueueFamilyProperties physical::families;
        "vkGetPhysicalDeviceQueueFamilyProperties2" | "vkGetPhysicalDeviceQueueFamilyProperties2KHR" =>
            PFN_vkGetPhysicalDeviceQueueFamilyProperties2 physical::families2;
        "vkGetPhysicalDeviceMemoryProperties" =>
            PFN_vkGetPhysicalDeviceMemoryProperties physical::memory;
        "vkGetPhysicalDeviceMemoryProperties2" | "vkGetPhysicalDeviceMemoryProperties2KHR" =>
            PFN_vkGetPhysicalDeviceMemoryProperties2 physical::memory2;
        "vkEnumerateDeviceExtensionProperties" =>
            PFN_vkEnumerateDeviceExtensionProperties physical::extensions;

        "vkCreateDevice" => PFN_vkCreateDevice device::create;
        "vkDestroyDevice" => PFN_vkDestroyDevice device::destroy;
        "vkGetDeviceQueue" => PFN_vkGetDeviceQueue device::queue;
        "vkGetDeviceQueue2" => PFN_vkGetDeviceQueue2 device::queue2;
        "vkDeviceWaitIdle" => PFN_vkDeviceWaitIdle device::wait_idle;
        "vkQueueSubmit" => PFN_vkQueueSubmit queue::submit;
        "vkQueueSubmit2" | "vkQueueSubmit2KHR" => PFN_vkQueueSubmit2 queue::submit2;
        "vkQueueWaitIdle" => PFN_vkQueueWaitIdle queue::wait_idle;

        "vkAllocateMemory" => PFN_vkAllocateMemory memory::allocate;
        "vkFreeMemory" => PFN_vkFreeMemory memory::free;
        "vkCreateBuffer" => PFN_vkCreateBuffer memory::create_buffer;
        "vkCreateCommandPool" => PFN_vkCreateCommandPool memory::create_command_pool;

        "vkCreateSemaphore" => PFN_vkCreateSemaphore semaphore::create;
        "vkDestroySemaphore" => PFN_vkDestroySemaphore semaphore::destroy;
        "vkGetSemaphoreCounterValue" | "vkGetSemaphoreCounterValueKHR" =>
            PFN_vkGetSemaphoreCounterValue semaphore::counter;
        "vkWaitSemaphores" | "vkWaitSemaphoresKHR" => PFN_vkWaitSemaphores semaphore::wait;
        "vkWaitForFences" => PFN_vkWaitForFences semaphore::wait_fences;
        "vkGetFenceStatus" => PFN_vkGetFenceStatus semaphore::fence_status;
        "vkGetQueryPoolResults" => PFN_vkGetQueryPoolResults semaphore::query_results;

        "vkBindBufferMemory" => PFN_vkBindBufferMemory failable::bind_buffer_memory;
        "vkBindBufferMemory2" | "vkBindBufferMemory2KHR" =>
            PFN_vkBindBufferMemory2 failable::bind_buffer_memory2;
        "vkMapMemory" => PFN_vkMapMemory loose::map;
        "vkFlushMappedMemoryRanges" => PFN_vkFlushMappedMemoryRanges loose::flush;
        "vkInvalidateMappedMemoryRanges" => PFN_vkInvalidateMappedMemoryRanges loose::invalidate;
        "vkGetBufferMemoryRequirements" =>
            PFN_vkGetBufferMemoryRequirements loose::buffer_requirements;
        "vkGetBufferMemoryRequirements2" | "vkGetBufferMemoryRequirements2KHR" =>
            PFN_vkGetBufferMemoryRequirements2 loose::buffer_requirements2;
        "vkAllocateCommandBuffers" =>
            PFN_vkAllocateCommandBuffers failable::allocate_command_buffers;
        "vkResetCommandPool" => PFN_vkResetCommandPool failable::reset_command_pool;
        "vkCreateDescriptorPool" => PFN_vkCreateDescriptorPool failable::create_descriptor_pool;
        "vkCreateDescriptorSetLayout" =>
            PFN_vkCreateDescriptorSetLayout failable::create_descriptor_set_layout;
        "vkAllocateDescriptorSets" =>
            PFN_vkAllocateDescriptorSets failable::allocate_descriptor_sets;
        "vkCreatePipelineLayout" => PFN_vkCreatePipelineLayout failable::create_pipeline_layout;
        "vkCreatePipelineCache" => PFN_vkCreatePipelineCache failable::create_pipeline_cache;
        "vkCreateShaderModule" => PFN_vkCreateShaderModule failable::create_shader_module;
        "vkCreateComputePipelines" =>
            PFN_vkCreateComputePipelines failable::create_compute_pipelines;
        "vkCreateQueryPool" => PFN_vkCreateQueryPool failable::create_query_pool;
        "vkCreateFence" => PFN_vkCreateFence failable::create_fence;
        "vkResetFences" => PFN_vkResetFences failable::reset_fences;
        "vkSignalSemaphore" | "vkSignalSemaphoreKHR" =>
            PFN_vkSignalSemaphore failable::signal_semaphore;
        "vkSetDebugUtilsObjectNameEXT" => PFN_vkSetDebugUtilsObjectNameEXT name_object;
        "vkSetDebugUtilsObjectTagEXT" => PFN_vkSetDebugUtilsObjectTagEXT tag_object;
    }
}

/// Names are for people; the driver must not look for our queues among its own.
unsafe extern "system" fn name_object(
    _: vk::Device,
    _: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn tag_object(
    _: vk::Device,
    _: *const vk::DebugUtilsObjectTagInfoEXT<'_>,
) -> vk::Result {
    vk::Result::SUCCESS
}
