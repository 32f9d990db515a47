//! The bodies of the functions of `memory`, and those that the spec has no words for.

use std::sync::Arc;

use super::surface::memory::MemoryBodies;
use crate::alloc::host::HostMemoryStats;
use crate::alloc::{HistoryOptions, MemorySnapshot, MemoryStats, PoolId};
use crate::device::{DeviceArg, MemoryInfo};
use crate::error::{OutOfMemory, Result};
use crate::mem::ledger::RuntimeMemory;
use crate::mem::pressure::{Pressure, PressureHandle};
use crate::runtime::Runtime;

impl MemoryBodies for Runtime {
    fn get_memory_info(&self, device: DeviceArg) -> Result<MemoryInfo> {
        self.memory_info(&device)
    }

    fn empty_cache(&self) -> Result<()> {
        self.empty_caches()
    }

    fn empty_host_cache(&self) -> Result<()> {
        self.empty_host_caches()
    }

    fn host_memory_stats(&self) -> Result<HostMemoryStats> {
        Ok(self.host_memory()?.stats())
    }

    fn reset_peak_host_memory_stats(&self) -> Result<()> {
        self.host_memory()?.reset_peak();
        Ok(())
    }

    fn reset_accumulated_host_memory_stats(&self) -> Result<()> {
        self.host_memory()?.reset_accumulated();
        Ok(())
    }

    fn runtime_memory(&self, device: DeviceArg) -> Result<RuntimeMemory> {
        self.slot(&device)?.runtime_memory()
    }

    fn set_host_memory_limit(&self, bytes: Option<u64>) -> Result<()> {
        self.host_memory()?.set_limit(bytes);
        Ok(())
    }

    fn host_memory_limit(&self) -> Result<Option<u64>> {
        Ok(self.host_memory()?.limit())
    }

    fn memory_stats(&self, device: DeviceArg) -> Result<MemoryStats> {
        let slot = self.slot_if_any(&device)?;
        slot.map_or_else(|| Ok(MemoryStats::default()), |slot| slot.memory_stats())
    }

    fn change_memory_stats(&self, device: DeviceArg, change: fn(&mut MemoryStats)) -> Result<()> {
        let slot = self.slot_if_any(&device)?;
        slot.map_or(Ok(()), |slot| slot.change_memory_stats(change))
    }

    fn set_per_process_memory_fraction(&self, fraction: f64, device: DeviceArg) -> Result<()> {
        self.slot(&device)?.set_memory_fraction(fraction)
    }

    fn get_per_process_memory_fraction(&self, device: DeviceArg) -> Result<f64> {
        self.slot(&device)?.memory_fraction()
    }

    fn set_memory_limit(&self, bytes: Option<u64>, device: DeviceArg) -> Result<()> {
        self.slot(&device)?.set_memory_limit(bytes)
    }

    fn memory_limit(&self, device: DeviceArg) -> Result<Option<u64>> {
        self.slot(&device)?.memory_limit()
    }

    fn set_allocator_settings(&self, settings: &str, device: DeviceArg) -> Result<()> {
        self.slot(&device)?.set_allocator_settings(settings)
    }

    fn allocator_settings(&self, device: DeviceArg) -> Result<String> {
        self.slot(&device)?.allocator_settings()
    }

    fn memory_snapshot(&self, device: DeviceArg) -> Result<MemorySnapshot> {
        self.slot(&device)?.memory_snapshot()
    }

    fn memory_summary(&self, device: DeviceArg, abbreviated: bool) -> Result<String> {
        self.slot(&device)?.memory_summary(abbreviated)
    }

    fn record_memory_history(
        &self,
        options: Option<HistoryOptions>,
        device: DeviceArg,
    ) -> Result<()> {
        self.slot(&device)?.record_memory_history(options)
    }

    fn private_pool_bytes(&self, device: DeviceArg) -> Result<Vec<(PoolId, u64)>> {
        self.slot(&device)?.private_pool_bytes()
    }
}

/// Calls `f` when the device's memory is exhausted, before a request fails.
///
/// `f` gets the figures of the error that would follow. It may drop buffers, empty a cache of the
/// program's own, and say whether the request is to be tried again, which is done once. It is called at
/// most once a request, on the thread that asked, after the allocator has given back what it had cached
/// itself; a request that it makes of its own fails at once. Opens nothing. The callback stays until the
/// handle is dropped.
///
/// # Errors
///
/// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if `device` names no visible device;
/// [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
/// [`Config`](crate::ErrorKind::Config) without a device. Also what [any call](crate#errors) may give.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use std::sync::{Arc, Mutex};
/// use vkaccel::{Buffer, Pressure, memory};
///
/// let spare = Arc::new(Mutex::new(Some(Buffer::<u8>::zeroed(1 << 20)?)));
/// let given = Arc::clone(&spare);
/// let _handle = memory::on_pressure(None, move |figures| {
///     println!("no room for {} bytes", figures.requested);
///     match given.lock().unwrap().take() {
///         Some(_buffer) => Pressure::TryAgain,
///         None => Pressure::GiveUp,
///     }
/// })?;
/// # Ok::<(), vkaccel::Error>(())
/// ```
pub fn on_pressure(
    device: impl Into<DeviceArg>,
    f: impl Fn(&OutOfMemory) -> Pressure + Send + Sync + 'static,
) -> Result<PressureHandle> {
    let runtime = Runtime::current();
    let slot = Arc::clone(runtime.slot(&device.into())?);
    Ok(slot.pressure().add(f))
}
