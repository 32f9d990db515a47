//! Owns device memory and the ways bytes get in, out and about: blocks, staging, copies, fills.

pub(crate) mod block;
pub(crate) mod copy;
pub(crate) mod device;
mod direct;
mod exhausted;
pub(crate) mod fill;
pub(crate) mod host;
mod kept;
mod leaving;
pub(crate) mod ledger;
pub(crate) mod limit;
mod neighbour;
pub(crate) mod overlap;
pub(crate) mod peer;
pub(crate) mod pinned;
pub(crate) mod pressure;
mod ring;
mod settings;
pub(crate) mod staging;
mod strided;
mod temp;
mod transfer;

pub(crate) use block::{Block, Home};
pub(crate) use device::DeviceMemory;
pub(crate) use host::{DeviceHost, HostMemory};
pub(crate) use settings::MemorySettings;
pub(crate) use staging::Staging;
pub(crate) use temp::Through;
pub(crate) use transfer::Rows;
