//! What the memory allocator costs: its decisions alone, over memory that isn't there, and as buffers of
//! the first device; beside gpu-allocator and AMD's allocator (vk-mem) on that device. Medians of
//! interleaved rounds, in nanoseconds.
//!
//! ```text
//! cargo run --release -p vkaccel-benches --bin allocator [FILTER]
//! ```

mod clock;
mod peers;

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use peers::{Device, GpuAllocator, VkMem};
use vkaccel::Buffer;
use vkaccel::alloc::{AllocConf, Events, HistoryOptions, Simulator};
use vkaccel_benches::Numbers;

const MIB: u64 = 1 << 20;
const TOTAL: u64 = 64 << 30;

/// How often each figure is measured; the median counts.
const ROUNDS: usize = 9;

/// The blocks of the soup that all allocators get.
const SLOTS: usize = 1000;

/// Its sizes: from 256 bytes to 16 MiB.
const POWERS: u64 = 16;

/// An allocator, with blocks called by number.
pub trait Memory {
    /// Allocates a block.
    fn place(&mut self, slot: usize, bytes: u64);
    /// Gives it back.
    fn free(&mut self, slot: usize);
    /// The bytes that are held from the device.
    fn reserved(&self) -> u64;
}

impl Memory for Simulator {
    fn place(&mut self, slot: usize, bytes: u64) {
        black_box(
            self.allocate(slot as u64, bytes, 0)
                .expect("there is memory"),
        );
    }

    fn free(&mut self, slot: usize) {
        Simulator::free(self, slot as u64).expect("it is allocated");
    }

    fn reserved(&self) -> u64 {
        self.stats().reserved_bytes.all.current
    }
}

/// Buffers of the first device.
struct Buffers(Vec<Option<Buffer<u8>>>);

impl Memory for Buffers {
    fn place(&mut self, slot: usize, bytes: u64) {
        let bytes = usize::try_from(bytes).expect("it fits the machine");
        self.0[slot] = Some(Buffer::uninit(bytes).expect("there is memory"));
    }

    fn free(&mut self, slot: usize) {
        self.0[slot] = None;
    }

    fn reserved(&self) -> u64 {
        vkaccel::memory_reserved(0).expect("the device is open")
    }
}

fn device(conf: &str) -> Simulator {
    Simulator::new(TOTAL, conf.parse().expect("settings"))
}

/// Nanoseconds of processor time for one of `count` equal pieces of work: what else runs on the machine
/// is left out, as far as it leaves caches alone.
fn time(count: u32, work: impl FnOnce()) -> f64 {
    let start = clock::of_thread();
    work();
    (clock::of_thread() - start).as_secs_f64() * 1e9 / f64::from(count)
}

