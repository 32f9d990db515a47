//! Blocks that graphs use: what is left of one whose buffer is gone, until the last such graph is gone too.

use std::sync::{Arc, Weak};

use super::device::DeviceMemory;
use crate::alloc::{BlockId, StreamKey};
use crate::base::sync::Mutex;
use crate::error::Result;
use crate::exec::{Replays, Ticket};

/// What a block and the graphs that use it have in common. The last of them gives the memory back.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The replays of the graphs that use it.
    graphs: Vec<Weak<Replays>>,
    left: Option<Left>,
}

/// What a block leaves when its buffer is dropped. Keeps nothing of what may keep it: a stream, its work.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) id: BlockId,
    pub(super) memory: Weak<DeviceMemory>,
    /// The newest use by its own stream.
    pub(super) last_use: u64,
    /// The newest uses by others.
    pub(super) uses: Vec<(StreamKey, Ticket)>,
}

impl Kept {
    /// A graph uses the memory.
    pub(super) fn add(&self, replays: &Arc<Replays>) {
        let graph = Arc::downgrade(replays);
        let mut state = self.0.lock();
        state.graphs.retain(|one| one.strong_count() > 0);
        if state.graphs.iter().all(|one| !Weak::ptr_eq(one, &graph)) {
            state.graphs.push(graph);
        }
    }

    /// Whether no replay uses the memory; asks the driver, and waits for nothing.
    pub(super) fn is_idle(&self) -> Result<bool> {
        for replays in self.graphs() {
            if !replays.are_over()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes what a block of this memory leaves.
    pub(super) fn leave(&self, memory: &DeviceMemory, left: Left) {
        memory.has_left(1);
        self.0.lock().left = Some(left);
    }

    fn graphs(&self) -> Vec<Arc<Replays>> {
        let state = self.0.lock();
        state.graphs.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Left {
    /// Gives the memory back, behind replays too.
    fn free(mut self, memory: &DeviceMemory, replays: &[Arc<Replays>]) {
        let unfinished = replays.iter().flat_map(|replays| replays.unfinished());
        // Which streams they are on does not matter; no stream has this number.
        self.uses
            .extend(unfinished.map(|ticket| (StreamKey(0), ticket)));
        memory.free(self.id, self.last_use, self.uses);
        memory.has_left(-1);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(left) = self.0.get_mut().left.take() else {
            return;
        };
        // Where the memory is gone, so is the block.
        let memory = left.memory.upgrade();
        if let Some(memory) = memory.filter(|memory| memory.may_call_driver()) {
            left.free(&memory, &self.graphs());
        }
    }
}
