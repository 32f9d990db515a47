//! Command buffers, each with a pool and descriptors of its own.
//!
//! # Safety
//!
//! A [`Commands`] is used by one thread at a time. Whatever a recorded command names is kept alive
//! by the recording that owns the `Commands` until its lane has reached the recording's value; that
//! recording also calls [`Commands::reset`] and drops it only then.
#![allow(unsafe_code)]

use std::sync::Arc;

use ash::vk;

use super::descriptor::DescriptorArena;
pub(crate) use super::descriptor::DescriptorRange;
use super::device::Device;
use super::pipeline::Pipeline;
use super::segment::Segment;
use super::stages::{accesses, stages};
use super::timestamps::Stamp;
use crate::base::counters::Counts;
use crate::error::Result;
use crate::exec::hazard::{Barrier, Scope, Stages};

/// A command buffer that is recorded, submitted, reset and recorded again.
#[derive(Debug)]
pub(crate) struct Commands {
    pool: vk::CommandPool,
    buffer: vk::CommandBuffer,
    bound: Option<vk::Pipeline>,
    /// The sets that are bound, by the first of them, with the layout that they were bound for.
    bound_sets: Option<(vk::PipelineLayout, vk::DescriptorSet)>,
    /// Whether anything was recorded.
    holds_any: bool,
    descriptors: DescriptorArena,
    tally: Tally,
    device: Arc<Device>,
}

/// What the commands are, counted without other threads until they are ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    launches: u64,
    transfers: u64,
    barriers: u64,
    descriptor_sets: u64,
}

impl Tally {
    /// Counts commands that are about to run.
    pub(crate) fn count(&self, counts: &Counts) {
        counts.launches.add(self.launches);
        counts.transfers.add(self.transfers);
        counts.barriers.add(self.barriers);
    }
}

/// Up to how many regions a copy makes no list on the heap.
const FEW_REGIONS: usize = 16;

/// One region of a copy between segments, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) len: u64,
}

/// How many workgroups a launch runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Groups<'a> {
    /// So many along each axis, within the limits.
    Counts([u32; 3]),
    /// As many as three words say when it runs, within the limits; `offset` is a multiple of 4.
    Indirect {
        segment: &'a Arc<Segment>,
        offset: u64,
    },
}

impl Commands {
    /// An empty command buffer for queues of `family`.
    pub(crate) fn new(device: &Arc<Device>, family: u32) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(family);
        // SAFETY: the device is alive and was opened with this family.
        let pool = unsafe { device.raw().create_command_pool(&info, None) };
        let mut commands = Self {
            pool: device.during("vkCreateCommandPool", pool)?,
            buffer: vk::CommandBuffer::null(),
            bound: None,
            bound_sets: None,
            holds_any: false,
            descriptors: DescriptorArena::new(device),
            tally: Tally::default(),
            device: Arc::clone(device),
        };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(commands.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool was just made.
        let buffers = unsafe { device.raw().allocate_command_buffers(&info) };
        commands.buffer = device.during("vkAllocateCommandBuffers", buffers)?[0];
        Ok(commands)
    }

    /// One full barrier, sealed, which may be submitted again while it is pending.
    pub(super) fn divider(device: &Arc<Device>, family: u32) -> Result<Self> {
        let mut commands = Self::reusable(device, family)?;
        commands.barrier(Barrier::ALL);
        commands.end()?;
        Ok(commands)
    }

    /// An empty command buffer for queues of `family`, already begun, which may be submitted again while
    /// it is pending.
    pub(crate) fn reusable(device: &Arc<Device>, family: u32) -> Result<Self> {
        let mut commands = Self::new(device, family)?;
        commands.begin_with(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)?;
        Ok(commands)
    }

    pub(crate) fn raw(&self) -> vk::CommandBuffer {
        self.buffer
    }

    /// Whether anything was recorded since it was empty.
    pub(super) fn holds_any(&self) -> bool {
        self.holds_any
    }

    pub(crate) fn begin(&mut self) -> Result<()> {
        self.begin_with(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)
    }

    fn begin_with(&mut self, usage: vk::CommandBufferUsageFlags) -> Result<()> {
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: the buffer is new or was reset.
        let begun = unsafe { self.device.raw().begin_command_buffer(self.buffer, &info) };
        self.device.during("vkBeginCommandBuffer", begun)
    }

    /// Ends the buffer, and counts what is in it.
    pub(crate) fn end(&mut self) -> Result<()> {
        let tally = self.end_uncounted()?;
        tally.count(self.device.counts());
        self.device
            .counts()
            .descriptor_sets
            .add(tally.descriptor_sets);
        Ok(())
    }

    /// Ends the buffer, for commands that are counted each time that they are submitted.
    pub(crate) fn end_uncounted(&mut self) -> Result<Tally> {
        // SAFETY: the buffer is being recorded.
        let ended = unsafe { self.device.raw().end_command_buffer(self.buffer) };
        self.device.during("vkEndCommandBuffer", ended)?;
        Ok(core::mem::take(&mut self.tally))
    }

