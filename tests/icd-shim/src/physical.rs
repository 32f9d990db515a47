//! What physical devices show: limits, families, memory, extensions.
//!
//! # Safety
//!
//! As at the root of the crate.

use core::ffi::{c_char, c_void};

use ash::vk;

use crate::chain::find_mut;
use crate::config::{self, Config};
use crate::family;
use crate::instance::{self, Physical};

const BUDGET: &core::ffi::CStr = ash::ext::memory_budget::NAME;

fn lower(limits: &mut vk::PhysicalDeviceLimits, config: &Config) {
    let count = &mut limits.max_memory_allocation_count;
    *count = config.max_allocations.min(*count);
    let range = &mut limits.max_storage_buffer_range;
    *range = u32::try_from(config.max_storage_bytes).map_or(*range, |most| most.min(*range));
}

pub(crate) unsafe extern "system" fn properties(
    handle: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties,
) {
    let (Some(physical), Some(config)) = (instance::physical(handle), config::get()) else {
        return;
    };
    // SAFETY: as the loader called.
    unsafe { (physical.instance.fp_v1_0().get_physical_device_properties)(handle, out) };
    // SAFETY: the driver has written it.
    lower(unsafe { &mut (*out).limits }, config);
}

pub(crate) unsafe extern "system" fn properties2(
    handle: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    let (Some(physical), Some(config)) = (instance::physical(handle), config::get()) else {
        return;
    };
    // SAFETY: as the loader called.
    unsafe { (physical.instance.fp_v1_1().get_physical_device_properties2)(handle, out) };
    // SAFETY: the driver has written it.
    let out = unsafe { &mut *out };
    lower(&mut out.properties.limits, config);
    // SAFETY: the chain that the driver has written to.
    unsafe { lower_chain(out.p_next, config) };
}

/// # Safety
///
/// A chain that the driver has written to.
unsafe fn lower_chain(head: *mut c_void, config: &Config) {
    macro_rules! lower {
        ($structure:ty, $field:ident, $most:expr) => {
            // SAFETY: as the caller says.
            if let Some(structure) = unsafe { find_mut::<$structure>(head) } {
                structure.$field = $most.min(structure.$field);
            }
        };
    }
    let (allocation, buffer) = (config.max_allocation_bytes, config.max_buffer_bytes);
    lower!(
        vk::PhysicalDeviceMaintenance3Properties<'_>,
        max_memory_allocation_size,
        allocation
    );
    lower!(
        vk::PhysicalDeviceVulkan11Properties<'_>,
        max_memory_allocation_size,
        allocation
    );
    lower!(
        vk::PhysicalDeviceMaintenance4Properties<'_>,
        max_buffer_size,
        buffer
    );
    lower!(
        vk::PhysicalDeviceVulkan13Properties<'_>,
        max_buffer_size,
        buffer
    );
}

fn shown_families(physical: &Physical) -> Vec<vk::QueueFamilyProperties> {
    config::get().map_or_else(Vec::new, |config| family::shown(&physical.families, config))
}

pub(crate) unsafe extern "system" fn families(
    handle: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    let Some(physical) = instance::physical(handle) else {
        return;
    };
    // SAFETY: as the loader called.
    let _ = unsafe { answer(&shown_families(&physical), count, out) };
}

pub(crate) unsafe extern "system" fn families2(
    handle: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties2<'_>,
) {
    let Some(physical) = instance::physical(handle) else {
        return;
    };
    let shown = shown_families(&physical);
    // SAFETY: as the loader called.
    let count = unsafe { &mut *count };
    let room = if out.is_null() { 0 } else { *count as usize };
    let wanted = if out.is_null() {
        shown.len()
    } else {
        room.min(shown.len())
    };
    *count = number(wanted);
    if out.is_null() {
        return;
    }
    // What else the driver says about a family hangs on its structure.
    let mut real = number(wanted.min(physical.families.len()));
    let query = physical
        .instance
        .fp_v1_1()
        .get_physical_device_queue_family_properties2;
    // SAFETY: there is room for as many as the caller has said.
    unsafe { query(handle, &mut real, out) };
    // SAFETY: as above.
    let out = unsafe { core::slice::from_raw_parts_mut(out, wanted) };
    for (out, family) in out.iter_mut().zip(shown) {
        out.queue_family_properties = family;
    }
}

