//! Many requests at once, each between two steps while the others go on, as threads do at one lock.

use super::tests::Device;
use super::{Addressed, Allocation, Core, Request, Step};
use crate::alloc::block::State;
use crate::alloc::history::Context;
use crate::alloc::ids::{PoolId, StreamKey};
use crate::alloc::size::MIB;
use crate::alloc::stats::MemoryStats;

/// A small generator of numbers that are random enough (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % limit
    }

    fn size(&mut self) -> u64 {
        let power = self.below(25);
        (1 << power) + self.below(1 << power)
    }
}

/// What one thread is about.
struct Thread {
    stream: u64,
    request: Option<Request>,
    /// Tickets that it waits for.
    waits: Vec<u64>,
    blocks: Vec<Allocation<u64>>,
}

/// Panics unless blocks tile their segments, no two free ones are neighbours, and every level is what
/// a count of the blocks gives.
fn check<S: Addressed, T: Clone>(core: &Core<S, T>) {
    let mut counted = MemoryStats::new();
    let mut largest = 0;
    let max_split = core.stats().max_split_size.unwrap_or(u64::MAX);
    for (segment, blocks) in core.segments() {
        let pool = segment.pool;
        counted.segment.increase(pool, 1);
        counted.reserved_bytes.increase(pool, segment.bytes);
        if segment.bytes >= max_split {
            counted.oversize_segments.increase(1);
        }
        let blocks: Vec<_> = blocks.collect();
        let mut end = 0;
        let mut was_free = false;
        for block in &blocks {
            let is_free = block.state == State::Free;
            assert_eq!(block.offset, end, "blocks overlap or leave a gap");
            assert!(block.size > 0 && !(is_free && was_free));
            (end, was_free) = (end + block.size, is_free);
            match block.state {
                State::Free => {
                    assert_eq!(block.requested, 0);
                    largest = block.size.max(largest);
                    if blocks.len() > 1 {
                        counted.inactive_split.increase(pool, 1);
                        counted.inactive_split_bytes.increase(pool, block.size);
                    }
                    continue;
                }
                State::Allocated => {
                    counted.allocated.increase(pool, 1);
                    counted.allocated_bytes.increase(pool, block.size);
                    if block.size >= max_split {
                        counted.oversize_allocations.increase(1);
                    }
                }
                State::Pending => {}
            }
            counted.active.increase(pool, 1);
            counted.active_bytes.increase(pool, block.size);
            counted.requested_bytes.increase(pool, block.requested);
        }
        assert_eq!(end, segment.bytes);
    }
    assert_eq!(core.largest_free_block(), largest);
    for (found, counted) in core.stats().rows().into_iter().zip(counted.rows()) {
        let (name, _, found) = found;
        assert_eq!(found.current, counted.2.current, "{name}");
        assert_eq!(found.allocated - found.freed, found.current, "{name}");
        assert!(found.peak >= found.current, "{name}");
    }
}

/// A thread does what it can do next.
fn step(device: &mut Device, thread: &mut Thread, numbers: &mut Numbers, recorded: &mut u64) {
    if thread.request.is_none() && (numbers.below(5) < 2 || thread.blocks.is_empty()) {
        let pool = (numbers.below(10) == 0).then_some(PoolId(0, 1));
        let request = Request::new(numbers.size(), StreamKey(thread.stream));
        thread.request = Some(request.in_pool(pool));
    }
    if let Some(request) = &mut thread.request {
        // It waits without the lock: until then others go on.
        for ticket in thread.waits.drain(..) {
            device.reached = device.reached.max(ticket);
        }
        match device.step(request) {
            Step::Done(found) => {
                if numbers.below(4) == 0 {
                    device.core.record(found.block, StreamKey(numbers.below(3)));
                }
                thread.blocks.push(found);
                thread.request = None;
            }
            Step::Wait(tickets) => {
                thread.waits = tickets;
                device.released.clear();
            }
            Step::Exhausted { .. } if numbers.below(2) == 0 => {}
            Step::Exhausted { .. } => {
                device.core.give_up(request);
                thread.request = None;
            }
        }
        return;
    }
    let place = numbers.below(thread.blocks.len() as u64);
    let found = thread.blocks.swap_remove(usize::try_from(place).unwrap());
    let uses = device.core.recorded(found.block).to_vec();
    let uses = uses.into_iter().map(|stream| {
        *recorded += 1;
        (stream, *recorded)
    });
    let uses: Vec<_> = uses.collect();
    let context = Context::default();
    let mark = *recorded;
    device
        .core
        .free(found.block, mark, uses, &context, &mut device.released);
    device.released.clear();
}

/// Four threads for a while, with these settings.
fn run(conf: &str, seed: u64) {
    let mut device = Device::new(48 * MIB, conf);
    let mut numbers = Numbers(seed);
    let mut recorded = 0;
    let mut threads: Vec<Thread> = (0..4)
        .map(|thread| Thread {
            stream: thread % 3,
            request: None,
            waits: Vec::new(),
            blocks: Vec::new(),
        })
        .collect();
    for round in 0..4000 {
        let thread = usize::try_from(numbers.below(4)).unwrap();
        step(
            &mut device,
            &mut threads[thread],
            &mut numbers,
            &mut recorded,
        );
        if numbers.below(20) == 0 {
            device.reached += numbers.below(recorded - device.reached + 1);
        }
        if round % 3 == 0 {
            check(&device.core);
        }
    }
    let stats = *device.core.stats();
    assert!(
        stats.num_ooms > 0 && stats.num_alloc_retries >= stats.num_ooms,
        "{conf}"
    );
    device.reached = recorded;
    for found in threads.into_iter().flat_map(|thread| thread.blocks) {
        let context = Context::default();
        device
            .core
            .free(found.block, 0, Vec::new(), &context, &mut device.released);
    }
    device.core.empty_cache_begin();
    let context = Context::default();
    let mut released = Vec::new();
    device
        .core
        .empty_cache_end(&|_| true, &context, &mut released);
    drop(released);
    device.released.clear();
    check(&device.core);
    assert_eq!(device.core.stats().segment.all.current, 0);
    assert_eq!(device.core.stats().segment.small_pool.current, 0);
    assert_eq!(device.driver.used.get(), 0);
}

#[test]
fn requests_that_interleave_lose_no_byte_and_miscount_nothing() {
    for (seed, conf) in (1..).zip([
        "",
        "cross_stream_reuse:True",
        "max_split_size_mb:20",
        "garbage_collection_threshold:0.5,per_process_memory_fraction:0.8",
        "segment_per_allocation:True",
        "roundup_power2_divisions:2,cross_stream_reuse:True",
    ]) {
        run(conf, seed);
    }
}
