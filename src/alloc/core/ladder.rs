//! What is tried, step by step, for a request that nothing cached serves.

use super::allocate::Wanted;
use super::limits::Over;
use super::request::{Request, Stage};
use super::{Addressed, Allocation, Core, Segment, Source, Step};
use crate::alloc::block::Block;
use crate::alloc::size::{self, MIB};
use crate::alloc::snapshot::TraceAction;
use crate::alloc::stats::Pool;
use crate::error::{OutOfMemory, OutOfMemoryReason};

/// Why there is no new segment.
enum Refused<R> {
    Over(Over),
    TooMany,
    Driver(R),
}

impl<S: Addressed, T: Clone> Core<S, T> {
    /// Goes on with a request from where it is.
    pub(super) fn climb<R: Source<Segment = S>>(
        &mut self,
        request: &mut Request,
        wanted: &Wanted,
        source: &mut R,
        reached: &dyn Fn(&T) -> bool,
        released: &mut Vec<S>,
    ) -> Step<T, R::Refusal> {
        loop {
            let before = released.len();
            request.stage = match request.stage {
                Stage::Search | Stage::Collect => {
                    self.collect(released);
                    Stage::Ask
                }
                Stage::Spare => {
                    match self.spare(wanted.shelf, wanted.pool, wanted.size, released) {
                        true => Stage::AskAfterSpare,
                        false => Stage::Wait,
                    }
                }
                Stage::Wait => {
                    let tickets = self.empty_cache_begin();
                    request.stage = Stage::Flush;
                    if !tickets.is_empty() {
                        return self.pause(request, tickets);
                    }
                    Stage::Flush
                }
                Stage::Flush => {
                    self.poll(reached, released);
                    self.release_whole(released);
                    Stage::AskAgain
                }
                Stage::Ask | Stage::AskAfterSpare | Stage::AskAgain => {
                    if request.stage == Stage::AskAgain {
                        self.stats.num_alloc_retries += 1;
                    }
                    match self.extend(wanted, source) {
                        Ok(found) => {
                            request.stage = Stage::Search;
                            return Step::Done(found);
                        }
                        Err(refused) if request.stage == Stage::AskAgain => {
                            request.stage = Stage::Search;
                            return self.exhausted(request, wanted, refused);
                        }
                        Err(_) if request.stage == Stage::Ask => Stage::Spare,
                        Err(_) => Stage::Wait,
                    }
                }
            };
            if released.len() > before {
                // What is released is the driver's again only when the caller has dropped it.
                return self.pause(request, Vec::new());
            }
        }
    }

    fn pause<R>(&self, request: &mut Request, tickets: Vec<T>) -> Step<T, R> {
        request.seen = self.freed;
        Step::Wait(tickets)
    }

    /// Serves a request from a new segment.
    fn extend<R: Source<Segment = S>>(
        &mut self,
        wanted: &Wanted,
        source: &mut R,
    ) -> Result<Allocation<T>, Refused<R::Refusal>> {
        let bytes = self.segment_bytes(wanted);
        let reserved = self.reserved();
        if let Some(over) = self.allowed.over(reserved, bytes) {
            return Err(Refused::Over(over));
        }
        let (held, most) = (source.held(), self.allowed.limits.most_allocations);
        if held >= most {
            return Err(Refused::TooMany);
        }
        let more = self.grown(bytes, held);
        if more > bytes
            && self.allowed.over(reserved, more).is_none()
            && let Ok(handle) = source.create(more)
        {
            return Ok(self.adopt(handle, more, wanted));
        }
        let handle = source.create(bytes).map_err(Refused::Driver)?;
        Ok(self.adopt(handle, bytes, wanted))
    }

    /// The size of the segment for a block.
    fn segment_bytes(&self, wanted: &Wanted) -> u64 {
        if self.conf.segment_per_allocation() {
            return wanted.size;
        }
        // Never past the largest one, and never below the block, which is no larger than that.
        let largest = self.allowed.limits.largest_segment;
        size::segment(&self.conf, wanted.size).min(largest)
    }

    /// A larger size for a segment, where more than three quarters of the driver's allocations are in
    /// use: as large as those that are left must be for as many bytes as are reserved already.
    fn grown(&self, bytes: u64, held: u64) -> u64 {
        let limits = self.allowed.limits;
        let most = limits.most_allocations;
        if held < most - most / 4 || self.conf.segment_per_allocation() {
            return bytes;
        }
        let share = self.reserved() / (most - held).max(1);
        let mut size = share.next_multiple_of(2 * MIB).min(limits.largest_segment);
        if let Some(max_split) = self.conf.max_split_size() {
            // What is not split would be lost to smaller requests.
            size = size.min((max_split - 1) / (2 * MIB) * (2 * MIB));
        }
        size.max(bytes)
    }

