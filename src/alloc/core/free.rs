//! Taking blocks back, at once or when other streams have finished with them.

use super::{Addressed, Core};
use crate::alloc::block::{BlockId, State};
use crate::alloc::free_list::Entry;
use crate::alloc::history::Context;
use crate::alloc::ids::StreamKey;
use crate::alloc::snapshot::TraceAction;

impl<S: Addressed, T> Core<S, T> {
    /// Takes a block back.
    ///
    /// `mark` is the caller's number for the last use by the block's own stream, in the order of that
    /// stream. `uses` are tickets of the other streams that use it ([`recorded`](Self::recorded)):
    /// the block is free when all are seen to be reached, which is looked for by later requests.
    /// `context` is who gives it back, for the history.
    pub(crate) fn free(
        &mut self,
        id: BlockId,
        mark: u64,
        uses: Vec<(StreamKey, T)>,
        context: &Context,
        released: &mut Vec<S>,
    ) {
        self.journal.begin(context);
        self.note_block(TraceAction::FreeRequested, id);
        let block = &mut self.blocks[id];
        debug_assert_eq!(block.state, State::Allocated);
        block.mark = block.mark.max(mark);
        let (pool, size) = (block.pool, block.size);
        if block.oversize {
            self.stats.oversize_allocations.decrease(1);
        }
        self.stats.allocated.decrease(pool, 1);
        self.stats.allocated_bytes.decrease(pool, size);
        if uses.is_empty() {
            self.settle(id, released);
            return;
        }
        block.state = State::Pending;
        block.waits = 0;
        for (stream, ticket) in uses {
            block.waits += 1;
            self.pending.push(stream, ticket, id);
        }
    }

    /// Makes blocks free whose tickets are reached.
    pub(super) fn poll(&mut self, reached: &dyn Fn(&T) -> bool, released: &mut Vec<S>) {
        if self.pending.is_empty() {
            return;
        }
        let mut queue = 0;
        while let Some(id) = self.pending.pop(&mut queue, reached) {
            let block = &mut self.blocks[id];
            block.waits -= 1;
            if block.waits == 0 {
                self.settle(id, released);
            }
        }
    }

    /// Makes a block free that nothing uses, together with its free neighbours.
    fn settle(&mut self, id: BlockId, released: &mut Vec<S>) {
        self.note_block(TraceAction::FreeCompleted, id);
        let block = &mut self.blocks[id];
        let (pool, size, requested) = (block.pool, block.size, block.requested);
        block.uses.clear();
        block.context = Context::default();
        block.state = State::Free;
        block.requested = 0;
        let (before, after) = (block.before, block.after);
        let before = before.and_then(|id| self.free_entry(id));
        let after = after.and_then(|id| self.free_entry(id));
        for entry in [before, after].into_iter().flatten() {
            self.merge(id, &entry);
        }
        let block = &mut self.blocks[id];
        let entry = block.entry(id);
        let shelf = &mut self.shelves[block.shelf];
        block.freed_at = self.pools[shelf.pool].searches(pool);
        self.freed += 1;
        let list = shelf.list_mut(pool);
        // Free neighbours that go, and the block that comes, as one change.
        let (gone, gone_bytes) = match (before, after) {
            (None, None) => {
                list.insert(entry);
                (0, 0)
            }
            (Some(old), None) | (None, Some(old)) => {
                list.replace(&old, entry);
                (1, old.size)
            }
            (Some(before), Some(after)) => {
                list.remove(&before);
                list.replace(&after, entry);
                (2, before.size + after.size)
            }
        };
        let block = &self.blocks[id];
        let (come, come_bytes) = if block.is_split() {
            (1, block.size)
        } else {
            (0, 0)
        };
        if come > gone {
            self.stats.inactive_split.increase(pool, come - gone);
        } else if gone > come {
            self.stats.inactive_split.decrease(pool, gone - come);
        }
        let bytes = &mut self.stats.inactive_split_bytes;
        if come_bytes > gone_bytes {
            bytes.increase(pool, come_bytes - gone_bytes);
        } else if gone_bytes > come_bytes {
            bytes.decrease(pool, gone_bytes - come_bytes);
        }
        self.stats.active.decrease(pool, 1);
        self.stats.active_bytes.decrease(pool, size);
        self.stats.requested_bytes.decrease(pool, requested);
        if self.conf.segment_per_allocation() && come == 0 {
            self.release(id, released);
        }
    }

    /// The entry of a block, if it is free.
    fn free_entry(&self, id: BlockId) -> Option<Entry> {
        let block = &self.blocks[id];
        (block.state == State::Free).then(|| block.entry(id))
    }

    /// Lets a block take in a free neighbour, whose entry is none from now on.
    fn merge(&mut self, id: BlockId, neighbour: &Entry) {
        let other = &self.blocks[neighbour.block];
        let (mark, before, after) = (other.mark, other.before, other.after);
        let block = &mut self.blocks[id];
        block.size += neighbour.size;
        block.mark = block.mark.max(mark);
        if neighbour.offset < block.offset {
            block.offset = neighbour.offset;
            block.before = before;
            match before {
                Some(before) => self.blocks[before].after = Some(id),
                None => self.segments.set_first(self.blocks[id].segment, id),
            }
        } else {
            block.after = after;
            if let Some(after) = after {
                self.blocks[after].before = Some(id);
            }
        }
        self.blocks.remove(neighbour.block);
    }

    /// Puts a free block into its list.
    pub(super) fn shelve(&mut self, id: BlockId) {
        let block = &mut self.blocks[id];
        let shelf = &mut self.shelves[block.shelf];
        block.freed_at = self.pools[shelf.pool].searches(block.pool);
        let entry = block.entry(id);
        shelf.list_mut(block.pool).insert(entry);
    }
}
