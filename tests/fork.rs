//! Promises of forks: what a child may do, what it is told, and that nothing holds it up.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use support::child::role;
use support::entry::Entry;
use support::everything::{Everything, of_the_process, on_objects};
use support::fork::{compute, go_on_in_both, in_fork, in_own_process, start};
use support::kernels::kernel;
use support::{builder, on_each_device};
use vkaccel::{
    Buffer, ErrorKind, Event, Generator, Graph, Grid, PinnedBuffer, Runtime, RuntimeGuard, Stream,
    StreamGuard, memory, random,
};

/// How often a process forks in the midst of what its threads do.
const FORKS: usize = 100;

/// Threads that do things over and over, until the process has forked.
struct Busy {
    threads: Vec<JoinHandle<()>>,
}

static STOP: AtomicBool = AtomicBool::new(false);
/// Whether they rest, to leave the machine to a child.
static REST: AtomicBool = AtomicBool::new(true);
/// How much they have done.
static DONE: AtomicU64 = AtomicU64::new(0);

impl Busy {
    fn new(tasks: Vec<Box<dyn FnMut() + Send>>) -> Self {
        let start = |mut task: Box<dyn FnMut() + Send>| {
            spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    match REST.load(Ordering::Relaxed) {
                        true => std::thread::sleep(Duration::from_micros(200)),
                        false => task(),
                    }
                    DONE.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        Self {
            threads: tasks.into_iter().map(start).collect(),
        }
    }

    /// Runs `f` in a child that is forked while they are busy.
    #[track_caller]
    fn fork(&self, f: impl FnOnce()) {
        REST.store(false, Ordering::Relaxed);
        let before = DONE.load(Ordering::Relaxed);
        while DONE.load(Ordering::Relaxed) < before + 10 {
            std::thread::sleep(Duration::from_micros(50));
        }
        let child = start(f);
        REST.store(true, Ordering::Relaxed);
        child.succeed();
    }

    fn stop(self) {
        STOP.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        threads.for_each(|thread| thread.join().unwrap());
    }
}

/// Asking does not make a fork unsafe.
#[test]
fn a_child_of_a_process_that_only_asked_works_fully() {
    const NAME: &str = "a_child_of_a_process_that_only_asked_works_fully";
    if role().is_some() {
        let count = vkaccel::device_count();
        assert!(vkaccel::is_available());
        let capability = vkaccel::get_device_capability(0).unwrap();
        memory::get_memory_info(0).unwrap();
        assert!(!Runtime::current().selection().unwrap().is_empty());
        let stream = Stream::new(0).unwrap();
        vkaccel::synchronize(None).unwrap();
        random::manual_seed(77).unwrap();
        let generator = Generator::new(78, 0).unwrap();
        assert!(!Runtime::current().is_initialized());
        for _ in 0..FORKS {
            in_fork(|| {
                assert_eq!(random::get_offset(0).unwrap(), 0);
                assert_eq!(random::initial_seed(0).unwrap(), 77);
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
            assert!(!Runtime::current().is_initialized());
        }
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// All that a process may ask and set without opening a device, over and over.
fn asking() -> Busy {
    let runtime = Runtime::current();
    let stream = Stream::new(0).unwrap();
    let event = Event::new();
    let (named, recorded) = (stream.clone(), event.clone());
    let generator = Generator::default_of(0).unwrap();
    let seeded = generator.clone();
    Busy::new(vec![
        // The loader is at work, and a runtime that nobody has asked yet.
        Box::new(|| {
            let _entered = Runtime::builder().build().enter();
            assert!(vkaccel::is_available());
        }),
        Box::new(|| assert!(memory::get_memory_info(0).unwrap().total > 0)),
        Box::new(move || {
            seeded.set_seed(1).unwrap();
            random::manual_seed_all(77).unwrap();
            random::get_offset(0).unwrap();
        }),
        Box::new(move || {
            vkaccel::set_stream(&named).unwrap();
            recorded.record(&named).unwrap();
            assert!(recorded.query().unwrap() && named.query().unwrap());
            vkaccel::synchronize(0).unwrap();
            assert!(!runtime.is_initialized());
        }),
        Box::new(|| {
            memory::set_memory_limit(None, 0).unwrap();
            memory::set_allocator_settings("", 0).unwrap();
            memory::memory_snapshot(0).unwrap();
            memory::host_memory_stats().unwrap();
        }),
    ])
}

/// All calls of the process do what they do elsewhere.
fn all_work() {
    for (call, error) in of_the_process() {
        // Without shaderc there is no GLSL; and there are not so few devices.
        let refused = ["Kernel::from_glsl", "set_rng_state_all"].contains(&call);
        assert!(error.is_none() || refused, "{call}: {error:?}");
    }
}

/// Whatever the threads of such a process are in the midst of when it forks, also with the loader.
#[test]
fn a_child_finds_no_lock_taken_by_threads_of_a_process_that_only_asked() {
    const NAME: &str = "a_child_finds_no_lock_taken_by_threads_of_a_process_that_only_asked";
    if role().is_some() {
        let (stream, event) = (Stream::new(0).unwrap(), Event::new());
        let busy = asking();
        for round in 0..FORKS {
            busy.fork(|| {
                random::manual_seed(5).unwrap();
                event.record(&stream).unwrap();
                compute();
                // Making instances and compiling is not fast.
                if round % 10 == 0 {
                    let _fresh = Runtime::builder().build().enter();
                    assert!(vkaccel::is_available());
                    all_work();
                }
            });
        }
        busy.stop();
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// A process forks while its threads make its runtime, look for devices and open one.
#[test]
fn a_child_of_a_process_that_is_starting_works_or_is_told_so() {
    const NAME: &str = "a_child_of_a_process_that_is_starting_works_or_is_told_so";
    if let Some(delay) = role() {
        let start = || drop(spawn(|| Runtime::current().init(0).unwrap()));
        (0..4).for_each(|_| start());
        std::thread::sleep(Duration::from_micros(delay.parse().unwrap()));
        for _ in 0..5 {
            in_fork(|| match Buffer::<u8>::zeroed(1) {
                Ok(_) => compute(),
                Err(error) => assert_eq!(error.kind(), ErrorKind::ForkedChild),
            });
        }
        return compute();
    }
    on_each_device(NAME, |test| {
        for delay in [0, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000] {
            let child = test.child(NAME, &delay.to_string());
            child.without_validation().succeed();
        }
    });
}

/// All kinds of work on an opened device, over and over.
fn working() -> Busy {
    let streams: Vec<_> = (0..5).map(|_| Stream::new(0).unwrap()).collect();
    let [launching, copying, waiting, calling, captured] =
        <[Stream; 5]>::try_from(streams).unwrap();
    let (affine, words) = (kernel("affine"), launching.zeroed::<u32>(1000).unwrap());
    let pinned = PinnedBuffer::<u32>::new(1000).unwrap();
    let event = Event::new();
    Busy::new(vec![
        Box::new(|| {
            let buffers: Vec<_> = (1..9).map(|i| Buffer::<u8>::uninit(i * 5000)).collect();
            drop(buffers);
            memory::memory_snapshot(0).unwrap();
            memory::memory_stats(0).unwrap();
        }),
        Box::new(move || {
            let args = (&words, 2, 1, 1000);
            let grid = Grid::elements(1000);
            launching.launch(&affine, grid, args).unwrap();
            drop(kernel("affine_map"));
        }),
        Box::new(move || {
            let words = copying.uninit::<u32>(1000).unwrap();
            copying.copy_from_pinned(&pinned, &words).unwrap();
            copying.copy_to_pinned(&words, &pinned).unwrap();
            drop(copying.read_async(&words).unwrap());
            copying.synchronize().unwrap();
            drop(pinned.read().unwrap());
        }),
        Box::new(move || {
            random::manual_seed_all(7).unwrap();
            event.record(&waiting).unwrap();
            let other = Stream::new(0).unwrap();
            drop(other.upload(&[1u32; 100]).unwrap());
            event.wait(&other).unwrap();
            waiting.wait_stream(&other).unwrap();
        }),
        Box::new(move || {
            let words = captured.uninit::<u32>(100).unwrap();
            let mut graph = Graph::new();
            let work = || captured.fill(&words, 1);
            graph.capture_on(&captured, work).unwrap();
            captured.replay(&graph).unwrap();
        }),
        Box::new(move || {
            calling.add_callback(|| ()).unwrap();
            memory::empty_cache().unwrap();
            drop(memory::on_pressure(0, |_| vkaccel::Pressure::GiveUp).unwrap());
            std::thread::sleep(Duration::from_micros(100));
        }),
    ])
}

/// Every function that the spec declares is among the calls that the tests of this file make.
#[test]
fn no_call_is_left_out() {
    let surface = include_str!("golden/api.rs");
    let source = include_str!("support/everything.rs");
    // These answer without a driver; the rest are other names of those that are called.
    let known = [
        "is_available",
        "device_count",
        "current_accelerator",
        "current_device_idx",
        "set_device_idx",
        "id",
        "is_capturing",
        "pool",
        "enable_debug_mode",
    ];
    let declared = surface.split("pub fn ").skip(1);
    let names = declared.map(|rest| rest.split(['(', '<']).next().unwrap());
    let missing: Vec<_> = names
        .filter(|name| !known.contains(name))
        .filter(|name| {
            !source.contains(&format!("\"{name}\"")) && !source.contains(&format!("::{name}\""))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What a child of a process with an open device gets: typed errors, at once.
fn told_of_the_fork(mut all: Everything, count: usize) {
    let started = Instant::now();
    assert!(vkaccel::is_available());
    assert_eq!(vkaccel::device_count(), count);
    assert!(vkaccel::current_accelerator(true).is_some());
    let runtime = Runtime::current();
    assert!(!runtime.is_initialized());
    assert_eq!(runtime.counters(), vkaccel::Counters::default());
    assert!(runtime.take_validation_messages().is_empty());
    assert!(!all.stream.is_capturing() && !all.captured.is_capturing());
    let closed = ("Runtime::shutdown", runtime.shutdown().err());
    let fresh = Runtime::builder().build().init(0);
    let fresh = ("init of a new runtime", fresh.err());
    let calls = on_objects(&mut all).into_iter().chain(of_the_process());
    for (call, error) in calls.chain([closed, fresh]) {
        let error = error.unwrap_or_else(|| panic!("{call} did not fail"));
        assert_eq!(error.kind(), ErrorKind::ForkedChild, "{call}: {error}");
        assert!(error.is_forked_child());
    }
    let error = all.download.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForkedChild);
    drop((all.stream, all.kernel, all.data, all.pinned, all.empty));
    drop((all.event, all.timed, all.generator, all.pool, all.pressure));
    drop((all.graph, all.kept, all.capturing, all.captured));
    assert!(started.elapsed() < Duration::from_secs(2), "not at once");
}

/// Whatever the threads of its parent, which are not there, are in the midst of.
#[test]
fn a_child_of_a_process_that_had_opened_a_device_gets_typed_errors_at_once() {
    const NAME: &str = "a_child_of_a_process_that_had_opened_a_device_gets_typed_errors_at_once";
    if role().is_some() {
        let mut all = Some(Everything::new());
        let count = vkaccel::device_count();
        let busy = working();
        for _ in 0..FORKS {
            busy.fork(|| told_of_the_fork(all.take().unwrap(), count));
        }
        busy.stop();
        // The parent goes on as if nothing had been.
        let all = all.unwrap();
        assert_eq!(all.download.wait().unwrap().len(), 4096);
        assert_eq!(all.data.to_vec().unwrap(), [2; 4096]);
        assert_eq!(*all.pinned.read().unwrap(), [2; 4096]);
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// The threads of a parent are forgotten with care: the system may give their place to others.
#[test]
fn a_childs_own_threads_are_not_taken_for_its_parents() {
    const NAME: &str = "a_childs_own_threads_are_not_taken_for_its_parents";
    if role().is_some() {
        let runtime = builder().build();
        let entered = runtime.enter();
        let all = Everything::new();
        // The thread of the runtime's that runs callbacks is there.
        let (sender, receiver) = channel();
        let tell = move || sender.send(()).unwrap();
        all.stream.add_callback(tell).unwrap();
        receiver.recv().unwrap();
        let mut parents = Some((all, entered, runtime));
        for _ in 0..FORKS {
            in_fork(|| {
                let (end, ended) = channel::<()>();
                let own = spawn(move || ended.recv().is_err());
                drop(parents.take());
                drop(end);
                assert!(own.join().unwrap());
            });
        }
        return;
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

thread_local! {
    static OF_THREAD: RefCell<Option<(Everything, StreamGuard, RuntimeGuard)>> =
        const { RefCell::new(None) };
}

/// A child may drop what is left of its parent's in whatever order, thread-locals and all.
#[test]
fn drops_in_a_forked_child_touch_no_driver() {
    const NAME: &str = "drops_in_a_forked_child_touch_no_driver";
    if role().is_some() {
        let entry = Entry::new().unwrap();
        let runtime = entry.builder().build();
        let entered = runtime.enter();
        let all = Everything::new();
        let scope = all.stream.enter().unwrap();
        OF_THREAD.set(Some((all, scope, entered)));
        assert!(entry.all_calls() > 0);
        in_fork(|| {
            let before = entry.all_calls();
            let (all, scope, entered) = OF_THREAD.take().unwrap();
            drop(runtime.clone());
            drop(all);
            drop(scope);
            drop(entered);
            assert_eq!(entry.all_calls(), before);
        });
        // Nothing is left of them but in the child's thread-locals and the exit of the process.
        in_fork(|| {
            let all = OF_THREAD.with_borrow(|kept| kept.is_some());
            assert!(all);
        });
        let (all, scope, entered) = OF_THREAD.take().unwrap();
        assert_eq!(all.download.wait().unwrap().len(), 4096);
        drop((all.data, all.kernel, all.stream, scope, entered));
        return runtime.shutdown().unwrap();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// The runtime's own thread, which ran the callback, is the child's only one, and nothing else ends it.
#[test]
fn a_child_of_a_callback_ends_with_the_callback() {
    const NAME: &str = "a_child_of_a_callback_ends_with_the_callback";
    if role().is_some() {
        let stream = Stream::new(0).unwrap();
        let data = Arc::new(stream.upload(&[1u32; 64]).unwrap());
        for panics in [false, true] {
            let (sender, receiver) = channel();
            let (inner, target) = (stream.clone(), Arc::clone(&data));
            let forks = move || {
                if let Some(child) = go_on_in_both() {
                    return sender.send(child).unwrap();
                }
                let error = inner.fill(&*target, 2).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ForkedChild);
                drop((inner, target));
                if panics {
                    // Without a word.
                    std::panic::resume_unwind(Box::new(()));
                }
            };
            stream.add_callback(forks).unwrap();
            receiver.recv().unwrap().succeed();
        }
        return assert_eq!(stream.to_vec(&*data).unwrap(), [1; 64]);
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}

/// Each process is told by what it has opened itself, or been born with.
#[test]
fn children_of_children_work_until_one_of_their_parents_has_opened_a_device() {
    const NAME: &str = "children_of_children_work_until_one_of_their_parents_has_opened_a_device";
    if role().is_some() {
        let count = vkaccel::device_count();
        in_fork(|| {
            in_fork(compute);
            compute();
            let words = Buffer::from_slice(&[1u32]).unwrap();
            in_fork(|| {
                let told = || {
                    assert_eq!(vkaccel::device_count(), count);
                    for (call, error) in of_the_process() {
                        let kind = error.map(|error| error.kind());
                        assert_eq!(kind, Some(ErrorKind::ForkedChild), "{call}");
                    }
                };
                told();
                in_fork(told);
            });
            assert_eq!(words.to_vec().unwrap(), [1]);
        });
        return compute();
    }
    on_each_device(NAME, |test| in_own_process(test, NAME));
}
