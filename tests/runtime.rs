//! Promises of runtimes: what opens devices and what does not, which are visible, how they end.
//!
//! # Safety
//!
//! The entry that counts is the real loader's but for one function, whose replacement calls the real
//! one with the arguments that it got.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use core::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ash::vk;
use support::kernels::{build, chosen as kernel, module};
use support::{TestRuntime, builder, on_each_device, skip};
use vkaccel::{
    Buffer, Candidate, Error, ErrorKind, Event, Feature, Grid, Kernel, Result, Runtime, Stream,
    device_count, get_device_capability,
};

type Void = Option<unsafe extern "system" fn()>;

static LOADER: OnceLock<Option<ash::Entry>> = OnceLock::new();
static CREATE_DEVICE: OnceLock<vk::PFN_vkCreateDevice> = OnceLock::new();
static OPENED: AtomicUsize = AtomicUsize::new(0);

fn loader() -> Option<&'static ash::Entry> {
    // SAFETY: the system's loader, as the crate itself loads it.
    LOADER
        .get_or_init(|| unsafe { ash::Entry::load() }.ok())
        .as_ref()
}

/// The loader's functions, but `vkCreateDevice` counts.
unsafe extern "system" fn counting_entry(instance: *mut c_void, name: *const c_char) -> Void {
    // SAFETY: both are pointers or transparent wrappers over one.
    let handle = unsafe { core::mem::transmute::<*mut c_void, vk::Instance>(instance) };
    let entry = loader()?;
    // SAFETY: as Vulkan passed them.
    let function = unsafe { (entry.static_fn().get_instance_proc_addr)(handle, name) };
    // SAFETY: Vulkan passes strings that end with 0.
    if unsafe { CStr::from_ptr(name) } != c"vkCreateDevice" || function.is_none() {
        return function;
    }
    // SAFETY: the name says which type the function has.
    let function =
        unsafe { core::mem::transmute::<Void, Option<vk::PFN_vkCreateDevice>>(function) }?;
    CREATE_DEVICE.get_or_init(|| function);
    let counting: vk::PFN_vkCreateDevice = create_device;
    // SAFETY: Vulkan hands out all functions as pointers to ones without arguments.
    unsafe { core::mem::transmute::<vk::PFN_vkCreateDevice, Void>(counting) }
}

unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    let Some(real) = CREATE_DEVICE.get() else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    OPENED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as Vulkan passed them.
    unsafe { real(physical, info, callbacks, device) }
}

/// All that may be asked without opening a device.
fn ask() {
    assert!(vkaccel::is_available());
    let count = device_count();
    assert!(count > 0);
    assert!(vkaccel::current_accelerator(true).is_some());
    for device in 0..count {
        let capability = get_device_capability(device).unwrap();
        assert!(!capability.name().is_empty());
        let info = vkaccel::get_memory_info(device).unwrap();
        assert!(info.free <= info.total && info.total > 0, "{info:?}");
        let stream = Stream::new(device).unwrap();
        stream.synchronize().unwrap();
        assert!(stream.query().unwrap());
        vkaccel::synchronize(device).unwrap();
        drop(vkaccel::device_index(device).unwrap());
        assert!(vkaccel::current_stream(device).is_ok());
    }
    vkaccel::synchronize(None).unwrap();
    vkaccel::set_device_index(0).unwrap();
}

/// Asking opens nothing, and the first command opens its device alone.
#[test]
fn the_first_command_opens_its_device_and_no_other() {
    const NAME: &str = "the_first_command_opens_its_device";
    // The only test of this program that counts, so that none disturbs it.
    if TestRuntime::new(builder()).runtime().selection().is_err() {
        return on_each_device(NAME, |_| ());
    }
    // SAFETY: see the top of the file.
    let test = TestRuntime::new(unsafe { builder().entry(counting_entry) });
    let opened = || OPENED.load(Ordering::SeqCst);
    ask();
    assert!(!test.runtime().is_initialized());
    assert_eq!(opened(), 0);
    let last = device_count() - 1;
    let on_last = Stream::new(last).unwrap();
    let buffer = on_last.upload(&[1u8]).unwrap();
    assert!(test.runtime().is_initialized());
    assert_eq!(opened(), 1);
    assert_eq!(on_last.to_vec(&buffer).unwrap(), [1]);
    test.runtime().init(last).unwrap();
    ask();
    assert_eq!(opened(), 1, "it is opened once");
    for device in 0..=last {
        test.runtime().init(device).unwrap();
    }
    assert_eq!(opened(), last + 1);
}

#[test]
fn buffers_of_no_bytes_and_kernels_count_as_use() {
    on_each_device("buffers_of_no_bytes", |test| {
        ask();
        assert!(!test.runtime().is_initialized());
        kernel("affine");
        assert!(test.runtime().is_initialized());
    });
}