    /// Takes a new segment in, and hands out its front.
    fn adopt(&mut self, handle: S, bytes: u64, wanted: &Wanted) -> Allocation<T> {
        let (pool, shelf) = (wanted.pool, wanted.shelf);
        let max_split = self.conf.max_split_size().unwrap_or(u64::MAX);
        let rank = self.segments.made;
        let first = self.blocks.add(Block::whole(bytes, rank, shelf, pool));
        let oversize = bytes >= max_split;
        let segment = self.segments.add(Segment {
            handle,
            rank,
            bytes,
            first,
            shelf,
            pool,
            oversize,
            context: self.journal.context(),
        });
        self.blocks[first].segment = segment;
        let shelf = &mut self.shelves[shelf];
        shelf.segments += 1;
        self.pools[shelf.pool].reserved += bytes;
        self.stats.segment.increase(pool, 1);
        self.stats.reserved_bytes.increase(pool, bytes);
        if oversize {
            self.stats.oversize_segments.increase(1);
        }
        self.stats.num_device_alloc += 1;
        self.note_segment(TraceAction::SegmentAlloc, segment);
        self.hand_out_front(first, wanted)
    }

    #[cold]
    fn exhausted<R>(
        &self,
        request: &mut Request,
        wanted: &Wanted,
        refused: Refused<R>,
    ) -> Step<T, R> {
        let reserved = self.reserved();
        let (total, segment) = (self.allowed.limits.total, self.segment_bytes(wanted));
        let mut refusal = None;
        request.over_cap = matches!(refused, Refused::Over(Over::Cap));
        let reason = match refused {
            _ if wanted.size > total => OutOfMemoryReason::NeverFits,
            Refused::Over(_) => OutOfMemoryReason::OverLimit,
            Refused::TooMany => OutOfMemoryReason::TooManyAllocations,
            Refused::Driver(driver) => {
                refusal = Some(driver);
                match segment > total.saturating_sub(reserved) {
                    true => OutOfMemoryReason::FullNow,
                    false => OutOfMemoryReason::RefusedByDriver,
                }
            }
        };
        let figures = Box::new(self.figures(reason, wanted.bytes));
        Step::Exhausted { figures, refusal }
    }

    #[cold]
    pub(super) fn never_fits<R>(&self, request: &Request) -> Step<T, R> {
        Step::Exhausted {
            figures: Box::new(self.figures(OutOfMemoryReason::NeverFits, request.bytes)),
            refusal: None,
        }
    }

    /// Ends a request that was not served: this is the error that the caller gets.
    pub(crate) fn give_up(&mut self, request: &Request) {
        // As in PyTorch, where such sizes are found before anything is counted.
        if request.bytes < size::ABSURD {
            self.stats.num_ooms += 1;
        }
        if request.over_cap {
            self.stats.num_oom_rejections += 1;
        }
        self.note_oom(request);
        self.shelves.forget_unused();
        self.pools.forget_unused();
    }

    /// The figures of the allocator, with the device's own free memory as it would be if nobody else
    /// used the device.
    pub(crate) fn figures(&self, reason: OutOfMemoryReason, requested: u64) -> OutOfMemory {
        let mut figures = OutOfMemory::new(reason, requested);
        let reserved = self.reserved();
        figures.total = self.allowed.limits.total;
        figures.free = figures.total.saturating_sub(reserved);
        figures.allocated = self.stats.allocated_bytes.all.current;
        figures.reserved = reserved;
        figures.cached = reserved - self.stats.active_bytes.all.current;
        figures.largest_free_block = self.largest_free_block();
        figures.limit = self.allowed.limit();
        figures
    }

    /// The largest block that is free, of any stream.
    pub(crate) fn largest_free_block(&self) -> u64 {
        let pools = [Pool::SmallPool, Pool::LargePool];
        let lists = self
            .shelves
            .iter()
            .flat_map(|shelf| pools.map(|pool| shelf.list(pool)));
        lists
            .filter_map(|list| list.largest())
            .map(|entry| entry.size)
            .max()
            .unwrap_or(0)
    }
}
