//! Promises of processes: their end with everything still alive, and their forks.
//!
//! # Safety
//!
//! The C functions are declared as POSIX gives them. A forked child of a test runs with one thread
//! and calls this crate and the allocator, which the C library keeps usable in children.
#![cfg(unix)]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::child::role;
use support::kernels::{build, kernel, module};
use support::{TestRuntime, builder, on_each_device};
use vkaccel::{
    Buffer, CaptureErrorMode, Download, Error, ErrorKind, Generator, Graph, Grid, Kernel,
    PinnedBuffer, Result, RngState, Runtime, RuntimeGuard, Stream, StreamGuard,
};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
}

/// Things of every kind, with work in flight, work not yet submitted, and a download under way.
struct Everything {
    stream: Stream,
    kernel: Kernel,
    data: Buffer<u32>,
    download: Download<u32>,
    pinned: PinnedBuffer<u32>,
}

impl Everything {
    fn new() -> Self {
        let stream = Stream::new(0).unwrap();
        let kernel = kernel("slow");
        let data = stream.zeroed(4096).unwrap();
        stream
            .launch(&kernel, Grid::groups(4096), (&data, 10_000))
            .unwrap();
        let download = stream.read_async(&data).unwrap();
        for value in 0..3 {
            stream.fill(&data, value).unwrap();
        }
        let pinned = PinnedBuffer::new(4096).unwrap();
        stream.copy_to_pinned(&data, &pinned).unwrap();
        Self {
            stream,
            kernel,
            data,
            download,
            pinned,
        }
    }
}

thread_local! {
    static OF_THREAD: RefCell<Option<(Everything, StreamGuard, RuntimeGuard)>> =
        const { RefCell::new(None) };
}

static OF_PROCESS: OnceLock<Everything> = OnceLock::new();

/// The role of a child that ends with things alive in statics, in thread-locals and on the stack.
fn end_with_everything_alive(how: &str) {
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
    match how {
        "exit" => std::process::exit(0),
        // The test ends well, and the process after it.
        _ => core::mem::drop(runtime),
    }
    assert_eq!(on_stack.data.len(), 4096);
}

#[test]
fn a_process_ends_well_with_everything_still_alive() {
    const NAME: &str = "a_process_ends_well_with_everything_still_alive";
    if let Some(role) = role() {
        return end_with_everything_alive(&role);
    }
    on_each_device(NAME, |test| {
        for how in ["exit", "return"] {
            test.child(NAME, how).succeed();
        }
    });
}

/// Runs `f` in a forked child; gives how that ended, once it has.
fn in_fork(f: impl FnOnce()) -> c_int {
    // SAFETY: see the top of the file.
    let process = unsafe { fork() };
    assert!(process >= 0, "fork failed");
    if process == 0 {
        // A panic must not unwind into what the parent's part of the test does.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        std::process::exit(i32::from(result.is_err()));
    }
    let mut status = -1;
    // SAFETY: the pointer leads to an integer of this function.
    let waited = unsafe { waitpid(process, &raw mut status, 0) };
    assert_eq!(waited, process);
    status
}

/// Runs the role `child` of a test that forks.
///
/// Without a validation layer, whose end in a forked child waits for threads that are not there.
fn in_own_process(test: &TestRuntime, name: &str) {
    test.child(name, "child").without_validation().succeed();
}

/// The work of parent and child: every word times eleven.
fn compute() {
    let source = Buffer::from_slice(&[1u32, 2, 3]).unwrap();
    let target = Buffer::<u32>::zeroed(3).unwrap();
    let map = kernel("affine_map");
    map.launch(Grid::elements(3), (&source, &target, 11, 0, 3))
        .unwrap();
    assert_eq!(target.to_vec().unwrap(), [11, 22, 33]);
}

