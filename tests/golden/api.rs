// @generated from spec/api.yaml by build.rs (codegen/). Change the spec, not this text.

use core::time::Duration;
use std::path::Path;

use crate::{
    Device, DeviceArg, DeviceCapability, DeviceIndexGuard, Event, Graph, MemPool, PoolId, Result,
    Runtime, Stream,
};

pub use crate::api::root::with_device;

pub use self::memory::{
    allocator_settings, empty_cache, empty_host_cache, get_memory_info,
    get_per_process_memory_fraction, host_memory_limit, host_memory_stats, max_memory_allocated,
    max_memory_reserved, memory_allocated, memory_limit, memory_reserved, memory_snapshot,
    memory_stats, memory_summary, on_pressure, private_pool_bytes, record_memory_history,
    reset_accumulated_host_memory_stats, reset_accumulated_memory_stats,
    reset_peak_host_memory_stats, reset_peak_memory_stats, runtime_memory, set_allocator_settings,
    set_host_memory_limit, set_memory_limit, set_per_process_memory_fraction,
};

/// What is written by hand for `root`: a body for each declared entry.
pub(crate) trait RootBodies {
    fn is_available(&self) -> bool;
    fn device_count(&self) -> usize;
    fn current_accelerator(&self, check_available: bool) -> Option<Device>;
    #[track_caller]
    fn current_device_index(&self) -> Result<usize>;
    #[track_caller]
    fn set_device_index(&self, device: DeviceArg) -> Result<()>;
    #[track_caller]
    fn get_device_capability(&self, device: DeviceArg) -> Result<DeviceCapability>;
    #[track_caller]
    fn current_stream(&self, device: DeviceArg) -> Result<Stream>;
    #[track_caller]
    fn set_stream(&self, stream: &Stream) -> Result<()>;
    #[track_caller]
    fn synchronize(&self, device: DeviceArg) -> Result<()>;
    #[track_caller]
    fn device_index(&self, device: DeviceArg) -> Result<DeviceIndexGuard>;
}

/// Whether there is at least one device to compute on.
///
/// `false` where the Vulkan loader is missing, no driver answers, every device was left out or
/// hidden by `VKACCEL_VISIBLE_DEVICES`; [`Runtime::selection`] tells which of these it is. Settings
/// of its memory hide no device: a fault in them is told by the calls that need them.
/// Opens no device and leaves a later fork safe. A forked child gets the answer that its parent
/// had.
///
/// In PyTorch: `torch.accelerator.is_available`.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// if !vkaccel::is_available() {
///     println!("no device: computing on the CPU");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.is_available")]
pub fn is_available() -> bool {
    RootBodies::is_available(&Runtime::current())
}

/// The number of visible devices.
///
/// Devices are numbered from 0 to one less than this. 0 for whatever reason there is none; never
/// an error. Opens no device and leaves a later fork safe. A forked child gets the answer that
/// its parent had.
///
/// In PyTorch: `torch.accelerator.device_count`.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// for index in 0..vkaccel::device_count() {
///     println!("{}", vkaccel::get_device_capability(index)?.name());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.device_count")]
pub fn device_count() -> usize {
    RootBodies::device_count(&Runtime::current())
}

/// The kind of device that this crate computes on, without an index.
///
/// It is always [`Device::any`]: the kind is settled when the crate is built, and says nothing
/// about this machine. With `check_available` it is `None` unless [`is_available`] holds. Opens
/// no device and leaves a later fork safe.
///
/// In PyTorch: `torch.accelerator.current_accelerator`. There the kind depends on the build, and is
/// absent from one without an accelerator; this crate has one kind.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// let kind = vkaccel::current_accelerator(false);
/// assert_eq!(kind, Some(vkaccel::Device::any()));
/// let usable = vkaccel::current_accelerator(true);
/// assert_eq!(usable.is_some(), vkaccel::is_available());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.current_accelerator")]
pub fn current_accelerator(check_available: bool) -> Option<Device> {
    RootBodies::current_accelerator(&Runtime::current(), check_available)
}

/// The index of the calling thread's current device.
///
/// Every thread starts with device 0. Opens no device.
///
/// In PyTorch: `torch.accelerator.current_device_index`. Without any device both fail, here with an
/// error that says why there is none.
///
/// # Errors
///
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): A setting, from the environment or a builder, has no
///   valid value.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let index = vkaccel::current_device_index()?;
/// assert!(index < vkaccel::device_count());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.current_device_index")]
#[track_caller]
pub fn current_device_index() -> Result<usize> {
    RootBodies::current_device_index(&Runtime::current())
}

/// An older name of [`current_device_index`].
///
/// In PyTorch: `torch.accelerator.current_device_idx`.
///
/// # Errors
///
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): A setting, from the environment or a builder, has no
///   valid value.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let index = vkaccel::current_device_index()?;
/// assert!(index < vkaccel::device_count());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.current_device_idx")]
#[deprecated(since = "0.1.0", note = "use `current_device_index`")]
#[track_caller]
pub fn current_device_idx() -> Result<usize> {
    RootBodies::current_device_index(&Runtime::current())
}

/// Makes a device the calling thread's current one.
///
/// Other threads keep theirs. A negative index changes nothing and succeeds. An argument without
/// an index, `None` among them, is an error. The index is checked against [`device_count`]; the
/// device is not opened before its first command.
///
/// [`device_index`] switches for a scope and back.
///
/// In PyTorch: `torch.accelerator.set_device_index`. The index is checked at once, but not by
/// opening the device.
///
/// # Errors
///
/// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the text
///   says what was given and what there is.
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the runtime
///   was built with, makes no sense.
/// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one that
///   had opened a device.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let last = vkaccel::device_count() - 1;
/// vkaccel::set_device_index(last)?;
/// assert_eq!(vkaccel::current_device_index()?, last);
/// vkaccel::set_device_index(-1)?;
/// assert_eq!(vkaccel::current_device_index()?, last);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.set_device_index")]
#[track_caller]
pub fn set_device_index(device: impl Into<DeviceArg>) -> Result<()> {
    RootBodies::set_device_index(&Runtime::current(), device.into())
}

/// An older name of [`set_device_index`].
///
/// In PyTorch: `torch.accelerator.set_device_idx`.
///
/// # Errors
///
/// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the text
///   says what was given and what there is.
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the runtime
///   was built with, makes no sense.
/// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one that
///   had opened a device.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let last = vkaccel::device_count() - 1;
/// vkaccel::set_device_index(last)?;
/// assert_eq!(vkaccel::current_device_index()?, last);
/// vkaccel::set_device_index(-1)?;
/// assert_eq!(vkaccel::current_device_index()?, last);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.set_device_idx")]
#[deprecated(since = "0.1.0", note = "use `set_device_index`")]
#[track_caller]
pub fn set_device_idx(device: impl Into<DeviceArg>) -> Result<()> {
    RootBodies::set_device_index(&Runtime::current(), device.into())
}

/// What a device can do, from its data types to its limits.
///
/// Among it `supported_dtypes`, the types that can be stored and converted into each other there.
/// Answered from queries alone, so no device is opened, and kept for each device: later calls
/// are quick, and clones of the result are cheap.
///
/// In PyTorch: `torch.accelerator.get_device_capability`. There the answer for «the current device»
/// is kept and given again after a switch to another device; here each device keeps its own.
///
/// # Errors
///
/// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the text
///   says what was given and what there is.
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the runtime
///   was built with, makes no sense.
/// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one that
///   had opened a device.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let capability = vkaccel::get_device_capability(None)?;
/// assert!(capability.supported_dtypes().contains(vkaccel::DType::F32));
/// println!("{}", capability.name());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.get_device_capability")]
#[track_caller]
pub fn get_device_capability(device: impl Into<DeviceArg>) -> Result<DeviceCapability> {
    RootBodies::get_device_capability(&Runtime::current(), device.into())
}

