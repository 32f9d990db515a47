//! The allocators that this one is measured against, with the calls that a program makes to each.
//!
//! # Safety
//!
//! Handles are made and destroyed here, in order, by one thread; no memory is ever read or written.
#![allow(unsafe_code)]

use std::error::Error;

use ash::vk;
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use vk_mem::Alloc as _;

use crate::Memory;

/// A device by hand.
pub struct Device {
    _entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    device: ash::Device,
    /// The types of memory that buffers can have.
    types: u32,
}

impl Device {
    /// The first device that there is.
    pub fn open() -> Result<Self, Box<dyn Error>> {
        // SAFETY: the library that is found is a Vulkan loader.
        let entry = unsafe { ash::Entry::load() }?;
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        // SAFETY: `info` and what it points to are valid.
        let instance = unsafe { entry.create_instance(&info, None) }?;
        // SAFETY: the instance is there.
        let found = unsafe { instance.enumerate_physical_devices() }?;
        let physical = *found.first().ok_or("no device")?;
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        // SAFETY: the device is the instance's own, and every device has a queue family 0.
        let device = unsafe { instance.create_device(physical, &info, None) }?;
        let info = vk::BufferCreateInfo::default()
            .size(1 << 20)
            .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: `info` is valid.
        let buffer = unsafe { device.create_buffer(&info, None) }?;
        // SAFETY: the buffer is there.
        let types = unsafe { device.get_buffer_memory_requirements(buffer) }.memory_type_bits;
        // SAFETY: nothing uses the buffer.
        unsafe { device.destroy_buffer(buffer, None) };
        Ok(Self {
            _entry: entry,
            instance,
            physical,
            device,
            types,
        })
    }

    fn requirements(&self, bytes: u64) -> vk::MemoryRequirements {
        vk::MemoryRequirements {
            size: bytes,
            alignment: 256,
            memory_type_bits: self.types,
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: whoever has memory of the device borrows it.
        unsafe { self.device.destroy_device(None) };
        // SAFETY: the device was the last of the instance's.
        unsafe { self.instance.destroy_instance(None) };
    }
}

/// The crate `gpu-allocator`.
pub struct GpuAllocator<'a> {
    device: &'a Device,
    allocator: Allocator,
    blocks: Vec<Option<Allocation>>,
}

impl<'a> GpuAllocator<'a> {
    pub fn new(device: &'a Device, slots: usize) -> Self {
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: device.instance.clone(),
            device: device.device.clone(),
            physical_device: device.physical,
            debug_settings: gpu_allocator::AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: gpu_allocator::AllocationSizes::default(),
        });
        Self {
            device,
            allocator: allocator.expect("the device is valid"),
            blocks: (0..slots).map(|_| None).collect(),
        }
    }
}

impl Memory for GpuAllocator<'_> {
    fn place(&mut self, slot: usize, bytes: u64) {
        let block = self.allocator.allocate(&AllocationCreateDesc {
            name: "",
            requirements: self.device.requirements(bytes),
            location: MemoryLocation::GpuOnly,
            linear: true,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        });
        self.blocks[slot] = Some(block.expect("there is memory"));
    }

    fn free(&mut self, slot: usize) {
        let block = self.blocks[slot].take().expect("it is allocated");
        self.allocator
            .free(block)
            .expect("it is the allocator's own");
    }

    fn reserved(&self) -> u64 {
        self.allocator.capacity()
    }
}

/// AMD's allocator, by the crate `vk-mem`.
pub struct VkMem<'a> {
    device: &'a Device,
    allocator: vk_mem::Allocator,
    info: vk_mem::AllocationCreateInfo,
    blocks: Vec<Option<vk_mem::Allocation>>,
}

impl<'a> VkMem<'a> {
    pub fn new(device: &'a Device, slots: usize) -> Self {
        let info =
            vk_mem::AllocatorCreateInfo::new(&device.instance, &device.device, device.physical);
        // SAFETY: the handles live as long as `device`, which is borrowed.
        let allocator = unsafe { vk_mem::Allocator::new(info) };
        Self {
            device,
            allocator: allocator.expect("the device is valid"),
            info: vk_mem::AllocationCreateInfo {
                required_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
                ..Default::default()
            },
            blocks: vec![None; slots],
        }
    }
}

impl Memory for VkMem<'_> {
    fn place(&mut self, slot: usize, bytes: u64) {
        let requirements = self.device.requirements(bytes);
        // SAFETY: the requirements are those of a buffer of the device.
        let block = unsafe { self.allocator.allocate_memory(&requirements, &self.info) };
        self.blocks[slot] = Some(block.expect("there is memory"));
    }

    fn free(&mut self, slot: usize) {
        let mut block = self.blocks[slot].take().expect("it is allocated");
        // SAFETY: it was allocated here, and nothing uses it.
        unsafe { self.allocator.free_memory(&mut block) };
    }

    fn reserved(&self) -> u64 {
        let budgets = self.allocator.get_heap_budgets().expect("figures");
        budgets.iter().map(|heap| heap.statistics.blockBytes).sum()
    }
}
