//! Promises of the hot path: what a program does over and over takes no memory from the allocator of its
//! thread, once it has done it a few times.
//!
//! # Safety
//!
//! The allocator here is the system's, which is called as it was called itself; it counts besides.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use support::kernels::kernel;
use support::on_each_device;
use vkaccel::{Buffer, Event, Graph, Grid, Kernel, Stream};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // A thread that is ending counts no more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: see the top of the file.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as this was called.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as this was called.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as this was called.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as this was called.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many rounds in a row go by without an allocation, and how many it may take until they do: queues
/// and lists grow to what the work needs, and how much is in flight at once is not the same each time.
const QUIET: u32 = 5;
const ROUNDS: u32 = 300;

/// Sees that `work` gets to run without allocations on this thread.
#[track_caller]
fn settles(what: &str, mut work: impl FnMut()) {
    let mut quiet = 0;
    let mut counts = Vec::with_capacity(ROUNDS as usize);
    while quiet < QUIET {
        let before = ALLOCATIONS.get();
        work();
        let count = ALLOCATIONS.get() - before;
        counts.push(count);
        quiet = if count == 0 { quiet + 1 } else { 0 };
        assert!(
            counts.len() < ROUNDS as usize,
            "{what} goes on allocating: {counts:?}"
        );
    }
}

/// A stream with two buffers and kernels that go from one to the other.
struct Bench {
    stream: Stream,
    kernels: [(&'static str, Kernel); 2],
    buffers: [Buffer<u32>; 2],
}

const WORDS: usize = 1000;

impl Bench {
    fn new() -> Self {
        let stream = Stream::new(0).unwrap();
        Self {
            kernels: ["affine_map", "affine_at"].map(|name| (name, kernel(name))),
            buffers: [(); 2].map(|()| stream.zeroed(WORDS).unwrap()),
            stream,
        }
    }

    fn launch(&self, kernel: &Kernel, round: u32) {
        let [a, b] = &self.buffers;
        let (from, to) = if round.is_multiple_of(2) {
            (a, b)
        } else {
            (b, a)
        };
        let args = (from, to, 3, round, WORDS);
        let grid = Grid::elements(WORDS);
        self.stream.launch(kernel, grid, args).unwrap();
    }
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}

#[test]
fn launches_allocate_nothing_alone_and_in_their_hundreds() {
    on_each_device("launches_allocate_nothing", |_| {
        let bench = Bench::new();
        for (name, kernel) in &bench.kernels {
            for count in [1, 2, 600] {
                settles(&format!("{name}, {count} launches and a wait"), || {
                    (0..count).for_each(|round| bench.launch(kernel, round));
                    bench.stream.synchronize().unwrap();
                });
            }
            settles(&format!("{name}, launches on the current stream"), || {
                let _entered = bench.stream.enter().unwrap();
                let [a, b] = &bench.buffers;
                let grid = Grid::elements(WORDS);
                (0..10).for_each(|round| kernel.launch(grid, (a, b, 3, round, WORDS)).unwrap());
                bench.stream.synchronize().unwrap();
            });
            settles(&format!("{name}, independent launches"), || {
                let pieces = |round: usize| {
                    [0, 1].map(|at: usize| {
                        let start = 64 * round;
                        bench.buffers[at].view(start..start + 64).unwrap()
                    })
                };
                let launch = |round| {
                    let [from, to] = pieces(round);
                    let args = (from, to, 3, 1, 64);
                    bench.stream.launch(kernel, Grid::groups(1), args)
                };
                bench
                    .stream
                    .concurrent(|| (0..10).try_for_each(launch))
                    .unwrap();
                bench.stream.synchronize().unwrap();
            });
            settles(&format!("{name}, a flush behind each launch"), || {
                for round in 0..20 {
                    bench.launch(kernel, round);
                    bench.stream.flush().unwrap();
                }
                bench.stream.synchronize().unwrap();
            });
        }
    });
}

#[test]
fn fills_and_copies_on_the_device_allocate_nothing() {
    on_each_device("fills_and_copies_on_the_device", |_| {
        let bench = Bench::new();
        let [a, b] = &bench.buffers;
        settles("fills", || {
            (0..20).for_each(|word| bench.stream.fill(a, word).unwrap());
            bench.stream.synchronize().unwrap();
        });
        settles("copies", || {
            for _ in 0..20 {
                bench.stream.copy(a, b).unwrap();
                let part = b.view(100..200).unwrap();
                bench.stream.copy(part, a.view(700..800).unwrap()).unwrap();
            }
            bench.stream.synchronize().unwrap();
        });
        settles("a mix of all", || {
            for round in 0..20 {
                for (_, kernel) in &bench.kernels {
                    bench.stream.fill(a, round).unwrap();
                    bench.launch(kernel, round);
                    bench.stream.copy(b, a).unwrap();
                }
            }
            bench.stream.synchronize().unwrap();
        });
    });
}

#[test]
fn small_uploads_and_reads_allocate_nothing() {
    on_each_device("small_uploads_and_reads_allocate_nothing", |_| {
        let bench = Bench::new();
        let [a, b] = &bench.buffers;
        let (_, kernel) = &bench.kernels[0];
        let mut words = [7u32; WORDS];
        settles("an upload, a launch and a read", || {
            bench.stream.write(a, &words).unwrap();
            bench.launch(kernel, 0);
            bench.stream.read(b, &mut words).unwrap();
        });
    });
}

#[test]
fn events_queries_and_waits_allocate_nothing() {
    on_each_device("events_queries_and_waits_allocate_nothing", |_| {
        let bench = Bench::new();
        let (_, kernel) = &bench.kernels[0];
        settles("queries until it is over", || {
            bench.launch(kernel, 0);
            while !bench.stream.query().unwrap() {
                std::thread::yield_now();
            }
        });
        let event = Event::new();
        settles("an event, and the host waits for it", || {
            for round in 0..10 {
                bench.launch(kernel, round);
                event.record(&bench.stream).unwrap();
            }
            event.synchronize().unwrap();
            assert!(event.query().unwrap());
        });
        let other = Stream::new(0).unwrap();
        settles("an event, and another stream waits for it", || {
            bench.launch(kernel, 0);
            event.record(&bench.stream).unwrap();
            event.wait(&other).unwrap();
            other.synchronize().unwrap();
        });
    });
}

#[test]
fn replays_allocate_nothing() {
    on_each_device("replays_allocate_nothing", |_| {
        let bench = Bench::new();
        for (name, kernel) in &bench.kernels {
            let mut graph = Graph::new();
            let capture = || {
                (0..5).for_each(|round| bench.launch(kernel, round));
                Ok(())
            };
            graph.capture_on(&bench.stream, capture).unwrap();
            settles(&format!("{name}, replays"), || {
                (0..5).for_each(|_| bench.stream.replay(&graph).unwrap());
                bench.stream.synchronize().unwrap();
            });
        }
    });
}
