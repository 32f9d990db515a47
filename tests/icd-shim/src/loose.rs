//! Memory that is not coherent: the host has a copy of it, and sees the device's memory by
//! invalidating, and the device the host's by flushing, range by range.
//!
//! # Safety
//!
//! As at the root of the crate. A copy lives as long as its memory, and is reached by the program that
//! mapped it and by flushes and invalidations alone, which Vulkan has the program keep apart.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc};

use ash::vk;

use crate::device::{self, Device};
use crate::sync::lock;

/// What a program reads of memory that it has not invalidated.
const UNSEEN: u8 = 0xCD;

/// The memory type that is shown beside the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loose {
    /// Its index.
    pub(crate) shown: u32,
    /// The driver's type behind it.
    pub(crate) real: u32,
    pub(crate) kind: Kind,
}

/// What is told of the further type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is cached and not coherent, and the others are not cached.
    NonCoherent,
    /// It is the only one that the host reaches, and lies in a heap of its own, as on a card.
    Host,
}

const HOST: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
    vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
        | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
);

impl Loose {
    /// Beside the driver's types, if the host sees one of them.
    pub(crate) fn new(types: &[vk::MemoryType], kind: Kind) -> Option<Self> {
        let real = types
            .iter()
            .position(|kind| kind.property_flags.contains(HOST))?;
        let number = |index: usize| u32::try_from(index).ok();
        Some(Self {
            shown: number(types.len()).filter(|&index| index < 32)?,
            real: number(real)?,
            kind,
        })
    }

    /// Shows the type.
    pub(crate) fn show(self, memory: &mut vk::PhysicalDeviceMemoryProperties) {
        match self.kind {
            Kind::NonCoherent => self.show_non_coherent(memory),
            Kind::Host => self.show_host(memory),
        }
    }

    fn show_host(self, memory: &mut vk::PhysicalDeviceMemoryProperties) {
        let host = HOST | vk::MemoryPropertyFlags::HOST_CACHED;
        for other in &mut memory.memory_types[..self.shown as usize] {
            other.property_flags &= !host;
        }
        let heap = memory.memory_heap_count;
        let real_heap = memory.memory_types[self.real as usize].heap_index;
        memory.memory_heaps[heap as usize] = vk::MemoryHeap {
            size: memory.memory_heaps[real_heap as usize].size,
            flags: vk::MemoryHeapFlags::empty(),
        };
        memory.memory_heap_count = heap + 1;
        memory.memory_types[self.shown as usize] = vk::MemoryType {
            property_flags: host,
            heap_index: heap,
        };
        memory.memory_type_count = self.shown + 1;
    }

    fn show_non_coherent(self, memory: &mut vk::PhysicalDeviceMemoryProperties) {
        let cached = vk::MemoryPropertyFlags::HOST_CACHED;
        let mut kind = memory.memory_types[self.real as usize];
        kind.property_flags &= !vk::MemoryPropertyFlags::HOST_COHERENT;
        kind.property_flags |= cached;
        for other in &mut memory.memory_types[..self.shown as usize] {
            other.property_flags &= !cached;
        }
        memory.memory_types[self.shown as usize] = kind;
        memory.memory_type_count = self.shown + 1;
    }

    /// Whatever may have the driver's type may have this one.
    fn widen(self, requirements: &mut vk::MemoryRequirements) {
        let may = requirements.memory_type_bits >> self.real & 1;
        requirements.memory_type_bits |= may << self.shown;
    }
}

/// The host's copy of some memory.
pub(crate) struct Shadow {
    copy: NonNull<u8>,
    layout: Layout,
    /// Where the driver has mapped the memory.
    real: Option<NonNull<u8>>,
}

// SAFETY: plain memory; see the top of the file.
unsafe impl Send for Shadow {}

impl Shadow {
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?, 4096).ok()?;
        // SAFETY: no allocation of Vulkan's is without bytes.
        let copy = NonNull::new(unsafe { alloc(layout) })?;
        // SAFETY: so many were just allocated.
        unsafe { copy.as_ptr().write_bytes(UNSEEN, layout.size()) };
        Some(Self {
            copy,
            layout,
            real: None,
        })
    }

    /// The bytes of a range, on the host's side and on the device's.
    fn sides(&self, range: &vk::MappedMemoryRange<'_>) -> Option<(*mut u8, *mut u8, usize)> {
        let start = usize::try_from(range.offset).ok()?;
        let left = self.layout.size().checked_sub(start)?;
        let len = match range.size {
            vk::WHOLE_SIZE => left,
            size => usize::try_from(size).ok()?.min(left),
        };
        let real = self.real?;
        // SAFETY: the range lies in the copy, as checked.
        let copy = unsafe { self.copy.as_ptr().add(start) };
        // SAFETY: the memory is as long.
        Some((copy, unsafe { real.as_ptr().add(start) }, len))
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; the memory that it is of is gone.
        unsafe { dealloc(self.copy.as_ptr(), self.layout) };
    }
}

