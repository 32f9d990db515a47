//! Owns the decisions of the memory allocator, and what can be seen of them: no Vulkan, no driver.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the allocator that records them is not there yet")
)]
pub(crate) mod history;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the allocator that takes them is not there yet")
)]
mod snapshot;

pub use history::HistoryOptions;
pub use snapshot::{
    BlockInfo, BlockState, Frame, MemorySnapshot, SegmentInfo, SettingsInfo, TraceAction,
    TraceEntry,
};
