//! The private pools of graphs, each held by the graphs that share it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::alloc::PoolId;
use crate::base::{fork, sync::Mutex};
use crate::exec::Ticket;
use crate::mem::DeviceMemory;

/// The pools of an opened device that graphs hold.
#[derive(Debug, Default)]
pub(crate) struct Pools(Mutex<BTreeMap<PoolId, Weak<GraphPool>>>);

/// A pool that graphs share: their replays run in order, and its memory stays until the last is gone.
#[derive(Debug)]
pub(crate) struct GraphPool {
    id: PoolId,
    /// The newest replay; held while another is queued, before the lock of any stream.
    pub(super) newest: Mutex<Option<Ticket>>,
    memory: Arc<DeviceMemory>,
}

impl Pools {
    /// The pool of this id.
    pub(crate) fn get(&self, id: PoolId, memory: &Arc<DeviceMemory>) -> Arc<GraphPool> {
        let mut pools = self.0.lock();
        pools.retain(|_, pool| pool.strong_count() > 0);
        if let Some(pool) = pools.get(&id).and_then(Weak::upgrade) {
            return pool;
        }
        memory.hold_pool(id);
        let pool = Arc::new(GraphPool {
            id,
            newest: Mutex::default(),
            memory: Arc::clone(memory),
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
        if fork::may_call_driver() {
            self.memory.let_go_of_pool(self.id);
        }
    }
}