#[test]
fn init_opens_the_device_once_and_for_all_threads() {
    on_each_device("init_opens_the_device_once", |test| {
        let runtime = test.runtime();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _entered = runtime.enter();
                    runtime.init(0).unwrap();
                    let words = Buffer::from_slice(&[3u32]).unwrap();
                    assert_eq!(words.to_vec().unwrap(), [3]);
                });
            }
        });
        assert!(runtime.is_initialized());
        let error = runtime.init(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice);
    });
}

/// The calls of a thread whose current runtime was shut down, on things that are left.
fn calls(stream: &Stream, kernel: &Kernel, data: &Buffer<u32>) -> Vec<(&'static str, Error)> {
    let runtime = Runtime::current();
    let failed = |result: Result<()>| result.unwrap_err();
    vec![
        ("zeroed", failed(Buffer::<u8>::zeroed(4).map(drop))),
        ("fill", failed(data.fill(1))),
        ("to_vec", failed(data.to_vec().map(drop))),
        (
            "launch",
            failed(kernel.launch(Grid::groups(1), (data, 1, 1, 1))),
        ),
        (
            "launch of nothing",
            failed(kernel.launch(Grid::groups(0), (data, 1, 1, 1))),
        ),
        (
            "kernel",
            failed(build(Kernel::builder(module("affine"))).map(drop)),
        ),
        ("query", failed(stream.query().map(drop))),
        ("synchronize of a stream", failed(stream.synchronize())),
        ("enter", failed(stream.enter().map(drop))),
        ("wait_event", failed(stream.wait_event(&Event::new()))),
        ("wait", failed(Event::new().wait(stream))),
        ("Stream::new", failed(Stream::new(0).map(drop))),
        (
            "current_stream",
            failed(vkaccel::current_stream(None).map(drop)),
        ),
        ("set_device_index", failed(vkaccel::set_device_index(0))),
        ("synchronize", failed(vkaccel::synchronize(None))),
        (
            "get_device_capability",
            failed(get_device_capability(0).map(drop)),
        ),
        (
            "get_memory_info",
            failed(vkaccel::get_memory_info(0).map(drop)),
        ),
        ("selection", failed(runtime.selection().map(drop))),
        ("init", failed(runtime.init(0))),
    ]
}

#[test]
fn after_shutdown_every_call_says_so_and_everything_may_be_dropped() {
    on_each_device("after_shutdown", |test| {
        let (stream, kernel) = (Stream::new(0).unwrap(), kernel("affine"));
        let data = stream.upload(&[1u32; 64]).unwrap();
        stream
            .launch(&kernel, Grid::elements(64), (&data, 2, 0, 64))
            .unwrap();
        let finished = stream.read_async(&data).unwrap();
        test.runtime().shutdown().unwrap();
        for (call, error) in calls(&stream, &kernel, &data) {
            assert_eq!(error.kind(), ErrorKind::ShutDown, "{call}: {error}");
        }
        // Shutting down has waited for it.
        assert_eq!(finished.wait().unwrap(), [2; 64]);
        assert!(!test.runtime().is_initialized());
        assert!(!vkaccel::is_available());
        assert_eq!(device_count(), 0);
        assert_eq!(data.len(), 64);
        assert_eq!(kernel.interface().local_size, [64, 1, 1]);
        // Again, it has nothing to do.
        test.runtime().shutdown().unwrap();
        drop((stream, data, kernel));
    });
}

#[test]
fn shutdown_waits_for_work_and_leaves_other_runtimes_alone() {
    on_each_device("shutdown_waits_for_work", |_| {
        let mine = Buffer::from_slice(&[5u32; 100]).unwrap();
        for _ in 0..3 {
            let other = TestRuntime::new(builder());
            let kernel = kernel("slow");
            let data = Buffer::<u32>::zeroed(4096).unwrap();
            kernel.launch(Grid::groups(4096), (&data, 2000)).unwrap();
            drop(other);
        }
        assert_eq!(mine.to_vec().unwrap(), [5; 100]);
    });
}

#[test]
fn threads_that_work_while_the_runtime_shuts_down_get_results_or_errors() {
    on_each_device("threads_that_work_while", |_| {
        let runtime = builder().build();
        runtime.init(0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let runtime = &runtime;
                scope.spawn(move || {
                    let _entered = runtime.enter();
                    loop {
                        let result = Buffer::from_slice(&[thread; 256])
                            .and_then(|buffer| buffer.fill(7).map(|()| buffer))
                            .and_then(|buffer| buffer.to_vec());
                        match result {
                            Ok(words) => assert_eq!(words, [7; 256]),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
                                return;
                            }
                        }
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(30));
            runtime.shutdown().unwrap();
        });
        assert!(runtime.take_validation_messages().is_empty());
    });
}

