//! Shows that the validation layer is awake: programs that are known to be wrong must be reported,
//! through the same messenger that fails the other tests.
//!
//! The faults are put in below the crate, through the replaceable entry: barriers are left out, or
//! recorded with stages that no barrier may have.
//!
//! # Safety
//!
//! The entry is the real loader's but for one function, whose replacement has the same signature;
//! what it does wrong is what the layer is asked to report, on drivers that put up with it.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use core::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, OnceLock};

use ash::vk;
use vkaccel::{Buffer, GetInstanceProcAddr, Runtime, Severity, ValidationMessage};

type Void = Option<unsafe extern "system" fn()>;

static LOADER: OnceLock<ash::Entry> = OnceLock::new();
// The newest answers: with its last instance the loader unloads the layer, and may load it elsewhere.
static DEVICE_PROC: Mutex<Option<vk::PFN_vkGetDeviceProcAddr>> = Mutex::new(None);
static BARRIER: Mutex<Option<vk::PFN_vkCmdPipelineBarrier>> = Mutex::new(None);

fn loader() -> Option<&'static ash::Entry> {
    // SAFETY: the system's loader, as the crate itself loads it.
    let entry = unsafe { ash::Entry::load() }.ok()?;
    Some(LOADER.get_or_init(|| entry))
}

/// The loader's function of this name.
unsafe fn real(instance: *mut c_void, name: *const c_char) -> Void {
    // SAFETY: both are pointers or transparent wrappers over one.
    let instance = unsafe { core::mem::transmute::<*mut c_void, vk::Instance>(instance) };
    let entry = LOADER.get()?;
    // SAFETY: the caller passes what Vulkan passed.
    unsafe { (entry.static_fn().get_instance_proc_addr)(instance, name) }
}

fn name<'a>(name: *const c_char) -> &'a CStr {
    // SAFETY: Vulkan passes strings that end with 0.
    unsafe { CStr::from_ptr(name) }
}

macro_rules! entry {
    ($entry:ident, $device_entry:ident, $barrier:ident) => {
        unsafe extern "system" fn $entry(instance: *mut c_void, wanted: *const c_char) -> Void {
            // SAFETY: as Vulkan passed them.
            let function = unsafe { real(instance, wanted) };
            if name(wanted) != c"vkGetDeviceProcAddr" {
                return function;
            }
            // SAFETY: the name says which type the function has.
            let function = unsafe {
                core::mem::transmute::<Void, Option<vk::PFN_vkGetDeviceProcAddr>>(function)
            };
            *DEVICE_PROC.lock().unwrap() = function;
            let replaced: vk::PFN_vkGetDeviceProcAddr = $device_entry;
            // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
            unsafe { core::mem::transmute::<vk::PFN_vkGetDeviceProcAddr, Void>(replaced) }
        }

        unsafe extern "system" fn $device_entry(device: vk::Device, wanted: *const c_char) -> Void {
            let real = DEVICE_PROC.lock().unwrap().unwrap();
            // SAFETY: as Vulkan passed them.
            let function = unsafe { real(device, wanted) };
            if name(wanted) != c"vkCmdPipelineBarrier" {
                return function;
            }
            // SAFETY: the name says which type the function has.
            let function = unsafe {
                core::mem::transmute::<Void, Option<vk::PFN_vkCmdPipelineBarrier>>(function)
            };
            *BARRIER.lock().unwrap() = function;
            let replaced: vk::PFN_vkCmdPipelineBarrier = $barrier;
            // SAFETY: as above.
            unsafe { core::mem::transmute::<vk::PFN_vkCmdPipelineBarrier, Void>(replaced) }
        }
    };
}

entry!(without_barriers, without_barriers_device, leave_out);
entry!(with_bad_stages, with_bad_stages_device, without_stages);

unsafe extern "system" fn leave_out(
    _: vk::CommandBuffer,
    _: vk::PipelineStageFlags,
    _: vk::PipelineStageFlags,
    _: vk::DependencyFlags,
    _: u32,
    _: *const vk::MemoryBarrier<'_>,
    _: u32,
    _: *const vk::BufferMemoryBarrier<'_>,
    _: u32,
    _: *const vk::ImageMemoryBarrier<'_>,
) {
}

unsafe extern "system" fn without_stages(
    commands: vk::CommandBuffer,
    _: vk::PipelineStageFlags,
    _: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    let none = vk::PipelineStageFlags::empty();
    let barrier = BARRIER.lock().unwrap().unwrap();
    // SAFETY: wrong on purpose: a barrier must name stages.
    unsafe {
        barrier(
            commands,
            none,
            none,
            flags,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images,
        );
    }
}

/// What the layer says to a fill, a copy and a read of two buffers through this entry.
fn messages(test: &str, entry: GetInstanceProcAddr) -> Option<Vec<ValidationMessage>> {
    let required = std::env::var("VKACCEL_TEST_REQUIRE_DEVICE").is_ok_and(|value| value == "1");
    let validated = std::env::var("VKACCEL_TEST_VALIDATION").is_ok_and(|value| value == "1");
    if !required && (!validated || loader().is_none()) {
        println!("SKIP {test}: not asked to run under a validation layer");
        return None;
    }
    assert!(loader().is_some(), "there is no Vulkan loader");
    // SAFETY: the entry is the loader's but for one function, see the top of the file.
    let runtime = unsafe { Runtime::builder().entry(entry) }
        .validation(true)
        .build();
    let entered = runtime.enter();
    let source = Buffer::<u32>::zeroed(1024).unwrap();
    let copy = Buffer::<u32>::uninit(1024).unwrap();
    // Enough of them for several to share a recording.
    for round in 0..32 {
        source.fill(round).unwrap();
        copy.copy_from(source.view(..).unwrap()).unwrap();
    }
    copy.to_vec().unwrap();
    drop((source, copy, entered));
    runtime.shutdown().unwrap();
    Some(runtime.take_validation_messages())
}

#[test]
fn a_missing_barrier_is_reported() {
    let Some(messages) = messages("a_missing_barrier_is_reported", without_barriers) else {
        return;
    };
    let hazards = messages
        .iter()
        .filter(|message| message.id.starts_with("SYNC-HAZARD"));
    assert!(
        hazards.count() > 0,
        "the layer is asleep; it said {messages:#?}"
    );
}

#[test]
fn a_barrier_without_stages_is_reported() {
    let Some(messages) = messages("a_barrier_without_stages_is_reported", with_bad_stages) else {
        return;
    };
    let errors = messages
        .iter()
        .filter(|message| message.severity == Severity::Error && message.id.contains("StageMask"));
    assert!(
        errors.count() > 0,
        "the layer is asleep; it said {messages:#?}"
    );
}
