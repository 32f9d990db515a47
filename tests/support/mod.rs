//! What the device suite's tests share: a runtime of their own, on every device that is there,
//! under a validation layer that fails them.
//!
//! - `VKACCEL_TEST_VALIDATION=1` runs under the layer; one message fails the test.
//! - `VKACCEL_TEST_REQUIRE_DEVICE=1` makes it a failure that there is no device; else the test is
//!   skipped with a line that says so.
//! - `VKACCEL_TEST_ADDRESSES=1` hands buffers to kernels by address ([`kernels::chosen`]).
//!
//! `scripts/test` reads lines of the output: `SKIP test: reason`, `PART part of a test: reason`, `TOOK seconds test
//! on device`, `USING what floats`, `NOTE what has changed`.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

pub mod books;
pub mod captures;
pub mod child;
pub mod crowd;
pub mod deadline;
pub mod entry;
pub mod everything;
pub mod fork;
pub mod kernels;
pub mod matrices;
pub mod random;
pub mod seeds;
pub mod slow;

use std::time::Instant;

use vkaccel::{Runtime, RuntimeBuilder, RuntimeGuard};

/// Whether a variable of the environment is `1`.
pub fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value == "1")
}

/// A builder with what the environment asks for.
pub fn builder() -> RuntimeBuilder {
    Runtime::builder().validation(is_set("VKACCEL_TEST_VALIDATION"))
}

/// A runtime that is current on the test's thread; fails the test if a layer has said anything.
pub struct TestRuntime {
    runtime: Runtime,
    entered: Option<RuntimeGuard>,
    /// Which of the visible devices it sees, where it sees one.
    index: usize,
    /// Whether the test loses the device.
    loses: bool,
}

impl TestRuntime {
    pub fn new(builder: RuntimeBuilder) -> Self {
        let runtime = builder.build();
        let entered = Some(runtime.enter());
        Self {
            runtime,
            entered,
            index: 0,
            loses: false,
        }
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Another runtime, built otherwise, that sees the same device and is current in its stead.
    pub fn another(&self, builder: RuntimeBuilder) -> Self {
        let mut another = Self::new(builder.visible_devices(self.index.to_string()));
        another.index = self.index;
        another
    }

    /// From now on it is right that the device is lost, and wrong that it is not.
    pub fn expect_loss(&mut self) {
        self.loses = true;
    }

    /// A process that runs a test in a role and sees the same device.
    pub fn child(&self, test: &str, role: &str) -> child::Child {
        child::Child::new(test, role).env("VKACCEL_VISIBLE_DEVICES", self.index.to_string())
    }
}

impl Drop for TestRuntime {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seen = self.runtime.selection().unwrap_or_default();
            for device in seen.iter().filter(|one| one.accepted) {
                eprintln!("on the device {}", device.name);
            }
        }
        self.entered = None;
        let closed = self.runtime.shutdown();
        let messages = self.runtime.take_validation_messages();
        if std::thread::panicking() {
            for message in messages {
                eprintln!("validation: {}: {}", message.id, message.text);
            }
            return;
        }
        match closed {
            Err(error) if !(self.loses && error.is_device_lost()) => {
                panic!("shutting down failed: {error}")
            }
            Ok(()) if self.loses => panic!("the device was not lost"),
            _ => {}
        }
        assert!(messages.is_empty(), "validation messages: {messages:#?}");
    }
}

/// Says that a test could not run, in the form that `scripts/test` counts.
pub fn skip(name: &str, reason: &str) {
    println!("SKIP {name}: {reason}");
}

/// Says that a part of a test could not run; the test itself counts as passed.
pub fn skip_part(part: &str, reason: &str) {
    println!("PART {part}: {reason}");
}

/// Runs a test once on each visible device, each time in a runtime where that one is device 0.
#[track_caller]
pub fn on_each_device(name: &str, test: impl Fn(&TestRuntime)) {
    on_each_device_with(name, builder, test);
}

/// The same, with a runtime that is built otherwise.
#[track_caller]
pub fn on_each_device_with(
    name: &str,
    builder: impl Fn() -> RuntimeBuilder,
    test: impl Fn(&TestRuntime),
) {
    let count = TestRuntime::new(builder()).device_count();
    if count == 0 {
        assert!(!is_set("VKACCEL_TEST_REQUIRE_DEVICE"), "there is no device");
        return skip(name, "no device");
    }
    for index in 0..count {
        let mut runtime = TestRuntime::new(builder().visible_devices(index.to_string()));
        runtime.index = index;
        let (device, started) = (runtime.device_name(), Instant::now());
        test(&runtime);
        drop(runtime);
        let seconds = started.elapsed().as_secs_f64();
        println!("TOOK {seconds:.2} {name} on {device}");
    }
}

impl TestRuntime {
    fn device_count(&self) -> usize {
        self.runtime
            .selection()
            .map_or(0, |all| all.iter().filter(|one| one.accepted).count())
    }

    /// Which of the visible devices it sees, where it sees one.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Of the first device that it sees.
    fn device_name(&self) -> String {
        let seen = self.runtime.selection().unwrap_or_default();
        let name = seen.into_iter().find(|one| one.accepted);
        name.map_or_else(String::new, |one| one.name)
    }
}

/// The content of a file in `tests/data`: the repository's, or a copy's where the test runs without
/// one (`scripts/device-check`).
pub fn data(name: &str) -> Vec<u8> {
    let root = std::env::var("VKACCEL_TEST_ROOT");
    let root = root.unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let path = format!("{root}/tests/data/{name}");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of a module in `tests/data/spirv`.
pub fn spirv(name: &str) -> Vec<u8> {
    data(&format!("spirv/{name}.spv"))
}
