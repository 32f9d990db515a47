//! A Vulkan compute runtime for any vendor's device.

mod api;
mod base;
mod device;
mod error;
mod exec;
mod kernel;
mod mem;
mod runtime;
mod vk;

pub use api::{Buffer, Download, Kernel, KernelBuilder, View};
pub use device::{
    Candidate, DType, DTypeSet, Device, DeviceArg, DeviceCapability, DeviceLimits, DeviceType,
    Feature, FeatureSet, MemoryInfo, MemoryInfoSource, Version,
};
pub use error::{Details, Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};
pub use kernel::{
    Access, Address, Arg, Args, Binding, BindingKind, Extent, Grid, Interface, Member, PushBlock,
    Scalar, Source, SpecConstant, SpecValue, Spirv, Type,
};
pub use runtime::{
    DeviceIndexGuard, Runtime, RuntimeBuilder, RuntimeGuard, Stream, StreamGuard, with_device,
};
pub use vk::debug::{Severity, ValidationMessage};
pub use vk::entry::GetInstanceProcAddr;
