//! What goes into the allocator and what comes out.

use crate::alloc::block::BlockId;
use crate::alloc::history::Context;
use crate::alloc::ids::{PoolId, StreamKey};
use crate::error::OutOfMemory;

/// What makes segments: the driver, or a simulated device.
pub(crate) trait Source {
    type Segment;
    /// What the driver says when it makes none.
    type Refusal;

    /// Makes a segment of exactly this size.
    fn create(&mut self, bytes: u64) -> Result<Self::Segment, Self::Refusal>;

    /// The allocations that the driver holds for the device now, whatever for.
    fn held(&self) -> u64;
}

/// A request for memory. Stays the same from call to call of `allocate`, since it knows what was
/// tried already.
#[derive(Debug)]
pub(crate) struct Request {
    /// At least 1: no memory needs no allocator.
    pub(super) bytes: u64,
    pub(super) stream: StreamKey,
    pub(super) pool: Option<PoolId>,
    pub(super) context: Context,
    pub(super) stage: Stage,
    /// What had become free when it last looked.
    pub(super) seen: u64,
    /// Whether the hard cap stood in its way.
    pub(super) over_cap: bool,
}

/// What is tried next for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Search,
    Collect,
    Ask,
    Spare,
    AskAfterSpare,
    Wait,
    Flush,
    AskAgain,
}

impl Request {
    /// A request for `bytes`, at least 1, of the stream's own memory.
    pub(crate) fn new(bytes: u64, stream: StreamKey) -> Self {
        Self {
            bytes,
            stream,
            pool: None,
            context: Context::default(),
            stage: Stage::Search,
            seen: 0,
            over_cap: false,
        }
    }

    /// The private pool that it is for.
    pub(crate) fn pool(&self) -> Option<PoolId> {
        self.pool
    }

    /// The same, from a private pool.
    pub(crate) fn in_pool(mut self, pool: Option<PoolId>) -> Self {
        self.pool = pool;
        self
    }

    /// The same, with who makes it, for the history.
    pub(crate) fn by(mut self, context: Context) -> Self {
        self.context = context;
        self
    }
}

/// What came of a call of `allocate`.
#[derive(Debug)]
pub(crate) enum Step<T, R> {
    /// The memory is there.
    Done(Allocation<T>),
    /// Without the lock: drop the segments that were released, wait for these tickets, if any; then
    /// call again.
    Wait(Vec<T>),
    /// There is no memory. A call with the same request tries everything anew; `give_up` ends it.
    Exhausted {
        figures: Box<OutOfMemory>,
        /// What the driver said, where it was asked.
        refusal: Option<R>,
    },
}

/// A block that was handed out.
#[derive(Debug)]
pub(crate) struct Allocation<T> {
    pub(crate) block: BlockId,
    /// How many segments were made before its own.
    pub(crate) rank: u64,
    /// Its first byte in the segment.
    pub(crate) offset: u64,
    /// Its bytes: what was asked for, rounded up.
    pub(crate) size: u64,
    /// The highest mark of its memory's last uses; 0 for fresh memory.
    pub(crate) mark: u64,
    /// What the block's stream must wait for on the device before it uses the memory; empty unless
    /// `cross_stream_reuse` is set.
    pub(crate) waits: Vec<T>,
}
