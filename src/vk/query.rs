//! Asking a physical device what it is, without opening it.
//!
//! # Safety
//!
//! Every unsafe call is a query of a physical device that belongs to the instance it is made with;
//! chains are built from local values and hold only structures that the device knows.
#![allow(unsafe_code)]

use core::ffi::{CStr, FromBytesUntilNulError};
use std::collections::BTreeSet;

use ash::prelude::VkResult;
use ash::vk;

use super::features;
use crate::device::extension::Extension;
use crate::device::info::{
    Driver, MemoryFlags, MemoryHeap, MemoryType, PciAddress, PhysicalInfo, QueueFamily, QueueFlags,
    Version,
};
use crate::device::memory_info::HeapBudget;
use crate::device::{DeviceLimits, DeviceType};

/// What the physical device reports, where `instance_version` is the version that the instance was
/// made for.
///
/// # Errors
///
/// What the driver gives when it is asked for its extensions.
pub(crate) fn physical_info(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    instance_version: Version,
) -> VkResult<PhysicalInfo> {
    // SAFETY: the physical device belongs to the instance.
    let core = unsafe { instance.get_physical_device_properties(physical) };
    // SAFETY: as above.
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical) }?;
    let extensions: BTreeSet<String> = extensions
        .iter()
        .map(|extension| text(extension.extension_name_as_c_str()))
        .collect();
    // SAFETY: as above.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    // SAFETY: as above.
    let memory = unsafe { instance.get_physical_device_memory_properties(physical) };

    let api_version = Version::from_packed(core.api_version);
    let usable_version = api_version.min(instance_version);
    let more = MoreProperties::query(instance, physical, usable_version, &extensions);
    let features = features::query(instance, physical, usable_version, &extensions);
    let subgroups = features::subgroup_operations(&more.vulkan11);
    let features = features.iter().chain(subgroups).collect();
    Ok(PhysicalInfo {
        name: text(core.device_name_as_c_str()),
        vendor_id: core.vendor_id,
        device_id: core.device_id,
        device_type: device_type(core.device_type),
        api_version,
        usable_version,
        driver: more.driver(core.driver_version),
        uuid: more.vulkan11.device_uuid,
        luid: (more.vulkan11.device_luid_valid != vk::FALSE).then_some(more.vulkan11.device_luid),
        pci: pci_address(&more.pci),
        queue_families: families.iter().map(queue_family).collect(),
        memory_heaps: memory.memory_heaps_as_slice().iter().map(heap).collect(),
        memory_types: memory.memory_types_as_slice().iter().map(kind).collect(),
        limits: limits(&core.limits, &more),
        features,
        extensions,
    })
}

/// What the driver says about the heap that counts as the device's memory; nothing where it lacks
/// `VK_EXT_memory_budget`.
pub(crate) fn heap_budget(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    info: &PhysicalInfo,
) -> Option<HeapBudget> {
    if info.usable_version < Version::V1_1 || !info.offers(Extension::MemoryBudget) {
        return None;
    }
    budget_of(instance, physical, info.device_heap()?)
}

/// What the driver says about a heap; for a device that has `VK_EXT_memory_budget`.
pub(super) fn budget_of(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    heap: u32,
) -> Option<HeapBudget> {
    let heap = heap as usize;
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    // SAFETY: the physical device belongs to the instance; whoever calls has seen that it knows Vulkan
    // 1.1, which has the call, and offers the extension of the structure in the chain.
    unsafe { instance.get_physical_device_memory_properties2(physical, &mut memory) };
    Some(HeapBudget {
        budget: *budget.heap_budget.get(heap)?,
        usage: *budget.heap_usage.get(heap)?,
    })
}

/// The properties that are not of Vulkan 1.0; zeros where the device has none.
#[derive(Default)]
struct MoreProperties {
    vulkan11: vk::PhysicalDeviceVulkan11Properties<'static>,
    vulkan12: vk::PhysicalDeviceVulkan12Properties<'static>,
    subgroup_size: vk::PhysicalDeviceSubgroupSizeControlProperties<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Properties<'static>,
    pci: vk::PhysicalDevicePCIBusInfoPropertiesEXT<'static>,
}

