//! Promises where there is no loader, no driver, no device: answers and typed errors, never a panic.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::fs;
use std::path::PathBuf;

use support::child::{Child, role};
use vkaccel::{Buffer, Device, DeviceArg, ErrorKind, Kernel, Runtime, Stream, memory};

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("vkaccel-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over lies in the system's folder for that.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a process without a device gets: answers where there is one, errors of a kind elsewhere.
fn expect_absence(kind: ErrorKind) {
    assert!(!vkaccel::is_available());
    assert_eq!(vkaccel::device_count(), 0);
    assert_eq!(vkaccel::current_accelerator(true), None);
    assert_eq!(vkaccel::current_accelerator(false), Some(Device::any()));
    vkaccel::set_device_index(-1).unwrap();
    vkaccel::synchronize(None).unwrap();
    vkaccel::random::manual_seed(1).unwrap();
    vkaccel::random::manual_seed_all(1).unwrap();
    assert!(vkaccel::device_index(None).is_ok());
    nothing_is_held();

    let runtime = Runtime::current();
    let module = support::kernels::module("affine");
    let refused = [
        ("from_slice", Buffer::from_slice(&[1u32]).map(drop)),
        ("zeroed", Buffer::<u8>::zeroed(1).map(drop)),
        ("no bytes at all", Buffer::<u8>::zeroed(0).map(drop)),
        ("Stream::new", Stream::new(None).map(drop)),
        (
            "initial_seed",
            vkaccel::random::initial_seed(None).map(drop),
        ),
        ("current_stream", vkaccel::current_stream(None).map(drop)),
        (
            "current_device_index",
            vkaccel::current_device_index().map(drop),
        ),
        ("set_device_index", vkaccel::set_device_index(0)),
        ("device_index", vkaccel::device_index(0).map(drop)),
        ("synchronize", vkaccel::synchronize(0)),
        (
            "get_device_capability",
            vkaccel::get_device_capability(None).map(drop),
        ),
        ("get_memory_info", vkaccel::get_memory_info(None).map(drop)),
        ("init", runtime.init(0)),
        (
            "kernel",
            support::kernels::build(Kernel::builder(module)).map(drop),
        ),
    ];
    for (call, result) in refused {
        let error = result.expect_err(call);
        assert_eq!(error.kind(), kind, "{call}: {error}");
    }
    // Arguments are checked all the same.
    for bad in ["cuda:0", "vulkan:x", ""] {
        let error = vkaccel::set_device_index(bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice, "{error}");
    }
    assert!(!runtime.is_initialized());
    runtime.shutdown().unwrap();
}

/// Where there is no device, nothing is held, and there is nothing to give back or to reset.
fn nothing_is_held() {
    for index in [DeviceArg::CURRENT, 0.into(), "vulkan:3".into()] {
        assert!(memory::memory_stats(index.clone()).unwrap().is_empty());
        for held in [
            memory::memory_allocated(index.clone()),
            memory::max_memory_allocated(index.clone()),
            memory::memory_reserved(index.clone()),
            memory::max_memory_reserved(index.clone()),
        ] {
            assert_eq!(held.unwrap(), 0);
        }
        memory::reset_peak_memory_stats(index.clone()).unwrap();
        memory::reset_accumulated_memory_stats(index).unwrap();
    }
    memory::empty_cache().unwrap();
    memory::empty_host_cache().unwrap();
    for bad in ["cuda:0", "vulkan:-1"] {
        for refused in [
            memory::memory_allocated(bad).map(drop),
            memory::reset_peak_memory_stats(bad),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidDevice);
        }
    }
}

/// Without a loader.
#[test]
fn without_a_loader_there_is_no_driver_and_no_panic() {
    if role().is_some() {
        let error = Runtime::current().selection().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoDriver);
        for part in ["/nonexistent", "VKACCEL_LOADER", "install"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        return expect_absence(ErrorKind::NoDriver);
    }
    for loader in ["/nonexistent", "/nonexistent/libvulkan.so"] {
        Child::new("without_a_loader_there_is_no_driver_and_no_panic", "child")
            .env("VKACCEL_LOADER", loader)
            .succeed();
    }
}

