//! A driver that does nothing, for measuring what its callers cost: its commands are over as soon as
//! they are submitted.
//!
//! It is Chromium's mock driver (Debian's package chromium-common has it), with answers of our own where
//! no library could work with its: it has neither timelines nor addresses, its buffers can have no size
//! at all, and its limits are zero.
//!
//! # Safety
//!
//! The mock driver is a Vulkan driver of which every function does what its name says, or nothing.
//! Functions of ours are handed out under the name whose type they have; they get what Vulkan's rules
//! say, and their answers differ from the driver's in numbers alone. A semaphore is a counter of ours
//! that lives until it is destroyed; the driver never gets to see one.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk::{self, Handle};

type Void = vk::PFN_vkVoidFunction;
type Allocator<'a> = *const vk::AllocationCallbacks<'a>;

/// The environment variable that names the mock driver's library.
const VARIABLE: &str = "VKACCEL_BENCH_MOCK_DRIVER";
/// Where Debian's package has it.
const LIBRARY: &str = "/usr/lib/chromium/libVkICD_mock_icd.so";

static DRIVER: OnceLock<vk::PFN_vkGetInstanceProcAddr> = OnceLock::new();

/// Loads the driver; what went wrong otherwise.
///
/// # Errors
///
/// A text that says where it was looked for.
pub fn load() -> Result<(), String> {
    let path = std::env::var(VARIABLE).unwrap_or_else(|_| LIBRARY.to_owned());
    let found = find(&path).ok_or_else(|| {
        format!(
            "{path} is no Vulkan driver; `scripts/setup --for bench` gets one, and `scripts/env` \
             names it in {VARIABLE}"
        )
    })?;
    DRIVER.get_or_init(|| found);
    Ok(())
}

fn find(path: &str) -> Option<vk::PFN_vkGetInstanceProcAddr> {
    type Negotiate = unsafe extern "system" fn(*mut u32) -> vk::Result;
    let path = CString::new(path).ok()?;
    // SAFETY: the library is one whose initialisers may run; it is never unloaded.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the library is loaded.
    let symbol = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) };
    let negotiate = symbol(c"vk_icdNegotiateLoaderICDInterfaceVersion");
    // SAFETY: every Vulkan driver has this function under this name, or none.
    let negotiate = unsafe { transmute::<*mut c_void, Option<Negotiate>>(negotiate) }?;
    // Without this, a driver takes its caller for a loader that knows no more than Vulkan 1.0.
    let mut version = 5;
    // SAFETY: the version is this function's own.
    let agreed = unsafe { negotiate(&mut version) };
    let get = symbol(c"vk_icdGetInstanceProcAddr");
    // SAFETY: as above.
    let get = unsafe { transmute::<*mut c_void, Option<vk::PFN_vkGetInstanceProcAddr>>(get) };
    get.filter(|_| agreed == vk::Result::SUCCESS)
}

/// The driver's `vkGetInstanceProcAddr`, as ash wants it.
///
/// # Safety
///
/// `name` is a string that ends with 0; `instance` is null or an instance of the driver's.
pub unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> Void {
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(name) };
    if text == c"vkGetInstanceProcAddr" {
        // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
        return unsafe {
            transmute::<*const (), Void>(
                get_instance_proc_addr as vk::PFN_vkGetInstanceProcAddr as *const (),
            )
        };
    }
    // SAFETY: the caller vouches for the arguments.
    let found = DRIVER.get().and_then(|get| unsafe { get(instance, name) });
    altered(text, found)
}

/// The same, as [`RuntimeBuilder::entry`](vkaccel::RuntimeBuilder::entry) wants it.
///
/// # Safety
///
/// As [`get_instance_proc_addr`].
pub unsafe extern "system" fn entry(instance: *mut c_void, name: *const c_char) -> Void {
    let instance = vk::Instance::from_raw(instance.expose_provenance() as u64);
    // SAFETY: the caller vouches for the arguments.
    unsafe { get_instance_proc_addr(instance, name) }
}

unsafe extern "system" fn get_device_proc_addr(device: vk::Device, name: *const c_char) -> Void {
    // SAFETY: the name ends with 0, as Vulkan was called.
    let text = unsafe { CStr::from_ptr(name) };
    // SAFETY: as Vulkan was called.
    let found = GET_DEVICE
        .get()
        .and_then(|get| unsafe { get(device, name) });
    altered(text, found)
}