/// The calling thread's current stream of a device.
///
/// The default stream of the device until [`set_stream`] chooses another. `None` means the
/// current device. A stream is a name until its first command, so no device is opened.
///
/// In PyTorch: `torch.accelerator.current_stream`.
///
/// # Errors
///
/// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the text
///   says what was given and what there is.
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the runtime
///   was built with, makes no sense.
/// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one that
///   had opened a device.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let stream = vkaccel::current_stream(None)?;
/// stream.synchronize()?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.current_stream")]
#[track_caller]
pub fn current_stream(device: impl Into<DeviceArg>) -> Result<Stream> {
    RootBodies::current_stream(&Runtime::current(), device.into())
}

/// Makes a stream the calling thread's current one, and its device the current device.
///
/// Other threads keep theirs. Opens no device. To switch for a scope and back, enter the stream
/// instead.
///
/// In PyTorch: `torch.accelerator.set_stream`.
///
/// # Errors
///
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `stream` belongs to another runtime
///   than the thread's.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let stream = vkaccel::Stream::new(0)?;
/// vkaccel::set_stream(&stream)?;
/// assert_eq!(vkaccel::current_stream(None)?, stream);
/// assert_eq!(vkaccel::current_device_index()?, 0);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.set_stream")]
#[track_caller]
pub fn set_stream(stream: &Stream) -> Result<()> {
    RootBodies::set_stream(&Runtime::current(), stream)
}

/// Waits until all work of a device, on every stream, has finished.
///
/// `None` means the current device. What other threads add during the call need not have
/// finished. A device that has not been opened has no work: the call returns at once and opens
/// nothing.
///
/// In PyTorch: `torch.accelerator.synchronize`.
///
/// # Errors
///
/// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the text
///   says what was given and what there is.
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the runtime
///   was built with, makes no sense.
/// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one that
///   had opened a device.
///
/// Also what [any wait](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// vkaccel::synchronize(None)?;
/// vkaccel::synchronize("vulkan:0")?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.synchronize")]
#[track_caller]
pub fn synchronize(device: impl Into<DeviceArg>) -> Result<()> {
    RootBodies::synchronize(&Runtime::current(), device.into())
}

/// Makes a device the current one until the guard is dropped.
///
/// The guard puts back the device that was current before, also when the scope is left by an
/// error or a panic. Guards nest, and may be dropped in any order. `None` or a negative index:
/// nothing is switched, and nothing is put back. Opens no device.
///
/// Bind the guard to a name: `let _ = device_index(1)?;` drops it at once. [`with_device`] takes
/// a closure and can't be held wrongly.
///
/// In PyTorch: `torch.accelerator.device_index`. It is a class for `with` there, and takes an
/// integer or `None` only.
///
/// # Errors
///
/// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the text
///   says what was given and what there is.
/// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
/// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
/// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the runtime
///   was built with, makes no sense.
/// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one that
///   had opened a device.
///
/// Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # fn main() -> vkaccel::Result<()> {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let before = vkaccel::current_device_index()?;
/// {
///     let _guard = vkaccel::device_index(0)?;
///     assert_eq!(vkaccel::current_device_index()?, 0);
/// }
/// assert_eq!(vkaccel::current_device_index()?, before);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "torch.accelerator.device_index")]
#[track_caller]
pub fn device_index(device: impl Into<DeviceArg>) -> Result<DeviceIndexGuard> {
    RootBodies::device_index(&Runtime::current(), device.into())
}

/// Device memory, how much there is and who holds it.
///
/// All sizes are in bytes. The functions are at the root of the crate too.
pub mod memory {
    use crate::{
        DeviceArg, HistoryOptions, HostMemoryStats, MemoryInfo, MemorySnapshot, MemoryStats,
        PoolId, Result, Runtime, RuntimeMemory,
    };

    pub use crate::api::memory::on_pressure;

    /// What is written by hand for `memory`: a body for each declared entry.
    pub(crate) trait MemoryBodies {
        #[track_caller]
        fn get_memory_info(&self, device: DeviceArg) -> Result<MemoryInfo>;
        #[track_caller]
        fn empty_cache(&self) -> Result<()>;
        #[track_caller]
        fn empty_host_cache(&self) -> Result<()>;
        #[track_caller]
        fn host_memory_stats(&self) -> Result<HostMemoryStats>;
        #[track_caller]
        fn reset_peak_host_memory_stats(&self) -> Result<()>;
        #[track_caller]
        fn reset_accumulated_host_memory_stats(&self) -> Result<()>;
        #[track_caller]
        fn set_host_memory_limit(&self, bytes: Option<u64>) -> Result<()>;
        #[track_caller]
        fn host_memory_limit(&self) -> Result<Option<u64>>;
        #[track_caller]
        fn runtime_memory(&self, device: DeviceArg) -> Result<RuntimeMemory>;
        #[track_caller]
        fn memory_stats(&self, device: DeviceArg) -> Result<MemoryStats>;
        #[track_caller]
        fn change_memory_stats(
            &self,
            device: DeviceArg,
            change: fn(&mut MemoryStats),
        ) -> Result<()>;
        #[track_caller]
        fn set_per_process_memory_fraction(&self, fraction: f64, device: DeviceArg) -> Result<()>;
        #[track_caller]
        fn get_per_process_memory_fraction(&self, device: DeviceArg) -> Result<f64>;
        #[track_caller]
        fn set_memory_limit(&self, bytes: Option<u64>, device: DeviceArg) -> Result<()>;
        #[track_caller]
        fn memory_limit(&self, device: DeviceArg) -> Result<Option<u64>>;
        #[track_caller]
        fn set_allocator_settings(&self, settings: &str, device: DeviceArg) -> Result<()>;
        #[track_caller]
        fn allocator_settings(&self, device: DeviceArg) -> Result<String>;
        #[track_caller]
        fn memory_summary(&self, device: DeviceArg, abbreviated: bool) -> Result<String>;
        #[track_caller]
        fn memory_snapshot(&self, device: DeviceArg) -> Result<MemorySnapshot>;
        #[track_caller]
        fn record_memory_history(
            &self,
            options: Option<HistoryOptions>,
            device: DeviceArg,
        ) -> Result<()>;
        #[track_caller]
        fn private_pool_bytes(&self, device: DeviceArg) -> Result<Vec<(PoolId, u64)>>;
    }

    /// The memory of a device that is free now, and all it has, in bytes.
    ///
    /// Answered from queries alone, so no device is opened. Free memory is what the driver leaves
    /// this process, where the driver tells (`VK_EXT_memory_budget`), else the total less what this
    /// process holds; [`MemoryInfo::source`](crate::MemoryInfo) tells which. Other programs change
    /// it at any time.
    ///
    /// In PyTorch: `torch.accelerator.memory.get_memory_info`. A record with the source of its
    /// figures, which converts to torch's `(free, total)`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let info = vkaccel::memory::get_memory_info(None)?;
    /// assert!(info.free <= info.total);
    /// let (free, total): (u64, u64) = info.into();
    /// println!("{free} of {total} bytes are free");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.get_memory_info")]
    #[track_caller]
    pub fn get_memory_info(device: impl Into<DeviceArg>) -> Result<MemoryInfo> {
        MemoryBodies::get_memory_info(&Runtime::current(), device.into())
    }