pub(crate) unsafe extern "system" fn map(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
    size: vk::DeviceSize,
    flags: vk::MemoryMapFlags,
    out: *mut *mut c_void,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkMapMemory") {
        return result;
    }
    let real = device.core.raw().fp_v1_0().map_memory;
    let mut shadows = lock(&device.shadows);
    let Some(shadow) = shadows.get_mut(&memory) else {
        drop(shadows);
        // SAFETY: as the loader called.
        return unsafe { real(handle, memory, offset, size, flags, out) };
    };
    // SAFETY: as the loader called, but for all of the memory.
    let result = unsafe { real(handle, memory, 0, vk::WHOLE_SIZE, flags, out) };
    if result == vk::Result::SUCCESS {
        // SAFETY: the driver has just written it.
        shadow.real = NonNull::new(unsafe { *out }.cast());
        let start = usize::try_from(offset).unwrap_or(0);
        // SAFETY: the offset lies in the memory, and so in its copy.
        let copy = unsafe { shadow.copy.as_ptr().add(start) };
        // SAFETY: as the loader called.
        unsafe { *out = copy.cast() };
    }
    result
}

/// Copies ranges from one side to the other; the driver sees those that have no copy.
///
/// # Safety
///
/// As the loader called.
unsafe fn pass(
    device: &Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
    copy: impl Fn(*mut u8, *mut u8, usize),
) -> Vec<vk::MappedMemoryRange<'static>> {
    // SAFETY: as the loader called.
    let ranges = unsafe { core::slice::from_raw_parts(ranges, count as usize) };
    let shadows = lock(&device.shadows);
    let mut others = Vec::new();
    for range in ranges {
        match shadows.get(&range.memory) {
            Some(shadow) => {
                if let Some((host, real, len)) = shadow.sides(range) {
                    copy(host, real, len);
                }
            }
            None => others.push(
                vk::MappedMemoryRange::default()
                    .memory(range.memory)
                    .offset(range.offset)
                    .size(range.size),
            ),
        }
    }
    others
}

pub(crate) unsafe extern "system" fn flush(
    handle: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkFlushMappedMemoryRanges") {
        return result;
    }
    // SAFETY: both sides have so many bytes.
    let copy = |host: *mut u8, real, len| unsafe { host.copy_to_nonoverlapping(real, len) };
    // SAFETY: as the loader called.
    let others = unsafe { pass(&device, count, ranges, copy) };
    if others.is_empty() {
        return vk::Result::SUCCESS;
    }
    // SAFETY: as the loader called.
    let flushed = unsafe { device.core.raw().flush_mapped_memory_ranges(&others) };
    flushed.err().unwrap_or(vk::Result::SUCCESS)
}

pub(crate) unsafe extern "system" fn invalidate(
    handle: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    let Some(device) = device::get(handle) else {
        return vk::Result::ERROR_DEVICE_LOST;
    };
    if let Err(result) = device.core.fault("vkInvalidateMappedMemoryRanges") {
        return result;
    }
    // SAFETY: both sides have so many bytes.
    let copy =
        |host: *mut u8, real: *mut u8, len| unsafe { real.copy_to_nonoverlapping(host, len) };
    // SAFETY: as the loader called.
    let others = unsafe { pass(&device, count, ranges, copy) };
    if others.is_empty() {
        return vk::Result::SUCCESS;
    }
    // SAFETY: as the loader called.
    let seen = unsafe { device.core.raw().invalidate_mapped_memory_ranges(&others) };
    seen.err().unwrap_or(vk::Result::SUCCESS)
}

pub(crate) unsafe extern "system" fn buffer_requirements(
    handle: vk::Device,
    buffer: vk::Buffer,
    out: *mut vk::MemoryRequirements,
) {
    let Some(device) = device::get(handle) else {
        return;
    };
    let real = device.core.raw().fp_v1_0().get_buffer_memory_requirements;
    // SAFETY: as the loader called.
    unsafe { real(handle, buffer, out) };
    if let Some(loose) = device.physical().loose {
        // SAFETY: the driver has just written it.
        loose.widen(unsafe { &mut *out });
    }
}

pub(crate) unsafe extern "system" fn buffer_requirements2(
    handle: vk::Device,
    info: *const vk::BufferMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    let Some(device) = device::get(handle) else {
        return;
    };
    let real = device.core.raw().fp_v1_1().get_buffer_memory_requirements2;
    // SAFETY: as the loader called.
    unsafe { real(handle, info, out) };
    if let Some(loose) = device.physical().loose {
        // SAFETY: the driver has just written it.
        loose.widen(unsafe { &mut (*out).memory_requirements });
    }
}
