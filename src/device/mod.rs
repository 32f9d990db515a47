//! Owns what a device is before it is opened: its name, its properties as plain data, which devices
//! are visible, and the plan of how one would be opened. Pure.

mod arg;
mod capability;
mod dtype;
pub(crate) mod extension;
pub(crate) mod feature;
pub(crate) mod info;
mod limits;
pub(crate) mod mask;
pub(crate) mod memory_info;
pub(crate) mod memory_plan;
mod name;
pub(crate) mod plan;
#[cfg(test)]
#[cfg(test_data)]
mod recorded;
#[cfg(test)]
mod samples;
pub(crate) mod select;
mod uuid;

pub use arg::DeviceArg;
pub use capability::DeviceCapability;
pub use dtype::{DType, DTypeSet};
pub use feature::{Feature, FeatureSet};
pub use info::{DeviceType, Version};
pub use limits::DeviceLimits;
pub use memory_info::{MemoryInfo, MemoryInfoSource};
pub use name::Device;
pub use select::Candidate;
