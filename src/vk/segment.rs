//! Segments: a VkBuffer with one dedicated allocation, through gpu-allocator.
//!
//! # Safety
//!
//! A segment's handles are made here and in `import`, and destroyed here alone. Its mapping stays
//! valid until the segment is dropped.
#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};

use super::device::Device;
use super::result;
use crate::device::plan::MemoryRole;
use crate::error::{Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};

/// What every segment may be used for.
const USAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw()
        | vk::BufferUsageFlags::TRANSFER_DST.as_raw()
        | vk::BufferUsageFlags::STORAGE_BUFFER.as_raw()
        | vk::BufferUsageFlags::UNIFORM_BUFFER.as_raw()
        | vk::BufferUsageFlags::INDIRECT_BUFFER.as_raw()
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.as_raw(),
);

/// One VkBuffer and its memory.
pub(crate) struct Segment {
    id: u64,
    buffer: vk::Buffer,
    size_bytes: u64,
    address: u64,
    pub(super) mapping: Option<Mapping>,
    /// Whether host and device see each other's writes without being told.
    pub(super) coherent: bool,
    /// Whether the host reads it at full speed.
    cached: bool,
    pub(super) memory: ManuallyDrop<Memory>,
    device: Arc<Device>,
}

/// The memory of a segment.
pub(super) enum Memory {
    /// Made for it, in this heap.
    Planned(Allocation, u32),
    /// Host memory of the program's own.
    Imported(vk::DeviceMemory),
}

#[derive(Clone, Copy)]
pub(super) struct Mapping(pub(super) NonNull<u8>);

// SAFETY: a mapping is plain memory that any thread may reach; `Segment`'s methods say who must
// keep accesses apart.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl core::fmt::Debug for Segment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Segment")
            .field("id", &self.id)
            .field("size_bytes", &self.size_bytes)
            .finish_non_exhaustive()
    }
}

/// What a buffer becomes a segment with.
pub(super) struct Whole {
    pub(super) size_bytes: u64,
    /// 0 for one that is not for kernels.
    pub(super) address: u64,
    pub(super) mapping: Option<Mapping>,
    pub(super) coherent: bool,
    pub(super) cached: bool,
    pub(super) memory: Memory,
}

/// A buffer without memory yet; destroyed unless it becomes a segment.
pub(super) struct Bare<'a> {
    pub(super) buffer: vk::Buffer,
    pub(super) device: &'a Device,
}

impl Drop for Bare<'_> {
    fn drop(&mut self) {
        // SAFETY: the buffer is of this device and nothing uses it.
        unsafe { self.device.raw().destroy_buffer(self.buffer, None) };
    }
}

impl Segment {
    /// Makes a segment of `size_bytes` in the memory type that the plan chose.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`], with the reason and the request filled in.
    pub(crate) fn new(
        device: &Arc<Device>,
        size_bytes: u64,
        role: MemoryRole,
    ) -> Result<Arc<Self>> {
        device.check()?;
        let families = device.plan().families();
        let mut info = vk::BufferCreateInfo::default()
            .size(size_bytes)
            .usage(USAGE);
        if families.len() > 1 {
            // Streams on any lane use it, without handing it over.
            info = info
                .sharing_mode(vk::SharingMode::CONCURRENT)
                .queue_family_indices(&families);
        }
        // SAFETY: the device is alive; the size is not 0 and below the limit that the caller checked.
        let buffer = unsafe { device.raw().create_buffer(&info, None) };
        let bare = Bare {
            buffer: device.during("vkCreateBuffer", buffer)?,
            device,
        };
        // SAFETY: the buffer is alive.
        let mut requirements = unsafe { device.raw().get_buffer_memory_requirements(bare.buffer) };
        let choice = device
            .plan()
            .memory
            .pick(role, requirements.memory_type_bits);
        let choice = choice.ok_or_else(|| no_memory_type(device, role))?;
        requirements.memory_type_bits = 1 << choice.type_index;
        let allocation = device.allocate(
            &AllocationCreateDesc {
                name: role.name(),
                requirements,
                location: MemoryLocation::Unknown,
                linear: true,
                allocation_scheme: AllocationScheme::DedicatedBuffer(bare.buffer),
            },
            size_bytes,
            choice,
        )?;
        // SAFETY: memory of this allocation, fresh and as large as required, not yet bound.
        let memory = unsafe { allocation.memory() };
        // SAFETY: as above.
        let bound = unsafe {
            device
                .raw()
                .bind_buffer_memory(bare.buffer, memory, allocation.offset())
        };
        if let Err(error) = device.during("vkBindBufferMemory", bound) {
            device.release(allocation, choice.heap);
            return Err(error);
        }
        let address_info = vk::BufferDeviceAddressInfo::default().buffer(bare.buffer);
        // SAFETY: the buffer has memory and was made for addresses, a feature that every device has
        // that we open.
        let address = unsafe { device.raw().get_buffer_device_address(&address_info) };
        let mapping = allocation
            .mapped_ptr()
            .map(|pointer| Mapping(pointer.cast()));
        let memory = Memory::Planned(allocation, choice.heap);
        let whole = Whole {
            size_bytes,
            address,
            mapping,
            coherent: choice.is_coherent(),
            cached: choice.is_cached(),
            memory,
        };
        Ok(Self::of(device, bare, whole))
    }

