//! What the memory allocator costs: its decisions alone, over memory that isn't there. Medians of
//! interleaved rounds.
//!
//! ```text
//! cargo run --release -p vkaccel-benches --bin allocator
//! ```

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use vkaccel::alloc::{AllocConf, Events, HistoryOptions, Simulator};

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 64 << 30;

/// How often each figure is measured; the median counts.
const ROUNDS: usize = 9;

/// A small generator of numbers that are random enough (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A size between 256 bytes and 16 MiB, each power of two as likely as the others.
    fn size(&mut self) -> u64 {
        let power = 8 + self.below(16);
        (1 << power) + self.below(1 << power)
    }
}

fn device(conf: &str) -> Simulator {
    Simulator::new(TOTAL, conf.parse().expect("settings"))
}

/// Nanoseconds of one of `count` equal pieces of work.
fn time(count: u32, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn place(device: &mut Simulator, id: u64, bytes: u64, stream: u64) {
    black_box(device.allocate(id, bytes, stream).expect("there is memory"));
}

fn free(device: &mut Simulator, id: u64) {
    device.free(id).expect("it is allocated");
}

/// Allocates and frees one block, over and over.
fn pairs(device: &mut Simulator, bytes: u64, recorded: bool) -> f64 {
    let count = 200_000;
    time(count, || {
        for _ in 0..count {
            place(device, 0, black_box(bytes), 0);
            if recorded {
                device.record(0, 1).expect("it is allocated");
            }
            free(device, 0);
        }
    })
}

/// Leaves holes of many sizes.
fn fragment(device: &mut Simulator) {
    let mut numbers = Numbers(7);
    for id in 1..=4000 {
        place(device, id, numbers.size() / 8 + 1, 0);
    }
    for id in (1..=4000).step_by(2) {
        free(device, id);
    }
}

/// Random blocks come and go. Nanoseconds an operation.
fn soup(device: &mut Simulator, slots: u64, count: u32) -> f64 {
    let mut numbers = Numbers(99);
    let mut used = vec![false; usize::try_from(slots).expect("few slots")];
    let steps: Vec<(u64, u64)> = (0..count)
        .map(|_| (numbers.below(slots), numbers.size()))
        .collect();
    time(count, || {
        for (slot, size) in steps {
            let used = &mut used[usize::try_from(slot).expect("few slots")];
            match *used {
                true => free(device, slot),
                false => place(device, slot, size, 0),
            }
            *used = !*used;
        }
    })
}

/// Threads with a stream each, at one allocator behind one lock. Nanoseconds an operation of one thread.
fn threads(count: u64) -> f64 {
    let device = Mutex::new(device(""));
    let pairs = 100_000;
    time(2 * pairs, || {
        std::thread::scope(|scope| {
            for stream in 0..count {
                let device = &device;
                scope.spawn(move || {
                    for _ in 0..pairs {
                        place(&mut device.lock().expect("no panic"), stream, 4096, stream);
                        free(&mut device.lock().expect("no panic"), stream);
                    }
                });
            }
        });
    })
}

fn statistics(as_map: bool) -> f64 {
    let mut device = device("");
    soup(&mut device, 100, 1000);
    let count = if as_map { 5_000 } else { 200_000 };
    time(count, || {
        for _ in 0..count {
            match as_map {
                true => drop(black_box(device.stats().to_map())),
                false => drop(black_box(device.stats())),
            }
        }
    })
}

fn snapshot() -> f64 {
    let mut device = device("");
    for id in 0..1000 {
        place(&mut device, id, 4096, 0);
    }
    let count = 200;
    time(count, || {
        for _ in 0..count {
            drop(black_box(device.snapshot()));
        }
    })
}

/// The name of a figure and how it is measured, in nanoseconds.
type Figure = (&'static str, fn() -> f64);

const FIGURES: &[Figure] = &[
    ("cached pair, 4 KiB", || pairs(&mut device(""), 4096, false)),
    ("cached pair, 3 MiB", || {
        pairs(&mut device(""), 3 * MIB, false)
    }),
    ("cached pair, fragmented", || {
        let mut device = device("");
        fragment(&mut device);
        pairs(&mut device, 4096, false)
    }),
    ("pair with a recorded stream", || {
        pairs(&mut device(""), 4096, true)
    }),
    ("pair with history", || {
        let mut device = device("");
        device.record_history(Some(HistoryOptions::default()));
        pairs(&mut device, 4096, false)
    }),
    ("pair with delayed events", || {
        let conf = AllocConf::default();
        let mut device = Simulator::new(TOTAL, conf).with_events(Events::Hold);
        place(&mut device, 1, 4096, 0);
        device.record(1, 1).expect("it is allocated");
        free(&mut device, 1);
        pairs(&mut device, 4096, false)
    }),
    ("soup, 100 blocks", || soup(&mut device(""), 200, 200_000)),
    ("soup, 1 000 blocks", || {
        soup(&mut device(""), 2000, 200_000)
    }),
    ("soup, 10 000 blocks", || {
        soup(&mut device(""), 20_000, 400_000)
    }),
    ("one thread, an operation", || threads(1)),
    ("two threads, an operation of each", || threads(2)),
    ("four threads, an operation of each", || threads(4)),
    ("statistics as a struct", || statistics(false)),
    ("statistics as a map", || statistics(true)),
    ("snapshot of 1 000 blocks", snapshot),
];

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let figures = FIGURES.iter().filter(|(name, _)| name.contains(&*filter));
    let figures: Vec<&Figure> = figures.collect();
    let mut times = vec![Vec::new(); figures.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), times) in figures.iter().zip(&mut times) {
            times.push(measure());
        }
    }
    for ((name, _), times) in figures.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{name:<36} {:>10.1} ns", times[ROUNDS / 2]);
    }
    if !filter.is_empty() {
        return;
    }
    for (name, slots) in [("1 000", 2000), ("10 000", 20_000)] {
        let mut device = device("");
        soup(&mut device, slots, 400_000);
        let stats = device.stats();
        let (reserved, requested) = (
            stats.reserved_bytes.all.peak,
            stats.requested_bytes.all.peak,
        );
        let thousandths = reserved * 1000 / requested;
        println!("peak reserved / requested, soup of {name} blocks: 0.001 * {thousandths}");
    }
}