    /// Gives cached memory that no buffer uses back to the driver, on every device that is open.
    ///
    /// Waits for the work in flight first, since memory that a queued command uses can't go. A segment
    /// goes back if all of it is free; what is in between buffers stays. Buffers are untouched. It frees
    /// room for other programs, and costs the next allocations the driver's time; inside one program there
    /// is seldom a reason to call it, since the allocator does the same before it reports that memory
    /// is exhausted.
    ///
    /// In PyTorch: `torch.accelerator.memory.empty_cache`.
    ///
    /// # Errors
    ///
    /// What [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let buffer = vkaccel::Buffer::<u32>::zeroed(1 << 20)?;
    /// drop(buffer);
    /// vkaccel::memory::empty_cache()?;
    /// assert_eq!(vkaccel::memory::memory_reserved(None)?, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.empty_cache")]
    #[track_caller]
    pub fn empty_cache() -> Result<()> {
        MemoryBodies::empty_cache(&Runtime::current())
    }

    /// Gives cached host memory that nothing uses back to the driver, on every device that is open.
    ///
    /// That is what [`PinnedBuffer`](crate::PinnedBuffer)s and downloads have left, and idle memory that
    /// copies go through. It waits for nothing: what queued copies use stays, and goes with the next
    /// call. So a graph capture does not forbid it either. Opens nothing.
    ///
    /// In PyTorch: `torch.accelerator.memory.empty_host_cache`.
    ///
    /// # Errors
    ///
    /// What [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let host = vkaccel::PinnedBuffer::<u8>::new(1 << 20)?;
    /// drop(host);
    /// vkaccel::memory::empty_host_cache()?;
    /// assert_eq!(vkaccel::memory::host_memory_stats()?.allocated_bytes.current, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.empty_host_cache")]
    #[track_caller]
    pub fn empty_host_cache() -> Result<()> {
        MemoryBodies::empty_host_cache(&Runtime::current())
    }

    /// The statistics of pinned host memory, over all devices.
    ///
    /// With the names of PyTorch's statistics. The memory that the runtime itself
    /// copies through is not in them, and neither is imported memory. Opens nothing.
    ///
    /// In PyTorch: `torch.cuda.host_memory_stats`, not in `torch.accelerator`. Asked for in
    /// [pytorch/pytorch#186260](https://github.com/pytorch/pytorch/issues/186260).
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let _host = vkaccel::PinnedBuffer::<u8>::new(1 << 20)?;
    /// let stats = vkaccel::memory::host_memory_stats()?;
    /// assert_eq!(stats.active_bytes.current, 1 << 20);
    /// assert_eq!(stats.get("active_bytes.current"), Some(1 << 20));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.host_memory_stats")]
    #[track_caller]
    pub fn host_memory_stats() -> Result<HostMemoryStats> {
        MemoryBodies::host_memory_stats(&Runtime::current())
    }

    /// Sets every peak of the statistics of pinned host memory to the current value.
    ///
    /// The longest and shortest times start anew.
    ///
    /// In PyTorch: `torch.cuda.reset_peak_host_memory_stats`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::reset_peak_host_memory_stats()?;
    /// let stats = vkaccel::memory::host_memory_stats()?;
    /// assert_eq!(stats.active_bytes.peak, stats.active_bytes.current);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.reset_peak_host_memory_stats")]
    #[track_caller]
    pub fn reset_peak_host_memory_stats() -> Result<()> {
        MemoryBodies::reset_peak_host_memory_stats(&Runtime::current())
    }

    /// Sets the running sums and the counters of the statistics of pinned host memory to 0.
    ///
    /// In PyTorch: `torch.cuda.reset_accumulated_host_memory_stats`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::reset_accumulated_host_memory_stats()?;
    /// assert_eq!(vkaccel::memory::host_memory_stats()?.num_host_alloc, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.reset_accumulated_host_memory_stats")]
    #[track_caller]
    pub fn reset_accumulated_host_memory_stats() -> Result<()> {
        MemoryBodies::reset_accumulated_host_memory_stats(&Runtime::current())
    }

