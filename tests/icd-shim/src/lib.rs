//! A Vulkan driver for tests. It wraps a real driver's library and changes what that shows: below
//! the loader and the layers, so that these believe it, too.
//!
//! It never ships: the package is unpublished, and only manifests that tests write point to it.
//!
//! # Use
//!
//! Build it (`cargo build -p vkaccel-icd-shim`), write a manifest whose `library_path` is
//! `target/debug/libvkaccel_icd_shim.so`, name that manifest in `VK_ICD_FILENAMES` (newer loaders:
//! `VK_DRIVER_FILES`), and set, before the process starts:
//!
//! | variable | what it holds |
//! | --- | --- |
//! | `VKACCEL_SHIM_DRIVER` | the real driver: its library, or its manifest; needed |
//! | `VKACCEL_SHIM_QUEUES` | how many queues each of the driver's families shows; 1 if unset |
//! | `VKACCEL_SHIM_FAMILY` | a further family: `transfer`, or `compute` (without timestamps) |
//! | `VKACCEL_SHIM_FAMILY_QUEUES` | how many queues that one shows; 1 if unset |
//! | `VKACCEL_SHIM_DELAY_US` | the longest that a submission is held back, in microseconds; 0 if unset |
//! | `VKACCEL_SHIM_SEED` | of the delays; 0 if unset |
//! | `VKACCEL_SHIM_MAX_ALLOCATIONS` | limit of the number of allocations |
//! | `VKACCEL_SHIM_MAX_ALLOCATION_BYTES` | limit of one allocation |
//! | `VKACCEL_SHIM_MAX_BUFFER_BYTES` | limit of one buffer |
//! | `VKACCEL_SHIM_MAX_STORAGE_BYTES` | limit of one storage buffer's bound range |
//! | `VKACCEL_SHIM_HEAP_BYTES` | the size of each heap; there is a memory budget then |
//! | `VKACCEL_SHIM_MEMORY` | a further memory type. `non_coherent`: the only cached one, which is not coherent; `apart`: the only one that the host reaches, in a heap of its own, as on a card |
//! | `VKACCEL_SHIM_HEAP_OTHERS_BYTES` | what other programs hold of each heap; 0 if unset |
//! | `VKACCEL_SHIM_FAIL` | what fails, and when: see below |
//!
//! A limit can only be smaller than the driver's own. A setting that can't be read makes
//! `vkCreateInstance` fail, after a line on the error output.
//!
//! # Queues
//!
//! Each queue that is shown has a thread. It takes the queue's submissions in order, waits on the
//! host for their semaphores, sleeps for a random part of the delay, and submits to the driver's one
//! queue under a lock. So work of one queue stays in order, work of several is late and out of
//! order, and a wait for a later submission is no deadlock. Semaphores and fences are signalled by
//! the real submissions.
//!
//! # Failures
//!
//! `VKACCEL_SHIM_FAIL` is a list, separated by commas, of `FUNCTION#N=RESULT`, for the N-th call of
//! the process, or `FUNCTION#N+=RESULT`, for that and all later ones; results are called as in
//! Vulkan, without `VK_`. `execution` is no function but a submission's turn at the driver's queue.
//!
//! `ERROR_DEVICE_LOST` means it: from there on everything on that device that can say so does, waits
//! end, and a counter answers as `VKACCEL_SHIM_LOST_COUNTER` says: `max` (the highest number there is, the
//! default) or `error`. Opening the device anew gives a sound one.
//!
//! # Memory that is not coherent
//!
//! The further type is the driver's in all else. The host maps a copy of such memory, with bytes that
//! mean nothing; what flushes and invalidations name is copied, and nothing else.
//!
//! # What it leaves as it is
//!
//! Images and indices of families in barriers: software drivers look at neither. Queues can't
//! present, bind sparse memory, or carry labels.
//!
//! # Safety
//!
//! The loader calls as Vulkan's rules say, with handles that came from here; layers check more of
//! that than a driver ever does. Whatever a function is called with goes to the driver's function of
//! the same name, but for what the module that wraps it changes. The handles of all but queues are
//! the driver's own.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic anywhere"))]

mod chain;
mod config;
mod device;
mod device_core;
mod driver;
mod failable;
mod family;
mod faults;
mod heap;
mod instance;
mod loose;
mod memory;
mod physical;
mod queue;
mod semaphore;
mod submit;
mod sync;
mod table;

use core::ffi::c_char;

use ash::vk;

/// A function of Vulkan, of whichever type its name says.
type VoidFunction = vk::PFN_vkVoidFunction;

/// The newest version of the interface between loader and driver that this knows.
const INTERFACE_VERSION: u32 = 5;

/// Agrees with the loader on how they speak.
///
/// # Safety
///
/// As the loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdNegotiateLoaderICDInterfaceVersion(
    version: *mut u32,
) -> vk::Result {
    let Some(driver) = driver::get() else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    // SAFETY: the loader passes a number to read and write.
    let version = unsafe { &mut *version };
    *version = (*version).min(INTERFACE_VERSION);
    driver.negotiate(version)
}

/// The instance's functions, and the global ones.
///
/// # Safety
///
/// As the loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> VoidFunction {
    let driver = driver::get()?;
    // SAFETY: as the loader called.
    let function = unsafe { driver.instance_function(instance, name) };
    // SAFETY: as above.
    unsafe { table::shown(name, function) }
}

/// The functions of physical devices.
///
/// # Safety
///
/// As the loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetPhysicalDeviceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> VoidFunction {
    let driver = driver::get()?;
    // SAFETY: as the loader called.
    let function = unsafe { driver.physical_function(instance, name) };
    // SAFETY: as above.
    unsafe { table::shown(name, function) }
}
