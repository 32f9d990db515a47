//! Cached device memory, for host memory that finds no room.

use std::sync::{Arc, OnceLock, Weak};

use super::device::DeviceMemory;
use crate::device::plan::MemoryRole;
use crate::error::Result;
use crate::vk::Device;

/// The memory of a device that may hold idle what host memory needs.
#[derive(Debug, Default)]
pub(super) struct Neighbour(OnceLock<Weak<DeviceMemory>>);

impl Neighbour {
    pub(super) fn set(&self, memory: &Arc<DeviceMemory>) {
        // It is called once, when the device is opened.
        let _ = self.0.set(Arc::downgrade(memory));
    }

    /// Gives cached device memory back, where that makes room for memory of a role: it lies in the same
    /// heap, or the driver has no more allocations. Whether any went.
    pub(super) fn make_way(&self, device: &Device, role: MemoryRole) -> Result<bool> {
        let is_shared = device.plan().memory.best(role).heap == device.device_heap();
        let Some(memory) = self.0.get().and_then(Weak::upgrade) else {
            return Ok(false);
        };
        if !is_shared && !device.is_count_full() {
            return Ok(false);
        }
        let before = device.count_and_bytes();
        memory.empty_cache()?;
        Ok(device.count_and_bytes() < before)
    }
}
