//! What is made before the work begins.
//!
//! # Safety
//!
//! As at the top of `mod.rs`; what is made here is destroyed there. Where something can't be made, the
//! program ends.
#![allow(unsafe_code)]

use ash::vk;

use super::{RawBuffer, RawKernel};
use crate::work::{Abi, BUFFER_BYTES, MODULES, PIECE_BYTES, PIECES, Result};

pub(super) fn open_device(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> Result<(ash::Device, u32)> {
    // SAFETY: the physical device is the instance's own.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let computes =
        |family: &vk::QueueFamilyProperties| family.queue_flags.contains(vk::QueueFlags::COMPUTE);
    let family = families
        .iter()
        .position(computes)
        .ok_or("no queue that computes")?;
    let family = u32::try_from(family)?;
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&[1.0])];
    // What the crate has them do, too.
    let robust = vk::PhysicalDeviceFeatures::default().robust_buffer_access(true);
    let mut features = vk::PhysicalDeviceVulkan12Features::default()
        .timeline_semaphore(true)
        .buffer_device_address(true);
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_features(&robust)
        .push_next(&mut features);
    // SAFETY: the physical device is the instance's own; what it lacks makes this fail.
    Ok((
        unsafe { instance.create_device(physical, &info, None) }?,
        family,
    ))
}

pub(super) fn make_buffer(
    device: &ash::Device,
    types: &vk::PhysicalDeviceMemoryProperties,
    flags: vk::MemoryPropertyFlags,
) -> Result<RawBuffer> {
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default()
        .size(BUFFER_BYTES)
        .usage(usage);
    // SAFETY: the device is there.
    let buffer = unsafe { device.create_buffer(&info, None) }?;
    // SAFETY: the buffer is there.
    let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
    let fits = |(index, kind): (u32, &vk::MemoryType)| {
        let fits = needs.memory_type_bits >> index & 1 == 1 && kind.property_flags.contains(flags);
        fits.then_some(index)
    };
    let kinds = (0..).zip(types.memory_types_as_slice());
    let index = kinds.filter_map(fits).next().ok_or("no memory of a kind")?;
    let mut with_address =
        vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    let info = vk::MemoryAllocateInfo::default()
        .allocation_size(needs.size)
        .memory_type_index(index)
        .push_next(&mut with_address);
    // SAFETY: the type is one of the device's.
    let memory = unsafe { device.allocate_memory(&info, None) }?;
    // SAFETY: the memory is fresh and large enough.
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }?;
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    // SAFETY: the buffer is one with an address.
    let address = unsafe { device.get_buffer_device_address(&info) };
    Ok(RawBuffer {
        buffer,
        memory,
        address,
    })
}

pub(super) fn make_set_layout(device: &ash::Device) -> Result<vk::DescriptorSetLayout> {
    let bindings = [0, 1].map(|binding| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(binding)
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    });
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the device is there.
    Ok(unsafe { device.create_descriptor_set_layout(&info, None) }?)
}

pub(super) fn make_kernel(
    device: &ash::Device,
    abi: Abi,
    set_layout: vk::DescriptorSetLayout,
) -> Result<RawKernel> {
    let (set_layouts, bytes) = match abi {
        Abi::Descriptors => (&[set_layout][..], 12),
        Abi::Addresses => (&[][..], 28),
    };
    let range = [vk::PushConstantRange::default()
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
        .size(bytes)];
    let info = vk::PipelineLayoutCreateInfo::default()
        .set_layouts(set_layouts)
        .push_constant_ranges(&range);
    // SAFETY: the device and the layout are there.
    let layout = unsafe { device.create_pipeline_layout(&info, None) }?;
    let words = ash::util::read_spv(&mut std::io::Cursor::new(MODULES[abi as usize]))?;
    let info = vk::ShaderModuleCreateInfo::default().code(&words);
    // SAFETY: the module is one of the repository's own, and valid.
    let module = unsafe { device.create_shader_module(&info, None) }?;
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(c"main");
    let info = [vk::ComputePipelineCreateInfo::default()
        .stage(stage)
        .layout(layout)];
    // SAFETY: the layout is what the module declares.
    let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
    // SAFETY: no pipeline needs its module once it is made.
    unsafe { device.destroy_shader_module(module, None) };
    let pipeline = made.map_err(|(_, code)| code)?[0];
    Ok(RawKernel { pipeline, layout })
}

pub(super) fn make_sets(
    device: &ash::Device,
    layout: vk::DescriptorSetLayout,
    buffers: &[RawBuffer; 2],
) -> Result<(vk::DescriptorPool, Vec<[vk::DescriptorSet; 2]>)> {
    let count = u32::try_from(2 * PIECES)?;
    let sizes = [vk::DescriptorPoolSize::default()
        .ty(vk::DescriptorType::STORAGE_BUFFER)
        .descriptor_count(2 * count)];
    let info = vk::DescriptorPoolCreateInfo::default()
        .max_sets(count)
        .pool_sizes(&sizes);
    // SAFETY: the device is there.
    let pool = unsafe { device.create_descriptor_pool(&info, None) }?;
    let mut sets = Vec::with_capacity(PIECES);
    for piece in 0..PIECES as u64 {
        let layouts = [layout; 2];
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(pool)
            .set_layouts(&layouts);
        // SAFETY: the pool has room for them.
        let made = unsafe { device.allocate_descriptor_sets(&info) }?;
        let infos = [0, 1].map(|at: usize| {
            [vk::DescriptorBufferInfo::default()
                .buffer(buffers[at].buffer)
                .offset(PIECE_BYTES * piece)
                .range(PIECE_BYTES)]
        });
        for (goes_back, &set) in made.iter().enumerate() {
            let writes = [(0, goes_back), (1, 1 - goes_back)].map(|(binding, at)| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(&infos[at])
            });
            // SAFETY: the sets are new; the pieces lie in the buffers.
            unsafe { device.update_descriptor_sets(&writes, &[]) };
        }
        sets.push([made[0], made[1]]);
    }
    Ok((pool, sets))
}
