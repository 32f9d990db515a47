//! Rounds of everything that comes and goes leave nothing behind in the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::fs;

use support::kernels::chosen as kernel;
use support::on_each_device_with;
use vkaccel::{
    Buffer, CaptureErrorMode, Event, Generator, Graph, Grid, Kernel, MemPool, PinnedBuffer,
    Runtime, Stream, empty_host_cache, memory, synchronize,
};

/// How many rounds there are before the first look, and between that and the second one.
const ROUNDS: usize = 300;
/// Less than one kibibyte a round is what the C library's heap may move by.
const GROWTH_BYTES: usize = ROUNDS << 10;

/// What the process has: threads, open files, and bytes of memory.
#[derive(Debug)]
struct Holds {
    threads: usize,
    files: usize,
    bytes: usize,
}

impl Holds {
    fn now() -> Self {
        let count = |folder| fs::read_dir(folder).unwrap().count();
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        let pages = pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap();
        Self {
            threads: count("/proc/self/task"),
            files: count("/proc/self/fd"),
            bytes: pages * 4096,
        }
    }
}

struct Kit {
    stream: Stream,
    generator: Generator,
    affine: Kernel,
    words: Buffer<u32>,
    pinned: PinnedBuffer<u32>,
}

impl Kit {
    /// A stream, a timed event, a graph with memory of its own and two replays, a callback and a pool.
    fn round(&self) -> vkaccel::Result<()> {
        let stream = &self.stream;
        let side = Stream::new(0)?;
        let timed = Event::with_timing();
        timed.record(&side)?;
        let mut graph = Graph::builder()
            .capture_error_mode(CaptureErrorMode::Relaxed)
            .build();
        graph.capture_begin_on(stream)?;
        side.wait_stream(stream)?;
        let made = side.zeroed::<u32>(1000)?;
        side.fill_bits(&self.generator, &made)?;
        stream.wait_stream(&side)?;
        stream.write(&self.words, &[3; 1000])?;
        stream.launch(&self.affine, Grid::elements(1000), (&made, 2, 1, 1000))?;
        stream.copy_to_pinned(&made, &self.pinned)?;
        graph.capture_end()?;
        stream.replay(&graph)?;
        side.replay(&graph)?;
        timed.record(&side)?;
        side.add_callback(|| ())?;
        let pool = MemPool::new(0)?;
        pool.scope(|| side.zeroed::<u32>(100)).map(drop)
    }

    fn rounds(&self) -> Holds {
        for _ in 0..ROUNDS / 25 {
            (0..25).try_for_each(|_| self.round()).unwrap();
            synchronize(0).unwrap();
            memory::empty_cache().unwrap();
            empty_host_cache().unwrap();
        }
        Holds::now()
    }
}

#[test]
fn what_comes_and_goes_leaves_no_memory_threads_or_files() {
    // A layer keeps books of its own.
    on_each_device_with("what_comes_and_goes", Runtime::builder, |_| {
        let stream = Stream::new(0).unwrap();
        let kit = Kit {
            generator: Generator::new(1, 0).unwrap(),
            affine: kernel("affine"),
            words: stream.zeroed(1000).unwrap(),
            pinned: PinnedBuffer::new(1000).unwrap(),
            stream,
        };
        // A driver's heap grows to what it needs at once.
        kit.rounds();
        let first = kit.rounds();
        let (allocated, reserved) = memory_figures();
        let second = kit.rounds();
        assert_eq!(memory_figures(), (allocated, reserved));
        assert_eq!(second.threads, first.threads);
        assert_eq!(second.files, first.files);
        let grown = second.bytes.saturating_sub(first.bytes);
        assert!(grown < GROWTH_BYTES, "{first:?} {second:?}");
    });
}

/// The bytes that are handed out, and those that are held.
fn memory_figures() -> (u64, u64) {
    (
        memory::memory_allocated(0).unwrap(),
        memory::memory_reserved(0).unwrap(),
    )
}