    /// Sets the most bytes of host memory that this process may pin, over all devices.
    ///
    /// `None` lifts the limit. It is held with what is cached; what is pinned already stays. A request
    /// above it fails with `OutOfHostMemory`, before the driver is asked. Imported memory, and the memory that
    /// the runtime itself copies through, do not count. Opens nothing.
    ///
    /// An extension: `torch.accelerator` has nothing like it. Asked for in
    /// [pytorch/pytorch#69688](https://github.com/pytorch/pytorch/issues/69688).
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::set_host_memory_limit(Some(1 << 30))?;
    /// assert_eq!(vkaccel::memory::host_memory_limit()?, Some(1 << 30));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn set_host_memory_limit(bytes: Option<u64>) -> Result<()> {
        MemoryBodies::set_host_memory_limit(&Runtime::current(), bytes)
    }

    /// The most bytes of host memory that this process may pin, where a limit is set.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// assert_eq!(vkaccel::memory::host_memory_limit()?, None);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn host_memory_limit() -> Result<Option<u64>> {
        MemoryBodies::host_memory_limit(&Runtime::current())
    }

    /// The memory that the runtime holds of the device for itself, as to copy through.
    ///
    /// It is in no statistics. Nothing while the device is not open; opens nothing.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// // A pattern that is no whole word is copied in from the host.
    /// let pixels = vkaccel::Buffer::<[u8; 3]>::zeroed(1000)?;
    /// pixels.fill([1, 2, 3])?;
    /// assert!(vkaccel::memory::runtime_memory(None)?.staging_bytes > 0);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn runtime_memory(device: impl Into<DeviceArg>) -> Result<RuntimeMemory> {
        MemoryBodies::runtime_memory(&Runtime::current(), device.into())
    }

    /// The statistics of the device's allocator.
    ///
    /// Empty ([`MemoryStats::is_empty`](crate::MemoryStats)) until the device has its allocator, which is
    /// when it is opened, and where there is no device. Opens nothing. The figures are one moment's: they fit
    /// each other.
    ///
    /// In PyTorch: `torch.accelerator.memory.memory_stats`. A record with typed fields, which gives
    /// torch's flat map with `iter` and `to_map`. The family that torch's pages call `allocated`
    /// and its dictionary `allocation` is found under both names. Whether there is an allocator is
    /// asked of each device.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let buffer = vkaccel::Buffer::<u8>::zeroed(1000)?;
    /// let stats = vkaccel::memory::memory_stats(None)?;
    /// assert_eq!(stats.allocated_bytes.all.current, 1024);
    /// assert_eq!(stats.get("allocated_bytes.all.current"), Some(1024));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.memory_stats")]
    #[track_caller]
    pub fn memory_stats(device: impl Into<DeviceArg>) -> Result<MemoryStats> {
        MemoryBodies::memory_stats(&Runtime::current(), device.into())
    }

    /// The bytes that buffers of the device hold now, rounding included.
    ///
    /// It is `allocated_bytes.all.current` of [`memory_stats`].
    ///
    /// In PyTorch: `torch.accelerator.memory.memory_allocated`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let before = vkaccel::memory::memory_allocated(None)?;
    /// let _buffer = vkaccel::Buffer::<u8>::zeroed(1)?;
    /// assert_eq!(vkaccel::memory::memory_allocated(None)?, before + 512);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.memory_allocated")]
    #[track_caller]
    pub fn memory_allocated(device: impl Into<DeviceArg>) -> Result<u64> {
        let stats = MemoryBodies::memory_stats(&Runtime::current(), device.into())?;
        Ok(stats.allocated_bytes.all.current)
    }

    /// The most bytes that buffers of the device held at a time.
    ///
    /// Since the start, or the last [`reset_peak_memory_stats`].
    ///
    /// It is `allocated_bytes.all.peak` of [`memory_stats`].
    ///
    /// In PyTorch: `torch.accelerator.memory.max_memory_allocated`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// drop(vkaccel::Buffer::<u8>::zeroed(4096)?);
    /// assert!(vkaccel::memory::max_memory_allocated(None)? >= 4096);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.max_memory_allocated")]
    #[track_caller]
    pub fn max_memory_allocated(device: impl Into<DeviceArg>) -> Result<u64> {
        let stats = MemoryBodies::memory_stats(&Runtime::current(), device.into())?;
        Ok(stats.allocated_bytes.all.peak)
    }

    /// The bytes that the allocator holds from the driver now, in use or cached.
    ///
    /// It is `reserved_bytes.all.current` of [`memory_stats`].
    ///
    /// In PyTorch: `torch.accelerator.memory.memory_reserved`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let _buffer = vkaccel::Buffer::<u8>::zeroed(1)?;
    /// assert_eq!(vkaccel::memory::memory_reserved(None)?, 2 << 20);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.memory_reserved")]
    #[track_caller]
    pub fn memory_reserved(device: impl Into<DeviceArg>) -> Result<u64> {
        let stats = MemoryBodies::memory_stats(&Runtime::current(), device.into())?;
        Ok(stats.reserved_bytes.all.current)
    }

    /// The most bytes that the allocator held from the driver at a time.
    ///
    /// Since the start, or the last [`reset_peak_memory_stats`].
    ///
    /// It is `reserved_bytes.all.peak` of [`memory_stats`].
    ///
    /// In PyTorch: `torch.accelerator.memory.max_memory_reserved`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let _buffer = vkaccel::Buffer::<u8>::zeroed(1)?;
    /// assert!(vkaccel::memory::max_memory_reserved(None)? >= 2 << 20);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.max_memory_reserved")]
    #[track_caller]
    pub fn max_memory_reserved(device: impl Into<DeviceArg>) -> Result<u64> {
        let stats = MemoryBodies::memory_stats(&Runtime::current(), device.into())?;
        Ok(stats.reserved_bytes.all.peak)
    }

    /// Sets every peak of the device's statistics to the current value.
    ///
    /// Does nothing while the device has no allocator.
    ///
    /// In PyTorch: `torch.accelerator.memory.reset_peak_memory_stats`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// drop(vkaccel::Buffer::<u8>::zeroed(4096)?);
    /// vkaccel::memory::reset_peak_memory_stats(None)?;
    /// assert_eq!(vkaccel::memory::max_memory_allocated(None)?, vkaccel::memory::memory_allocated(None)?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.reset_peak_memory_stats")]
    #[track_caller]
    pub fn reset_peak_memory_stats(device: impl Into<DeviceArg>) -> Result<()> {
        MemoryBodies::change_memory_stats(
            &Runtime::current(),
            device.into(),
            MemoryStats::reset_peak,
        )
    }

    /// Sets the running sums and the event counters of the device's statistics to 0.
    ///
    /// Does nothing while the device has no allocator.
    ///
    /// In PyTorch: `torch.accelerator.memory.reset_accumulated_memory_stats`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// drop(vkaccel::Buffer::<u8>::zeroed(4096)?);
    /// vkaccel::memory::reset_accumulated_memory_stats(None)?;
    /// assert_eq!(vkaccel::memory::memory_stats(None)?.allocated.all.allocated, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.memory.reset_accumulated_memory_stats")]
    #[track_caller]
    pub fn reset_accumulated_memory_stats(device: impl Into<DeviceArg>) -> Result<()> {
        MemoryBodies::change_memory_stats(
            &Runtime::current(),
            device.into(),
            MemoryStats::reset_accumulated,
        )
    }

    /// Bounds what this process may hold of the device's memory, as a part of all there is.
    ///
    /// From 0 (nothing) to 1 (all, which is where it starts). What is held already stays; the next request
    /// that would exceed the bound gives cached memory back first, and then fails with
    /// [`OutOfMemoryReason::OverLimit`](crate::OutOfMemoryReason), without asking the driver. It holds for
    /// the device's segments, not for pinned host memory. Opens nothing: a bound for a device that is not
    /// open takes effect when it is.
    ///
    /// In PyTorch: `torch.cuda.set_per_process_memory_fraction`, not in `torch.accelerator`. Asked
    /// for in [pytorch/pytorch#69688](https://github.com/pytorch/pytorch/issues/69688).
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `fraction` is no number from 0 to
    ///   1.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::set_per_process_memory_fraction(0.5, None)?;
    /// assert_eq!(vkaccel::memory::get_per_process_memory_fraction(None)?, 0.5);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.set_per_process_memory_fraction")]
    #[track_caller]
    pub fn set_per_process_memory_fraction(
        fraction: f64,
        device: impl Into<DeviceArg>,
    ) -> Result<()> {
        MemoryBodies::set_per_process_memory_fraction(&Runtime::current(), fraction, device.into())
    }

    /// The part of the device's memory that this process may hold; 1 unless it was set.
    ///
    /// In PyTorch: `torch.cuda.get_per_process_memory_fraction`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// assert_eq!(vkaccel::memory::get_per_process_memory_fraction(None)?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.get_per_process_memory_fraction")]
    #[track_caller]
    pub fn get_per_process_memory_fraction(device: impl Into<DeviceArg>) -> Result<f64> {
        MemoryBodies::get_per_process_memory_fraction(&Runtime::current(), device.into())
    }

    /// Sets the most bytes that this process may hold of the device's memory.
    ///
    /// `None` lifts the limit. As [`set_per_process_memory_fraction`], in bytes; where both are set, both hold. Unlike one that
    /// the fraction alone refuses, a refused request counts in `num_oom_rejections`. The environment variable
    /// `VKACCEL_MEMORY_LIMIT` (bytes, or a number with `KiB`, `MiB`, `GiB` or `TiB`) sets it for every device of the process
    /// from the start.
    ///
    /// An extension: `torch.accelerator` has nothing like it. Asked for in
    /// [pytorch/pytorch#166802](https://github.com/pytorch/pytorch/issues/166802).
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::set_memory_limit(Some(1 << 30), None)?;
    /// assert_eq!(vkaccel::memory::memory_limit(None)?, Some(1 << 30));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn set_memory_limit(bytes: Option<u64>, device: impl Into<DeviceArg>) -> Result<()> {
        MemoryBodies::set_memory_limit(&Runtime::current(), bytes, device.into())
    }

    /// The most bytes that this process may hold of the device's memory, where a limit is set.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// assert_eq!(vkaccel::memory::memory_limit(None)?, None);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn memory_limit(device: impl Into<DeviceArg>) -> Result<Option<u64>> {
        MemoryBodies::memory_limit(&Runtime::current(), device.into())
    }

    /// Changes how the device's memory is cached, in the words of `PYTORCH_ALLOC_CONF`.
    ///
    /// A list of `key:value`, separated by commas; what it does not name goes back to its default. See
    /// [`AllocConf`](crate::alloc::AllocConf) for the keys. It takes effect with the next request; memory
    /// that is held already stays as it is. At the start the settings are those of
    /// [`RuntimeBuilder::alloc_conf`](crate::RuntimeBuilder), else of the environment variable
    /// `VKACCEL_ALLOC_CONF`. Opens nothing.
    ///
    /// In PyTorch: `torch.cuda.memory._set_allocator_settings`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `settings` has a key or value that makes no sense,
    ///   or one that is not supported here; the text says why. So too if `VKACCEL_VISIBLE_DEVICES`,
    ///   `VKACCEL_ALLOC_CONF` or `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was
    ///   built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::set_allocator_settings("max_split_size_mb:64", None)?;
    /// assert_eq!(vkaccel::memory::allocator_settings(None)?, "max_split_size_mb:64");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.memory._set_allocator_settings")]
    #[track_caller]
    pub fn set_allocator_settings(settings: &str, device: impl Into<DeviceArg>) -> Result<()> {
        MemoryBodies::set_allocator_settings(&Runtime::current(), settings, device.into())
    }

    /// The settings in force that differ from the defaults, in the words of `PYTORCH_ALLOC_CONF`.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// println!("settings: {}", vkaccel::memory::allocator_settings(None)?);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn allocator_settings(device: impl Into<DeviceArg>) -> Result<String> {
        MemoryBodies::allocator_settings(&Runtime::current(), device.into())
    }

    /// A table of the device's memory, for people to read.
    ///
    /// The settings in force, every statistic in units that people read, and what the memory that is held is
    /// used for. An abbreviated one leaves out the pools. Opens nothing.
    ///
    /// In PyTorch: `torch.cuda.memory_summary`, not in `torch.accelerator`. Asked for in
    /// [pytorch/pytorch#189014](https://github.com/pytorch/pytorch/issues/189014).
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// println!("{}", vkaccel::memory::memory_summary(None, true)?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.memory_summary")]
    #[track_caller]
    pub fn memory_summary(device: impl Into<DeviceArg>, abbreviated: bool) -> Result<String> {
        MemoryBodies::memory_summary(&Runtime::current(), device.into(), abbreviated)
    }

    /// The segments and blocks of the device's memory, and what was recorded of it.
    ///
    /// The same moment for all of it. Without segments while the device is not open.
    ///
    /// In PyTorch: `torch.cuda.memory._snapshot`, not in `torch.accelerator`. Asked for in
    /// [pytorch/pytorch#189014](https://github.com/pytorch/pytorch/issues/189014).
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let _buffer = vkaccel::Buffer::<u8>::zeroed(1000)?;
    /// let snapshot = vkaccel::memory::memory_snapshot(None)?;
    /// assert_eq!(snapshot.segments[0].blocks[0].requested_size, 1000);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.memory._snapshot")]
    #[track_caller]
    pub fn memory_snapshot(device: impl Into<DeviceArg>) -> Result<MemorySnapshot> {
        MemoryBodies::memory_snapshot(&Runtime::current(), device.into())
    }

    /// Records what the device's allocator does from now on; `None` stops and forgets.
    ///
    /// Each entry knows the place of the call, and the stack where the options ask for it. The newest
    /// entries are kept, as many as the options say. [`memory_snapshot`] gives them. Off at the start, and
    /// then free of cost. Opens nothing.
    ///
    /// In PyTorch: `torch.cuda.memory._record_memory_history`, not in `torch.accelerator`. Asked
    /// for in [pytorch/pytorch#186260](https://github.com/pytorch/pytorch/issues/186260).
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::memory::record_memory_history(Some(vkaccel::HistoryOptions::default()), None)?;
    /// drop(vkaccel::Buffer::<u8>::zeroed(1000)?);
    /// assert!(!vkaccel::memory::memory_snapshot(None)?.history.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.memory._record_memory_history")]
    #[track_caller]
    pub fn record_memory_history(
        options: Option<HistoryOptions>,
        device: impl Into<DeviceArg>,
    ) -> Result<()> {
        MemoryBodies::record_memory_history(&Runtime::current(), options, device.into())
    }

    /// The bytes that each private pool holds from the driver.
    ///
    /// Sorted by id; the memory counts in `reserved_bytes` of [`memory_stats`] too. A pool without a handle
    /// is listed until all its memory has gone back to the driver.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let pool = vkaccel::MemPool::new(None)?;
    /// let _buffer = pool.scope(|| vkaccel::Buffer::<u8>::zeroed(1))?;
    /// assert_eq!(vkaccel::memory::private_pool_bytes(None)?, [(pool.id(), 2 << 20)]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn private_pool_bytes(device: impl Into<DeviceArg>) -> Result<Vec<(PoolId, u64)>> {
        MemoryBodies::private_pool_bytes(&Runtime::current(), device.into())
    }
}