impl MoreProperties {
    fn query(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        version: Version,
        extensions: &BTreeSet<String>,
    ) -> Self {
        let mut more = Self::default();
        // The structures of 1.1 came with 1.2, too.
        if version < Version::NEEDED {
            return more;
        }
        let has = |extension: Extension| extension.is_usable(version, extensions);
        let mut head = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut more.vulkan11)
            .push_next(&mut more.vulkan12);
        if has(Extension::SubgroupSizeControl) {
            head = head.push_next(&mut more.subgroup_size);
        }
        if has(Extension::Maintenance4) {
            head = head.push_next(&mut more.maintenance4);
        }
        if has(Extension::PciBusInfo) {
            head = head.push_next(&mut more.pci);
        }
        // SAFETY: the physical device belongs to the instance and knows Vulkan 1.2; every structure
        // of the chain is one that it knows and is alive.
        unsafe { instance.get_physical_device_properties2(physical, &mut head) };
        more
    }

    fn driver(&self, version: u32) -> Driver {
        let conformance = self.vulkan12.conformance_version;
        Driver {
            id: self.vulkan12.driver_id.as_raw(),
            name: text(self.vulkan12.driver_name_as_c_str()),
            info: text(self.vulkan12.driver_info_as_c_str()),
            version,
            conformance: [
                conformance.major,
                conformance.minor,
                conformance.subminor,
                conformance.patch,
            ],
            uuid: self.vulkan11.driver_uuid,
        }
    }
}

fn limits(core: &vk::PhysicalDeviceLimits, more: &MoreProperties) -> DeviceLimits {
    // A property that was not asked for is 0.
    DeviceLimits {
        max_storage_buffer_range: core.max_storage_buffer_range.into(),
        max_uniform_buffer_range: core.max_uniform_buffer_range.into(),
        max_buffer_size: more.maintenance4.max_buffer_size,
        max_memory_allocation_size: more.vulkan11.max_memory_allocation_size,
        max_memory_allocation_count: core.max_memory_allocation_count,
        max_compute_work_group_count: core.max_compute_work_group_count,
        max_compute_work_group_size: core.max_compute_work_group_size,
        max_compute_work_group_invocations: core.max_compute_work_group_invocations,
        max_compute_shared_memory_size: core.max_compute_shared_memory_size,
        max_push_constants_size: core.max_push_constants_size,
        max_bound_descriptor_sets: core.max_bound_descriptor_sets,
        max_per_stage_resources: core.max_per_stage_resources,
        max_per_stage_descriptor_storage_buffers: core.max_per_stage_descriptor_storage_buffers,
        max_per_stage_descriptor_uniform_buffers: core.max_per_stage_descriptor_uniform_buffers,
        min_storage_buffer_offset_alignment: core.min_storage_buffer_offset_alignment,
        min_uniform_buffer_offset_alignment: core.min_uniform_buffer_offset_alignment,
        non_coherent_atom_size: core.non_coherent_atom_size,
        optimal_buffer_copy_offset_alignment: core.optimal_buffer_copy_offset_alignment,
        timestamp_period: core.timestamp_period,
        subgroup_size: more.vulkan11.subgroup_size,
        min_subgroup_size: more.subgroup_size.min_subgroup_size,
        max_subgroup_size: more.subgroup_size.max_subgroup_size,
        max_compute_workgroup_subgroups: more.subgroup_size.max_compute_workgroup_subgroups,
    }
    .with_gaps_filled()
}

fn device_type(reported: vk::PhysicalDeviceType) -> DeviceType {
    match reported {
        vk::PhysicalDeviceType::DISCRETE_GPU => DeviceType::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceType::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => DeviceType::Virtual,
        vk::PhysicalDeviceType::CPU => DeviceType::Cpu,
        _ => DeviceType::Other,
    }
}

/// The place on the bus; nothing for zeros, where a PC has its host bridge and no device of ours.
fn pci_address(pci: &vk::PhysicalDevicePCIBusInfoPropertiesEXT<'_>) -> Option<PciAddress> {
    let address = PciAddress {
        domain: pci.pci_domain,
        bus: pci.pci_bus,
        device: pci.pci_device,
        function: pci.pci_function,
    };
    (address != PciAddress::default()).then_some(address)
}

fn queue_family(family: &vk::QueueFamilyProperties) -> QueueFamily {
    QueueFamily {
        flags: QueueFlags(family.queue_flags.as_raw()),
        count: family.queue_count,
        timestamp_valid_bits: family.timestamp_valid_bits,
    }
}

fn heap(heap: &vk::MemoryHeap) -> MemoryHeap {
    MemoryHeap {
        size: heap.size,
        device_local: heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
    }
}

fn kind(kind: &vk::MemoryType) -> MemoryType {
    MemoryType {
        flags: MemoryFlags(kind.property_flags.as_raw()),
        heap: kind.heap_index,
    }
}

/// A driver's text; empty where it breaks the rule of ending it.
fn text(text: Result<&CStr, FromBytesUntilNulError>) -> String {
    text.map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default()
}
