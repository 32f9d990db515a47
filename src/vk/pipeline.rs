//! Compute pipelines with their layouts.
//!
//! # Safety
//!
//! Creating a pipeline from a module that is not valid SPIR-V is undefined; `Pipeline::new` is
//! therefore unsafe, and trust in the module is given where a kernel is loaded.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::descriptor::SetSize;
use super::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::interface::{Binding, BindingKind, Interface};

/// A value for a specialization constant: its id, its bits, and how many bytes of them count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Specialization {
    pub(crate) id: u32,
    pub(crate) bits: u64,
    pub(crate) size_bytes: u32,
}

/// A compute pipeline and all that belongs to it.
#[derive(Debug)]
pub(crate) struct Pipeline {
    number: u64,
    raw: vk::Pipeline,
    parts: Parts,
}

/// What is destroyed with a pipeline, or when making one fails half-way.
#[derive(Debug)]
struct Parts {
    sets: Vec<Set>,
    layout: vk::PipelineLayout,
    module: vk::ShaderModule,
    device: Arc<Device>,
}

#[derive(Debug)]
struct Set {
    layout: vk::DescriptorSetLayout,
    size: SetSize,
}

impl Pipeline {
    /// Makes the pipeline of the interface's entry point.
    ///
    /// # Safety
    ///
    /// `words` are valid SPIR-V for the device's version and enabled features, and `interface` was
    /// read from them.
    pub(crate) unsafe fn new(
        device: &Arc<Device>,
        words: &[u32],
        interface: &Interface,
        specialization: &[Specialization],
    ) -> Result<Arc<Self>> {
        device.check()?;
        let mut parts = Parts {
            sets: Vec::new(),
            layout: vk::PipelineLayout::null(),
            module: vk::ShaderModule::null(),
            device: Arc::clone(device),
        };
        parts.make_set_layouts(&interface.bindings)?;
        parts.make_layout(
            interface
                .push_constants
                .as_ref()
                .map_or(0, |block| block.size_bytes),
        )?;
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the caller vouches for the words.
        let module = unsafe { device.raw().create_shader_module(&info, None) };
        parts.module = device.during("vkCreateShaderModule", module)?;
        let raw = parts.make_pipeline(&interface.entry, specialization)?;
        parts.drop_module();
        device.counts().pipeline_compiles.add(1);
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Self { number, raw, parts }))
    }

    /// A number that no other pipeline of the process has; not 0.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn raw(&self) -> vk::Pipeline {
        self.raw
    }

    pub(crate) fn layout(&self) -> vk::PipelineLayout {
        self.parts.layout
    }

    /// How many descriptor sets it takes; some may be empty.
    pub(crate) fn set_count(&self) -> usize {
        self.parts.sets.len()
    }

    pub(crate) fn set(&self, index: usize) -> (vk::DescriptorSetLayout, SetSize) {
        let set = &self.parts.sets[index];
        (set.layout, set.size)
    }
}

impl Parts {
    fn make_set_layouts(&mut self, bindings: &[Binding]) -> Result<()> {
        let sets = bindings
            .iter()
            .map(|binding| binding.set + 1)
            .max()
            .unwrap_or(0);
        for set in 0..sets {
            let mut size = SetSize::default();
            let mut layout_bindings = Vec::new();
            for binding in bindings.iter().filter(|binding| binding.set == set) {
                let ty = match binding.kind {
                    BindingKind::Storage => {
                        size.storage += binding.count;
                        vk::DescriptorType::STORAGE_BUFFER
                    }
                    BindingKind::Uniform => {
                        size.uniform += binding.count;
                        vk::DescriptorType::UNIFORM_BUFFER
                    }
                };
                layout_bindings.push(
                    vk::DescriptorSetLayoutBinding::default()
                        .binding(binding.binding)
                        .descriptor_type(ty)
                        .descriptor_count(binding.count)
                        .stage_flags(vk::ShaderStageFlags::COMPUTE),
                );
            }
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&layout_bindings);
            // SAFETY: the device is alive.
            let layout = unsafe { self.device.raw().create_descriptor_set_layout(&info, None) };
            let layout = self.device.during("vkCreateDescriptorSetLayout", layout)?;
            self.sets.push(Set { layout, size });
        }
        Ok(())
    }

    fn make_layout(&mut self, push_bytes: u32) -> Result<()> {
        let layouts: Vec<_> = self.sets.iter().map(|set| set.layout).collect();
        let range = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(push_bytes.next_multiple_of(4))];
        let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        if push_bytes > 0 {
            info = info.push_constant_ranges(&range);
        }
        // SAFETY: the device and the set layouts are alive.
        let layout = unsafe { self.device.raw().create_pipeline_layout(&info, None) };
        self.layout = self.device.during("vkCreatePipelineLayout", layout)?;
        Ok(())
    }

    fn make_pipeline(
        &self,
        entry: &str,
        specialization: &[Specialization],
    ) -> Result<vk::Pipeline> {
        let entry = CString::new(entry).map_err(|_| {
            Error::new(
                ErrorKind::InvalidArgument,
                "an entry point's name holds a 0 byte",
            )
        })?;
        let mut data = Vec::new();
        let mut entries = Vec::new();
        for (constant, offset) in specialization.iter().zip((0u32..).step_by(8)) {
            data.extend_from_slice(&constant.bits.to_le_bytes());
            entries.push(
                vk::SpecializationMapEntry::default()
                    .constant_id(constant.id)
                    .offset(offset)
                    .size(constant.size_bytes as usize),
            );
        }
        let values = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&data);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(self.module)
            .name(&entry)
            .specialization_info(&values);
        let info = [vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(self.layout)];
        // SAFETY: module and layout are alive and fit, since the interface was read from the module.
        let made = unsafe {
            self.device
                .raw()
                .create_compute_pipelines(vk::PipelineCache::null(), &info, None)
        };
        match made {
            Ok(pipelines) => Ok(pipelines[0]),
            Err((pipelines, code)) => {
                for pipeline in pipelines.into_iter().filter(|p| *p != vk::Pipeline::null()) {
                    // SAFETY: just made, and used by nothing.
                    unsafe { self.device.raw().destroy_pipeline(pipeline, None) };
                }
                self.device.during("vkCreateComputePipelines", Err(code))
            }
        }
    }

    fn drop_module(&mut self) {
        let module = core::mem::replace(&mut self.module, vk::ShaderModule::null());
        // SAFETY: no pipeline needs its module once it is made; null is allowed.
        unsafe { self.device.raw().destroy_shader_module(module, None) };
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if !self.device.may_call_driver() {
            return;
        }
        self.drop_module();
        // SAFETY: the pipeline made from it is destroyed before; null is allowed.
        unsafe { self.device.raw().destroy_pipeline_layout(self.layout, None) };
        for set in &self.sets {
            // SAFETY: as above; sets of this layout are used by finished commands alone.
            unsafe {
                self.device
                    .raw()
                    .destroy_descriptor_set_layout(set.layout, None)
            };
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if self.parts.device.may_call_driver() {
            // SAFETY: recordings hold an `Arc` of the pipelines that their commands use.
            unsafe { self.parts.device.raw().destroy_pipeline(self.raw, None) };
        }
    }
}
