//! Descriptor sets: taken one after the other, given back all at once; a set that names the memory of a
//! launch is bound again for the next one with the same memory.
//!
//! # Safety
//!
//! The pools belong to one recording, which is used by one thread at a time and is reset only when
//! its commands have finished. A set is written once, before it is first bound. It may name buffers that
//! are gone: it is bound for the segments and the pipeline that it was written for alone, whose numbers
//! are never given twice.
#![allow(unsafe_code)]

use std::sync::Arc;

use ash::vk;

use super::device::Device;
use super::known_sets::{self, Key, KnownSets};
use super::pipeline::Pipeline;
use super::segment::Segment;
use crate::error::Result;
use crate::kernel::interface::BindingKind;

/// A buffer range for one descriptor of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorRange<'a> {
    pub(crate) set: u32,
    pub(crate) binding: u32,
    pub(crate) kind: BindingKind,
    pub(crate) segment: &'a Arc<Segment>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// With more sets than this, all are given back when their commands have finished: their memory may be
/// new each time.
const KEPT_MAX: usize = 1024;
/// How many writes go to the driver at once.
const WRITES_MAX: usize = 8;
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

/// Sets with the pools that they are from, which are emptied together.
#[derive(Debug)]
pub(crate) struct DescriptorArena {
    pools: Vec<Pool>,
    current: usize,
    /// Every set since the pools were emptied; those of one launch follow each other.
    sets: Vec<vk::DescriptorSet>,
    known: KnownSets,
    device: Arc<Device>,
}

/// The sets of a launch.
pub(crate) struct Sets<'a> {
    pub(crate) all: &'a [vk::DescriptorSet],
    /// Whether they were written for it.
    pub(crate) are_new: bool,
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
            sets: Vec::new(),
            known: KnownSets::default(),
            device: Arc::clone(device),
        }
    }

    /// The sets of a pipeline, written with these ranges, which are all that it takes; valid until the
    /// next reset.
    pub(crate) fn sets(
        &mut self,
        pipeline: &Pipeline,
        ranges: &[DescriptorRange<'_>],
    ) -> Result<Sets<'_>> {
        let (number, keys) = (pipeline.number(), ranges.iter().map(Key::of));
        let hash = known_sets::hash(number, keys.clone());
        let found = self.known.find(number, hash, keys.clone());
        let first = match found {
            Some(first) => first,
            None => {
                let first = self.write(pipeline, ranges)?;
                self.known.note(number, hash, keys, first);
                first
            }
        };
        Ok(Sets {
            all: &self.sets[first..first + pipeline.set_count()],
            are_new: found.is_none(),
        })
    }

    /// Takes fresh sets and writes them; gives the first of them.
    fn write(&mut self, pipeline: &Pipeline, ranges: &[DescriptorRange<'_>]) -> Result<usize> {
        let first = self.sets.len();
        for index in 0..pipeline.set_count() {
            let (layout, size) = pipeline.set(index);
            // Those before one that fails stay in the list, to be given back with the others.
            let set = self.allocate(layout, size)?;
            self.sets.push(set);
        }
        let sets = &self.sets[first..];
        for ranges in ranges.chunks(WRITES_MAX) {
            let mut infos = [vk::DescriptorBufferInfo::default(); WRITES_MAX];
            let mut writes = [vk::WriteDescriptorSet::default(); WRITES_MAX];
            for ((range, info), write) in ranges.iter().zip(&mut infos).zip(&mut writes) {
                *info = info
                    .buffer(range.segment.buffer())
                    .offset(range.offset)
                    .range(range.len);
                *write = write
                    .dst_set(sets[range.set as usize])
                    .dst_binding(range.binding)
                    .descriptor_type(match range.kind {
                        BindingKind::Storage => vk::DescriptorType::STORAGE_BUFFER,
                        BindingKind::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
                    })
                    .buffer_info(core::slice::from_ref(info));
            }
            let writes = &writes[..ranges.len()];
            // SAFETY: the sets are fresh, so no command uses them; buffers are alive.
            unsafe { self.device.raw().update_descriptor_sets(writes, &[]) };
        }
        Ok(first)
    }

    /// A fresh set of this layout, valid until the pools are emptied.
    fn allocate(
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
            let mut set = vk::DescriptorSet::null();
            let device = self.device.raw();
            // Ash's own form of the call would put the set into a vector.
            let call = device.fp_v1_0().allocate_descriptor_sets;
            // SAFETY: pool and layout are alive; the pool has room for the one set.
            match unsafe { call(device.handle(), &info, &mut set) } {
                vk::Result::SUCCESS => return Ok(set),
                // A driver may count differently; the next pool is as good.
                vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL => {
                    self.current += 1;
                }
                code => return self.device.during("vkAllocateDescriptorSets", Err(code)),
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

    /// Gives all sets back, unless they are few: then they are kept for what comes next. The commands
    /// that used them have finished.
    pub(crate) fn reset(&mut self) -> Result<()> {
        if self.sets.len() <= KEPT_MAX {
            return Ok(());
        }
        self.sets.clear();
        self.known.clear();
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
        if !self.device.may_call_driver() {
            return;
        }
        for pool in &self.pools {
            // SAFETY: the commands that used its sets have finished (see `Commands`).
            unsafe { self.device.raw().destroy_descriptor_pool(pool.raw, None) };
        }
    }
}
