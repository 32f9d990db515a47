//! Owns device memory and the ways bytes get in, out and about: blocks, staging, copies, fills.

pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod fill;
pub(crate) mod overlap;
pub(crate) mod staging;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the allocator that records them is not there yet")
)]
pub(crate) mod stats;

pub(crate) use device::{Block, DeviceMemory};
pub(crate) use staging::Staging;