/// The default generators of devices, their seeds and states.
///
/// Each device has one: a 64-bit seed, and an offset that counts 32-bit draws since it was set.
/// [`Generator`](crate::Generator) fills memory with its numbers, and makes others beside it. The
/// seed is 67280421310721 until one is set.
///
/// Setting a seed or a state opens no device, neither at once nor later: the state is the host's.
/// It counts for everything that is drawn after it, from whichever thread; the last one set wins.
pub mod random {
    use crate::{DeviceArg, Result, RngState, Runtime};

    pub use crate::api::random::parse_seed;

    /// What is written by hand for `random`: a body for each declared entry.
    pub(crate) trait RandomBodies {
        #[track_caller]
        fn initial_seed(&self, device: DeviceArg) -> Result<u64>;
        #[track_caller]
        fn get_rng_state(&self, device: DeviceArg) -> Result<RngState>;
        #[track_caller]
        fn get_rng_state_all(&self) -> Result<Vec<RngState>>;
        #[track_caller]
        fn manual_seed(&self, seed: u64) -> Result<()>;
        #[track_caller]
        fn manual_seed_all(&self, seed: u64) -> Result<()>;
        #[track_caller]
        fn seed(&self) -> Result<u64>;
        #[track_caller]
        fn seed_all(&self) -> Result<u64>;
        #[track_caller]
        fn set_rng_state(&self, state: &RngState, device: DeviceArg) -> Result<()>;
        #[track_caller]
        fn set_rng_state_all(&self, states: &[RngState]) -> Result<()>;
        #[track_caller]
        fn get_offset(&self, device: DeviceArg) -> Result<u64>;
        #[track_caller]
        fn set_offset(&self, offset: u64, device: DeviceArg) -> Result<()>;
    }

    /// The seed of a device's default generator.
    ///
    /// The one that was set last, 67280421310721 before any. As PyTorch documents, the call starts the
    /// runtime: it opens the device.
    ///
    /// In PyTorch: `torch.accelerator.random.initial_seed`.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    /// - [`Driver`](crate::ErrorKind::Driver): The driver could not open the device.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::random::manual_seed(7)?;
    /// assert_eq!(vkaccel::random::initial_seed(None)?, 7);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.random.initial_seed")]
    #[track_caller]
    pub fn initial_seed(device: impl Into<DeviceArg>) -> Result<u64> {
        RandomBodies::initial_seed(&Runtime::current(), device.into())
    }

    /// The state of a device's default generator, 16 bytes.
    ///
    /// Seed and offset, as 64-bit little-endian numbers. Setting it again with [`set_rng_state`] gives
    /// the same numbers again. As PyTorch documents, the call starts the runtime: it opens the device.
    ///
    /// In PyTorch: `torch.accelerator.random.get_rng_state`. A record of 16 bytes, where there is a
    /// tensor of them.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    /// - [`Driver`](crate::ErrorKind::Driver): The driver could not open the device.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let before = vkaccel::random::get_rng_state(None)?;
    /// vkaccel::random::set_rng_state(&before, None)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.random.get_rng_state")]
    #[track_caller]
    pub fn get_rng_state(device: impl Into<DeviceArg>) -> Result<RngState> {
        RandomBodies::get_rng_state(&Runtime::current(), device.into())
    }

    /// The states of the default generators of all visible devices, by their index.
    ///
    /// As PyTorch documents, the call starts the runtime: it opens the current device, and leaves the
    /// others as they are.
    ///
    /// In PyTorch: `torch.accelerator.random.get_rng_state_all`.
    ///
    /// # Errors
    ///
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    /// - [`Driver`](crate::ErrorKind::Driver): The driver could not open the device.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let states = vkaccel::random::get_rng_state_all()?;
    /// assert_eq!(states.len(), vkaccel::device_count());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.random.get_rng_state_all")]
    #[track_caller]
    pub fn get_rng_state_all() -> Result<Vec<RngState>> {
        RandomBodies::get_rng_state_all(&Runtime::current())
    }

