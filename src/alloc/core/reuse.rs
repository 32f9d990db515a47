//! Handing out memory that other streams still use, behind a wait on the device: more than PyTorch
//! does, and off unless it is asked for.

use super::allocate::{Wanted, takes};
use super::{Addressed, Allocation, Core};
use crate::alloc::snapshot::TraceAction;

impl<S: Addressed, T: Clone> Core<S, T> {
    /// Hands out a block of the same stream that was given back, but that waits for other streams;
    /// or its front, whose rest goes on waiting.
    pub(super) fn reuse(&mut self, wanted: &Wanted) -> Option<Allocation<T>> {
        if !self.conf.cross_stream_reuse() || self.pending.is_empty() {
            return None;
        }
        let pool = wanted.pool;
        let fits = self.pending.blocks().filter(|id| {
            let block = &self.blocks[*id];
            let is_near = block.shelf == wanted.shelf && block.pool == pool;
            is_near && block.size >= wanted.size && takes(&self.conf, wanted.size, block.size)
        });
        let id = fits.min_by_key(|id| {
            let block = &self.blocks[*id];
            (block.size, block.rank, block.offset)
        })?;
        self.note_block(TraceAction::FreeCompleted, id);
        let block = &mut self.blocks[id];
        let (size, waits) = (block.size, block.waits);
        let uses = std::mem::take(&mut block.uses);
        self.stats.active.decrease(pool, 1);
        self.stats.active_bytes.decrease(pool, size);
        let requested = std::mem::take(&mut block.requested);
        self.stats.requested_bytes.decrease(pool, requested);
        let rest = self.splits(wanted, size).then(|| {
            let id = self.cut_off(id, wanted.size);
            let block = &mut self.blocks[id];
            (block.waits, block.uses) = (waits, uses);
            self.stats.active.increase(pool, 1);
            self.stats.active_bytes.increase(pool, size - wanted.size);
            id
        });
        let waits = self.pending.take(id, rest);
        let found = self.give(id, wanted);
        Some(Allocation { waits, ..found })
    }
}
