//! Descriptor sets: taken one after the other, given back all at once.
//!
//! # Safety
//!
//! The pools belong to one recording, which is used by one thread at a time and is reset only when
//! its commands have finished.
#![allow(unsafe_code)]

use std::sync::Arc;

use ash::vk;

use super::device::Device;
use crate::base::fork;
use crate::error::Result;

/// How much one pool holds; a larger set gets a pool of its own size.
const POOL_SETS: u32 = 64;
const POOL_STORAGE: u32 = 256;
const POOL_UNIFORM: u32 = 32;

/// How many descriptors a set takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetSize {
    pub(crate) storage: u32,
    pub(crate) uniform: u32,
}

/// Pools that are emptied together.
#[derive(Debug)]
pub(crate) struct DescriptorArena {
    pools: Vec<Pool>,
    current: usize,
    device: Arc<Device>,
}

#[derive(Debug)]
struct Pool {
    raw: vk::DescriptorPool,
    capacity: Room,
    room: Room,
}

#[derive(Clone, Copy, Debug)]
struct Room {
    sets: u32,
    storage: u32,
    uniform: u32,
}

impl Room {
    fn take(&mut self, size: SetSize) -> bool {
        let fits = self.sets > 0 && self.storage >= size.storage && self.uniform >= size.uniform;
        if fits {
            self.sets -= 1;
            self.storage -= size.storage;
            self.uniform -= size.uniform;
        }
        fits
    }
}

impl DescriptorArena {
    pub(crate) fn new(device: &Arc<Device>) -> Self {
        Self {
            pools: Vec::new(),
            current: 0,
            device: Arc::clone(device),
        }
    }

    /// A fresh set of this layout, valid until the next reset.
    pub(crate) fn allocate(
        &mut self,
        layout: vk::DescriptorSetLayout,
        size: SetSize,
    ) -> Result<vk::DescriptorSet> {
        loop {
            let Some(pool) = self.pools.get_mut(self.current) else {
                self.grow(size)?;
                continue;
            };
            if !pool.room.take(size) {
                self.current += 1;
                continue;
            }
            let layouts = [layout];
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(pool.raw)
                .set_layouts(&layouts);
            // SAFETY: pool and layout are alive; the pool has room for the set.
            let sets = unsafe { self.device.raw().allocate_descriptor_sets(&info) };
            match sets {
                Ok(sets) => return Ok(sets[0]),
                // A driver may count differently; the next pool is as good.
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) => {
                    self.current += 1;
                }
                Err(code) => return self.device.during("vkAllocateDescriptorSets", Err(code)),
            }
        }
    }

    fn grow(&mut self, size: SetSize) -> Result<()> {
        let capacity = Room {
            sets: POOL_SETS,
            storage: POOL_STORAGE.max(size.storage),
            uniform: POOL_UNIFORM.max(size.uniform),
        };
        let sizes = [
            vk::DescriptorPoolSize::default()
                .ty(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(capacity.storage),
            vk::DescriptorPoolSize::default()
                .ty(vk::DescriptorType::UNIFORM_BUFFER)
                .descriptor_count(capacity.uniform),
        ];
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(capacity.sets)
            .pool_sizes(&sizes);
        // SAFETY: the device is alive.
        let raw = unsafe { self.device.raw().create_descriptor_pool(&info, None) };
        let raw = self.device.during("vkCreateDescriptorPool", raw)?;
        self.pools.push(Pool {
            raw,
            capacity,
            room: capacity,
        });
        Ok(())
    }

    /// Gives all sets back. The commands that used them have finished.
    pub(crate) fn reset(&mut self) -> Result<()> {
        let used = self.pools.len().min(self.current + 1);
        for pool in &mut self.pools[..used] {
            // SAFETY: no unfinished command uses a set of the pool, as the caller says.
            let reset = unsafe {
                self.device
                    .raw()
                    .reset_descriptor_pool(pool.raw, vk::DescriptorPoolResetFlags::empty())
            };
            self.device.during("vkResetDescriptorPool", reset)?;
            pool.room = pool.capacity;
        }
        self.current = 0;
        Ok(())
    }
}

impl Drop for DescriptorArena {
    fn drop(&mut self) {
        if !fork::may_call_driver() {
            return;
        }
        for pool in &self.pools {
            // SAFETY: the commands that used its sets have finished (see `Commands`).
            unsafe { self.device.raw().destroy_descriptor_pool(pool.raw, None) };
        }
    }
}