/// Each line: Vulkan's name, the function that stands for it, its type, and where the driver's is kept.
macro_rules! alterations {
    ($($name:literal: $ours:ident as $kind:ty $(, kept in $real:ident)?;)*) => {
        $($(static $real: OnceLock<$kind> = OnceLock::new();)?)*

        /// Ours in the driver's stead, where there is one.
        fn altered(name: &CStr, driver: Void) -> Void {
            let driver = driver?;
            match name.to_str() {
                $(Ok($name) => {
                    $($real.get_or_init(|| {
                        // SAFETY: the driver hands out functions under their names.
                        unsafe { transmute::<unsafe extern "system" fn(), $kind>(driver) }
                    });)?
                    // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
                    Some(unsafe { transmute::<$kind, unsafe extern "system" fn()>($ours) })
                })*
                _ => Some(driver),
            }
        }
    };
}

alterations! {
    "vkGetDeviceProcAddr": get_device_proc_addr as vk::PFN_vkGetDeviceProcAddr, kept in GET_DEVICE;
    "vkGetPhysicalDeviceProperties": properties as vk::PFN_vkGetPhysicalDeviceProperties,
        kept in PROPERTIES;
    "vkGetPhysicalDeviceProperties2": properties2 as vk::PFN_vkGetPhysicalDeviceProperties2,
        kept in PROPERTIES2;
    "vkGetPhysicalDeviceFeatures2": features2 as vk::PFN_vkGetPhysicalDeviceFeatures2,
        kept in FEATURES2;
    "vkCreateSemaphore": create_semaphore as vk::PFN_vkCreateSemaphore;
    "vkDestroySemaphore": destroy_semaphore as vk::PFN_vkDestroySemaphore;
    "vkGetSemaphoreCounterValue": counter_value as vk::PFN_vkGetSemaphoreCounterValue;
    "vkWaitSemaphores": wait_semaphores as vk::PFN_vkWaitSemaphores;
    "vkQueueSubmit": queue_submit as vk::PFN_vkQueueSubmit;
}

fn raise_limits(limits: &mut vk::PhysicalDeviceLimits) {
    limits.max_per_stage_descriptor_storage_buffers = 64;
    limits.max_per_stage_descriptor_uniform_buffers = 64;
    limits.max_descriptor_set_storage_buffers = 256;
    limits.max_descriptor_set_uniform_buffers = 256;
    limits.max_per_stage_resources = 512;
    limits.max_storage_buffer_range = 1 << 31;
    limits.max_compute_work_group_invocations = 1024;
    limits.max_compute_work_group_size = [1024; 3];
    limits.max_memory_allocation_count = 1 << 20;
}

unsafe extern "system" fn properties(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties,
) {
    let Some(driver) = PROPERTIES.get() else {
        return;
    };
    // SAFETY: as Vulkan was called.
    unsafe { driver(physical, out) };
    // SAFETY: the caller's own, which the driver has just written.
    raise_limits(unsafe { &mut (*out).limits });
}

unsafe extern "system" fn properties2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    let Some(driver) = PROPERTIES2.get() else {
        return;
    };
    // SAFETY: as Vulkan was called.
    unsafe { driver(physical, out) };
    // SAFETY: the caller's own, which the driver has just written.
    let out = unsafe { &mut *out };
    raise_limits(&mut out.properties.limits);
    const LARGEST: u64 = 1 << 36;
    let found = find_in_chain::<vk::PhysicalDeviceVulkan11Properties<'_>>(out.p_next);
    // SAFETY: the structures of the chain are the caller's own, to be written.
    if let Some(found) = unsafe { found.as_mut() } {
        found.max_memory_allocation_size = LARGEST;
        found.subgroup_size = 32;
    }
    let found = find_in_chain::<vk::PhysicalDeviceVulkan12Properties<'_>>(out.p_next);
    // SAFETY: as above.
    if let Some(found) = unsafe { found.as_mut() } {
        found.max_timeline_semaphore_value_difference = u64::MAX >> 1;
    }
    let found = find_in_chain::<vk::PhysicalDeviceMaintenance4Properties<'_>>(out.p_next);
    // SAFETY: as above.
    if let Some(found) = unsafe { found.as_mut() } {
        found.max_buffer_size = LARGEST;
    }
}

unsafe extern "system" fn features2(
    physical: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures2<'_>,
) {
    let Some(driver) = FEATURES2.get() else {
        return;
    };
    // SAFETY: as Vulkan was called.
    unsafe { driver(physical, out) };
    // SAFETY: the caller's own.
    let chain = unsafe { (*out).p_next };
    let found = find_in_chain::<vk::PhysicalDeviceVulkan12Features<'_>>(chain);
    // SAFETY: the structures of the chain are the caller's own, to be written.
    if let Some(found) = unsafe { found.as_mut() } {
        found.timeline_semaphore = vk::TRUE;
        found.buffer_device_address = vk::TRUE;
    }
}

