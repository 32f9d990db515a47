//! Promises of a forked child that starts anew, on the drivers that stand it.
//!
//! # Safety
//!
//! Software drivers are code of this process alone. Lavapipe can be opened anew in a child; SwiftShader
//! can where the parent had closed it. Nothing else in these processes uses Vulkan. The entry is the loader's.
#![cfg(unix)]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use core::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;

use ash::vk;
use support::child::role;
use support::everything::{Call, Everything, of_the_process, on_objects};
use support::fork::{compute, in_fork, in_own_process, start_without_handlers};
use support::{TestRuntime, on_each_device, skip};
use vkaccel::{Buffer, ErrorKind, Result, Runtime, Stream, memory, random};

fn start_anew() -> Result<()> {
    // SAFETY: see the top of the file.
    unsafe { Runtime::reinit_after_fork() }
}

/// Nothing works, as in any child of a process with an open device.
#[track_caller]
fn told_of_the_fork() {
    let error = Buffer::<u8>::zeroed(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForkedChild, "{error}");
}

/// All calls end with the error of a forked child.
fn all_told(calls: Vec<Call>) {
    for (call, error) in calls {
        let error = error.unwrap_or_else(|| panic!("{call} did not fail"));
        assert_eq!(error.kind(), ErrorKind::ForkedChild, "{call}: {error}");
    }
}

/// All calls that name no object work.
fn all_work() {
    for (call, error) in of_the_process() {
        // Without shaderc there is no GLSL; and there are not so few devices.
        let refused = ["Kernel::from_glsl", "set_rng_state_all"].contains(&call);
        assert!(error.is_none() || refused, "{call}: {error:?}");
    }
}

/// Runs the role `child` where the driver stands a child's start with the parent's device open.
fn where_it_can(test: &TestRuntime, name: &str) {
    let capability = vkaccel::get_device_capability(0).unwrap();
    if capability.name().contains("SwiftShader") {
        return skip(name, "SwiftShader's threads are the parent's");
    }
    in_own_process(test, name);
}

/// What a child does that starts anew, with all that it has of its parent's.
fn start_beside(mut parents: Everything, old: &Runtime) {
    told_of_the_fork();
    start_anew().unwrap();
    let runtime = Runtime::current();
    assert!(!runtime.is_initialized() && !old.is_initialized());
    assert!(vkaccel::is_available());
    assert_eq!(random::get_offset(0).unwrap(), 0);
    compute();
    assert!(runtime.is_initialized() && !old.is_initialized());
    assert_ne!(random::initial_seed(0).unwrap(), 77);
    all_told(on_objects(&mut parents));
    assert!(old.take_validation_messages().is_empty());
    for result in [old.init(0), old.shutdown(), old.selection().map(drop)] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ForkedChild);
    }
    // Things of the parent's can't be used on those of the child's.
    let stream = Stream::new(0).unwrap();
    let words = stream.zeroed::<u32>(4096).unwrap();
    for result in [
        stream.copy(&parents.data, &words),
        stream.copy(&words, &parents.data),
        stream.wait_event(&parents.event),
        stream.wait_stream(&parents.stream),
        parents.event.record(&stream),
    ] {
        assert!(result.is_err());
    }
    drop(parents);
    compute();
    runtime.shutdown().unwrap();
    compute();
}

#[test]
fn a_child_that_starts_anew_works_and_what_it_has_of_its_parents_is_inert() {
    const NAME: &str = "a_child_that_starts_anew_works_and_what_it_has_of_its_parents_is_inert";
    if role().is_some() {
        let entered = Runtime::current().enter();
        random::manual_seed(77).unwrap();
        let (mut all, old) = (Some(Everything::new()), Runtime::current());
        old.shutdown().unwrap();
        drop(entered);
        let _entered = Runtime::builder().build().enter();
        for round in 0..12 {
            // With work in flight and without.
            let mut parents = Some(Everything::new());
            if round % 2 == 0 {
                vkaccel::synchronize(None).unwrap();
            }
            let old = Runtime::current();
            let child = start_without_handlers(|| {
                start_beside(parents.take().unwrap(), &old);
                drop(all.take());
                if round % 6 == 0 {
                    all_work();
                }
            });
            child.succeed();
            assert_eq!(parents.unwrap().data.to_vec().unwrap(), [2; 4096]);
        }
        return;
    }
    on_each_device(NAME, |test| where_it_can(test, NAME));
}

