//! A Vulkan compute runtime for any vendor's device.

mod base;
mod device;
mod error;
mod exec;
mod kernel;
mod mem;
mod vk;

pub use device::{
    Candidate, DType, DTypeSet, Device, DeviceArg, DeviceCapability, DeviceLimits, DeviceType,
    Feature, FeatureSet, MemoryInfo, MemoryInfoSource, Version,
};
pub use error::{Details, Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};
pub use kernel::{
    Access, Address, Arg, Args, Binding, BindingKind, Extent, Grid, Interface, Member, PushBlock,
    Scalar, Source, SpecConstant, SpecValue, Spirv, Type,
};