    /// Seeds the default generator of the calling thread's current device.
    ///
    /// Its offset becomes 0. Opens no device and asks no driver; succeeds also where there is no
    /// device. All 64 bits count; for a seed in text see [`parse_seed`].
    ///
    /// In PyTorch: `torch.cuda.manual_seed`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::random::manual_seed(42)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.manual_seed")]
    #[track_caller]
    pub fn manual_seed(seed: u64) -> Result<()> {
        RandomBodies::manual_seed(&Runtime::current(), seed)
    }

    /// Seeds the default generators of all devices.
    ///
    /// Their offsets become 0. Opens no device and asks no driver; succeeds also where there is no
    /// device.
    ///
    /// In PyTorch: `torch.cuda.manual_seed_all`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::random::manual_seed_all(42)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.manual_seed_all")]
    #[track_caller]
    pub fn manual_seed_all(seed: u64) -> Result<()> {
        RandomBodies::manual_seed_all(&Runtime::current(), seed)
    }

    /// Gives the default generator of the current device a fresh seed, and returns it.
    ///
    /// It comes from the operating system's randomness and the clock: no two calls, threads or
    /// processes get the same but by chance. Not for cryptography. Opens no device.
    ///
    /// In PyTorch: `torch.cuda.seed`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let seed = vkaccel::random::seed()?;
    /// vkaccel::random::manual_seed(seed)?; // the same numbers again
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.seed")]
    #[track_caller]
    pub fn seed() -> Result<u64> {
        RandomBodies::seed(&Runtime::current())
    }

    /// Gives the default generators of all devices one fresh seed, and returns it.
    ///
    /// As [`seed`] makes it. Opens no device.
    ///
    /// In PyTorch: `torch.cuda.seed_all`, not in `torch.accelerator`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let seed = vkaccel::random::seed_all()?;
    /// vkaccel::random::manual_seed_all(seed)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.seed_all")]
    #[track_caller]
    pub fn seed_all() -> Result<u64> {
        RandomBodies::seed_all(&Runtime::current())
    }

    /// Sets the state of a device's default generator.
    ///
    /// Opens no device. Where there is none at all, nothing is set and the call succeeds. After an error
    /// the state is what it was.
    ///
    /// In PyTorch: `torch.cuda.set_rng_state`, not in `torch.accelerator`. Asked for in
    /// [pytorch/pytorch#186600](https://github.com/pytorch/pytorch/issues/186600).
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): The offset of the state is no
    ///   multiple of 4.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let state = vkaccel::RngState::from_parts(42, 8);
    /// vkaccel::random::set_rng_state(&state, None)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.set_rng_state")]
    #[track_caller]
    pub fn set_rng_state(state: &RngState, device: impl Into<DeviceArg>) -> Result<()> {
        RandomBodies::set_rng_state(&Runtime::current(), state, device.into())
    }

    /// Sets the states of the default generators of all visible devices, by their index.
    ///
    /// As many as there are devices. Opens no device. Where there is none at all, nothing is set and
    /// the call succeeds. After an error all states are what they were.
    ///
    /// In PyTorch: `torch.cuda.set_rng_state_all`, not in `torch.accelerator`. Asked for in
    /// [pytorch/pytorch#186600](https://github.com/pytorch/pytorch/issues/186600).
    ///
    /// # Errors
    ///
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): There are more or fewer states
    ///   than devices, or an offset is no multiple of 4.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let states = vkaccel::random::get_rng_state_all()?;
    /// vkaccel::random::set_rng_state_all(&states)?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.set_rng_state_all")]
    #[track_caller]
    pub fn set_rng_state_all(states: &[RngState]) -> Result<()> {
        RandomBodies::set_rng_state_all(&Runtime::current(), states)
    }

    /// How many 32-bit draws a device's default generator has made since it was seeded.
    ///
    /// A multiple of 4, as every fill takes whole blocks. Opens no device.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::random::manual_seed(42)?;
    /// assert_eq!(vkaccel::random::get_offset(None)?, 0);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn get_offset(device: impl Into<DeviceArg>) -> Result<u64> {
        RandomBodies::get_offset(&Runtime::current(), device.into())
    }

    /// Sets how many 32-bit draws a device's default generator has made; the seed stays.
    ///
    /// Opens no device. Where there is none at all, nothing is set and the call succeeds.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `device` names no visible device; the
    ///   text says what was given and what there is.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, or the list that the
    ///   runtime was built with, makes no sense.
    /// - [`ForkedChild`](crate::ErrorKind::ForkedChild): The process is the child of a fork of one
    ///   that had opened a device.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): The offset is no multiple of 4.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// vkaccel::random::set_offset(8, None)?;
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn set_offset(offset: u64, device: impl Into<DeviceArg>) -> Result<()> {
        RandomBodies::set_offset(&Runtime::current(), offset, device.into())
    }
}

/// What is written by hand for `MemPool`: a body for each declared entry.
pub(crate) trait MemPoolBodies {
    fn id(&self) -> PoolId;
}

impl MemPool {
    /// What tells the pool from every other of the process.
    ///
    /// In PyTorch: `torch.cuda.MemPool.id`, not in `torch.accelerator`.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// let pool = vkaccel::MemPool::new(None)?;
    /// assert_ne!(pool.id(), vkaccel::MemPool::new(None)?.id());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.cuda.MemPool.id")]
    pub fn id(&self) -> PoolId {
        MemPoolBodies::id(self)
    }
}

/// What is written by hand for `Graph`: a body for each declared entry.
pub(crate) trait GraphBodies {
    #[track_caller]
    fn capture_begin(&mut self) -> Result<()>;
    #[track_caller]
    fn capture_end(&mut self) -> Result<()>;
    #[track_caller]
    fn instantiate(&mut self) -> Result<()>;
    #[track_caller]
    fn replay(&self) -> Result<()>;
    #[track_caller]
    fn reset(&mut self) -> Result<()>;
    fn pool(&self) -> PoolId;
    fn enable_debug_mode(&mut self);
    #[track_caller]
    fn debug_dump(&self, path: &Path) -> Result<()>;
}

impl Graph {
    /// Starts to capture the calling thread's current stream.
    ///
    /// What the stream has so far is submitted and runs; what is put on it from here on is captured,
    /// until [`capture_end`](Self::capture_end). [`capture`](Self::capture) does both, and gives the capture
    /// up on an error or a panic. [`capture_begin_on`](Self::capture_begin_on) names the stream.
    ///
    /// Another stream takes part once it waits for the captured one, or for an event of it
    /// ([`Stream::wait_stream`], [`Stream::wait_event`]); it has to be waited for in turn before the
    /// end. Nothing captured can wait for what is outside of the capture.
    ///
    /// In PyTorch: `torch.accelerator.Graph.capture_begin`. Any stream can be captured, the default
    /// one too. What the mode `default` stands for, [`CaptureErrorMode`](crate::CaptureErrorMode)
    /// says; pool and mode are the graph's, from its [builder](Self::builder) on.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): The graph captures or has captured already, or the
    ///   stream is captured by another.
    /// - [`NoDriver`](crate::ErrorKind::NoDriver): There is no Vulkan loader, or it cannot be used.
    /// - [`NoDevice`](crate::ErrorKind::NoDevice): The loader works, but no device is visible.
    /// - [`Config`](crate::ErrorKind::Config): `VKACCEL_VISIBLE_DEVICES`, `VKACCEL_ALLOC_CONF` or
    ///   `VKACCEL_MEMORY_LIMIT` makes no sense, or what the runtime was built with in their place.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let mut graph = vkaccel::Graph::new();
    /// graph.capture_begin()?;
    /// let sevens = vkaccel::Buffer::<u32>::uninit(3)?;
    /// sevens.fill(7)?;
    /// graph.capture_end()?;
    /// graph.replay()?;
    /// assert_eq!(sevens.to_vec()?, [7, 7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.capture_begin")]
    #[track_caller]
    pub fn capture_begin(&mut self) -> Result<()> {
        GraphBodies::capture_begin(self)
    }

