//! The private pools of graphs, each held by the graphs that share it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::alloc::PoolId;
use crate::base::{fork::Life, sync::Mutex};
use crate::exec::{Replays, Ticket};
use crate::mem::DeviceMemory;

/// The pools of an opened device that graphs hold.
#[derive(Debug, Default)]
pub(crate) struct Pools(Mutex<BTreeMap<PoolId, Weak<GraphPool>>>);

/// A pool that graphs share: their replays run in order, and its memory stays until the last is gone.
#[derive(Debug)]
pub(crate) struct GraphPool {
    id: PoolId,
    /// Held while a replay is queued, before the lock of any stream; a list for what it waits for.
    pub(super) turn: Mutex<Vec<Ticket>>,
    /// Those of all its graphs, also of graphs that are gone; noted while `turn` is held.
    pub(super) replays: Arc<Replays>,
    memory: Arc<DeviceMemory>,
    life: Life,
}

impl Pools {
    /// The pool of this id.
    pub(crate) fn get(&self, id: PoolId, memory: &Arc<DeviceMemory>) -> Arc<GraphPool> {
        let mut pools = self.0.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        if let Some(pool) = pools.get(&id).and_then(Weak::upgrade) {
            return pool;
        }
        let pool = Arc::new(GraphPool {
            id,
            turn: Mutex::default(),
            replays: memory.hold_pool(id),
            memory: Arc::clone(memory),
            life: Life::now(),
        });
        pools.insert(id, Arc::downgrade(&pool));
        pool
    }
}

impl GraphPool {
    pub(crate) fn id(&self) -> PoolId {
        self.id
    }
}

impl Drop for GraphPool {
    fn drop(&mut self) {
        if self.life.may_call_driver() {
            self.memory.let_go_of_pool(self.id);
        }
    }
}
