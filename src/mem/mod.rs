//! Owns device memory and the ways bytes get in, out and about: blocks, staging, copies, fills.

pub(crate) mod block;
pub(crate) mod copy;
pub(crate) mod device;
mod exhausted;
pub(crate) mod fill;
pub(crate) mod limit;
pub(crate) mod overlap;
pub(crate) mod pressure;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "staging does not go through it yet")
)]
pub(crate) mod ring;
mod settings;
pub(crate) mod staging;

pub(crate) use block::Block;
pub(crate) use device::DeviceMemory;
pub(crate) use settings::MemorySettings;
pub(crate) use staging::Staging;
