//! Logical devices: opened with the driver's queues in place of those that were asked for.
//!
//! # Safety
//!
//! As at the root of the crate.

use core::ffi::{CStr, c_char};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ash::vk;

use crate::device_core::{Core, RealQueue};
use crate::instance::{self, Physical};
use crate::loose::Shadow;
use crate::queue::{Line, Queue};
use crate::sync::{Registry, lock};
use crate::{family, faults};

/// An opened device.
pub(crate) struct Device {
    physical: Arc<Physical>,
    pub(crate) core: Arc<Core>,
    queues: Vec<Queue>,
    /// The size and heap of each allocation.
    pub(crate) memory: Mutex<BTreeMap<vk::DeviceMemory, (u64, usize)>>,
    /// The host's copies of memory that is not coherent.
    pub(crate) shadows: Mutex<BTreeMap<vk::DeviceMemory, Shadow>>,
}

static DEVICES: Registry<Device> = Registry::new();

/// What is known of a device.
pub(crate) fn get(handle: vk::Device) -> Option<Arc<Device>> {
    DEVICES.get(handle)
}

impl Device {
    pub(crate) fn physical(&self) -> &Arc<Physical> {
        &self.physical
    }
}

/// Which of the driver's queues are opened, and which lines lead to them.
struct Request {
    /// Families of the driver, each with one queue.
    real: Vec<u32>,
    lines: Vec<Line>,
}

impl Request {
    fn new(asked: &[vk::DeviceQueueCreateInfo<'_>], physical: &Physical) -> Self {
        let mut request = Self {
            real: Vec::new(),
            lines: Vec::new(),
        };
        for queues in asked {
            let family = queues.queue_family_index;
            let real = family::real(family, &physical.families);
            let place = request.real.iter().position(|known| *known == real);
            let place = place.unwrap_or_else(|| {
                request.real.push(real);
                request.real.len() - 1
            });
            let lines = (0..queues.queue_count).map(|index| Line::new(family, index, place));
            request.lines.extend(lines);
        }
        request
    }
}

pub(crate) unsafe extern "system" fn create(
    handle: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Device,
) -> vk::Result {
    let Some(physical) = instance::physical(handle) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    if let Some(result) = faults::of_call("vkCreateDevice") {
        return result;
    }
    // SAFETY: as the loader called.
    let info = unsafe { &*info };
    // SAFETY: as the loader called; there is at least one.
    let asked = unsafe {
        core::slice::from_raw_parts(
            info.p_queue_create_infos,
            info.queue_create_info_count as usize,
        )
    };
    let request = Request::new(asked, &physical);
    let priority = [1.0];
    let queues: Vec<_> = request
        .real
        .iter()
        .map(|family| {
            vk::DeviceQueueCreateInfo::default()
                .queue_family_index(*family)
                .queue_priorities(&priority)
        })
        .collect();
    // SAFETY: as the loader called.
    let extensions = match unsafe { known_extensions(info, &physical) } {
        Ok(extensions) => extensions,
        Err(result) => return result,
    };
    let changed = vk::DeviceCreateInfo {
        enabled_extension_count: 0,
        ..*info
    };
    let changed = changed
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions);
    // SAFETY: as the loader called, but with queues that the driver has.
    let result =
        unsafe { (physical.instance.fp_v1_0().create_device)(handle, &changed, allocator, out) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    // SAFETY: the driver has just written it.
    let device = unsafe { *out };
    match open(physical, device, request) {
        Some(opened) => {
            DEVICES.insert(device, Arc::new(opened));
            vk::Result::SUCCESS
        }
        None => vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    }
}

/// The device that the driver has opened; nothing, and it is closed again, if threads can't be had.
fn open(physical: Arc<Physical>, device: vk::Device, request: Request) -> Option<Device> {
    let get = physical.instance.fp_v1_0().get_device_proc_addr;
    let load = |name: &CStr| {
        // SAFETY: a string, and a device that was just opened.
        let function = unsafe { get(device, name.as_ptr()) };
        function.map_or(core::ptr::null(), |function| function as *const _)
    };
    // SAFETY: the driver's functions for this device.
    let raw = unsafe { ash::Device::load_with(load, device) };
    let real = request.real.iter().map(|family| {
        // SAFETY: the device was opened with this queue.
        RealQueue::new(unsafe { raw.get_device_queue(*family, 0) })
    });
    let core = Arc::new(Core::new(raw.clone(), real.collect(), request.lines));
    let mut queues = Vec::new();
    for line in 0..core.lines().len() {
        match Queue::new(&core, line) {
            Ok(queue) => queues.push(queue),
            Err(_) => {
                queues.iter_mut().for_each(Queue::stop);
                // SAFETY: nobody else knows of it.
                unsafe { raw.destroy_device(None) };
                return None;
            }
        }
    }
    Some(Device {
        physical,
        core,
        queues,
        memory: Mutex::new(BTreeMap::new()),
        shadows: Mutex::new(BTreeMap::new()),
    })
}

/// The extensions that are asked for, without what the driver does not know.
///
/// # Safety
///
/// As the loader called.
unsafe fn known_extensions(
    info: &vk::DeviceCreateInfo<'_>,
    physical: &Physical,
) -> Result<Vec<*const c_char>, vk::Result> {
    let count = info.enabled_extension_count as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: as the caller says.
    let names = unsafe { core::slice::from_raw_parts(info.pp_enabled_extension_names, count) };
    let adds_budget = physical.adds_budget(&physical.extensions()?);
    let is_known = |name: &&*const c_char| {
        // SAFETY: as the caller says.
        let name = unsafe { CStr::from_ptr(**name) };
        !(adds_budget && name == ash::ext::memory_budget::NAME)
    };
    Ok(names.iter().filter(is_known).copied().collect())
}

pub(crate) unsafe extern "system" fn destroy(
    handle: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    let Some(device) = DEVICES.remove(handle) else {
        return;
    };
    let Some(mut device) = Arc::into_inner(device) else {
        // Vulkan's rules keep all other calls of the device away from this one.
        eprintln!("vkaccel-icd-shim: a device is destroyed while it is used");
        std::process::abort();
    };
    device.queues.iter_mut().for_each(Queue::stop);
    for (bytes, heap) in lock(&device.memory).values() {
        device.physical.heaps.give(*heap, *bytes);
    }
    // SAFETY: as the loader called; no thread of ours uses it any more.
    unsafe { (device.core.raw().fp_v1_0().destroy_device)(handle, allocator) };
}

pub(crate) unsafe extern "system" fn queue(
    handle: vk::Device,
    family: u32,
    index: u32,
    out: *mut vk::Queue,
) {
    let device = get(handle);
    let queue = device.as_ref().and_then(|device| {
        let is_it = |queue: &&Queue| queue.is(family, index);
        device.queues.iter().find(is_it).map(Queue::handle)
    });
    // SAFETY: as the loader called.
    unsafe { *out = queue.unwrap_or_default() };
}

pub(crate) unsafe extern "system" fn queue2(
    handle: vk::Device,
    info: *const vk::DeviceQueueInfo2<'_>,
    out: *mut vk::Queue,
) {
    // SAFETY: as the loader called.
    let info = unsafe { &*info };
    // SAFETY: as the loader called.
    unsafe { queue(handle, info.queue_family_index, info.queue_index, out) };
}

pub(crate) unsafe extern "system" fn wait_idle(handle: vk::Device) -> vk::Result {
    let Some(device) = get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.enter("vkDeviceWaitIdle") {
        return result;
    }
    device.core.drain();
    device.core.idle()
}
