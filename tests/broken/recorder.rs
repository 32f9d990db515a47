//! Commands as the programs write them.
//!
//! # Safety
//!
//! The commands are being recorded, and what they name lives as long as the lab.
#![allow(unsafe_code)]

use ash::vk;

use crate::lab::{By, Lab, Range};

/// Stages, and accesses of theirs.
pub type Scope = (vk::PipelineStageFlags, vk::AccessFlags);

pub fn compute() -> Scope {
    let access = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE;
    (vk::PipelineStageFlags::COMPUTE_SHADER, access)
}

pub fn transfer() -> Scope {
    let access = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE;
    (vk::PipelineStageFlags::TRANSFER, access)
}

pub fn indirect() -> Scope {
    (
        vk::PipelineStageFlags::DRAW_INDIRECT,
        vk::AccessFlags::INDIRECT_COMMAND_READ,
    )
}

pub fn host() -> Scope {
    (vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ)
}

pub struct Recorder<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) raw: vk::CommandBuffer,
}

impl Recorder<'_> {
    /// A kernel that writes all words of a range.
    pub fn store(&self, to: Range) {
        self.store_first(to, to.words());
    }

    /// A kernel that has a range and writes its first words.
    pub fn store_first(&self, to: Range, words: u32) {
        self.bind_store(to, words);
        self.dispatch(words);
    }

    /// The same, with as many groups as the words at `counts` say.
    pub fn store_indirect(&self, to: Range, counts: Range) {
        self.bind_store(to, to.words());
        let (raw, offset) = (counts.raw, counts.offset);
        // SAFETY: as the top of the file says; so below.
        unsafe { self.device().cmd_dispatch_indirect(self.raw, raw, offset) };
    }

    /// A kernel that reads one range and writes another.
    pub fn map(&self, from: Range, to: Range) {
        let (scale, offset) = (1, 1);
        let words = [scale, offset, to.words()];
        self.bind(self.lab.kernels.map, &[from, to], &words);
        self.dispatch(to.words());
    }

    pub fn fill(&self, to: Range) {
        let (raw, offset, bytes) = (to.raw, to.offset, to.bytes);
        // SAFETY: as above.
        unsafe {
            self.device()
                .cmd_fill_buffer(self.raw, raw, offset, bytes, 1)
        };
    }

    pub fn copy(&self, from: Range, to: Range) {
        let region = [vk::BufferCopy::default()
            .src_offset(from.offset)
            .dst_offset(to.offset)
            .size(to.bytes)];
        // SAFETY: as above.
        unsafe {
            self.device()
                .cmd_copy_buffer(self.raw, from.raw, to.raw, &region)
        };
    }

    pub fn barrier(&self, from: Scope, to: Scope) {
        let barrier = [vk::MemoryBarrier::default()
            .src_access_mask(from.1)
            .dst_access_mask(to.1)];
        let flags = vk::DependencyFlags::empty();
        // SAFETY: as above; a program may name stages that no barrier may have.
        unsafe {
            self.device()
                .cmd_pipeline_barrier(self.raw, from.0, to.0, flags, &barrier, &[], &[])
        };
    }

    fn device(&self) -> &ash::Device {
        &self.lab.raw
    }

    fn bind_store(&self, to: Range, words: u32) {
        let value = 7;
        self.bind(self.lab.kernels.store, &[to], &[value, words]);
    }

    /// Sets up a kernel: the ranges as descriptors, or as addresses before the other words.
    fn bind(&self, pipeline: vk::Pipeline, ranges: &[Range], words: &[u32]) {
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: as above.
        unsafe { self.device().cmd_bind_pipeline(self.raw, point, pipeline) };
        let mut push = Vec::new();
        match self.lab.by {
            By::Descriptors => self.bind_set(ranges),
            By::Addresses => {
                for range in ranges {
                    push.extend_from_slice(&(range.address + range.offset).to_ne_bytes());
                }
            }
        }
        for word in words {
            push.extend_from_slice(&word.to_ne_bytes());
        }
        let (layout, stage) = (self.lab.kernels.layout, vk::ShaderStageFlags::COMPUTE);
        // SAFETY: as above.
        unsafe {
            self.device()
                .cmd_push_constants(self.raw, layout, stage, 0, &push)
        };
    }

    fn bind_set(&self, ranges: &[Range]) {
        let kernels = &self.lab.kernels;
        let layouts = [kernels.set_layout];
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(kernels.sets)
            .set_layouts(&layouts);
        // SAFETY: the pool has room for the sets of any program.
        let sets = unsafe { self.device().allocate_descriptor_sets(&info) }.unwrap();
        for (binding, range) in (0..).zip(ranges) {
            let info = [vk::DescriptorBufferInfo::default()
                .buffer(range.raw)
                .offset(range.offset)
                .range(range.bytes)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(sets[0])
                .dst_binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&info);
            // SAFETY: the set is new.
            unsafe { self.device().update_descriptor_sets(&[write], &[]) };
        }
        let (point, layout) = (vk::PipelineBindPoint::COMPUTE, kernels.layout);
        // SAFETY: as above.
        unsafe {
            self.device()
                .cmd_bind_descriptor_sets(self.raw, point, layout, 0, &sets, &[])
        };
    }

    fn dispatch(&self, words: u32) {
        let groups = words.div_ceil(64);
        // SAFETY: as above.
        unsafe { self.device().cmd_dispatch(self.raw, groups, 1, 1) };
    }
}
