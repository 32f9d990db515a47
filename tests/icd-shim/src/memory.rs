//! Memory and buffers: the limits that are shown hold.
//!
//! # Safety
//!
//! As at the root of the crate.

use ash::vk;

use crate::chain::find;
use crate::loose::{Kind, Shadow};
use crate::sync::lock;
use crate::{config, device, family};

pub(crate) unsafe extern "system" fn allocate(
    handle: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    let (Some(device), Some(config)) = (device::get(handle), config::get()) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkAllocateMemory") {
        return result;
    }
    // SAFETY: as the loader called.
    let request = unsafe { &*info };
    if request.allocation_size > config.max_allocation_bytes {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    // SAFETY: as the loader called.
    let imported = unsafe { find::<vk::ImportMemoryHostPointerInfoEXT<'_>>(request.p_next) };
    // Memory that is the host's already takes nothing from a heap.
    let bytes = imported.map_or(request.allocation_size, |_| 0);
    let physical = device.physical();
    let heap = physical.type_heaps[request.memory_type_index as usize] as usize;
    // Held until the new one is in, so that the number is never passed.
    let mut memory = lock(&device.memory);
    if memory.len() >= config.max_allocations as usize {
        return vk::Result::ERROR_TOO_MANY_OBJECTS;
    }
    if !physical.heaps.take(heap, bytes) {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    let mut request = *request;
    let loose = physical.loose;
    let loose = loose.filter(|loose| loose.shown == request.memory_type_index);
    let mut shadow = None;
    if let Some(loose) = loose {
        request.memory_type_index = loose.real;
        if loose.kind == Kind::NonCoherent {
            shadow = Shadow::new(request.allocation_size);
        }
        if shadow.is_none() && loose.kind == Kind::NonCoherent {
            physical.heaps.give(heap, bytes);
            return vk::Result::ERROR_OUT_OF_HOST_MEMORY;
        }
    }
    let allocate = device.core.raw().fp_v1_0().allocate_memory;
    // SAFETY: as the loader called.
    let result = unsafe { allocate(handle, &request, allocator, out) };
    if result == vk::Result::SUCCESS {
        // SAFETY: the driver has just written it.
        let made = unsafe { *out };
        memory.insert(made, (bytes, heap));
        if let Some(shadow) = shadow {
            lock(&device.shadows).insert(made, shadow);
        }
    } else {
        physical.heaps.give(heap, bytes);
    }
    result
}

pub(crate) unsafe extern "system" fn free(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    let Some(device) = device::get(handle) else {
        return;
    };
    // Out of the list first: once it is free, another may get the same handle.
    let known = lock(&device.memory).remove(&memory);
    drop(lock(&device.shadows).remove(&memory));
    // SAFETY: as the loader called.
    unsafe { (device.core.raw().fp_v1_0().free_memory)(handle, memory, allocator) };
    if let Some((bytes, heap)) = known {
        device.physical().heaps.give(heap, bytes);
    }
}

pub(crate) unsafe extern "system" fn create_buffer(
    handle: vk::Device,
    info: *const vk::BufferCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Buffer,
) -> vk::Result {
    let (Some(device), Some(config)) = (device::get(handle), config::get()) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkCreateBuffer") {
        return result;
    }
    // SAFETY: as the loader called.
    let mut request = unsafe { *info };
    if request.size > config.max_buffer_bytes {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    let mut families = Vec::new();
    if request.sharing_mode == vk::SharingMode::CONCURRENT {
        let count = request.queue_family_index_count as usize;
        // SAFETY: as the loader called.
        let asked = unsafe { core::slice::from_raw_parts(request.p_queue_family_indices, count) };
        families = family::all_real(asked, &device.physical().families);
    }
    // Two that are shown may be one of the driver's, and one alone shares with nobody.
    request = request.queue_family_indices(&families);
    if families.len() < 2 {
        request = request.queue_family_indices(&[]);
        request.sharing_mode = vk::SharingMode::EXCLUSIVE;
    }
    // SAFETY: as the loader called.
    unsafe { (device.core.raw().fp_v1_0().create_buffer)(handle, &request, allocator, out) }
}

pub(crate) unsafe extern "system" fn create_command_pool(
    handle: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::CommandPool,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkCreateCommandPool") {
        return result;
    }
    // SAFETY: as the loader called.
    let mut request = unsafe { *info };
    let families = &device.physical().families;
    request.queue_family_index = family::real(request.queue_family_index, families);
    // SAFETY: as the loader called.
    unsafe { (device.core.raw().fp_v1_0().create_command_pool)(handle, &request, allocator, out) }
}
