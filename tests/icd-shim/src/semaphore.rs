//! Semaphores, fences and queries: what waits for work, which a lost device must end.
//!
//! # Safety
//!
//! As at the root of the crate.

use core::ffi::c_void;
use std::time::{Duration, Instant};

use ash::vk;

use crate::chain::find;
use crate::config::{self, LostCounter};
use crate::device;
use crate::device_core::Core;
use crate::queue::LOOK_AGAIN;
use crate::sync::lock;

pub(crate) unsafe extern "system" fn create(
    handle: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Semaphore,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkCreateSemaphore") {
        return result;
    }
    // SAFETY: as the loader called.
    let chain = unsafe { (*info).p_next };
    // SAFETY: as the loader called.
    let kind = unsafe { find::<vk::SemaphoreTypeCreateInfo<'_>>(chain) };
    let is_timeline = kind.is_some_and(|kind| kind.semaphore_type == vk::SemaphoreType::TIMELINE);
    let mut semaphores = lock(&device.core.semaphores);
    // SAFETY: as the loader called.
    let result =
        unsafe { (device.core.raw().fp_v1_0().create_semaphore)(handle, info, allocator, out) };
    if result == vk::Result::SUCCESS && is_timeline {
        // SAFETY: the driver has just written it.
        semaphores.timelines.insert(unsafe { *out });
    }
    result
}

pub(crate) unsafe extern "system" fn destroy(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    let Some(device) = device::get(handle) else {
        return;
    };
    let mut semaphores = lock(&device.core.semaphores);
    semaphores.timelines.remove(&semaphore);
    semaphores.gates.remove(&semaphore);
    // SAFETY: as the loader called.
    unsafe { (device.core.raw().fp_v1_0().destroy_semaphore)(handle, semaphore, allocator) };
}

/// What a lost device's semaphores say.
fn lost_counter(core: &Core) -> LostCounter {
    core.settle();
    config::get().map_or(LostCounter::Max, |config| config.lost_counter)
}

pub(crate) unsafe extern "system" fn counter(
    handle: vk::Device,
    semaphore: vk::Semaphore,
    out: *mut u64,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    let core = &device.core;
    if let Err(result) = core.fault("vkGetSemaphoreCounterValue") {
        return result;
    }
    if core.is_lost() {
        if lost_counter(core) == LostCounter::Error {
            return vk::Result::ERROR_DEVICE_LOST;
        }
        // SAFETY: as the loader called.
        unsafe { *out = u64::MAX };
        return vk::Result::SUCCESS;
    }
    // SAFETY: as the loader called.
    unsafe { (core.raw().fp_v1_2().get_semaphore_counter_value)(handle, semaphore, out) }
}

pub(crate) unsafe extern "system" fn wait(
    handle: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    let core = &device.core;
    if let Err(result) = core.fault("vkWaitSemaphores") {
        return result;
    }
    let wait = core.raw().fp_v1_2().wait_semaphores;
    let lost = || match lost_counter(core) {
        LostCounter::Error => vk::Result::ERROR_DEVICE_LOST,
        LostCounter::Max => vk::Result::SUCCESS,
    };
    // SAFETY: as the loader called.
    in_slices(core, timeout, lost, |slice| unsafe {
        wait(handle, info, slice)
    })
}

pub(crate) unsafe extern "system" fn wait_fences(
    handle: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    let core = &device.core;
    if let Err(result) = core.enter("vkWaitForFences") {
        return result;
    }
    let wait = core.raw().fp_v1_0().wait_for_fences;
    let lost = || {
        core.settle();
        vk::Result::ERROR_DEVICE_LOST
    };
    // SAFETY: as the loader called.
    in_slices(core, timeout, lost, |slice| unsafe {
        wait(handle, count, fences, all, slice)
    })
}

/// Waits for `timeout` nanoseconds at most, and looks now and then whether the device is lost.
fn in_slices(
    core: &Core,
    timeout: u64,
    lost: impl Fn() -> vk::Result,
    wait: impl Fn(u64) -> vk::Result,
) -> vk::Result {
    let start = Instant::now();
    let slice = u64::try_from(LOOK_AGAIN.as_nanos()).unwrap_or(u64::MAX);
    loop {
        if core.is_lost() {
            return lost();
        }
        let left = Duration::from_nanos(timeout).saturating_sub(start.elapsed());
        let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
        let result = wait(left.min(slice));
        if result != vk::Result::TIMEOUT || left <= slice {
            return result;
        }
    }
}

pub(crate) unsafe extern "system" fn fence_status(
    handle: vk::Device,
    fence: vk::Fence,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.enter("vkGetFenceStatus") {
        return result;
    }
    // SAFETY: as the loader called.
    unsafe { (device.core.raw().fp_v1_0().get_fence_status)(handle, fence) }
}

pub(crate) unsafe extern "system" fn query_results(
    handle: vk::Device,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    size: usize,
    out: *mut c_void,
    stride: vk::DeviceSize,
    flags: vk::QueryResultFlags,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.enter("vkGetQueryPoolResults") {
        return result;
    }
    let get = device.core.raw().fp_v1_0().get_query_pool_results;
    let ask = |flags| {
        // SAFETY: as the loader called.
        unsafe { get(handle, pool, first, count, size, out, stride, flags) }
    };
    if !flags.contains(vk::QueryResultFlags::WAIT) {
        return ask(flags);
    }
    // A driver that waits would not notice a loss here.
    loop {
        match ask(flags & !vk::QueryResultFlags::WAIT) {
            vk::Result::NOT_READY if device.core.is_lost() => {
                device.core.settle();
                return vk::Result::ERROR_DEVICE_LOST;
            }
            vk::Result::NOT_READY => std::thread::sleep(LOOK_AGAIN / 20),
            result => return result,
        }
    }
}
