//! The rules that tests set on the driver's calls do what they say, to their own test alone.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::time::{Duration, Instant};

use ash::vk;
use support::entry::{Entry, args};
use support::{TestRuntime, on_each_device};
use vkaccel::{Buffer, ErrorKind};

fn ruled(test: &TestRuntime) -> (Entry, TestRuntime) {
    let entry = Entry::new().expect("there is a loader");
    let runtime = test.another(entry.builder());
    (entry, runtime)
}

#[test]
fn calls_are_counted_and_only_the_one_that_is_named_fails() {
    on_each_device("calls_are_counted", |test| {
        let (entry, runtime) = ruled(test);
        // So large that the driver is asked for each; what fails is tried twice.
        let buffer = || Buffer::<u32>::uninit(3 << 20);
        let first = buffer().unwrap();
        assert_eq!(entry.calls("vkCreateDevice"), 1);
        let (buffers, all) = (entry.calls("vkCreateBuffer"), entry.fallible_calls());
        for call in [2, 3] {
            entry.fail("vkCreateBuffer", call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        }
        let second = buffer().unwrap();
        let error = buffer().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfHostMemory);
        assert_eq!(entry.failed(), Some("vkCreateBuffer"));
        let third = buffer().unwrap();
        assert_eq!(entry.calls("vkCreateBuffer") - buffers, 4);
        assert!(entry.fallible_calls() - all >= 4 + 2 * 2);
        assert!(entry.leaked().contains(&"vkCreateBuffer"));
        drop((first, second, third, runtime));
        assert!(entry.leaked().is_empty(), "{:?}", entry.leaked());
    });
}

#[test]
fn a_call_is_held_back_and_its_arguments_are_changed() {
    on_each_device("a_call_is_held_back", |test| {
        let (entry, _runtime) = ruled(test);
        let words = Buffer::<u32>::zeroed(16).unwrap();
        assert_eq!(words.to_vec().unwrap(), [0; 16]);
        entry.alter("vkCmdFillBuffer", |args: &mut args::CmdFillBuffer| {
            assert_eq!(args.4, 1);
            args.4 = 5;
        });
        words.fill(1).unwrap();
        assert_eq!(words.to_vec().unwrap(), [5; 16]);
        entry.forget_rules();
        entry.delay("vkQueueSubmit", Duration::from_millis(20));
        let started = Instant::now();
        words.fill(1).unwrap();
        vkaccel::synchronize(None).unwrap();
        assert!(started.elapsed() >= Duration::from_millis(20));
        assert_eq!(words.to_vec().unwrap(), [1; 16]);
    });
}

#[test]
fn entries_side_by_side_rule_their_own_runtimes_alone() {
    on_each_device("entries_side_by_side", |test| {
        let (outer, _runtime) = ruled(test);
        let is_refused = || {
            vkaccel::empty_cache().unwrap();
            Buffer::<u32>::uninit(16).is_err()
        };
        assert!(!is_refused());
        let (inner, runtime) = ruled(test);
        assert!(!is_refused());
        outer.fail_all("vkCreateBuffer", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        assert!(!is_refused());
        inner.fail_all("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        assert!(is_refused());
        assert_eq!(inner.failed(), Some("vkAllocateMemory"));
        assert_eq!(outer.failed(), None);
        drop(runtime);
        assert!(is_refused());
        outer.forget_rules();
        assert!(!is_refused());
    });
}
