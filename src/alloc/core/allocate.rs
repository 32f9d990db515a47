//! Serving a request from what is cached, and cutting blocks.

use super::request::{Request, Stage};
use super::shelves::COMMON;
use super::{Addressed, Allocation, Core, Source, Step};
use crate::alloc::block::{BlockId, State};
use crate::alloc::conf::AllocConf;
use crate::alloc::free_list::Entry;
use crate::alloc::size;
use crate::alloc::snapshot::TraceAction;
use crate::alloc::stats::Pool;

/// A request in the allocator's own terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) bytes: u64,
    /// The size of the block.
    pub(super) size: u64,
    pub(super) pool: Pool,
    pub(super) shelf: u32,
}

impl<S: Addressed, T: Clone> Core<S, T> {
    /// Serves a request, or takes the next step towards it.
    ///
    /// Segments that go back to the driver are added to `released`, to be dropped without the lock.
    /// `reached` says whether a ticket's commands have finished.
    pub(crate) fn allocate<R: Source<Segment = S>>(
        &mut self,
        request: &mut Request,
        source: &mut R,
        reached: &dyn Fn(&T) -> bool,
        released: &mut Vec<S>,
    ) -> Step<T, R::Refusal> {
        self.journal.begin(&request.context);
        if request.bytes > self.largest_request() {
            return self.never_fits(request);
        }
        if request.stage == Stage::Search {
            self.poll(reached, released);
        }
        let wanted = self.wanted(request);
        if request.stage == Stage::Search {
            self.count_search(&wanted);
            if let Some(found) = self.cached(&wanted) {
                return Step::Done(found);
            }
            if let Some(found) = self.reuse(&wanted) {
                return Step::Done(found);
            }
            if self.inherit(&wanted, reached)
                && let Some(found) = self.cached(&wanted)
            {
                return Step::Done(found);
            }
            request.stage = Stage::Collect;
        } else if request.seen != self.freed
            && let Some(found) = self.cached(&wanted)
        {
            // While the lock was given away, someone freed what fits.
            request.stage = Stage::Search;
            return Step::Done(found);
        }
        self.climb(request, &wanted, source, reached, released)
    }

    fn largest_request(&self) -> u64 {
        let largest = self.allowed.limits.largest_segment;
        largest.min(size::ABSURD - 1)
    }

    fn wanted(&mut self, request: &Request) -> Wanted {
        let size = size::rounded(&self.conf, request.bytes);
        let pool = match request.pool {
            None => COMMON,
            Some(id) => self.pools.place(id),
        };
        Wanted {
            bytes: request.bytes,
            // What fits the largest segment exactly is not rounded past it.
            size: size.min(self.allowed.limits.largest_segment),
            pool: size::pool(size),
            shelf: self.shelves.place(pool, request.stream),
        }
    }

    fn count_search(&mut self, wanted: &Wanted) {
        if self.collects() {
            let place = self.shelves[wanted.shelf].pool;
            self.pools[place].count_search(wanted.pool);
        }
    }

    /// A block from what is cached.
    fn cached(&mut self, wanted: &Wanted) -> Option<Allocation<T>> {
        if self.conf.segment_per_allocation() {
            return None;
        }
        let pool = wanted.pool;
        let list = self.shelves[wanted.shelf].list(pool);
        let (place, entry) = list.fit(wanted.size)?;
        if !takes(&self.conf, wanted.size, entry.size) {
            return None;
        }
        let id = entry.block;
        let was_split = self.blocks[id].is_split();
        if self.splits(wanted, entry.size) {
            let rest = self.cut_off(id, wanted.size);
            let entry = Entry {
                size: entry.size - wanted.size,
                offset: entry.offset + wanted.size,
                block: rest,
                ..entry
            };
            let shelf = &mut self.shelves[wanted.shelf];
            shelf.list_mut(pool).replace_at(place, entry);
            self.blocks[rest].freed_at = self.pools[shelf.pool].searches(pool);
            let bytes = &mut self.stats.inactive_split_bytes;
            if was_split {
                bytes.decrease(pool, wanted.size);
            } else {
                bytes.increase(pool, entry.size);
                self.stats.inactive_split.increase(pool, 1);
            }
        } else {
            let list = self.shelves[wanted.shelf].list_mut(pool);
            list.remove_at(place);
            if was_split {
                self.stats.inactive_split.decrease(pool, 1);
                self.stats.inactive_split_bytes.decrease(pool, entry.size);
            }
        }
        Some(self.give(id, wanted))
    }

    /// Hands out the front of a segment that was just made.
    pub(super) fn hand_out_front(&mut self, id: BlockId, wanted: &Wanted) -> Allocation<T> {
        let size = self.blocks[id].size;
        if self.splits(wanted, size) {
            let rest = self.cut_off(id, wanted.size);
            self.shelve(rest);
            let pool = wanted.pool;
            self.stats.inactive_split.increase(pool, 1);
            let bytes = &mut self.stats.inactive_split_bytes;
            bytes.increase(pool, size - wanted.size);
        }
        self.give(id, wanted)
    }

    /// Whether a block of this size is cut for a request.
    pub(super) fn splits(&self, wanted: &Wanted, size: u64) -> bool {
        let max_split = self.conf.max_split_size().unwrap_or(u64::MAX);
        !self.conf.segment_per_allocation()
            && size::splits(wanted.pool, wanted.size, size - wanted.size, max_split)
    }

    /// Hands a block out as it is.
    pub(super) fn give(&mut self, id: BlockId, wanted: &Wanted) -> Allocation<T> {
        let pool = wanted.pool;
        let max_split = self.conf.max_split_size().unwrap_or(u64::MAX);
        let block = &mut self.blocks[id];
        block.state = State::Allocated;
        block.requested = wanted.bytes;
        block.oversize = block.size >= max_split;
        block.context = self.journal.context();
        let allocation = Allocation {
            block: id,
            rank: block.rank,
            offset: block.offset,
            size: block.size,
            mark: block.mark,
            waits: Vec::new(),
        };
        if block.oversize {
            self.stats.oversize_allocations.increase(1);
        }
        self.stats.allocated.increase(pool, 1);
        self.stats.allocated_bytes.increase(pool, allocation.size);
        self.stats.active.increase(pool, 1);
        self.stats.active_bytes.increase(pool, allocation.size);
        self.stats.requested_bytes.increase(pool, wanted.bytes);
        self.note_block(TraceAction::Alloc, id);
        allocation
    }

    /// Cuts a block in two; gives the one that begins at the new end.
    pub(super) fn cut_off(&mut self, id: BlockId, size: u64) -> BlockId {
        let rest = self.blocks.cut_off(id, size);
        if let Some(after) = self.blocks[rest].after {
            self.blocks[after].before = Some(rest);
        }
        rest
    }
}

/// Whether a request may have a block of this size, which is large enough.
pub(super) fn takes(conf: &AllocConf, wanted: u64, size: u64) -> bool {
    match conf.max_split_size() {
        None => true,
        Some(max_split) if wanted < max_split => size < max_split,
        Some(_) => size < wanted.saturating_add(conf.max_non_split_rounding()),
    }
}