    /// Ends the capture; the graph can be replayed then.
    ///
    /// Unless the graph was built with `keep_graph`, its commands are made now. Where it fails, the graph
    /// is empty again, and all that it held is given back.
    ///
    /// In PyTorch: `torch.accelerator.Graph.capture_end`.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): The graph is not capturing, a call in the capture
    ///   was refused, or streams took part that were not waited for again; the text names call and
    ///   place, or the streams.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): Launches that were declared to be
    ///   independent of each other are not; only builds with debug assertions look for that.
    /// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory): There is no memory for the commands.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let mut graph = vkaccel::Graph::new();
    /// graph.capture_begin()?;
    /// graph.capture_end()?;
    /// assert!(graph.capture_end().is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.capture_end")]
    #[track_caller]
    pub fn capture_end(&mut self) -> Result<()> {
        GraphBodies::capture_end(self)
    }

    /// Makes the commands of a graph that was built with `keep_graph`.
    ///
    /// The first replay does so if nothing else did. Replays under way keep the commands that they
    /// began with.
    ///
    /// In PyTorch: `torch.accelerator.Graph.instantiate`.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): Nothing was captured, or the graph was built
    ///   without `keep_graph`.
    /// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory): There is no memory for the commands.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let mut graph = vkaccel::Graph::builder().keep_graph(true).build();
    /// graph.capture(|| Ok(()))?;
    /// graph.instantiate()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.instantiate")]
    #[track_caller]
    pub fn instantiate(&mut self) -> Result<()> {
        GraphBodies::instantiate(self)
    }

    /// Puts what was captured on the current stream of the graph's device, and submits it.
    ///
    /// It takes effect in order with what else is put on that stream, as one command; replays of
    /// one graph, and of graphs that share a pool, take effect in the order of the calls on all
    /// streams. The host does not wait. [`Stream::replay`] names the stream.
    ///
    /// In PyTorch: `torch.accelerator.Graph.replay`.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): Nothing was captured, or the capture has not
    ///   ended.
    /// - [`NotPermitted`](crate::ErrorKind::NotPermitted): The stream is captured itself.
    /// - [`HostBusy`](crate::ErrorKind::HostBusy): The host holds pinned memory that the graph
    ///   copies from or to.
    /// - [`LimitExceeded`](crate::ErrorKind::LimitExceeded): A generator has not so many draws
    ///   left.
    /// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory): There is no memory for the commands.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let counter = vkaccel::Buffer::<u32>::zeroed(1)?;
    /// let mut graph = vkaccel::Graph::new();
    /// graph.capture(|| counter.fill(5))?;
    /// assert_eq!(counter.to_vec()?, [0]);
    /// graph.replay()?;
    /// assert_eq!(counter.to_vec()?, [5]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.replay")]
    #[track_caller]
    pub fn replay(&self) -> Result<()> {
        GraphBodies::replay(self)
    }

    /// Forgets what was captured, so that the graph can capture anew.
    ///
    /// Gives up a capture under way. Replays under way run to their end. Memory of the graph's pool is
    /// cached from then on, as far as no buffer and no other graph has it.
    ///
    /// In PyTorch: `torch.accelerator.Graph.reset`.
    ///
    /// # Errors
    ///
    /// What [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let mut graph = vkaccel::Graph::new();
    /// graph.capture(|| Ok(()))?;
    /// graph.reset()?;
    /// assert!(graph.replay().is_err());
    /// graph.capture(|| Ok(()))?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.reset")]
    #[track_caller]
    pub fn reset(&mut self) -> Result<()> {
        GraphBodies::reset(self)
    }

    /// What the pool is called that memory allocated in the capture lies in.
    ///
    /// A graph that is built with the same id, or told so by [`set_pool`](Self::set_pool), shares the memory:
    /// their replays then run one after the other.
    ///
    /// In PyTorch: `torch.accelerator.Graph.pool`. A graph has it from the start, not only after
    /// its capture.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// let first = vkaccel::Graph::new();
    /// let second = vkaccel::Graph::builder().pool(first.pool()).build();
    /// assert_eq!(first.pool(), second.pool());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.pool")]
    pub fn pool(&self) -> PoolId {
        GraphBodies::pool(self)
    }

    /// Lets [`debug_dump`](Self::debug_dump) write what is captured from then on.
    ///
    /// In PyTorch: `torch.accelerator.Graph.enable_debug_mode`.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// let mut graph = vkaccel::Graph::new();
    /// graph.enable_debug_mode();
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.enable_debug_mode")]
    pub fn enable_debug_mode(&mut self) {
        GraphBodies::enable_debug_mode(self)
    }

    /// Writes the graph to a file in the language of graphviz.
    ///
    /// The nodes are the calls, with kernels, grids and sizes, grouped by stream, and what the crate adds to
    /// them: the check of an indirect launch, the fill of a new buffer, what makes a copy seen by the host. An edge says
    /// which memory has one wait for another. `dot -Tsvg` draws it. Kernels from GLSL are named after the file that
    /// [`KernelBuilder::file`](crate::KernelBuilder::file) gives them.
    ///
    /// In PyTorch: `torch.accelerator.Graph.debug_dump`.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): Nothing was captured, or without
    ///   [`enable_debug_mode`](Self::enable_debug_mode).
    /// - [`Io`](crate::ErrorKind::Io): The file can't be written.
    ///
    /// Also what [any call](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let path = std::env::temp_dir().join("vkaccel_graph_example.dot");
    /// let mut graph = vkaccel::Graph::new();
    /// graph.enable_debug_mode();
    /// graph.capture(|| vkaccel::Buffer::<u32>::zeroed(3))?;
    /// graph.debug_dump(&path)?;
    /// assert!(std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("digraph")));
    /// # std::fs::remove_file(path).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.accelerator.Graph.debug_dump")]
    #[track_caller]
    pub fn debug_dump(&self, path: impl AsRef<Path>) -> Result<()> {
        GraphBodies::debug_dump(self, path.as_ref())
    }
}

/// What is written by hand for `Stream`: a body for each declared entry.
pub(crate) trait StreamBodies {
    #[track_caller]
    fn query(&self) -> Result<bool>;
    #[track_caller]
    fn synchronize(&self) -> Result<()>;
    fn is_capturing(&self) -> bool;
    #[track_caller]
    fn record_event(&self) -> Result<Event>;
    #[track_caller]
    fn wait_event(&self, event: &Event) -> Result<()>;
    #[track_caller]
    fn wait_stream(&self, other: &Stream) -> Result<()>;
}

impl Stream {
    /// Whether all work put on the stream so far has finished.
    ///
    /// Does not wait. Recorded work reaches the device without further calls, so asking again
    /// ends in `true` one day. `true` too for a stream that nothing was put on.
    ///
    /// In PyTorch: `torch.Stream.query`.
    ///
    /// # Errors
    ///
    /// What [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(None)?;
    /// assert!(stream.query()?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Stream.query")]
    #[track_caller]
    pub fn query(&self) -> Result<bool> {
        StreamBodies::query(self)
    }

