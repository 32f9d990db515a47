#![doc = include_str!("crate_docs.md")]

// What users may rely on: handles go from thread to thread.
const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Runtime>();
    send_and_sync::<Device>();
    send_and_sync::<DeviceCapability>();
    send_and_sync::<Stream>();
    send_and_sync::<Event>();
    send_and_sync::<Buffer<u8>>();
    send_and_sync::<View<'_, u8>>();
    send_and_sync::<Download<u8>>();
    send_and_sync::<PinnedBuffer<u8>>();
    send_and_sync::<PinnedRead<'_, u8>>();
    send_and_sync::<PinnedWrite<'_, u8>>();
    send_and_sync::<HostMemoryStats>();
    send_and_sync::<RuntimeMemory>();
    send_and_sync::<Kernel>();
    send_and_sync::<Error>();
    send_and_sync::<MemoryStats>();
    send_and_sync::<Generator>();
    send_and_sync::<Graph>();
    send_and_sync::<Philox>();
    send_and_sync::<RngState>();
    send_and_sync::<MemPool>();
    send_and_sync::<PressureHandle>();
};

pub mod alloc;
mod base;
mod device;
mod error;
mod exec;
mod graph;
mod kernel;
mod mem;
mod rng;
mod runtime;
mod vk;

// After `runtime`: the docs show methods in this order, and streams and events are made there.
mod api;

pub use alloc::host::{DurationStat, HostMemoryStats};
pub use alloc::stats::{MemoryStats, MemoryStatsDelta, PoolStat, PoolStatDelta, Stat, StatDelta};
pub use alloc::{HistoryOptions, MemorySnapshot, PoolId};
pub use api::surface::*;
pub use api::{
    Buffer, CaptureErrorMode, Download, Generator, Graph, GraphBuilder, Kernel, KernelBuilder,
    MemPool, PinnedBuffer, PinnedRead, PinnedWrite, Rows, View,
};
pub use base::counters::Counters;
pub use bytemuck::{self, Pod};
pub use device::{
    Candidate, DType, DTypeSet, Device, DeviceArg, DeviceCapability, DeviceLimits, DeviceType,
    Feature, FeatureSet, MemoryInfo, MemoryInfoSource, Version,
};
pub use error::{Details, Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};
pub use kernel::{
    Access, Address, Arg, Args, Binding, BindingKind, Extent, Grid, Interface, Member, PushBlock,
    Scalar, Source, SpecConstant, SpecValue, Spirv, Type,
};
pub use mem::ledger::RuntimeMemory;
pub use mem::pressure::{Pressure, PressureHandle};
pub use rng::{Philox, RandomFloat, RandomInteger, RandomTruth, RngState};
pub use runtime::{
    DeviceIndexGuard, Event, Runtime, RuntimeBuilder, RuntimeGuard, Stream, StreamGuard,
};
pub use vk::debug::{Severity, ValidationMessage};
pub use vk::entry::GetInstanceProcAddr;