pub(crate) unsafe extern "system" fn memory(
    handle: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties,
) {
    let Some(physical) = instance::physical(handle) else {
        return;
    };
    // SAFETY: as the loader called.
    unsafe {
        (physical
            .instance
            .fp_v1_0()
            .get_physical_device_memory_properties)(handle, out)
    };
    // SAFETY: the driver has written it.
    resize(unsafe { &mut *out }, &physical);
}

pub(crate) unsafe extern "system" fn memory2(
    handle: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    let Some(physical) = instance::physical(handle) else {
        return;
    };
    // SAFETY: as the loader called.
    unsafe {
        (physical
            .instance
            .fp_v1_1()
            .get_physical_device_memory_properties2)(handle, out)
    };
    // SAFETY: the driver has written it.
    let out = unsafe { &mut *out };
    resize(&mut out.memory_properties, &physical);
    // SAFETY: the chain that the driver has written to.
    let budget = unsafe { find_mut::<vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>>(out.p_next) };
    if let (Some(budget), Some(bytes)) = (budget, physical.heaps.budget()) {
        let heaps = out.memory_properties.memory_heap_count as usize;
        budget.heap_budget = [0; vk::MAX_MEMORY_HEAPS];
        budget.heap_budget[..heaps].fill(bytes);
        budget.heap_usage = physical.heaps.held();
    }
}

fn resize(memory: &mut vk::PhysicalDeviceMemoryProperties, physical: &Physical) {
    let count = memory.memory_heap_count as usize;
    for heap in &mut memory.memory_heaps[..count] {
        heap.size = physical.heaps.size(heap.size);
    }
    if let Some(loose) = physical.loose {
        loose.show(memory);
    }
}

pub(crate) unsafe extern "system" fn extensions(
    handle: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    let Some(physical) = instance::physical(handle) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    let mut extensions = match physical.extensions() {
        Ok(extensions) if layer.is_null() => extensions,
        Ok(_) => return vk::Result::ERROR_LAYER_NOT_PRESENT,
        Err(result) => return result,
    };
    if physical.adds_budget(&extensions) {
        let mut budget = vk::ExtensionProperties::default().spec_version(1);
        for (to, from) in budget.extension_name.iter_mut().zip(BUDGET.to_bytes()) {
            *to = from.cast_signed();
        }
        extensions.push(budget);
    }
    // SAFETY: as the loader called.
    unsafe { answer(&extensions, count, out) }
}

impl Physical {
    /// The driver's own extensions.
    pub(crate) fn extensions(&self) -> Result<Vec<vk::ExtensionProperties>, vk::Result> {
        // SAFETY: the physical device is alive.
        unsafe {
            self.instance
                .enumerate_device_extension_properties(self.raw)
        }
    }

    /// Whether the memory budget is ours alone.
    pub(crate) fn adds_budget(&self, extensions: &[vk::ExtensionProperties]) -> bool {
        let has = extensions
            .iter()
            .any(|extension| extension.extension_name_as_c_str() == Ok(BUDGET));
        self.heaps.budget().is_some() && !has
    }
}

/// Answers a list in Vulkan's way: how many there are, or as many as there is room for.
///
/// # Safety
///
/// `count` is a number; with `out`, there is room for so many.
unsafe fn answer<T: Copy>(list: &[T], count: *mut u32, out: *mut T) -> vk::Result {
    // SAFETY: as the caller says.
    let count = unsafe { &mut *count };
    if out.is_null() {
        *count = number(list.len());
        return vk::Result::SUCCESS;
    }
    let wanted = list.len().min(*count as usize);
    // SAFETY: as the caller says.
    unsafe { core::ptr::copy_nonoverlapping(list.as_ptr(), out, wanted) };
    *count = number(wanted);
    if wanted < list.len() {
        vk::Result::INCOMPLETE
    } else {
        vk::Result::SUCCESS
    }
}

/// A length in Vulkan's type; lists here are short.
fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
