//! What is told to the history, while there is one.

use super::{Core, Request};
use crate::alloc::block::BlockId;
use crate::alloc::history::{Context, Entry, History};
use crate::alloc::ids::PoolId;
use crate::alloc::snapshot::TraceAction;

/// Something that has an address on its device.
pub(crate) trait Addressed {
    /// Where it starts.
    fn address(&self) -> u64;
}

/// The history, and what all entries of the operation under way have in common.
#[derive(Debug, Default)]
pub(super) struct Journal {
    history: Option<Box<History>>,
    context: Context,
    now: u64,
}

impl Journal {
    /// An operation begins, which this is the cause of.
    pub(super) fn begin(&mut self, context: &Context) {
        if let Some(history) = &self.history {
            self.now = history.now();
            self.context = context.clone();
        }
    }

    /// Who caused the operation under way; nobody unless that is recorded.
    pub(super) fn context(&self) -> Context {
        match self.history {
            Some(_) => self.context.clone(),
            None => Context::default(),
        }
    }
}

impl<S, T> Core<S, T> {
    /// What is recorded, while anything is.
    pub(crate) fn history(&self) -> Option<&History> {
        self.journal.history.as_deref()
    }

    /// The same, to be changed.
    pub(crate) fn history_mut(&mut self) -> Option<&mut History> {
        self.journal.history.as_deref_mut()
    }

    /// Records from now on, or no longer. What was allocated before has nobody who did it.
    pub(crate) fn set_history(&mut self, history: Option<History>) {
        self.journal.history = history.map(Box::new);
        self.journal.context = Context::default();
    }
}

impl<S: Addressed, T> Core<S, T> {
    /// Notes what happens to a block.
    #[inline]
    pub(super) fn note_block(&mut self, action: TraceAction, id: BlockId) {
        if self.journal.history.is_some() {
            self.write_block(action, id);
        }
    }

    fn write_block(&mut self, action: TraceAction, id: BlockId) {
        let block = &self.blocks[id];
        // What is left of a block that was cut while it was pending was never asked for.
        if block.requested == 0 {
            return;
        }
        let start = self.segments[block.segment].handle.address();
        let address = start.saturating_add(block.offset);
        let (size, shelf, now) = (block.requested, block.shelf, self.journal.now);
        // Most blocks are free as soon as they are given back.
        let history = self.journal.history.as_mut();
        if action == TraceAction::FreeCompleted
            && history.is_some_and(|history| history.complete(now, address, size))
        {
            return;
        }
        self.note(action, address, size, shelf);
    }

    /// Notes what happens to a segment.
    pub(super) fn note_segment(&mut self, action: TraceAction, place: u32) {
        if self.journal.history.is_some() {
            let segment = &self.segments[place];
            let address = segment.handle.address();
            self.note(action, address, segment.bytes, segment.shelf);
        }
    }

    /// Notes that there is no memory for a request.
    pub(super) fn note_oom(&mut self, request: &Request) {
        let total = self.allowed.limits.total;
        let entry = Entry {
            action: TraceAction::Oom,
            address: total.saturating_sub(self.reserved()),
            size: request.bytes,
            stream: request.stream.0,
            pool: numbers(request.pool),
            context: request.context.clone(),
        };
        self.write(entry);
    }

    fn note(&mut self, action: TraceAction, address: u64, size: u64, shelf: u32) {
        let shelf = &self.shelves[shelf];
        let entry = Entry {
            action,
            address,
            size,
            stream: shelf.stream.0,
            pool: numbers(self.pools[shelf.pool].id),
            context: self.journal.context.clone(),
        };
        self.write(entry);
    }

    fn write(&mut self, entry: Entry) {
        let now = self.journal.now;
        if let Some(history) = &mut self.journal.history {
            history.record_at(now, entry);
        }
    }
}

/// A pool, as the history has it.
fn numbers(pool: Option<PoolId>) -> (u64, u64) {
    pool.map_or((0, 0), |pool| (pool.0, pool.1))
}
