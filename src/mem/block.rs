//! Blocks: what buffers occupy, and which streams have used them.

use core::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use super::device::DeviceMemory;
use crate::alloc::{BlockId, PoolId, StreamKey};
use crate::base::{fork, sync::Mutex};
use crate::error::Result;
use crate::exec::{StreamCore, Ticket};
use crate::vk::Segment;

/// A piece of a segment; what a buffer occupies. A buffer of no bytes has one without memory.
#[derive(Debug, Default)]
pub(crate) struct Block(Option<Held>);

/// A piece with at least one byte; given back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: BlockId,
    pub(super) segment: Arc<Segment>,
    /// Its first byte in the segment.
    pub(super) offset: u64,
    /// The stream that it was allocated on, and where it goes back to.
    pub(super) home: Arc<Home>,
    /// The newest recording of that stream that uses the memory, also on behalf of earlier owners.
    pub(super) last_use: AtomicU64,
    /// What its stream waits for on the device before it uses the memory, and the host too.
    pub(super) behind: Vec<Ticket>,
    /// The other streams that have used it.
    pub(super) others: Mutex<Vec<Arc<StreamCore>>>,
    /// Held by a thread that copies from or to the memory.
    pub(super) host: Mutex<()>,
}

/// An opened stream with the memory of its device: what a block needs of both, as one.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) stream: Arc<StreamCore>,
    pub(crate) memory: Arc<DeviceMemory>,
}

/// A range of a block with at least one byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'a> {
    pub(crate) segment: &'a Arc<Segment>,
    /// The first byte in the segment.
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) block: &'a Block,
}

impl Block {
    pub(super) fn new(held: Held) -> Self {
        Self(Some(held))
    }

    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        self.0.as_ref().map(|held| &held.segment)
    }

    /// Its first byte in the segment.
    pub(crate) fn offset(&self) -> u64 {
        self.0.as_ref().map_or(0, |held| held.offset)
    }

    /// The device address of its first byte; 0 for one of no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.0
            .as_ref()
            .map_or(0, |held| held.segment.address() + held.offset)
    }

    /// `len` bytes from `offset` on; nothing for no bytes.
    pub(crate) fn range(&self, offset: u64, len: u64) -> Option<Range<'_>> {
        let held = self.0.as_ref().filter(|_| len > 0)?;
        Some(Range {
            segment: &held.segment,
            start: held.offset + offset,
            len,
            block: self,
        })
    }

    /// Takes note of a use in recording `seq` of a stream.
    fn used_on(&self, stream: &StreamCore, seq: u64) {
        let Some(held) = &self.0 else {
            return;
        };
        if stream.id() == held.home.stream.id() {
            held.last_use.fetch_max(seq, Ordering::Relaxed);
        } else {
            held.shared_with(stream);
        }
    }

    /// Takes note of a use by a command that a stream has recorded, or maybe has.
    pub(crate) fn used_in(&self, stream: &StreamCore, recorded: &Result<u64>) {
        let seq = recorded
            .as_ref()
            .map_or_else(|_| stream.newest_seq(), |&seq| seq);
        self.used_on(stream, seq);
    }

    /// Keeps the memory from being reused before what the stream holds by the time that it is freed.
    pub(crate) fn record_stream(&self, stream: &StreamCore) {
        if let Some(held) = &self.0
            && stream.id() != held.home.stream.id()
        {
            held.shared_with(stream);
        }
    }

    /// Keeps other threads from copying to or from the memory, where the host reaches it.
    pub(super) fn host_access(&self) -> Option<MutexGuard<'_, ()>> {
        self.0.as_ref().map(|held| held.host.lock())
    }

    /// Whether no unfinished command uses the memory, nor any that used it before it was this block.
    ///
    /// Asks the driver how far it is, and waits for nothing.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.0.as_ref().map_or(Ok(true), Held::is_idle)
    }
}

impl Home {
    /// A block of at least `bytes` for the stream; see [`DeviceMemory::allocate`].
    pub(crate) fn allocate(
        self: Arc<Self>,
        bytes: u64,
        pool: Option<PoolId>,
        site: &'static Location<'static>,
    ) -> Result<Block> {
        DeviceMemory::allocate(self, bytes, pool, site)
    }
}

impl Range<'_> {
    /// Takes note of a use by a command that a stream has recorded, or maybe has.
    pub(crate) fn used_in(&self, stream: &StreamCore, recorded: &Result<u64>) {
        self.block.used_in(stream, recorded);
    }
}

impl Held {
    #[cold]
    fn shared_with(&self, stream: &StreamCore) {
        let mut others = self.others.lock();
        if others.iter().all(|other| other.id() != stream.id())
            && let Some(stream) = stream.strong()
        {
            others.push(stream);
        }
    }

    fn is_idle(&self) -> Result<bool> {
        let last = self.last_use.load(Ordering::Relaxed);
        if !self.home.stream.ticket(last).poll()? {
            return Ok(false);
        }
        for ticket in &self.behind {
            if !ticket.poll()? {
                return Ok(false);
            }
        }
        let others = self.others.lock().clone();
        for stream in others {
            if !stream.newest().poll()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !fork::may_call_driver() {
            return;
        }
        let others = core::mem::take(self.others.get_mut());
        let mut uses = Vec::new();
        for stream in &others {
            uses.push((StreamKey(stream.id()), stream.newest()));
        }
        // Of streams whose numbers nobody knows any more; no stream has this one.
        let behind = self
            .behind
            .drain(..)
            .filter(|ticket| !ticket.known_reached());
        uses.extend(behind.map(|ticket| (StreamKey(0), ticket)));
        self.home
            .memory
            .free(self.id, *self.last_use.get_mut(), uses);
    }
}
