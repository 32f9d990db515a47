//! Promises of processes: their end with everything still alive, and their start anew.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::cell::RefCell;
use std::sync::OnceLock;

use support::child::role;
use support::entry::Entry;
use support::everything::Everything;
use support::{builder, on_each_device};
use vkaccel::{Buffer, ErrorKind, Event, Graph, Runtime, RuntimeGuard, Stream, StreamGuard};

thread_local! {
    static OF_THREAD: RefCell<Option<(Everything, StreamGuard, RuntimeGuard)>> =
        const { RefCell::new(None) };
}

static OF_PROCESS: OnceLock<Everything> = OnceLock::new();

/// The role of a child that ends with things alive in statics, in thread-locals and on the stack.
fn end_with_everything_alive(how: &str) {
    if how.contains("first") {
        // Its destructor is behind or in front of that of the crate's own thread-local.
        OF_THREAD.with_borrow(|nothing| assert!(nothing.is_none()));
    }
    let runtime = builder().build();
    let entered = runtime.enter();
    let everything = OF_PROCESS.get_or_init(Everything::new);
    let scope = everything.stream.enter().unwrap();
    OF_THREAD.set(Some((Everything::new(), scope, entered)));
    // Another runtime, the process's own, and a thread that is busy when the process ends.
    let _own = Runtime::builder().build().enter();
    let on_stack = Everything::new();
    let stream = on_stack.stream.clone();
    let words = stream.zeroed::<u32>(1000).unwrap();
    std::thread::spawn(move || while stream.fill(&words, 7).is_ok() {});
    // A thread that ends with things alive, and is over when the process ends.
    let thread = std::thread::spawn(|| OF_THREAD.set(Some(alive_on_thread())));
    thread.join().unwrap();
    if how.starts_with("exit") {
        std::process::exit(0);
    }
    // The test ends well, and the process after it.
    drop(runtime);
    assert_eq!(on_stack.data.len(), 4096);
}

/// Everything, with its runtime and its stream current.
fn alive_on_thread() -> (Everything, StreamGuard, RuntimeGuard) {
    let entered = builder().build().enter();
    let all = Everything::new();
    let scope = all.stream.enter().unwrap();
    (all, scope, entered)
}

#[test]
fn a_process_ends_well_with_everything_still_alive() {
    const NAME: &str = "a_process_ends_well_with_everything_still_alive";
    if let Some(role) = role() {
        return end_with_everything_alive(&role);
    }
    on_each_device(NAME, |test| {
        for how in ["exit", "return", "exit, first", "return, first"] {
            test.child(NAME, how).succeed();
        }
    });
}