    /// Empties the buffer and its descriptors; its commands have finished or were never submitted.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.bound = None;
        self.bound_sets = None;
        self.holds_any = false;
        self.tally = Tally::default();
        // SAFETY: no command of the pool is pending, as the caller says.
        let reset = unsafe {
            self.device
                .raw()
                .reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())
        };
        self.device.during("vkResetCommandPool", reset)?;
        self.descriptors.reset()
    }

    /// Records one global memory barrier.
    pub(crate) fn barrier(&mut self, barrier: Barrier) {
        self.tally.barriers += 1;
        self.holds_any = true;
        let memory = [vk::MemoryBarrier::default()
            .src_access_mask(accesses(Scope {
                reads: Stages::NONE,
                ..barrier.src
            }))
            .dst_access_mask(accesses(barrier.dst))];
        let memory: &[_] = if barrier.src.writes.is_empty() {
            &[]
        } else {
            &memory
        };
        // SAFETY: the buffer is being recorded, outside of a render pass.
        unsafe {
            self.device.raw().cmd_pipeline_barrier(
                self.buffer,
                stages(barrier.src.stages()),
                stages(barrier.dst.stages()),
                vk::DependencyFlags::empty(),
                memory,
                &[],
                &[],
            );
        }
    }

    /// Records that the time is written to `stamp` behind all commands so far; the family of the
    /// commands writes timestamps.
    pub(crate) fn write_time(&mut self, stamp: &Stamp) {
        stamp.record(self.buffer);
        self.holds_any = true;
    }

    /// Records a copy; regions lie in their segments and do not overlap each other's destinations.
    pub(crate) fn copy(&mut self, src: &Segment, dst: &Segment, regions: &[Region]) {
        self.tally.transfers += 1;
        self.holds_any = true;
        let mut few = [vk::BufferCopy::default(); FEW_REGIONS];
        let mut many = Vec::new();
        let list = match few.get_mut(..regions.len()) {
            Some(list) => list,
            None => {
                many.resize(regions.len(), vk::BufferCopy::default());
                &mut many[..]
            }
        };
        for (one, region) in list.iter_mut().zip(regions) {
            *one = one
                .src_offset(region.src)
                .dst_offset(region.dst)
                .size(region.len);
        }
        // SAFETY: both buffers are alive until the command has finished (see the top of the file).
        unsafe {
            self.device
                .raw()
                .cmd_copy_buffer(self.buffer, src.buffer(), dst.buffer(), list);
        }
    }

    /// Records a fill with a word; offset and length are multiples of 4.
    pub(crate) fn fill(&mut self, dst: &Segment, offset: u64, len: u64, word: u32) {
        self.tally.transfers += 1;
        self.holds_any = true;
        // SAFETY: as in `copy`.
        unsafe {
            self.device
                .raw()
                .cmd_fill_buffer(self.buffer, dst.buffer(), offset, len, word)
        };
    }

    /// Records that up to 64 KiB are written, whole words that start at a multiple of 4.
    pub(crate) fn update(&mut self, dst: &Segment, offset: u64, bytes: &[u8]) {
        self.tally.transfers += 1;
        self.holds_any = true;
        // SAFETY: as in `copy`; the bytes are read at once.
        unsafe {
            self.device
                .raw()
                .cmd_update_buffer(self.buffer, dst.buffer(), offset, bytes);
        }
    }

    /// Records a launch.
    ///
    /// The ranges fit the pipeline's interface and the push constants its block, as the check of
    /// the launch has found.
    pub(crate) fn dispatch(
        &mut self,
        pipeline: &Pipeline,
        groups: Groups<'_>,
        ranges: &[DescriptorRange<'_>],
        push: &[u8],
    ) -> Result<()> {
        self.holds_any = true;
        self.bind_sets(pipeline, ranges)?;
        if self.bound != Some(pipeline.raw()) {
            // SAFETY: the pipeline is alive until the command has finished.
            unsafe {
                self.device.raw().cmd_bind_pipeline(
                    self.buffer,
                    vk::PipelineBindPoint::COMPUTE,
                    pipeline.raw(),
                );
            }
            self.bound = Some(pipeline.raw());
        }
        if !push.is_empty() {
            // SAFETY: the layout has a range of this size for the compute stage.
            unsafe {
                self.device.raw().cmd_push_constants(
                    self.buffer,
                    pipeline.layout(),
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    push,
                );
            }
        }
        match groups {
            // SAFETY: pipeline, sets and push constants are bound; the counts are within the limits.
            Groups::Counts([x, y, z]) => unsafe {
                self.device.raw().cmd_dispatch(self.buffer, x, y, z);
            },
            // SAFETY: as above; the words lie in the segment, which is alive until the command has
            // finished, and every segment may hold such words.
            Groups::Indirect { segment, offset } => unsafe {
                self.device
                    .raw()
                    .cmd_dispatch_indirect(self.buffer, segment.buffer(), offset);
            },
        }
        self.tally.launches += 1;
        Ok(())
    }

    fn bind_sets(&mut self, pipeline: &Pipeline, ranges: &[DescriptorRange<'_>]) -> Result<()> {
        if pipeline.set_count() == 0 {
            return Ok(());
        }
        let sets = self.descriptors.sets(pipeline, ranges)?;
        if sets.are_new {
            self.tally.descriptor_sets += sets.all.len() as u64;
        }
        let bound = Some((pipeline.layout(), sets.all[0]));
        if self.bound_sets == bound {
            return Ok(());
        }
        // SAFETY: the sets were made with the layouts of this pipeline layout.
        unsafe {
            self.device.raw().cmd_bind_descriptor_sets(
                self.buffer,
                vk::PipelineBindPoint::COMPUTE,
                pipeline.layout(),
                0,
                sets.all,
                &[],
            );
        }
        self.bound_sets = bound;
        Ok(())
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        if self.device.may_call_driver() {
            // SAFETY: its commands have finished or were never submitted (see the top of the file).
            unsafe { self.device.raw().destroy_command_pool(self.pool, None) };
        }
    }
}
