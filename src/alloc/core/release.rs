//! Giving segments back to the driver.

use super::shelves::COMMON;
use super::{Addressed, Core};
use crate::alloc::block::{Block, BlockId, State};
use crate::alloc::free_list::Entry;
use crate::alloc::history::Context;
use crate::alloc::snapshot::TraceAction;
use crate::alloc::stats::Pool;

impl<S: Addressed, T: Clone> Core<S, T> {
    /// Begins to give back what is cached: gives the tickets to wait for, without the lock.
    pub(crate) fn empty_cache_begin(&mut self) -> Vec<T> {
        self.stats.num_sync_all_streams += 1;
        self.pending.last()
    }

    /// Ends it: what is free as whole segments is released.
    ///
    /// `context` is who wants it, for the history.
    pub(crate) fn empty_cache_end(
        &mut self,
        reached: &dyn Fn(&T) -> bool,
        context: &Context,
        released: &mut Vec<S>,
    ) {
        self.journal.begin(context);
        self.poll(reached, released);
        self.release_whole(released);
        self.pools.forget_unused();
    }
}

impl<S: Addressed, T> Core<S, T> {
    /// Releases every segment that is one free block, those of held private pools aside.
    pub(super) fn release_whole(&mut self, released: &mut Vec<S>) {
        let free = self.whole(|core, block| !core.pools.is_held(core.shelves[block.shelf].pool));
        for id in free {
            self.release(id, released);
        }
    }

    /// The segments that are one free block, by these blocks, oldest segment first.
    fn whole(&self, also: impl Fn(&Self, &Block) -> bool) -> Vec<BlockId> {
        let firsts = self.segments.iter().map(|(_, segment)| segment.first);
        let mut free: Vec<BlockId> = firsts
            .filter(|id| {
                let block = &self.blocks[*id];
                block.state == State::Free && !block.is_split() && also(self, block)
            })
            .collect();
        free.sort_by_key(|id| self.blocks[*id].rank);
        free
    }

    /// Releases the segment of a free block that is all of it.
    pub(super) fn release(&mut self, id: BlockId, released: &mut Vec<S>) {
        let block = &self.blocks[id];
        debug_assert!(block.state == State::Free && !block.is_split());
        let (place, shelf, pool) = (block.segment, block.shelf, block.pool);
        let entry = block.entry(id);
        self.shelves[shelf].list_mut(pool).remove(&entry);
        self.note_segment(TraceAction::SegmentFree, place);
        self.blocks.remove(id);
        let Some(segment) = self.segments.remove(place) else {
            return;
        };
        if segment.oversize {
            self.stats.oversize_segments.decrease(1);
        }
        self.stats.segment.decrease(pool, 1);
        self.stats.reserved_bytes.decrease(pool, segment.bytes);
        self.stats.num_device_free += 1;
        let shelf_place = shelf;
        let shelf = &mut self.shelves[shelf_place];
        shelf.segments -= 1;
        self.pools[shelf.pool].reserved -= segment.bytes;
        if shelf.segments == 0 {
            self.shelves.remove(shelf_place);
        }
        released.push(segment.handle);
    }

    /// Whether long unused segments are collected.
    pub(super) fn collects(&self) -> bool {
        self.conf.garbage_collection_threshold().is_some() && self.allowed.fraction.is_some()
    }

    /// Releases long unused segments, if more is reserved than the threshold lets.
    pub(super) fn collect(&mut self, released: &mut Vec<S>) {
        let threshold = self.conf.garbage_collection_threshold();
        let (Some(threshold), Some((_, limit))) = (threshold, self.allowed.fraction) else {
            return;
        };
        let keep = super::limits::part(threshold, limit);
        let Some(excess) = self.reserved().checked_sub(keep).filter(|more| *more > 0) else {
            return;
        };
        let searches = self.pools[COMMON].searches(Pool::LargePool);
        let free = self.whole(|core, block| {
            block.pool == Pool::LargePool && core.shelves[block.shelf].pool == COMMON
        });
        let age = |core: &Self, id: &BlockId| searches - core.blocks[*id].freed_at;
        let mut left: Vec<(BlockId, u64)> = free.iter().map(|id| (*id, age(self, id))).collect();
        let mut freed = 0;
        while freed < excess && !left.is_empty() {
            let ages: u64 = left.iter().map(|(_, age)| age).sum();
            let count = u64::try_from(left.len()).unwrap_or(u64::MAX);
            // At least as old as the mean, without rounding.
            let is_old = |age: u64| u128::from(age) * u128::from(count) >= u128::from(ages);
            let old: Vec<BlockId> = left
                .iter()
                .filter(|(_, age)| is_old(*age))
                .map(|(id, _)| *id)
                .collect();
            left.retain(|(_, age)| !is_old(*age));
            for id in old {
                freed += self.blocks[id].size;
                self.release(id, released);
            }
        }
    }

    /// Before everything is given back: releases as few large segments of a shelf as could serve a
    /// request. Whether that is enough.
    pub(super) fn spare(
        &mut self,
        shelf: u32,
        pool: Pool,
        size: u64,
        released: &mut Vec<S>,
    ) -> bool {
        let Some(max_split) = self.conf.max_split_size() else {
            return false;
        };
        let least = size.max(max_split);
        let whole = |core: &Self, entry: &Entry| !core.blocks[entry.block].is_split();
        let list = self.shelves[shelf].list(pool);
        if let Some((_, entry)) = list.fit(least) {
            if !whole(self, &entry) {
                return false;
            }
            self.release(entry.block, released);
            return true;
        }
        let largest = list
            .iter()
            .rev()
            .take_while(|entry| entry.size >= max_split);
        let mut freed = 0_u64;
        let mut chosen = Vec::new();
        for entry in largest.filter(|entry| whole(self, entry)) {
            if freed >= least {
                break;
            }
            freed = freed.saturating_add(entry.size);
            chosen.push(entry.block);
        }
        for id in chosen {
            self.release(id, released);
        }
        freed >= least
    }

    /// The bytes of all segments.
    pub(super) fn reserved(&self) -> u64 {
        self.stats.reserved_bytes.all.current
    }
}