#[test]
fn a_panic_with_work_in_flight_unwinds_and_leaves_everything_usable() {
    on_each_device("a_panic_with_work_in_flight", |test| {
        let before = vkaccel::current_stream(None).unwrap();
        let panicked = std::panic::catch_unwind(|| {
            let all = Everything::new();
            let _scope = all.stream.enter().unwrap();
            let _apart = all.stream.concurrent(|| {
                all.stream.fill(&all.data, 3).unwrap();
                panic!("on purpose");
                #[expect(unreachable_code, reason = "what the closure would give")]
                Ok(())
            });
        });
        assert!(panicked.is_err());
        // So does one of a thread, whose thread-locals go with it.
        let runtime = test.runtime().clone();
        let thread = std::thread::spawn(move || {
            let entered = runtime.enter();
            let all = Everything::new();
            let scope = all.stream.enter().unwrap();
            OF_THREAD.set(Some((all, scope, entered)));
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert_eq!(vkaccel::current_stream(None).unwrap(), before);
        vkaccel::synchronize(None).unwrap();
        assert_eq!(vkaccel::memory::memory_allocated(None).unwrap(), 0);
        let words = Buffer::from_slice(&[5u32; 100]).unwrap();
        words.fill(6).unwrap();
        assert_eq!(words.to_vec().unwrap(), [6; 100]);
    });
}

/// How many threads the process has.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Whether the loader of Vulkan is in the process.
#[cfg(target_os = "linux")]
fn has_loader() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains("libvulkan")
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_loaded_or_started_before_something_is_asked() {
    const NAME: &str = "nothing_is_loaded_or_started_before_something_is_asked";
    if role().is_some() {
        let before = threads();
        let (runtime, other) = (Runtime::current(), Runtime::builder().build());
        let entered = other.enter();
        vkaccel::random::manual_seed(5).unwrap();
        vkaccel::random::manual_seed_all(5).unwrap();
        assert!(vkaccel::current_accelerator(false).is_some());
        assert!(Event::new().query().unwrap());
        vkaccel::synchronize(None).unwrap();
        drop((Graph::new(), Event::with_timing()));
        assert!(!runtime.is_initialized() && !other.is_initialized());
        assert!(!has_loader());
        drop(entered);
        assert!(vkaccel::is_available());
        assert!(has_loader());
        assert_eq!(threads(), before);
        return;
    }
    on_each_device(NAME, |test| {
        test.child(NAME, "child").without_validation().succeed();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn asking_leaves_no_instance_and_no_thread_behind_and_is_done_once() {
    const NAME: &str = "asking_leaves_no_instance_and_no_thread_behind_and_is_done_once";
    if role().is_some() {
        let entry = Entry::new().unwrap();
        let _entered = entry.builder().build().enter();
        let instances = || {
            let [made, gone] = ["vkCreateInstance", "vkDestroyInstance"].map(|f| entry.calls(f));
            assert_eq!(made, gone, "an instance is left");
            made
        };
        let before = threads();
        assert_eq!(instances(), 0);
        let ask = || {
            assert!(vkaccel::is_available());
            assert_eq!(vkaccel::device_count(), 1);
            vkaccel::current_accelerator(true).unwrap();
            vkaccel::get_device_capability(0).unwrap();
            Runtime::current().selection().unwrap();
            vkaccel::random::manual_seed_all(5).unwrap();
            vkaccel::set_stream(&Stream::new(0).unwrap()).unwrap();
            vkaccel::synchronize(0).unwrap();
        };
        for _ in 0..3 {
            ask();
            assert_eq!(instances(), 1, "the answer is kept");
        }
        // How much memory is free is another number each time.
        vkaccel::get_memory_info(0).unwrap();
        assert_eq!(instances(), 2);
        assert_eq!(threads(), before);
        assert_eq!(entry.calls("vkCreateDevice"), 0);
        return;
    }
    on_each_device(NAME, |test| {
        test.child(NAME, "child").without_validation().succeed();
    });
}

/// Global functions mean the process's own runtime, of which a test of its own process has its own.
#[test]
fn a_process_starts_anew_after_a_shutdown_and_what_is_left_of_before_is_inert() {
    const NAME: &str = "a_process_starts_anew_after_a_shutdown_and_what_is_left_of_before_is_inert";
    if role().is_some() {
        let mut left = Vec::new();
        for round in 0..5u32 {
            let runtime = Runtime::current();
            assert!(!runtime.is_initialized());
            vkaccel::random::manual_seed(u64::from(round)).unwrap();
            let stream = Stream::new(0).unwrap();
            vkaccel::set_stream(&stream).unwrap();
            let words = Buffer::from_slice(&[round; 1000]).unwrap();
            words.fill(round + 1).unwrap();
            assert_eq!(words.to_vec().unwrap(), [round + 1; 1000]);
            runtime.shutdown().unwrap();
            let error = words.to_vec().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
            for error in [error, Stream::new(0).unwrap().to_vec(&words).unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::ShutDown, "{error}");
                let said = error.to_string();
                assert!(
                    said.contains("make it anew") && !said.contains("builder"),
                    "{said}"
                );
            }
            left.push((words, stream));
            assert_ne!(
                vkaccel::current_stream(None).unwrap(),
                left[left.len() - 1].1
            );
            let seed = vkaccel::random::initial_seed(None).unwrap();
            assert_eq!(seed, 67_280_421_310_721);
            // Another thread means the same new runtime.
            let there = std::thread::spawn(|| vkaccel::memory_reserved(None).unwrap());
            assert_eq!(there.join().unwrap(), 0);
            Runtime::current().shutdown().unwrap();
            if round == 3 {
                left.clear();
            }
        }
        return;
    }
    on_each_device(NAME, |test| {
        test.child(NAME, "child").succeed();
    });
}