    /// Waits until all work put on the stream so far has finished.
    ///
    /// What is put on it during the call need not have finished. Returns at once for a stream
    /// that nothing was put on, and opens nothing.
    ///
    /// In PyTorch: `torch.Stream.synchronize`.
    ///
    /// # Errors
    ///
    /// What [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(None)?;
    /// stream.synchronize()?;
    /// assert!(stream.query()?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Stream.synchronize")]
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        StreamBodies::synchronize(self)
    }

    /// Whether what is put on the stream is captured by a [`Graph`].
    ///
    /// `false` too where the runtime can't be used.
    ///
    /// In PyTorch: `torch.Stream.is_capturing`.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// let stream = vkaccel::Stream::new(None)?;
    /// assert!(!stream.is_capturing());
    /// vkaccel::Graph::new().capture_on(&stream, || {
    ///     assert!(stream.is_capturing());
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Stream.is_capturing")]
    pub fn is_capturing(&self) -> bool {
        StreamBodies::is_capturing(self)
    }

    /// Gives a new event after all work put on the stream so far.
    ///
    /// It has no timing. [`Event::record`] records an event that there is already.
    ///
    /// In PyTorch: `torch.Stream.record_event`. It takes an event to record there, and makes one
    /// without.
    ///
    /// # Errors
    ///
    /// What [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(None)?;
    /// let event = stream.record_event()?;
    /// assert!(event.query()?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Stream.record_event")]
    #[track_caller]
    pub fn record_event(&self) -> Result<Event> {
        StreamBodies::record_event(self)
    }

    /// Has all work to come on the stream wait for an event, as it is now.
    ///
    /// The host does not wait. Recording the event anew later changes nothing about this wait. An
    /// event that was never recorded is not waited for. What leads to the event is submitted, so
    /// that no order of waits between streams can hang.
    ///
    /// In PyTorch: `torch.Stream.wait_event`. Events of another device are refused; wait for them
    /// on the host.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `event` was recorded on another
    ///   device, or in another runtime.
    /// - [`Capture`](crate::ErrorKind::Capture): The stream is captured and `event` is outside of
    ///   that capture, or `event` is of a capture that has ended.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let (first, second) = (vkaccel::Stream::new(None)?, vkaccel::Stream::new(None)?);
    /// let buffer = first.upload(&[7u32; 100])?;
    /// let uploaded = first.record_event()?;
    /// second.wait_event(&uploaded)?;
    /// assert_eq!(second.to_vec(&buffer)?, [7; 100]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Stream.wait_event")]
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        StreamBodies::wait_event(self, event)
    }

    /// Has all work to come on the stream wait for all work put on another so far.
    ///
    /// The host does not wait. It is what recording an event on `other` and waiting for it does. A
    /// stream that waits for itself goes on as before.
    ///
    /// In PyTorch: `torch.Stream.wait_stream`. Streams of another device are refused; wait for them
    /// on the host.
    ///
    /// # Errors
    ///
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): `other` is on another device, or in
    ///   another runtime.
    /// - [`Capture`](crate::ErrorKind::Capture): The stream is captured and `other` is outside of
    ///   that capture, or captured by another graph.
    ///
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let (first, second) = (vkaccel::Stream::new(None)?, vkaccel::Stream::new(None)?);
    /// let buffer = first.upload(&[7u32; 100])?;
    /// second.wait_stream(&first)?;
    /// assert_eq!(second.to_vec(&buffer)?, [7; 100]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Stream.wait_stream")]
    #[track_caller]
    pub fn wait_stream(&self, other: &Stream) -> Result<()> {
        StreamBodies::wait_stream(self, other)
    }
}

/// What is written by hand for `Event`: a body for each declared entry.
pub(crate) trait EventBodies {
    #[track_caller]
    fn query(&self) -> Result<bool>;
    #[track_caller]
    fn synchronize(&self) -> Result<()>;
    #[track_caller]
    fn synchronize_timeout(&self, timeout: Duration) -> Result<bool>;
    #[track_caller]
    fn elapsed_time(&self, end: &Event) -> Result<f64>;
}

impl Event {
    /// Whether the event is reached.
    ///
    /// Does not wait. `true` too for an event that was never recorded. What leads to the event
    /// reaches the device without further calls, so asking again ends in `true` one day.
    ///
    /// In PyTorch: `torch.Event.query`.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): It was recorded in a graph capture, where it is
    ///   reached at each replay anew.
    ///
    /// Also what [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let event = vkaccel::Stream::new(None)?.record_event()?;
    /// assert!(event.query()?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Event.query")]
    #[track_caller]
    pub fn query(&self) -> Result<bool> {
        EventBodies::query(self)
    }

    /// Waits on the host until the event is reached, as it is now.
    ///
    /// Returns at once for an event that was never recorded.
    ///
    /// In PyTorch: `torch.Event.synchronize`.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): It was recorded in a graph capture, where it is
    ///   reached at each replay anew.
    ///
    /// Also what [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let event = vkaccel::Stream::new(None)?.record_event()?;
    /// event.synchronize()?;
    /// assert!(event.query()?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Event.synchronize")]
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        EventBodies::synchronize(self)
    }

    /// Waits on the host until the event is reached, or until the time has run out: `false`.
    ///
    /// Running out of time is no error, and leaves the event as it is. A time of 0 asks only.
    ///
    /// An extension: `torch.accelerator` has nothing like it.
    ///
    /// # Errors
    ///
    /// - [`Capture`](crate::ErrorKind::Capture): It was recorded in a graph capture, where it is
    ///   reached at each replay anew.
    ///
    /// Also what [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let event = vkaccel::Stream::new(None)?.record_event()?;
    /// assert!(event.synchronize_timeout(core::time::Duration::from_secs(1))?);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<bool> {
        EventBodies::synchronize_timeout(self, timeout)
    }

    /// The time from this event to another, in milliseconds.
    ///
    /// It is the device's own time, by its own clock; negative where `end` was first, and 0 from an
    /// event to itself. Both were made by [`Event::with_timing`]. Faults are looked for in the
    /// order below. All that the device did and waited for in between is in it: also a host that records
    /// too slowly, and the compiling that a driver may leave for the first launch of a kernel, so measure
    /// after a first run. Device clocks start anew after a while: with 36 bits of nanoseconds, the fewest
    /// there are, a time above half a minute is given wrongly.
    ///
    /// In PyTorch: `torch.Event.elapsed_time`.
    ///
    /// # Errors
    ///
    /// - [`TimingNotEnabled`](crate::ErrorKind::TimingNotEnabled): An event was made without
    ///   timing.
    /// - [`NotRecorded`](crate::ErrorKind::NotRecorded): An event was never recorded.
    /// - [`Capture`](crate::ErrorKind::Capture): An event was recorded in a graph capture, where it
    ///   has no time.
    /// - [`InvalidDevice`](crate::ErrorKind::InvalidDevice): The events were recorded on different
    ///   devices.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): A queue of the device has no timestamps,
    ///   or the events were recorded on queues whose timestamps can't be compared.
    /// - [`NotReady`](crate::ErrorKind::NotReady): An event is not reached yet.
    ///
    /// Also what [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> vkaccel::Result<()> {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{ErrorKind, Event};
    ///
    /// let stream = vkaccel::current_stream(None)?;
    /// let (start, end) = (Event::with_timing(), Event::with_timing());
    /// assert_eq!(start.elapsed_time(&end).unwrap_err().kind(), ErrorKind::NotRecorded);
    /// start.record(&stream)?;
    /// let buffer = stream.zeroed::<u32>(1000)?;
    /// end.record(&stream)?;
    /// stream.synchronize()?;
    /// if let Ok(milliseconds) = start.elapsed_time(&end) {
    ///     assert!(milliseconds >= 0.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "torch.Event.elapsed_time")]
    #[track_caller]
    pub fn elapsed_time(&self, end: &Event) -> Result<f64> {
        EventBodies::elapsed_time(self, end)
    }
}
