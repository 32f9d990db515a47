//! What a device's memory looks like at a moment: plain values, with the names of PyTorch's
//! `memory_snapshot`.

use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use super::conf::AllocConf;

/// A device's memory at a moment: every segment with its blocks, the settings in force, and what was
/// recorded until then.
///
/// As `torch.cuda.memory._snapshot()` gives it, for one device; what CUDA alone has is left out.
/// Sizes are in bytes, addresses are the device's.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemorySnapshot {
    /// The index of the device.
    pub device: u32,
    /// What the device has in all; 0 where nobody knows.
    pub total_bytes: u64,
    /// The segments, the oldest first.
    pub segments: Vec<SegmentInfo>,
    /// How the allocator is set.
    pub settings: SettingsInfo,
    /// What was recorded, the oldest first; empty while nothing is recorded.
    pub history: Vec<TraceEntry>,
    /// How many entries had to make room for newer ones.
    pub history_dropped: u64,
}

/// A segment: memory that the driver gave in one piece.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its number among all that the device was ever asked for and gave, from 0.
    pub registration_counter: u64,
    /// Where it starts.
    pub address: u64,
    /// Its size.
    pub total_size: u64,
    /// What callers asked for, of the blocks that are active.
    pub requested_size: u64,
    /// The size of the blocks that are handed out.
    pub allocated_size: u64,
    /// The size of the blocks that are handed out, or given back and still in use.
    pub active_size: u64,
    /// The stream that it serves: its [`Stream::id`](crate::Stream::id), or the number that the
    /// [`Simulator`](super::Simulator) was given.
    pub stream: u64,
    /// Whether it serves requests of more than 1 MiB.
    pub is_large: bool,
    /// The private pool that owns it; `(0, 0)` for none.
    pub pool: (u64, u64),
    /// Its blocks, in order of their addresses, without gaps.
    pub blocks: Vec<BlockInfo>,
    /// Who caused it, where that was recorded.
    pub frames: Arc<[Frame]>,
}

/// A block: a piece of a segment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BlockInfo {
    /// Where it starts.
    pub address: u64,
    /// Its size, rounding included.
    pub size: u64,
    /// What the caller asked for; of a free block 0.
    pub requested_size: u64,
    /// For how many searches of its pool it has been free; 0 where that is not counted.
    pub gc_counter: u64,
    /// Whether it is in use.
    pub state: BlockState,
    /// Who allocated it, where that was recorded.
    pub frames: Arc<[Frame]>,
}

/// Whether a block is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockState {
    /// Handed out.
    ActiveAllocated,
    /// Given back, while commands that use it are unfinished.
    ActivePendingFree,
    /// Free.
    #[default]
    Inactive,
}

impl BlockState {
    /// The name that PyTorch's snapshots have for it.
    ///
    /// # Example
    ///
    /// ```
    /// assert_eq!(vkaccel::alloc::BlockState::Inactive.name(), "inactive");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveAllocated => "active_allocated",
            Self::ActivePendingFree => "active_pending_free",
            Self::Inactive => "inactive",
        }
    }
}

/// The settings in force.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SettingsInfo {
    /// Those that a text sets.
    pub conf: AllocConf,
    /// The share of the device that this process may hold, where one is set.
    pub memory_fraction: Option<f64>,
    /// The bytes that this process may hold, where a limit is set.
    pub limit_bytes: Option<u64>,
}

/// Something that an allocator did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TraceEntry {
    /// What.
    pub action: TraceAction,
    /// Where the block or segment starts; 0 where it is about none.
    pub address: u64,
    /// The bytes that were asked for, of blocks; the size of segments.
    pub size: u64,
    /// The stream that it was done for, as in [`SegmentInfo::stream`].
    pub stream: u64,
    /// The private pool, `(0, 0)` for none.
    pub pool: (u64, u64),
    /// When, in microseconds since 1970.
    pub time_us: u64,
    /// What the device had free when it was out of memory, in bytes; 0 of other actions.
    pub device_free: u64,
    /// Who caused it, where that was recorded.
    pub frames: Arc<[Frame]>,
}

/// What an allocator does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceAction {
    /// A block was handed out.
    #[default]
    Alloc,
    /// A block was given back.
    FreeRequested,
    /// A block that was given back can be used again.
    FreeCompleted,
    /// The driver gave a segment.
    SegmentAlloc,
    /// A segment went back to the driver.
    SegmentFree,
    /// A request failed for want of memory.
    Oom,
    /// A snapshot was taken.
    Snapshot,
}

impl TraceAction {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::Oom,
        Self::Snapshot,
    ];

    /// The name that PyTorch's snapshots have for it.
    ///
    /// # Example
    ///
    /// ```
    /// assert_eq!(vkaccel::alloc::TraceAction::SegmentFree.name(), "segment_free");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::Oom => "oom",
            Self::Snapshot => "snapshot",
        }
    }

    /// The action of that name.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::alloc::TraceAction;
    ///
    /// assert_eq!(TraceAction::from_name("oom"), Some(TraceAction::Oom));
    /// assert_eq!(TraceAction::from_name("segment_map"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|action| action.name() == name)
    }
}

/// A place in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The function; empty where only the place of the call is known.
    pub name: Cow<'static, str>,
    /// The file.
    pub filename: Cow<'static, str>,
    /// The line, from 1; 0 where it is not known.
    pub line: u32,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.filename, &*self.name) {
            ("", name) => f.write_str(name),
            (file, "") => write!(f, "{file}:{}", self.line),
            (file, name) => write!(f, "{file}:{} {name}", self.line),
        }
    }
}

impl SegmentInfo {
    /// Sums up the blocks.
    pub(crate) fn sum_blocks(&mut self) {
        let sum = |of: fn(&BlockInfo) -> bool, what: fn(&BlockInfo) -> u64| -> u64 {
            let blocks = self.blocks.iter().filter(|block| of(block));
            blocks.map(what).sum()
        };
        let active = |block: &BlockInfo| block.state != BlockState::Inactive;
        let allocated = |block: &BlockInfo| block.state == BlockState::ActiveAllocated;
        self.requested_size = sum(active, |block| block.requested_size);
        self.active_size = sum(active, |block| block.size);
        self.allocated_size = sum(allocated, |block| block.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_a_segment_are_those_of_its_blocks() {
        let block = |state, size, requested_size| BlockInfo {
            state,
            size,
            requested_size,
            ..BlockInfo::default()
        };
        let mut segment = SegmentInfo {
            blocks: vec![
                block(BlockState::ActiveAllocated, 1024, 600),
                block(BlockState::ActivePendingFree, 512, 1),
                block(BlockState::Inactive, 4096, 0),
            ],
            ..SegmentInfo::default()
        };
        segment.sum_blocks();
        let sums = (
            segment.requested_size,
            segment.allocated_size,
            segment.active_size,
        );
        assert_eq!(sums, (601, 1024, 1536));
    }

    #[test]
    fn a_frame_tells_what_is_known_of_it() {
        let frame = |name: &'static str, filename: &'static str| Frame {
            name: name.into(),
            filename: filename.into(),
            line: 3,
        };
        assert_eq!(frame("f", "a.rs").to_string(), "a.rs:3 f");
        assert_eq!(frame("", "a.rs").to_string(), "a.rs:3");
        assert_eq!(frame("f", "").to_string(), "f");
    }

    #[test]
    fn every_action_is_found_by_its_name() {
        for &action in TraceAction::ALL {
            assert_eq!(TraceAction::from_name(action.name()), Some(action));
        }
    }
}