/// Nanoseconds by the clock on the wall.
fn wall(count: u32, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

/// Allocates and frees one block, over and over.
fn pairs(memory: &mut impl Memory, bytes: u64) -> f64 {
    let count = 200_000;
    time(count, || {
        for _ in 0..count {
            memory.place(0, black_box(bytes));
            memory.free(0);
        }
    })
}

/// The same, where another stream uses each block.
fn recorded_pairs(device: &mut Simulator) -> f64 {
    let count = 200_000;
    time(count, || {
        for _ in 0..count {
            device.place(0, black_box(4096));
            device.record(0, 1).expect("it is allocated");
            Memory::free(device, 0);
        }
    })
}

/// The same as `pairs`, with the newest operations recorded.
fn with_history(entries: usize) -> f64 {
    let mut device = device("");
    let options = HistoryOptions::default().with_max_entries(entries);
    device.record_history(Some(options));
    pairs(&mut device, 4096)
}

/// Leaves holes of many sizes.
fn fragmented(mut memory: impl Memory) -> impl Memory {
    let mut numbers = Numbers(7);
    for slot in 1..SLOTS {
        memory.place(slot, numbers.size(POWERS) / 8 + 1);
    }
    for slot in (1..SLOTS).step_by(2) {
        memory.free(slot);
    }
    memory
}

/// Random blocks come and go: what is done to which slot.
fn steps(slots: usize, count: u32) -> Vec<(usize, u64)> {
    let mut numbers = Numbers(99);
    let slots = slots as u64;
    let step = |_| {
        let slot = usize::try_from(numbers.below(slots)).expect("few slots");
        (slot, numbers.size(POWERS))
    };
    (0..count).map(step).collect()
}

/// Random blocks come and go, half of the slots being in use. Nanoseconds an operation.
fn soup(memory: &mut impl Memory, slots: usize) -> f64 {
    let count = 100_000;
    let steps = steps(slots, count);
    let mut used = vec![false; slots];
    time(count, || {
        for (slot, size) in steps {
            match used[slot] {
                true => memory.free(slot),
                false => memory.place(slot, size),
            }
            used[slot] = !used[slot];
        }
    })
}

/// The most bytes held by the soup over the most asked for.
fn overhead(memory: &mut impl Memory) -> f64 {
    let mut used = [0; SLOTS];
    let (mut asked, mut most_asked, mut most_held) = (0, 0, 0);
    for (slot, size) in steps(SLOTS, 50_000) {
        if used[slot] > 0 {
            memory.free(slot);
            asked -= used[slot];
            used[slot] = 0;
        } else {
            memory.place(slot, size);
            used[slot] = size;
            asked += size;
        }
        most_asked = most_asked.max(asked);
        most_held = most_held.max(memory.reserved());
    }
    (0..SLOTS)
        .filter(|slot| used[*slot] > 0)
        .for_each(|slot| memory.free(slot));
    let thousandths = u32::try_from(most_held * 1000 / most_asked).expect("a small ratio");
    f64::from(thousandths) / 1000.0
}

/// Threads with a stream each, at one allocator behind one lock. Nanoseconds an operation of one thread.
fn threads(count: u64) -> f64 {
    let device = Mutex::new(device(""));
    let pairs = 100_000;
    wall(2 * pairs, || {
        std::thread::scope(|scope| {
            for stream in 0..count {
                let device = &device;
                scope.spawn(move || {
                    for _ in 0..pairs {
                        let placed = device
                            .lock()
                            .expect("no panic")
                            .allocate(stream, 4096, stream);
                        black_box(placed.expect("there is memory"));
                        let freed = device.lock().expect("no panic").free(stream);
                        freed.expect("it is allocated");
                    }
                });
            }
        });
    })
}

fn statistics(as_map: bool) -> f64 {
    let mut device = device("");
    soup(&mut device, 100);
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
    (0..1000).for_each(|slot| device.place(slot, 4096));
    let count = 200;
    time(count, || {
        for _ in 0..count {
            drop(black_box(device.snapshot()));
        }
    })
}

/// The name of a figure and how it is measured.
type Figure<'a> = (&'static str, Box<dyn Fn() -> f64 + 'a>);

/// The figures of the allocator alone.
fn own_figures<'a>() -> Vec<Figure<'a>> {
    vec![
        ("cached pair", Box::new(|| pairs(&mut device(""), 4096))),
        (
            "cached pair of 3 MiB",
            Box::new(|| pairs(&mut device(""), 3 * MIB)),
        ),
        (
            "cached pair among holes",
            Box::new(|| pairs(&mut fragmented(device("")), 4096)),
        ),
        (
            "pair with a recorded stream",
            Box::new(|| recorded_pairs(&mut device(""))),
        ),
        (
            "pair while others are pending",
            Box::new(|| {
                let conf = AllocConf::default();
                let mut device = Simulator::new(TOTAL, conf).with_events(Events::Hold);
                device.place(1, 4096);
                device.record(1, 1).expect("it is allocated");
                Memory::free(&mut device, 1);
                pairs(&mut device, 4096)
            }),
        ),
        (
            "pair with a history of 100 000 entries",
            Box::new(|| with_history(100_000)),
        ),
        (
            "pair with a history of 1 000 entries",
            Box::new(|| with_history(1000)),
        ),
        (
            "soup of 1 000 slots, an operation",
            Box::new(|| soup(&mut device(""), SLOTS)),
        ),
        (
            "soup of 20 000 slots, an operation",
            Box::new(|| soup(&mut device(""), 20 * SLOTS)),
        ),
        ("one thread, an operation", Box::new(|| threads(1))),
        ("two threads, an operation of each", Box::new(|| threads(2))),
        (
            "four threads, an operation of each",
            Box::new(|| threads(4)),
        ),
        ("statistics as a struct", Box::new(|| statistics(false))),
        ("statistics as a map", Box::new(|| statistics(true))),
        ("snapshot of 1 000 blocks", Box::new(snapshot)),
    ]
}

/// The figures of buffers and of peers on the device.
fn device_figures(device: &Device) -> Vec<Figure<'_>> {
    let buffers = || Buffers((0..20 * SLOTS).map(|_| None).collect());
    let gpu = || GpuAllocator::new(device, SLOTS + 1);
    let vma = || VkMem::new(device, SLOTS + 1);
    vec![
        (
            "buffers: cached pair",
            Box::new(move || pairs(&mut buffers(), 4096)),
        ),
        (
            "buffers: cached pair among holes",
            Box::new(move || pairs(&mut fragmented(buffers()), 4096)),
        ),
        (
            "buffers: soup, an operation",
            Box::new(move || soup(&mut buffers(), SLOTS)),
        ),
        (
            "gpu-allocator: cached pair",
            Box::new(move || pairs(&mut kept(gpu()), 4096)),
        ),
        (
            "gpu-allocator: pair among holes",
            Box::new(move || pairs(&mut fragmented(gpu()), 4096)),
        ),
        (
            "gpu-allocator: soup, an operation",
            Box::new(move || soup(&mut kept(gpu()), SLOTS)),
        ),
        (
            "vk-mem: cached pair",
            Box::new(move || pairs(&mut kept(vma()), 4096)),
        ),
        (
            "vk-mem: pair among holes",
            Box::new(move || pairs(&mut fragmented(vma()), 4096)),
        ),
        (
            "vk-mem: soup, an operation",
            Box::new(move || soup(&mut kept(vma()), SLOTS)),
        ),
    ]
}

/// An allocator with a block that stays, so that it keeps the memory that the others come from.
fn kept(mut memory: impl Memory) -> impl Memory {
    memory.place(SLOTS, 4096);
    memory
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let device = Device::open().expect("a device");
    let mut figures = own_figures();
    figures.extend(device_figures(&device));
    figures.retain(|(name, _)| name.contains(&*filter));
    let mut times = vec![Vec::new(); figures.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), times) in figures.iter().zip(&mut times) {
            times.push(measure());
        }
    }
    for ((name, _), times) in figures.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!(
            "{name:<40} {:>10.1} (least {:.1})",
            times[ROUNDS / 2],
            times[0]
        );
    }
    if filter.is_empty() {
        println!("peak held / peak asked for, soup of 1 000 slots");
        println!("  this allocator {:.3}", overhead(&mut self::device("")));
        println!(
            "  gpu-allocator  {:.3}",
            overhead(&mut GpuAllocator::new(&device, SLOTS))
        );
        println!(
            "  vk-mem         {:.3}",
            overhead(&mut VkMem::new(&device, SLOTS))
        );
    }
}