/// Asking does not make a fork unsafe.
#[test]
fn a_child_of_a_process_that_only_asked_works_fully() {
    const NAME: &str = "a_child_of_a_process_that_only_asked_works_fully";
    if role().is_some() {
        let count = vkaccel::device_count();
        assert!(vkaccel::is_available());
        let capability = vkaccel::get_device_capability(0).unwrap();
        vkaccel::get_memory_info(0).unwrap();
        assert!(!Runtime::current().selection().unwrap().is_empty());
        let stream = Stream::new(0).unwrap();
        vkaccel::synchronize(None).unwrap();
        vkaccel::random::manual_seed(77).unwrap();
        let generator = Generator::new(78, 0).unwrap();
        assert!(!Runtime::current().is_initialized());
        let status = in_fork(|| {
            assert_eq!(vkaccel::random::get_offset(0).unwrap(), 0);
            assert_eq!(vkaccel::random::initial_seed(0).unwrap(), 77);
            assert_eq!(generator.seed().unwrap(), 78);
            assert_eq!(vkaccel::device_count(), count);
            assert_eq!(
                vkaccel::get_device_capability(0).unwrap().name(),
                capability.name()
            );
            compute();
            let words = stream.upload(&[5u32]).unwrap();
            assert_eq!(stream.to_vec(&words).unwrap(), [5]);
        });
        assert_eq!(status, 0);
        assert!(!Runtime::current().is_initialized());
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// The calls of the crate that need the runtime, on things that were made before a fork.
fn calls(all: &Everything) -> Vec<(&'static str, Error)> {
    let Everything {
        stream,
        kernel,
        data,
        download,
        pinned,
    } = all;
    let runtime = Runtime::current();
    let failed = |result: Result<()>| result.unwrap_err();
    vec![
        ("zeroed", failed(Buffer::<u8>::zeroed(4).map(drop))),
        ("no bytes at all", failed(Buffer::<u8>::zeroed(0).map(drop))),
        ("from_slice", failed(Buffer::from_slice(&[1u8]).map(drop))),
        ("fill", failed(data.fill(1))),
        ("write", failed(data.write(&[1; 4096]))),
        ("to_vec", failed(data.to_vec().map(drop))),
        ("read_async", failed(data.read_async().map(drop))),
        ("copy_from", failed(data.copy_from(data.view(..).unwrap()))),
        ("copy_from_pinned", failed(data.copy_from_pinned(pinned))),
        ("copy_to_pinned", failed(data.copy_to_pinned(pinned))),
        ("read", failed(pinned.read().map(drop))),
        ("write", failed(pinned.write().map(drop))),
        ("pinned", failed(PinnedBuffer::<u8>::new(1).map(drop))),
        ("empty_host_cache", failed(vkaccel::empty_host_cache())),
        (
            "host_memory_stats",
            failed(vkaccel::host_memory_stats().map(drop)),
        ),
        ("launch", failed(kernel.launch(Grid::groups(1), (data, 1)))),
        (
            "kernel",
            failed(build(Kernel::builder(module("affine"))).map(drop)),
        ),
        ("is_done", failed(download.is_done().map(drop))),
        ("query", failed(stream.query().map(drop))),
        ("flush", failed(stream.flush())),
        ("synchronize of a stream", failed(stream.synchronize())),
        (
            "synchronize_timeout",
            failed(stream.synchronize_timeout(Duration::MAX).map(drop)),
        ),
        ("enter", failed(stream.enter().map(drop))),
        ("scope", failed(stream.scope(|| Ok(())))),
        ("Stream::new", failed(Stream::new(0).map(drop))),
        (
            "current_stream",
            failed(vkaccel::current_stream(None).map(drop)),
        ),
        ("set_stream", failed(vkaccel::set_stream(stream))),
        (
            "current_device_index",
            failed(vkaccel::current_device_index().map(drop)),
        ),
        ("set_device_index", failed(vkaccel::set_device_index(0))),
        ("device_index", failed(vkaccel::device_index(0).map(drop))),
        ("with_device", failed(vkaccel::with_device(0, || Ok(())))),
        ("synchronize", failed(vkaccel::synchronize(None))),
        ("synchronize of a device", failed(vkaccel::synchronize(0))),
        (
            "get_device_capability",
            failed(vkaccel::get_device_capability(0).map(drop)),
        ),
        (
            "get_memory_info",
            failed(vkaccel::get_memory_info(0).map(drop)),
        ),
        ("selection", failed(runtime.selection().map(drop))),
        ("init", failed(runtime.init(0))),
        ("shutdown", failed(runtime.shutdown())),
        ("a new runtime", failed(Runtime::builder().build().init(0))),
    ]
}

/// Those of random numbers.
fn random_calls(generator: &Generator, data: &Buffer<u32>) -> Vec<(&'static str, Error)> {
    use vkaccel::random;
    let failed = |result: Result<()>| result.unwrap_err();
    let state = RngState::from_parts(1, 0);
    vec![
        ("initial_seed", failed(random::initial_seed(0).map(drop))),
        ("get_rng_state", failed(random::get_rng_state(0).map(drop))),
        (
            "get_rng_state_all",
            failed(random::get_rng_state_all().map(drop)),
        ),
        ("manual_seed", failed(random::manual_seed(1))),
        ("manual_seed_all", failed(random::manual_seed_all(1))),
        ("seed", failed(random::seed().map(drop))),
        ("seed_all", failed(random::seed_all().map(drop))),
        ("set_rng_state", failed(random::set_rng_state(&state, None))),
        ("set_rng_state_all", failed(random::set_rng_state_all(&[]))),
        ("get_offset", failed(random::get_offset(0).map(drop))),
        ("set_offset", failed(random::set_offset(0, 0))),
        ("Generator::new", failed(Generator::new(1, 0).map(drop))),
        ("state", failed(generator.state().map(drop))),
        ("set_state", failed(generator.set_state(&state))),
        ("set_seed", failed(generator.set_seed(1))),
        ("fill_bits", failed(generator.fill_bits(data))),
    ]
}

/// A child of a process that had opened a device is told so, at once, and ends well.
#[test]
fn a_child_of_a_process_that_had_opened_a_device_gets_typed_errors() {
    const NAME: &str = "a_child_of_a_process_that_had_opened_a_device_gets_typed_errors";
    if role().is_some() {
        let all = Everything::new();
        let count = vkaccel::device_count();
        let generator = Generator::default_of(0).unwrap();
        let words = Buffer::<u32>::zeroed(4).unwrap();
        generator.fill_bits(&words).unwrap();
        // A thread that holds locks of the crate much of the time, also when the process forks.
        static STOP: AtomicBool = AtomicBool::new(false);
        let stream = all.stream.clone();
        let busy = std::thread::spawn(move || {
            let words = stream.zeroed::<u32>(1000).unwrap();
            while !STOP.load(Ordering::Relaxed) {
                stream.fill(&words, 7).unwrap();
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        let mut all = Some(all);
        for round in 0..5 {
            let status = in_fork(|| {
                let started = Instant::now();
                assert!(vkaccel::is_available());
                assert_eq!(vkaccel::device_count(), count);
                assert!(!Runtime::current().is_initialized());
                let all = all.take().unwrap();
                let random = random_calls(&generator, &words);
                for (call, error) in calls(&all).into_iter().chain(random) {
                    assert_eq!(error.kind(), ErrorKind::ForkedChild, "{call}: {error}");
                    assert!(error.is_forked_child());
                }
                let error = all.download.wait().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ForkedChild);
                drop((all.stream, all.kernel, all.data, all.pinned));
                assert!(started.elapsed() < Duration::from_secs(2), "not at once");
            });
            assert_eq!(status, 0, "round {round}");
        }
        STOP.store(true, Ordering::Relaxed);
        busy.join().unwrap();
        // The parent goes on as if nothing had been.
        let all = all.unwrap();
        assert_eq!(all.download.wait().unwrap().len(), 4096);
        assert_eq!(all.data.to_vec().unwrap(), [2; 4096]);
        assert_eq!(*all.pinned.read().unwrap(), [2; 4096]);
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// Threads of the parent hold locks of the crate whenever it forks, and none is there to let go.
#[test]
fn a_forked_child_waits_for_no_lock_of_its_parents_threads() {
    const NAME: &str = "a_forked_child_waits_for_no_lock_of_its_parents_threads";
    if role().is_some() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let runtime = Runtime::current();
        let stream = Stream::new(0).unwrap();
        let words = stream.zeroed::<u32>(64).unwrap();
        let busy: Vec<_> = (0..3)
            .map(|_| {
                let (runtime, stream) = (runtime.clone(), stream.clone());
                std::thread::spawn(move || {
                    let words = stream.zeroed::<u32>(64).unwrap();
                    while !STOP.load(Ordering::Relaxed) {
                        drop(stream.read_async(&words).unwrap());
                        (0..1000).for_each(|_| drop(runtime.take_validation_messages()));
                    }
                })
            })
            .collect();
        for round in 0..50 {
            let download = stream.read_async(&words).unwrap();
            let status = in_fork(|| {
                drop(download);
                assert!(runtime.take_validation_messages().is_empty());
            });
            assert_eq!(status, 0, "round {round}");
        }
        STOP.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        return;
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// A child may drop what is left of its parent's in whatever order, thread-locals and all.
#[test]
fn drops_in_a_forked_child_touch_no_driver() {
    const NAME: &str = "drops_in_a_forked_child_touch_no_driver";
    if role().is_some() {
        let runtime = builder().build();
        let entered = runtime.enter();
        let all = Everything::new();
        let scope = all.stream.enter().unwrap();
        OF_THREAD.set(Some((all, scope, entered)));
        let status = in_fork(|| {
            let (all, scope, entered) = OF_THREAD.take().unwrap();
            drop(runtime.clone());
            drop(all);
            drop(scope);
            drop(entered);
        });
        assert_eq!(status, 0);
        // Nothing is left of them but in the child's thread-locals and the exit of the process.
        let status = in_fork(|| {
            let all = OF_THREAD.with_borrow(|kept| kept.is_some());
            assert!(all);
        });
        assert_eq!(status, 0);
        let (all, scope, entered) = OF_THREAD.take().unwrap();
        assert_eq!(all.download.wait().unwrap().len(), 4096);
        drop((all.data, all.kernel, all.stream, scope, entered));
        return runtime.shutdown().unwrap();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// A graph that was captured, one that is being captured, and threads that hold their locks much of the time.
#[test]
fn graphs_and_captures_of_the_parent_are_inert_in_a_forked_child() {
    const NAME: &str = "graphs_and_captures_of_the_parent_are_inert_in_a_forked_child";
    if role().is_some() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let runtime = Runtime::current();
        let (stream, side) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = stream.upload(&[1u32; 64]).unwrap();
        let body = || {
            let temporary = stream.uninit::<u32>(64)?;
            stream.copy(&words, &temporary)?;
            side.wait_stream(&stream)?;
            side.copy(&temporary, words.view(..)?)?;
            side.fill(words.view(..32)?, 7)?;
            stream.wait_stream(&side)
        };
        let mut graph = Graph::new();
        graph.enable_debug_mode();
        // The graph has what is left of it.
        let gone = stream.upload(&[5u32; 64]).unwrap();
        let captured = graph.capture_on(&stream, || {
            stream.copy(&gone, &words)?;
            body()
        });
        captured.unwrap();
        drop(gone);
        // The allocator's lock is taken much of the time, and that of the list of captures.
        let busy = |work: fn(&Stream)| {
            let runtime = runtime.clone();
            std::thread::spawn(move || {
                let _entered = runtime.enter();
                let stream = Stream::new(0).unwrap();
                while !STOP.load(Ordering::Relaxed) {
                    work(&stream);
                }
            })
        };
        let busy = [
            busy(|stream| drop(stream.uninit::<u8>(1000).unwrap())),
            busy(|stream| Graph::new().capture_begin_on(stream).unwrap()),
        ];
        let mut capturing = Graph::builder().keep_graph(true).build();
        capturing.set_capture_error_mode(CaptureErrorMode::Relaxed);
        capturing.capture_begin_on(&stream).unwrap();
        body().unwrap();
        let mut all = Some((graph, capturing, words, stream, side));
        for round in 0..50 {
            all.as_ref().unwrap().0.replay().unwrap();
            // Then and again no replay is under way, which would keep what the graph has.
            if round % 2 == 0 {
                vkaccel::synchronize(0).unwrap();
            }
            let status = in_fork(|| {
                let started = Instant::now();
                let (mut graph, mut capturing, words, stream, side) = all.take().unwrap();
                assert!(!stream.is_capturing());
                let path = std::env::temp_dir().join("none.dot");
                for error in [
                    graph.replay().unwrap_err(),
                    side.replay(&graph).unwrap_err(),
                    graph.debug_dump(path).unwrap_err(),
                    graph.reset().unwrap_err(),
                    stream.fill(&words, 1).unwrap_err(),
                    capturing.capture_end().unwrap_err(),
                    capturing.capture_begin_on(&side).unwrap_err(),
                    Graph::new().capture_begin_on(&side).unwrap_err(),
                    Graph::new().capture(|| Ok(())).unwrap_err(),
                ] {
                    assert_eq!(error.kind(), ErrorKind::ForkedChild, "{error}");
                }
                assert!(format!("{graph:?}").contains("captured"));
                drop((graph, capturing, words, stream, side));
                assert!(started.elapsed() < Duration::from_secs(2), "not at once");
            });
            assert_eq!(status, 0, "round {round}");
        }
        STOP.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        let (_, mut capturing, words, stream, _) = all.unwrap();
        capturing.capture_end().unwrap();
        stream.fill(&words, 3).unwrap();
        stream.replay(&capturing).unwrap();
        let expected = [[7; 32], [3; 32]].concat();
        return assert_eq!(stream.to_vec(&words).unwrap(), expected);
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
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
    on_each_device(NAME, |test| in_own_process(test, NAME));
}
