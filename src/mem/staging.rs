//! Staging: host memory that copies go through, taken in chunks and given back when the commands
//! that use them have finished.
//!
//! # Safety
//!
//! A [`Chunk`] belongs to one copy. Its bytes are written before the command that reads them is
//! recorded, and read after the command that wrote them was waited for; it goes back to the pool
//! when its last `Arc` goes, and the recording that uses it holds one until it has finished.
#![allow(unsafe_code)]

use std::sync::{Arc, OnceLock, Weak};

use super::device::DeviceMemory;
use crate::base::{fork, sync::Mutex};
use crate::device::plan::MemoryRole;
use crate::error::Result;
use crate::vk::{Device, Segment};

/// The smallest chunk.
const CHUNK_MIN: u64 = 64 << 10;
/// The largest chunk that is kept for later.
const KEEP_MAX: u64 = 16 << 20;
/// How many bytes of idle chunks are kept.
const CACHE_MAX: u64 = 64 << 20;

/// A pool of host memory for one direction.
#[derive(Debug)]
pub(crate) struct Staging {
    role: MemoryRole,
    state: Mutex<State>,
    /// What else may hold memory of the same heap idle.
    neighbour: OnceLock<Weak<DeviceMemory>>,
    device: Arc<Device>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Arc<Segment>>,
    idle_bytes: u64,
    /// The bytes of chunks that are in use.
    busy_bytes: u64,
}

/// A piece of host memory, for one copy.
#[derive(Debug)]
pub(crate) struct Chunk {
    segment: Arc<Segment>,
    home: Arc<Staging>,
}

impl Staging {
    pub(crate) fn new(device: &Arc<Device>, role: MemoryRole) -> Arc<Self> {
        Arc::new(Self {
            role,
            state: Mutex::default(),
            neighbour: OnceLock::new(),
            device: Arc::clone(device),
        })
    }

    /// The bytes of chunks that are in use.
    pub(crate) fn busy_bytes(&self) -> u64 {
        self.state.lock().busy_bytes
    }

    /// A chunk of at least `bytes`.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<Arc<Chunk>> {
        let size = chunk_size(bytes);
        let mut state = self.state.lock();
        let fitting = |segment: &Arc<Segment>| segment.size_bytes() == size;
        let idle = state
            .idle
            .iter()
            .rposition(fitting)
            .map(|index| state.idle.swap_remove(index));
        if idle.is_some() {
            state.idle_bytes -= size;
        }
        state.busy_bytes += size;
        drop(state);
        let segment = match idle {
            Some(segment) => segment,
            None => self.grow(size).inspect_err(|_| {
                self.state.lock().busy_bytes -= size;
            })?,
        };
        Ok(Arc::new(Chunk {
            segment,
            home: Arc::clone(self),
        }))
    }

    /// A new segment; where there is no room, in place of the idle ones.
    fn grow(&self, size: u64) -> Result<Arc<Segment>> {
        match Segment::new(&self.device, size, self.role) {
            Err(error) if error.is_out_of_memory() => {
                self.trim();
                if let Some(memory) = self.neighbour.get().and_then(Weak::upgrade) {
                    memory.empty_cache()?;
                }
                Segment::new(&self.device, size, self.role)
            }
            other => other,
        }
    }

    /// Has device memory make way where there is no room for more.
    pub(super) fn share_with(&self, memory: &Arc<DeviceMemory>) {
        // It is called once, when the device is opened.
        let _ = self.neighbour.set(Arc::downgrade(memory));
    }

    /// Gives what is idle back to the driver.
    pub(crate) fn trim(&self) {
        let mut state = self.state.lock();
        state.idle_bytes = 0;
        let idle = core::mem::take(&mut state.idle);
        drop(state);
        drop(idle);
    }

    fn give_back(&self, segment: &Arc<Segment>) {
        let size = segment.size_bytes();
        let mut state = self.state.lock();
        state.busy_bytes -= size;
        if size <= KEEP_MAX && state.idle_bytes + size <= CACHE_MAX {
            state.idle_bytes += size;
            state.idle.push(Arc::clone(segment));
        }
    }
}

/// Powers of two while chunks are kept, so that they fit again; whole pages above.
fn chunk_size(bytes: u64) -> u64 {
    if bytes <= KEEP_MAX {
        bytes.next_power_of_two().max(CHUNK_MIN)
    } else {
        bytes.next_multiple_of(CHUNK_MIN)
    }
}

impl Chunk {
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Fills the start of the chunk; for a chunk that no command uses yet.
    pub(crate) fn fill(&self, bytes: &[u8]) -> Result<()> {
        // SAFETY: the chunk was just taken, for the copy that fills it (see the top of the file).
        unsafe { self.segment.write(0, bytes) }
    }

    /// Copies the start of the chunk out; for a chunk whose commands were waited for.
    pub(crate) fn copy_out(&self, out: &mut [u8]) -> Result<()> {
        // SAFETY: the command that wrote the chunk has finished (see the top of the file).
        unsafe { self.segment.read(0, out) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // In a forked child, a thread that is not there any more may hold the lock for ever.
        if !fork::may_call_driver() {
            return;
        }
        self.home.give_back(&self.segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_few_sizes_and_hold_what_is_asked() {
        assert_eq!(chunk_size(1), CHUNK_MIN);
        assert_eq!(chunk_size(CHUNK_MIN + 1), 2 * CHUNK_MIN);
        assert_eq!(chunk_size(KEEP_MAX), KEEP_MAX);
        assert_eq!(chunk_size(KEEP_MAX + 1), KEEP_MAX + CHUNK_MIN);
    }
}
