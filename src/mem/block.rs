//! Blocks: what buffers occupy, and which streams have used them.

use core::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::device::DeviceMemory;
use super::kept::{Kept, Left};
use crate::alloc::{BlockId, PoolId, StreamKey};
use crate::base::sync::{Mutex, MutexGuard};
use crate::error::Result;
use crate::exec::stream::CAPTURED;
use crate::exec::{Replays, Sink, StreamCore, Ticket};
use crate::vk::Segment;

/// A piece of a segment; what a buffer occupies. A buffer of no bytes has one without memory.
#[derive(Debug, Default)]
pub(crate) struct Block(Kind);

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Held(Held),
    /// A whole segment of the runtime's own.
    Own(Arc<Segment>),
}

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
    /// The number of the capture that it was allocated in; 0 for none.
    pub(super) born_in: u64,
    /// The replays of the graphs in whose pool it lies: memory that is this block now may be what they
    /// have free between them.
    pub(super) replays: Option<Arc<Replays>>,
    /// What it has in common with graphs that use it.
    pub(super) kept: OnceLock<Arc<Kept>>,
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
        Self(Kind::Held(held))
    }

    /// All of a segment of the runtime's own, which whoever uses it keeps.
    pub(crate) fn own(segment: Arc<Segment>) -> Self {
        Self(Kind::Own(segment))
    }

    fn held(&self) -> Option<&Held> {
        match &self.0 {
            Kind::Held(held) => Some(held),
            Kind::Empty | Kind::Own(_) => None,
        }
    }

    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        match &self.0 {
            Kind::Empty => None,
            Kind::Held(held) => Some(&held.segment),
            Kind::Own(segment) => Some(segment),
        }
    }

    /// Its first byte in the segment.
    pub(crate) fn offset(&self) -> u64 {
        self.held().map_or(0, |held| held.offset)
    }

    /// The device address of its first byte; 0 for one of no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.segment()
            .map_or(0, |segment| segment.address() + self.offset())
    }

    /// `len` bytes from `offset` on; nothing for no bytes.
    pub(crate) fn range(&self, offset: u64, len: u64) -> Option<Range<'_>> {
        let segment = self.segment().filter(|_| len > 0)?;
        Some(Range {
            segment,
            start: self.offset() + offset,
            len,
            block: self,
        })
    }

    /// Takes note of a use in recording `seq` of a stream.
    fn used_on(&self, stream: &StreamCore, seq: u64) {
        // Graphs see to what was captured.
        let Some(held) = self.held().filter(|_| seq != CAPTURED) else {
            return;
        };
        if stream.id() == held.home.stream.id() {
            // Mostly it is known: that the newest recording uses it.
            if held.last_use.load(Ordering::Relaxed) < seq {
                held.last_use.fetch_max(seq, Ordering::Relaxed);
            }
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
        if let Some(held) = self.held()
            && stream.id() != held.home.stream.id()
        {
            held.shared_with(stream);
        }
    }

    /// Has the graph that a stream is captured for keep the memory; where the capture has ended since, does as
    /// [`record_stream`](Self::record_stream).
    pub(crate) fn keep_for_graph(&self, stream: &StreamCore) -> Result<()> {
        let kept = stream.record(&[], |sink| {
            self.captured_in(sink);
            Ok(())
        });
        self.used_in(stream, &kept);
        kept.map(drop)
    }

    /// Keeps other threads from copying to or from the memory, where the host reaches it.
    pub(super) fn host_access(&self) -> Option<MutexGuard<'_, ()>> {
        self.held().map(|held| held.host.lock())
    }

    /// Whether no unfinished command uses the memory, nor any that used it before it was this block.
    ///
    /// Asks the driver how far it is, and waits for nothing.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.held().map_or(Ok(true), Held::is_idle)
    }

    /// Takes note of a use by commands that are captured, if they are. Their graph keeps the memory, unless
    /// it was allocated in that very capture: then it lies in the graph's pool.
    pub(crate) fn captured_in(&self, sink: &mut Sink<'_>) {
        let (Some(held), Some(capture)) = (self.held(), sink.capture()) else {
            return;
        };
        let kept = held.kept.get_or_init(Arc::default);
        kept.add(capture.replays());
        if held.born_in != capture.id() {
            sink.retain(kept);
        }
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
    /// Keeps the memory for commands that use it.
    pub(super) fn retain_in(&self, sink: &mut Sink<'_>) {
        sink.retain(self.segment);
        self.block.captured_in(sink);
    }

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
        if let Some(replays) = &self.replays
            && !replays.are_over()?
        {
            return Ok(false);
        }
        self.kept.get().map_or(Ok(true), |kept| kept.is_idle())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.segment.device().may_call_driver() {
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
        let last_use = *self.last_use.get_mut();
        match self.kept.take() {
            None => self.home.memory.free(self.id, last_use, uses),
            // Given back by the last that has it, maybe at once.
            Some(kept) => kept.leave(
                &self.home.memory,
                Left {
                    id: self.id,
                    memory: Arc::downgrade(&self.home.memory),
                    last_use,
                    uses,
                },
            ),
        }
    }
}