/// The structure of a type in a chain that Vulkan was called with; null where it has none.
fn find_in_chain<T: vk::TaggedStructure>(chain: *const c_void) -> *mut T {
    let mut next = chain.cast::<vk::BaseInStructure<'_>>();
    // SAFETY: a chain of structures that live through the call.
    while let Some(one) = unsafe { next.as_ref() } {
        if one.s_type == T::STRUCTURE_TYPE {
            return next.cast::<T>().cast_mut();
        }
        next = one.p_next;
    }
    core::ptr::null_mut()
}

/// The counter behind a semaphore.
///
/// # Safety
///
/// A semaphore that is alive.
unsafe fn counter<'a>(semaphore: vk::Semaphore) -> &'a AtomicU64 {
    let address = usize::try_from(semaphore.as_raw()).unwrap_or(0);
    // SAFETY: made by `create_semaphore`, and not yet destroyed.
    unsafe { &*core::ptr::with_exposed_provenance::<AtomicU64>(address) }
}

unsafe extern "system" fn create_semaphore(
    _: vk::Device,
    info: *const vk::SemaphoreCreateInfo<'_>,
    _: Allocator<'_>,
    out: *mut vk::Semaphore,
) -> vk::Result {
    // SAFETY: the caller's own.
    let chain = unsafe { (*info).p_next };
    let kind = find_in_chain::<vk::SemaphoreTypeCreateInfo<'_>>(chain);
    // SAFETY: as above.
    let initial = unsafe { kind.as_ref() }.map_or(0, |kind| kind.initial_value);
    let counter = Box::into_raw(Box::new(AtomicU64::new(initial)));
    let semaphore = vk::Semaphore::from_raw(counter.expose_provenance() as u64);
    // SAFETY: there is room for one, as Vulkan was called.
    unsafe { out.write(semaphore) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_semaphore(
    _: vk::Device,
    semaphore: vk::Semaphore,
    _: Allocator<'_>,
) {
    let address = usize::try_from(semaphore.as_raw()).unwrap_or(0);
    if address != 0 {
        let counter = core::ptr::with_exposed_provenance_mut::<AtomicU64>(address);
        // SAFETY: made by `create_semaphore`, and destroyed once.
        drop(unsafe { Box::from_raw(counter) });
    }
}

unsafe extern "system" fn counter_value(
    _: vk::Device,
    semaphore: vk::Semaphore,
    out: *mut u64,
) -> vk::Result {
    // SAFETY: the semaphore is alive, as Vulkan was called.
    let value = unsafe { counter(semaphore) }.load(Ordering::Acquire);
    // SAFETY: there is room for it, as Vulkan was called.
    unsafe { out.write(value) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn wait_semaphores(
    _: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    _: u64,
) -> vk::Result {
    // SAFETY: the caller's own.
    let info = unsafe { &*info };
    // SAFETY: so many are there.
    let semaphores = unsafe { list(info.p_semaphores, info.semaphore_count) };
    // SAFETY: as above.
    let values = unsafe { list(info.p_values, info.semaphore_count) };
    for (&semaphore, &value) in semaphores.iter().zip(values) {
        // SAFETY: the semaphore is alive, as Vulkan was called.
        if unsafe { counter(semaphore) }.load(Ordering::Acquire) < value {
            return vk::Result::TIMEOUT;
        }
    }
    vk::Result::SUCCESS
}

unsafe extern "system" fn queue_submit(
    _: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    _: vk::Fence,
) -> vk::Result {
    // SAFETY: so many are there.
    for info in unsafe { list(infos, count) } {
        let values = find_in_chain::<vk::TimelineSemaphoreSubmitInfo<'_>>(info.p_next);
        // SAFETY: the structures of the chain are the caller's own.
        if let Some(values) = unsafe { values.as_ref() } {
            signal(info, values);
        }
    }
    vk::Result::SUCCESS
}

/// Raises the timelines that a submission signals.
fn signal(info: &vk::SubmitInfo<'_>, values: &vk::TimelineSemaphoreSubmitInfo<'_>) {
    // SAFETY: so many are there.
    let semaphores = unsafe { list(info.p_signal_semaphores, info.signal_semaphore_count) };
    let count = values.signal_semaphore_value_count;
    // SAFETY: as above.
    let values = unsafe { list(values.p_signal_semaphore_values, count) };
    for (&semaphore, &value) in semaphores.iter().zip(values) {
        // SAFETY: the semaphore is alive, as Vulkan was called.
        unsafe { counter(semaphore) }.store(value, Ordering::Release);
    }
}

/// A list that Vulkan was called with.
///
/// # Safety
///
/// So many things are there for the time of the call, or none and `first` is whatever it is.
unsafe fn list<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts(first, count as usize) }
}