/// Threads that hold locks of the crate and are in the loader when the process forks.
#[test]
fn a_child_starts_anew_whatever_locks_its_parents_threads_held() {
    const NAME: &str = "a_child_starts_anew_whatever_locks_its_parents_threads_held";
    if role().is_some() {
        static STOP: AtomicBool = AtomicBool::new(false);
        static REST: AtomicBool = AtomicBool::new(true);
        let stream = Stream::new(0).unwrap();
        let event = stream.record_event().unwrap();
        let mut all = Some(Everything::new());
        vkaccel::synchronize(None).unwrap();
        let tasks: [Box<dyn Fn() + Send>; 3] = [
            Box::new(|| {
                let _entered = Runtime::builder().build().enter();
                assert!(memory::get_memory_info(0).is_ok());
            }),
            Box::new(|| {
                random::manual_seed_all(1).unwrap();
                memory::set_memory_limit(None, 0).unwrap();
                memory::memory_snapshot(0).unwrap();
            }),
            Box::new(move || {
                event.record(&stream).unwrap();
                vkaccel::set_stream(&stream).unwrap();
                Runtime::current().take_validation_messages();
            }),
        ];
        let busy = tasks.map(|task| {
            spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    match REST.load(Ordering::Relaxed) {
                        true => std::thread::yield_now(),
                        false => task(),
                    }
                }
            })
        });
        for _ in 0..100 {
            REST.store(false, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(2));
            let child = start_without_handlers(|| {
                start_anew().unwrap();
                random::manual_seed(5).unwrap();
                compute();
                all_told(on_objects(all.as_mut().unwrap()));
            });
            REST.store(true, Ordering::Relaxed);
            child.succeed();
        }
        STOP.store(true, Ordering::Relaxed);
        return busy.into_iter().for_each(|thread| thread.join().unwrap());
    }
    on_each_device(NAME, |test| where_it_can(test, NAME));
}

#[test]
fn a_child_of_a_process_that_has_shut_down_starts_anew_on_all_drivers() {
    const NAME: &str = "a_child_of_a_process_that_has_shut_down_starts_anew_on_all_drivers";
    if role().is_some() {
        for _ in 0..20 {
            compute();
            Runtime::current().shutdown().unwrap();
            in_fork(|| {
                told_of_the_fork();
                start_anew().unwrap();
                compute();
                // Its own children are told in turn, and may do the same once it has shut down.
                Runtime::current().shutdown().unwrap();
                in_fork(|| {
                    told_of_the_fork();
                    start_anew().unwrap();
                    compute();
                });
                compute();
            });
        }
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// A child that has only asked since it started anew is as good a parent as any.
#[test]
fn where_nothing_has_ended_there_is_nothing_to_start_anew() {
    const NAME: &str = "where_nothing_has_ended_there_is_nothing_to_start_anew";
    if role().is_some() {
        start_anew().unwrap();
        let stream = Stream::new(0).unwrap();
        random::manual_seed(8).unwrap();
        in_fork(|| {
            start_anew().unwrap();
            assert_eq!(random::initial_seed(0).unwrap(), 8);
            let words = stream.upload(&[7u32]).unwrap();
            start_anew().unwrap();
            assert_eq!(stream.to_vec(&words).unwrap(), [7]);
        });
        compute();
        Runtime::current().shutdown().unwrap();
        in_fork(|| {
            start_anew().unwrap();
            let stream = Stream::new(0).unwrap();
            assert!(vkaccel::is_available());
            in_fork(|| {
                let words = stream.upload(&[9u32]).unwrap();
                assert_eq!(stream.to_vec(&words).unwrap(), [9]);
            });
        });
        return;
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

static LOADER: OnceLock<ash::Entry> = OnceLock::new();

/// The loader's functions, but for the one that makes instances.
unsafe extern "system" fn forking_entry(
    instance: *mut c_void,
    name: *const c_char,
) -> Option<unsafe extern "system" fn()> {
    // SAFETY: the system's loader, as the crate itself loads it.
    let loader = LOADER.get_or_init(|| unsafe { ash::Entry::load() }.unwrap());
    // SAFETY: both are pointers or transparent wrappers over one.
    let handle = unsafe { core::mem::transmute::<*mut c_void, vk::Instance>(instance) };
    // SAFETY: Vulkan passes strings that end with 0.
    if unsafe { CStr::from_ptr(name) } == c"vkCreateInstance" {
        let forking: vk::PFN_vkCreateInstance = create_instance;
        // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
        return unsafe {
            core::mem::transmute::<vk::PFN_vkCreateInstance, vk::PFN_vkVoidFunction>(forking)
        };
    }
    // SAFETY: as Vulkan passed them.
    unsafe { (loader.static_fn().get_instance_proc_addr)(handle, name) }
}

/// Forks first, as a driver may that starts a program.
unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    in_fork(|| {
        told_of_the_fork();
        let error = start_anew().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForkedChild, "{error}");
        told_of_the_fork();
    });
    let create = LOADER.get().unwrap().fp_v1_0().create_instance;
    // SAFETY: as Vulkan passed them.
    unsafe { create(info, callbacks, instance) }
}

#[test]
fn a_child_of_a_call_of_the_loader_is_told_that_it_can_do_nothing() {
    const NAME: &str = "a_child_of_a_call_of_the_loader_is_told_that_it_can_do_nothing";
    if role().is_some() {
        // SAFETY: see the top of the file.
        let runtime = unsafe { Runtime::builder().entry(forking_entry) }.build();
        let _entered = runtime.enter();
        assert!(vkaccel::is_available());
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}
