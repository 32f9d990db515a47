//! Owns device memory and the ways bytes get in, out and about: blocks, staging, copies, fills.

pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod fill;
pub(crate) mod overlap;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "staging does not go through it yet")
)]
pub(crate) mod ring;
pub(crate) mod staging;

pub(crate) use device::{Block, DeviceMemory};
pub(crate) use staging::Staging;
