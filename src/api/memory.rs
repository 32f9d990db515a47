//! The bodies of the functions of `memory`.

use super::surface::memory::MemoryBodies;
use crate::device::{DeviceArg, MemoryInfo};
use crate::error::Result;
use crate::runtime::Runtime;

impl MemoryBodies for Runtime {
    fn get_memory_info(&self, device: DeviceArg) -> Result<MemoryInfo> {
        self.memory_info(&device)
    }
}
