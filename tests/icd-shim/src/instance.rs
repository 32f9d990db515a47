//! Instances, and the physical devices that they find.
//!
//! # Safety
//!
//! As at the root of the crate.

use core::ffi::c_char;
use std::sync::Arc;

use ash::vk;

use crate::heap::Heaps;
use crate::loose::{Kind, Loose};
use crate::sync::Registry;
use crate::{VoidFunction, config, device, driver, table};

/// A physical device as one instance sees it.
pub(crate) struct Physical {
    pub(crate) raw: vk::PhysicalDevice,
    /// The driver's functions.
    pub(crate) instance: ash::Instance,
    /// The driver's families.
    pub(crate) families: Vec<vk::QueueFamilyProperties>,
    /// The heap of each of the driver's memory types.
    pub(crate) type_heaps: Vec<u32>,
    pub(crate) heaps: Heaps,
    /// A memory type of ours.
    pub(crate) loose: Option<Loose>,
}

static INSTANCES: Registry<ash::Instance> = Registry::new();
static PHYSICAL: Registry<Physical> = Registry::new();

/// What is known of a physical device.
pub(crate) fn physical(raw: vk::PhysicalDevice) -> Option<Arc<Physical>> {
    PHYSICAL.get(raw)
}

pub(crate) unsafe extern "system" fn create(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Instance,
) -> vk::Result {
    let (Some(driver), Some(_)) = (driver::get(), config::get()) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    let name = c"vkCreateInstance".as_ptr();
    // SAFETY: a string; the function is a global one.
    let create = unsafe { driver.instance_function(vk::Instance::null(), name) };
    // SAFETY: the name says which type the function has.
    let create =
        unsafe { core::mem::transmute::<VoidFunction, Option<vk::PFN_vkCreateInstance>>(create) };
    let Some(create) = create else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    // SAFETY: as the loader called.
    let result = unsafe { create(info, allocator, out) };
    if result == vk::Result::SUCCESS {
        // SAFETY: the driver has just written it.
        let handle = unsafe { *out };
        // SAFETY: the driver's functions for this instance.
        let instance =
            unsafe { ash::Instance::load_with(|name| driver.pointer(handle, name), handle) };
        INSTANCES.insert(handle, Arc::new(instance));
    }
    result
}

pub(crate) unsafe extern "system" fn destroy(
    handle: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    let Some(instance) = INSTANCES.remove(handle) else {
        return;
    };
    PHYSICAL.retain(|physical| physical.instance.handle() != handle);
    // SAFETY: as the loader called.
    unsafe { (instance.fp_v1_0().destroy_instance)(handle, allocator) };
}

pub(crate) unsafe extern "system" fn enumerate(
    handle: vk::Instance,
    count: *mut u32,
    out: *mut vk::PhysicalDevice,
) -> vk::Result {
    let Some(instance) = INSTANCES.get(handle) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    // SAFETY: as the loader called.
    let result = unsafe { (instance.fp_v1_0().enumerate_physical_devices)(handle, count, out) };
    if !out.is_null() && matches!(result, vk::Result::SUCCESS | vk::Result::INCOMPLETE) {
        // SAFETY: the driver has written the number.
        let count = unsafe { *count } as usize;
        // SAFETY: the driver has written so many.
        let found = unsafe { core::slice::from_raw_parts(out, count) };
        found.iter().for_each(|raw| register(&instance, *raw));
    }
    result
}

pub(crate) unsafe extern "system" fn enumerate_groups(
    handle: vk::Instance,
    count: *mut u32,
    out: *mut vk::PhysicalDeviceGroupProperties<'_>,
) -> vk::Result {
    let Some(instance) = INSTANCES.get(handle) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    let enumerate = instance.fp_v1_1().enumerate_physical_device_groups;
    // SAFETY: as the loader called.
    let result = unsafe { enumerate(handle, count, out) };
    if !out.is_null() && matches!(result, vk::Result::SUCCESS | vk::Result::INCOMPLETE) {
        // SAFETY: the driver has written the number.
        let count = unsafe { *count } as usize;
        // SAFETY: the driver has written so many.
        let found = unsafe { core::slice::from_raw_parts(out, count) };
        let devices = found
            .iter()
            .flat_map(|group| &group.physical_devices[..group.physical_device_count as usize]);
        devices.for_each(|raw| register(&instance, *raw));
    }
    result
}

fn register(instance: &ash::Instance, raw: vk::PhysicalDevice) {
    let Some(config) = config::get() else {
        return;
    };
    if PHYSICAL.get(raw).is_some() {
        return;
    }
    // SAFETY: a physical device of this instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(raw) };
    // SAFETY: as above.
    let memory = unsafe { instance.get_physical_device_memory_properties(raw) };
    let types = memory.memory_types_as_slice();
    let loose = config.further.and_then(|kind| Loose::new(types, kind));
    let of_loose = loose.map(|loose| match loose.kind {
        Kind::NonCoherent => types[loose.real as usize].heap_index,
        Kind::Host => memory.memory_heap_count,
    });
    let physical = Physical {
        raw,
        instance: instance.clone(),
        families,
        type_heaps: types
            .iter()
            .map(|kind| kind.heap_index)
            .chain(of_loose)
            .collect(),
        loose,
        heaps: Heaps::new(config.heap_bytes, config.heap_others_bytes),
    };
    PHYSICAL.insert(raw, Arc::new(physical));
}

pub(crate) unsafe extern "system" fn device_function(
    handle: vk::Device,
    name: *const c_char,
) -> VoidFunction {
    let device = device::get(handle)?;
    let get = device.physical().instance.fp_v1_0().get_device_proc_addr;
    // SAFETY: as the loader called.
    let function = unsafe { get(handle, name) };
    // SAFETY: as above.
    unsafe { table::shown(name, function) }
}