#[test]
fn the_list_of_visible_devices_chooses_and_orders() {
    on_each_device("the_list_of_visible_devices", |_| {
        let all = TestRuntime::new(builder());
        let names: Vec<_> = (0..device_count())
            .map(|device| get_device_capability(device).unwrap())
            .map(|capability| (capability.name().to_owned(), capability.uuid()))
            .collect();
        let count = names.len();
        let seen = |list: String| {
            let runtime = TestRuntime::new(builder().visible_devices(list));
            let seen: Vec<_> = (0..device_count())
                .map(|device| get_device_capability(device).unwrap().uuid())
                .collect();
            drop(runtime);
            seen
        };
        let last = count - 1;
        assert_eq!(seen(String::new()), [[0; 16]; 0]);
        assert_eq!(seen("0".into()), [names[0].1]);
        assert_eq!(seen(format!(" {last} ")), [names[last].1]);
        assert_eq!(
            seen(format!("0,{count},{last}")),
            [names[0].1],
            "cut at the first bad one"
        );
        assert_eq!(seen("-1,0".into()), [[0; 16]; 0]);
        if count > 1 {
            let reversed: Vec<_> = names.iter().rev().map(|(_, uuid)| *uuid).collect();
            let list: Vec<_> = (0..count).rev().map(|index| index.to_string()).collect();
            assert_eq!(seen(list.join(",")), reversed);
        }
        let digits: String = names[last]
            .1
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(seen(format!("uuid:{digits}")), [names[last].1]);
        drop(all);
        for bad in ["0,0", "abc", "uuid:xyz"] {
            let runtime = TestRuntime::new(builder().visible_devices(bad));
            assert!(!vkaccel::is_available());
            let error = Buffer::from_slice(&[1u8]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{bad}: {error}");
            assert!(error.to_string().contains(bad), "{error}");
            drop(runtime);
        }
    });
}

#[test]
fn selection_gives_a_reason_for_every_device() {
    on_each_device("selection_gives_a_reason", |_| {
        let reasons = |list: &str| {
            let test = TestRuntime::new(builder().visible_devices(list));
            test.runtime().selection().unwrap()
        };
        let none: Vec<Candidate> = reasons("");
        assert!(!none.is_empty());
        for candidate in &none {
            assert!(!candidate.accepted, "{candidate:?}");
            assert!(
                !candidate.name.is_empty() && !candidate.reason.is_empty(),
                "{candidate:?}"
            );
        }
        let hidden = TestRuntime::new(builder().visible_devices(""));
        let error = Buffer::from_slice(&[1u8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoDevice);
        for candidate in &none {
            assert!(error.to_string().contains(&candidate.name), "{error}");
        }
        drop(hidden);
        let first = reasons("0");
        assert_eq!(first.len(), none.len());
        assert_eq!(
            first.iter().filter(|candidate| candidate.accepted).count(),
            1
        );
        assert!(first.iter().all(|candidate| !candidate.reason.is_empty()));
    });
}

#[test]
fn features_that_are_left_out_are_not_there() {
    const NAME: &str = "features_that_are_left_out";
    let without = || builder().without_features([Feature::ShaderFloat64, Feature::ShaderInt64]);
    support::on_each_device_with(NAME, without, |_| {
        // What the device can do is not changed by what the runtime leaves out.
        let features = get_device_capability(0).unwrap().features();
        let error = build(Kernel::builder(module("specialized"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        if features.contains(Feature::ShaderFloat64) {
            assert!(error.to_string().contains("shaderFloat64"), "{error}");
        }
    });
    // Without what the runtime itself stands on, no device can be opened.
    let timeline = TestRuntime::new(builder().without_features([Feature::TimelineSemaphore]));
    if device_count() == 0 {
        return skip(NAME, "no device");
    }
    let error = timeline.runtime().init(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("timelineSemaphore"), "{error}");
    assert!(!timeline.runtime().is_initialized());
}

#[test]
fn runtimes_live_side_by_side_on_one_device() {
    on_each_device("runtimes_live_side_by_side", |_| {
        let here = Buffer::from_slice(&[1u32, 2, 3]).unwrap();
        let others: Vec<_> = (0..3).map(|_| TestRuntime::new(builder())).collect();
        let there = Buffer::from_slice(&[4u32, 5, 6]).unwrap();
        assert_eq!(here.to_vec().unwrap(), [1, 2, 3]);
        assert_eq!(there.to_vec().unwrap(), [4, 5, 6]);
        drop(others);
        assert_eq!(there.to_vec().unwrap_err().kind(), ErrorKind::ShutDown);
        assert_eq!(here.to_vec().unwrap(), [1, 2, 3]);
    });
}
