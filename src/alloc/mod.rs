//! Owns the decisions about memory, and what can be seen of them: which block serves a request, what
//! is asked of the driver and what is given back to it, and the numbers of all that. No device and no
//! lock is in here.
//!
//! The rules are those of PyTorch's caching allocator, so that its numbers are ours. Start with what you have:
//!
//! - [`AllocConf`] has the settings, with the keys of `PYTORCH_ALLOC_CONF`.
//! - [`MemorySnapshot`] is what [`memory::memory_snapshot`](crate::memory::memory_snapshot) gives: segments, blocks and
//!   history, to look at, to print ([`memory_summary`], [`MemoryUse`]) and to write to a file.
//! - [`Simulator`] is the allocator itself on a simulated device of any size, to try settings on a recorded history.

// `Core` decides over segments of any kind and asks for what it can't do itself: a `Source` makes segments,
// tickets say whether commands have finished, and whoever calls waits for them, outside of its lock.

pub(crate) mod block;
mod conf;
pub(crate) mod core;
mod export;
mod frames;
mod free_list;
pub(crate) mod history;
pub(crate) mod host;
pub(crate) mod ids;
mod pending;
mod sim;
mod size;
mod snapshot;
pub(crate) mod stats;
mod summary;

pub(crate) use self::core::{Allocation, Core, Limits, Request, Source, Step};
pub(crate) use block::BlockId;
pub(crate) use ids::StreamKey;
pub(crate) use stats::MemoryStats;

/// The environment's settings of the allocator.
pub(crate) const VARIABLE: &str = "VKACCEL_ALLOC_CONF";

pub use conf::AllocConf;
pub use history::HistoryOptions;
pub use ids::PoolId;
pub use sim::{Events, Placement, Simulator};
pub use snapshot::{
    BlockInfo, BlockState, Frame, MemorySnapshot, SegmentInfo, SettingsInfo, TraceAction,
    TraceEntry,
};
pub use summary::{MemoryUse, memory_summary};
