//! Memory of streams that are gone. PyTorch's streams never go, so that its numbers say nothing of it.

use std::collections::BTreeSet;

use super::allocate::{Wanted, takes};
use super::{Addressed, Core};
use crate::alloc::block::BlockId;
use crate::alloc::free_list::Entry;
use crate::alloc::ids::StreamKey;

impl<S: Addressed, T: Clone> Core<S, T> {
    /// A stream asks for no more. What is cached for it serves other streams once all it did is done,
    /// which `ticket` says.
    pub(crate) fn retire(&mut self, stream: StreamKey, ticket: T) {
        self.forget_heirless();
        if self.shelves.iter().any(|shelf| shelf.stream == stream) {
            self.retired.insert(stream, ticket);
        }
    }

    /// Takes the best segment that a stream which is gone has left whole; whether there is one.
    pub(super) fn inherit(&mut self, wanted: &Wanted, reached: &dyn Fn(&T) -> bool) -> bool {
        if self.retired.is_empty() || self.conf.segment_per_allocation() {
            return false;
        }
        let pool = self.shelves[wanted.shelf].pool;
        let is_left = |stream: StreamKey| self.retired.get(&stream).is_some_and(reached);
        let shelves = self.shelves.iter();
        let left = shelves.filter(|shelf| shelf.pool == pool && is_left(shelf.stream));
        let fits = |entry: &Entry| {
            entry.size >= wanted.size
                && !self.blocks[entry.block].is_split()
                && takes(&self.conf, wanted.size, entry.size)
        };
        let blocks = left.flat_map(|shelf| shelf.list(wanted.pool).iter().filter(fits));
        let best = blocks.min_by_key(|entry| (entry.size, entry.rank));
        let Some(block) = best.map(|entry| entry.block) else {
            return false;
        };
        self.move_segment(block, wanted.shelf);
        true
    }

    /// Moves a segment that is one free block to another shelf of its pool.
    fn move_segment(&mut self, id: BlockId, shelf: u32) {
        let block = &mut self.blocks[id];
        let (before, segment, pool) = (block.shelf, block.segment, block.pool);
        let entry = Entry {
            size: block.size,
            rank: block.rank,
            offset: block.offset,
            block: id,
        };
        block.shelf = shelf;
        // The stream whose uses it counted is gone, and done.
        block.mark = 0;
        self.shelves[before].list_mut(pool).remove(&entry);
        self.shelves[before].segments -= 1;
        self.shelves[shelf].list_mut(pool).insert(entry);
        self.shelves[shelf].segments += 1;
        self.segments.set_shelf(segment, shelf);
        if self.shelves[before].segments == 0 {
            self.shelves.remove(before);
        }
    }

    /// Forgets streams that have left nothing.
    fn forget_heirless(&mut self) {
        if self.retired.is_empty() {
            return;
        }
        let left: BTreeSet<StreamKey> = self.shelves.iter().map(|shelf| shelf.stream).collect();
        self.retired.retain(|stream, _| left.contains(stream));
    }
}