#[test]
fn a_loader_that_is_none_is_no_driver() {
    if role().is_some() {
        return expect_absence(ErrorKind::NoDriver);
    }
    let folder = Folder::new("no-loader");
    let text = folder.file("loader.so", "this is no library\n");
    // A library of another kind, where the system has it at one of these places.
    let others = [
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/lib/aarch64-linux-gnu/libm.so.6",
        "/lib64/libm.so.6",
    ];
    for loader in [text].into_iter().chain(others.map(PathBuf::from)) {
        if fs::exists(&loader).unwrap_or(false) {
            Child::new("a_loader_that_is_none_is_no_driver", "child")
                .env("VKACCEL_LOADER", loader)
                .succeed();
        }
    }
}

/// Without a driver that works.
#[test]
fn without_a_driver_there_is_no_device_and_no_panic() {
    const NAME: &str = "without_a_driver_there_is_no_device_and_no_panic";
    if role().is_some() {
        // Where the machine has no loader either, that is what is missing.
        let without_loader = ErrorKind::NoDriver;
        let kind = match Runtime::current().selection() {
            Err(error) if error.kind() == without_loader => without_loader,
            _ => ErrorKind::NoDevice,
        };
        return expect_absence(kind);
    }
    let folder = Folder::new("no-driver");
    let empty = folder.0.join("empty");
    fs::create_dir(&empty).unwrap();
    let missing = folder.file(
        "missing.json",
        r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "/nonexistent/libdriver.so", "api_version": "1.3.0"}}"#,
    );
    let text = folder.file("text.json", "this is no JSON\n");
    let absent = folder.0.join("absent.json");
    for manifest in [empty, missing, text, absent] {
        let child = Child::new(NAME, "child")
            .env("VK_ICD_FILENAMES", &manifest)
            .env("VK_DRIVER_FILES", &manifest);
        let output = child.run();
        let said = support::child::text(&output);
        assert!(output.status.success(), "{}: {said}", manifest.display());
        // The loader itself may have something to say on stderr.
        assert!(!said.contains("panicked"), "{}: {said}", manifest.display());
    }
}

#[test]
fn a_list_that_shows_no_device_leaves_none_and_says_why() {
    if role().is_some() {
        expect_absence(ErrorKind::NoDevice);
        return;
    }
    const NAME: &str = "a_list_that_shows_no_device_leaves_none_and_says_why";
    support::on_each_device(NAME, |_| {
        for list in [
            "",
            "99",
            "-1",
            "-1,0",
            "uuid:0123456789abcdef0123456789abcdef",
        ] {
            Child::new(NAME, "child")
                .env("VKACCEL_VISIBLE_DEVICES", list)
                .succeed();
        }
    });
}

/// A failure is not kept: what was mended works, in a new process as in this one.
#[test]
#[allow(unsafe_code)]
fn a_probe_that_failed_can_be_tried_again() {
    const NAME: &str = "a_probe_that_failed_can_be_tried_again";
    if role().is_some() {
        assert!(!vkaccel::is_available());
        assert!(Buffer::from_slice(&[1u8]).is_err());
        // SAFETY: no other thread of this process reads or writes variables now.
        unsafe { std::env::remove_var("VKACCEL_LOADER") };
        assert!(vkaccel::is_available());
        let buffer = Buffer::from_slice(&[1u8, 2]).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1, 2]);
        return;
    }
    support::on_each_device(NAME, |test| {
        test.child(NAME, "child")
            .env("VKACCEL_LOADER", "/nonexistent")
            .succeed();
    });
}

#[test]
fn validation_without_its_layer_is_a_fault_of_the_settings() {
    const NAME: &str = "validation_without_its_layer_is_a_fault_of_the_settings";
    if role().is_some() {
        let runtime = Runtime::builder().validation(true).build();
        let _entered = runtime.enter();
        let error = Buffer::from_slice(&[1u8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(
            error.to_string().contains("VK_LAYER_KHRONOS_validation"),
            "{error}"
        );
        assert_eq!(runtime.selection().unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(runtime.init(0).unwrap_err().kind(), ErrorKind::Config);
        assert!(!vkaccel::is_available());
        return;
    }
    let folder = Folder::new("no-layer");
    support::on_each_device(NAME, |test| {
        // It takes the place of the system's folders.
        test.child(NAME, "child")
            .env("VK_LAYER_PATH", &folder.0)
            .succeed();
    });
}
