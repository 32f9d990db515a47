//! Segments over host memory of the program's own (`VK_EXT_external_memory_host`).
//!
//! # Safety
//!
//! The memory is the program's: whoever has it imported guarantees that it stays valid, and is not
//! used otherwise, until the segment is gone. Handles made here are destroyed by their guards, or by
//! the segment that they become part of.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::device::Device;
use super::segment::{Bare, Mapping, Memory, Segment, Whole};
use crate::device::extension::Extension;
use crate::device::plan::MemoryRole;
use crate::error::{Details, Error, ErrorKind, Result};

const HANDLE: vk::ExternalMemoryHandleTypeFlags =
    vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
/// Imported memory is copied from and to; kernels don't reach it.
const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw() | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// Imported memory that no segment has yet.
struct BareMemory<'a> {
    memory: vk::DeviceMemory,
    device: &'a Device,
}

impl Drop for BareMemory<'_> {
    fn drop(&mut self) {
        self.device.free_import(self.memory);
    }
}

impl Segment {
    /// Makes a segment of host memory that exists.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] where the device can't, [`ErrorKind::InvalidArgument`] for memory
    /// that does not start and end where the device asks for it.
    ///
    /// # Safety
    ///
    /// `start..start + size_bytes` is valid for reads and writes until the segment is gone.
    pub(crate) unsafe fn import(
        device: &Arc<Device>,
        start: NonNull<u8>,
        size_bytes: u64,
    ) -> Result<Arc<Self>> {
        device.check()?;
        if !device.plan().has(Extension::ExternalMemoryHost) {
            return Err(unsupported(device, "it lacks VK_EXT_external_memory_host"));
        }
        check_alignment(device, start, size_bytes)?;
        let is_dedicated = device.import_needs_dedicated()?;

        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HANDLE);
        let families = device.plan().families();
        let mut info = vk::BufferCreateInfo::default()
            .size(size_bytes)
            .usage(USAGE)
            .push_next(&mut external);
        if families.len() > 1 {
            info = info
                .sharing_mode(vk::SharingMode::CONCURRENT)
                .queue_family_indices(&families);
        }
        // SAFETY: the device is alive, has the extension, and says that such buffers can be imported.
        let buffer = unsafe { device.raw().create_buffer(&info, None) };
        let bare = Bare {
            buffer: device.during("vkCreateBuffer", buffer)?,
            device,
        };
        // SAFETY: the buffer is alive.
        let requirements = unsafe { device.raw().get_buffer_memory_requirements(bare.buffer) };
        if requirements.size > size_bytes {
            return Err(unsupported(
                device,
                "its buffers need more memory than they hold",
            ));
        }
        let types = requirements.memory_type_bits & host_pointer_types(device, start)?;
        // Memory of these roles is coherent; other would have to be mapped a second time.
        let choice = device.plan().memory.pick(MemoryRole::Upload, types);
        let choice = choice.ok_or_else(|| {
            unsupported(
                device,
                "it imports such memory with no type that is coherent",
            )
        })?;

        let mut pointer = vk::ImportMemoryHostPointerInfoEXT::default()
            .handle_type(HANDLE)
            .host_pointer(start.as_ptr().cast::<c_void>());
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(bare.buffer);
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(size_bytes)
            .memory_type_index(choice.type_index)
            .push_next(&mut pointer);
        if is_dedicated {
            info = info.push_next(&mut dedicated);
        }
        device.take_import(size_bytes)?;
        // SAFETY: the pointer and the size are multiples of what the device asks for, and the caller
        // says that the memory is valid; the type is one that the device imports it with.
        let memory = unsafe { device.raw().allocate_memory(&info, None) };
        let memory = memory.inspect_err(|_| device.give_import());
        let memory = BareMemory {
            memory: device.during("vkAllocateMemory", memory)?,
            device,
        };
        device.counts().driver_allocations.add(1);
        // SAFETY: both are fresh, and the memory is as large as required.
        let bound = unsafe {
            device
                .raw()
                .bind_buffer_memory(bare.buffer, memory.memory, 0)
        };
        device.during("vkBindBufferMemory", bound)?;
        let memory = ManuallyDrop::new(memory).memory;
        let whole = Whole {
            size_bytes,
            address: 0,
            mapping: Some(Mapping(start)),
            coherent: true,
            cached: true,
            memory: Memory::Imported(memory),
        };
        Ok(Self::of(device, bare, whole))
    }
}

impl Device {
    /// Gives imported memory up that nothing is bound to any more.
    pub(super) fn free_import(&self, memory: vk::DeviceMemory) {
        // SAFETY: imported above, given up once, and used by nothing.
        unsafe { self.raw().free_memory(memory, None) };
        self.counts().driver_frees.add(1);
        self.give_import();
    }

    /// What address and size of imported memory are multiples of, in bytes.
    fn import_alignment(&self) -> u64 {
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut head = vk::PhysicalDeviceProperties2::default().push_next(&mut host);
        // SAFETY: the physical device is of this instance and has the extension of the structure.
        unsafe {
            self.instance()
                .get_physical_device_properties2(self.physical(), &mut head);
        }
        host.min_imported_host_pointer_alignment.max(1)
    }

    /// Whether imported memory must be for one buffer alone; an error where it can't be imported.
    fn import_needs_dedicated(&self) -> Result<bool> {
        let info = vk::PhysicalDeviceExternalBufferInfo::default()
            .usage(USAGE)
            .handle_type(HANDLE);
        let mut found = vk::ExternalBufferProperties::default();
        // SAFETY: the physical device is of this instance.
        unsafe {
            self.instance()
                .get_physical_device_external_buffer_properties(self.physical(), &info, &mut found);
        }
        let features = found.external_memory_properties.external_memory_features;
        if !features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE) {
            return Err(unsupported(self, "its buffers can't be of such memory"));
        }
        Ok(features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
    }
}

/// The memory types that the memory can be imported with, as bits.
fn host_pointer_types(device: &Device, start: NonNull<u8>) -> Result<u32> {
    let functions = ash::ext::external_memory_host::Device::new(device.instance(), device.raw());
    let call = functions.fp().get_memory_host_pointer_properties_ext;
    let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
    let pointer = start.as_ptr().cast::<c_void>();
    // SAFETY: the extension is enabled, and the pointer is as aligned as the device asks for.
    let found = unsafe { call(device.raw().handle(), HANDLE, pointer, &mut properties) }.result();
    device.during("vkGetMemoryHostPointerPropertiesEXT", found)?;
    Ok(properties.memory_type_bits)
}

fn check_alignment(device: &Device, start: NonNull<u8>, size_bytes: u64) -> Result<()> {
    let alignment = device.import_alignment();
    let start = start.as_ptr().addr() as u64;
    for (what, value) in [
        ("starts at the address", start),
        ("has the size", size_bytes),
    ] {
        if value % alignment == 0 && value > 0 {
            continue;
        }
        let text = format!(
            "{} imports host memory that is a multiple of {alignment} bytes in address and size, \
             but this {what} {value}; allocate it by whole pages",
            device.name()
        );
        let details = Details::Alignment {
            name: "minImportedHostPointerAlignment".to_owned(),
            offset: value,
            alignment,
        };
        return Err(Error::new(ErrorKind::InvalidArgument, text).with_details(details));
    }
    Ok(())
}

#[cold]
fn unsupported(device: &Device, why: &str) -> Error {
    let text = format!(
        "{} can't import host memory: {why}; make a `PinnedBuffer` with `new` and copy into it",
        device.name()
    );
    Error::new(ErrorKind::Unsupported, text)
}