    /// A segment of a buffer and the memory that was bound to it.
    pub(super) fn of(device: &Arc<Device>, bare: Bare<'_>, whole: Whole) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let buffer = bare.buffer;
        let _owned = ManuallyDrop::new(bare);
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            buffer,
            size_bytes: whole.size_bytes,
            address: whole.address,
            mapping: whole.mapping,
            coherent: whole.coherent,
            cached: whole.cached,
            memory: ManuallyDrop::new(whole.memory),
            device: Arc::clone(device),
        })
    }

    /// A number no other segment of the process has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether the host reaches it.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapping.is_some()
    }

    /// Whether the host reaches it and reads it at full speed.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached && self.is_mapped()
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(crate) fn buffer(&self) -> vk::Buffer {
        self.buffer
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if !self.device.may_call_driver() {
            return;
        }
        // SAFETY: recordings hold an `Arc` of what their commands use until these have finished, so
        // nothing uses the buffer.
        unsafe { self.device.raw().destroy_buffer(self.buffer, None) };
        // SAFETY: taken once, here.
        match unsafe { ManuallyDrop::take(&mut self.memory) } {
            Memory::Planned(allocation, heap) => self.device.release(allocation, heap),
            Memory::Imported(memory) => self.device.free_import(memory),
        }
    }
}

#[cold]
fn no_memory_type(device: &Device, role: MemoryRole) -> Error {
    Error::new(
        ErrorKind::Driver,
        format!(
            "{}: no memory type fits a buffer for {} memory; the driver breaks Vulkan's rules",
            device.name(),
            role.name()
        ),
    )
}

/// The error for an allocation that gpu-allocator could not make.
#[cold]
pub(crate) fn allocation_error(cause: &gpu_allocator::AllocationError, size_bytes: u64) -> Error {
    use gpu_allocator::AllocationError;
    match cause {
        AllocationError::OutOfMemory => Error::new(
            ErrorKind::OutOfMemory,
            format!("the driver has no {size_bytes} bytes of device memory left"),
        )
        .with_raw(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY.as_raw())
        .with_out_of_memory(OutOfMemory::new(
            OutOfMemoryReason::RefusedByDriver,
            size_bytes,
        )),
        AllocationError::NoCompatibleMemoryTypeFound => Error::new(
            ErrorKind::Driver,
            "the driver does not let a buffer use the memory type that its own table offers for it",
        ),
        other => {
            let text = other.to_string();
            let call = match other {
                AllocationError::FailedToMap(_) => "vkMapMemory",
                _ => "vkAllocateMemory",
            };
            let error = match code_in(&text) {
                Some(code) => result::error(call, code),
                None => Error::new(ErrorKind::Driver, text),
            };
            let reason = error.out_of_memory().map(|figures| figures.reason);
            let error = match reason {
                Some(reason) => error.with_out_of_memory(OutOfMemory::new(reason, size_bytes)),
                None => error,
            };
            error.context(format!("allocating {size_bytes} bytes"))
        }
    }
}

/// The driver's code in a text of gpu-allocator, which keeps it nowhere else.
fn code_in(text: &str) -> Option<vk::Result> {
    const CODES: [vk::Result; 4] = [
        vk::Result::ERROR_OUT_OF_HOST_MEMORY,
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        vk::Result::ERROR_TOO_MANY_OBJECTS,
        vk::Result::ERROR_MEMORY_MAP_FAILED,
    ];
    let is_named =
        |code: &vk::Result| text.contains(&format!("{code:?}")) || text.contains(&code.to_string());
    CODES.into_iter().find(is_named)
}
