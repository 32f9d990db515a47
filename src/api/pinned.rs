//! Pinned host memory, and the copies from and to it.

use core::any;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::buffer::same_length;
use super::stream::Whose;
use super::{Buffer, View};
use crate::device::plan::MemoryRole;
use crate::device::{Device, DeviceArg};
use crate::error::text::count;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Call;
use crate::mem::copy;
use crate::mem::pinned::{Pinned, ReadGuard, WriteGuard};
use crate::runtime::{Runtime, Slot, Stream};

/// Host memory that a device copies from and to without staging. A handle: clones are the same memory.
///
/// The host and the device take turns with it. The host reads and writes it through guards, from
/// [`read`](Self::read) and [`write`](Self::write): they wait for queued copies that would be in the way,
/// and while one lives, a copy that would be in its way can't be queued ([`ErrorKind::HostBusy`]). A
/// guard that is leaked keeps the memory for ever. Kernels don't reach it.
///
/// It comes from a cache, as [`HostMemoryStats`](crate::HostMemoryStats) tells, and is given back once the
/// last handle is dropped and the last copy has finished.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, PinnedBuffer};
///
/// let host = PinnedBuffer::<f32>::new(3)?;
/// host.write()?.copy_from_slice(&[1.0, 2.0, 3.0]);
/// let buffer = Buffer::<f32>::zeroed(3)?;
/// buffer.copy_from_pinned(&host)?;
///
/// let back = PinnedBuffer::<f32>::new(3)?;
/// buffer.copy_to_pinned(&back)?;
/// assert_eq!(*back.read()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
///
/// A guard borrows the handle, and one that reads lends nothing to be written:
///
/// ```compile_fail,E0505
/// let host = vkaccel::PinnedBuffer::<u8>::new(1).unwrap();
/// let guard = host.read().unwrap();
/// drop(host);
/// assert_eq!(guard.len(), 1);
/// ```
///
/// ```compile_fail,E0596
/// let host = vkaccel::PinnedBuffer::<u8>::new(1).unwrap();
/// host.read().unwrap()[0] = 1;
/// ```
#[doc(alias = "pin_memory")]
pub struct PinnedBuffer<T: Pod> {
    memory: Arc<Pinned>,
    len: usize,
    slot: Arc<Slot>,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> PinnedBuffer<T> {
    /// Memory for `len` elements with whatever content, for the current device.
    ///
    /// Every pattern of bits is a value of `T`, so reading it is wrong at worst, never undefined. The
    /// host reads and writes it at full speed.
    ///
    /// # Errors
    ///
    /// [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory), or
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) where host and device share one memory;
    /// [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
    /// [`Config`](crate::ErrorKind::Config) without a device. Also what [any command](crate#errors) may
    /// give.
    pub fn new(len: usize) -> Result<Self> {
        Self::new_on(DeviceArg::CURRENT, len)
    }

    /// The same for a device that is named.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`ErrorKind::InvalidDevice`] if `device` names no visible device.
    pub fn new_on(device: impl Into<DeviceArg>, len: usize) -> Result<Self> {
        Self::pin(&device.into(), len, MemoryRole::Readback)
    }

    /// Memory for `len` elements that the host mostly writes.
    ///
    /// On cards it may be of a kind that the host writes past its caches: quick to write in order and
    /// for the device to read, and very slow for the host to read.
    ///
    /// # Errors
    ///
    /// As [`new_on`](Self::new_on).
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let host = vkaccel::PinnedBuffer::<u32>::for_upload_on(None, 4)?;
    /// host.write()?.fill(7);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn for_upload_on(device: impl Into<DeviceArg>, len: usize) -> Result<Self> {
        Self::pin(&device.into(), len, MemoryRole::Upload)
    }

    /// Memory with a copy of `data`, for the current device.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_slice(data: &[T]) -> Result<Self> {
        let pinned = Self::new(data.len())?;
        // Not by a guard of the program's: nobody waits here, also during a capture.
        let mut guard = pinned.memory.write()?;
        guard.elements_mut(data.len()).copy_from_slice(data);
        drop(guard);
        Ok(pinned)
    }

    fn pin(device: &DeviceArg, len: usize, role: MemoryRole) -> Result<Self> {
        let slot = Arc::clone(Runtime::current().slot(device)?);
        let opened = slot.open()?;
        let bytes = len_bytes::<T>(len)?;
        Self::of(Pinned::new(&opened.host, role, bytes)?, len, slot)
    }

    fn of(memory: Arc<Pinned>, len: usize, slot: Arc<Slot>) -> Result<Self> {
        if !memory.is_aligned_to(align_of::<T>()) {
            let text = format!(
                "pinned memory does not start at a multiple of {} bytes, which its elements need",
                align_of::<T>()
            );
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        Ok(Self {
            memory,
            len,
            slot,
            element: PhantomData,
        })
    }

    /// Takes host memory that the program has, for the current device, without a copy.
    ///
    /// It has to begin and end where the device says, which is at pages on most. It is not part of
    /// [`HostMemoryStats`](crate::HostMemoryStats), and stays the program's to free.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the device lacks `VK_EXT_external_memory_host` or
    /// can't use this memory, [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if address or size is
    /// no multiple of what it asks for; [`NoDriver`](crate::ErrorKind::NoDriver),
    /// [`NoDevice`](crate::ErrorKind::NoDevice) or [`Config`](crate::ErrorKind::Config) without a device.
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Safety
    ///
    /// `ptr..ptr + len` is valid for reads and writes, aligned for `T`, and used by nobody else until
    /// every handle is dropped and every copy from or to it has finished. Memory that is freed while the
    /// device still knows it must not be mapped again meanwhile.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use std::alloc::{Layout, alloc_zeroed, dealloc};
    /// use vkaccel::{Buffer, ErrorKind, PinnedBuffer};
    ///
    /// let layout = Layout::from_size_align(1 << 16, 1 << 16).unwrap();
    /// // SAFETY: the layout has bytes.
    /// let memory = unsafe { alloc_zeroed(layout) };
    /// assert!(!memory.is_null());
    /// // SAFETY: nothing else uses it before it is freed, after the buffer and its copies.
    /// let imported = unsafe { PinnedBuffer::import(memory.cast::<u32>(), 1 << 14) };
    /// match imported {
    ///     Ok(host) => assert_eq!(host.read()?[5], 0),
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    /// }
    /// // SAFETY: allocated above with this layout; the buffer is gone, and no copy was queued.
    /// unsafe { dealloc(memory, layout) };
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[allow(unsafe_code)]
    pub unsafe fn import(ptr: *mut T, len: usize) -> Result<Self> {
        let slot = Arc::clone(Runtime::current().slot(&DeviceArg::CURRENT)?);
        let opened = slot.open()?;
        let bytes = len_bytes::<T>(len)?;
        let Some(start) = NonNull::new(ptr.cast::<u8>()) else {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "a null pointer can't be imported",
            ));
        };
        // SAFETY: the caller's word.
        let memory = unsafe { Pinned::import(&opened.device, start, bytes) }?;
        Self::of(memory, len, slot)
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that copies from and to it.
    pub fn device(&self) -> Device {
        self.slot.device()
    }

    /// Waits for queued copies to it, then lends it for reading.
    ///
    /// Several such guards may live at once. While one lives, or is waited for, no copy to it can be
    /// queued.
    ///
    /// # Errors
    ///
    /// [`HostBusy`](crate::ErrorKind::HostBusy) while a [`PinnedWrite`] of it lives. Also what [any
    /// wait](crate#errors) may give.
    #[track_caller]
    pub fn read(&self) -> Result<PinnedRead<'_, T>> {
        self.slot.permit(Call::new("PinnedBuffer::read"))?;
        Ok(PinnedRead {
            guard: self.memory.read()?,
            len: self.len,
            element: PhantomData,
        })
    }

    /// Waits for queued copies from and to it, then lends it for reading and writing.
    ///
    /// While the guard lives, or is waited for, no copy from or to it can be queued.
    ///
    /// # Errors
    ///
    /// [`HostBusy`](crate::ErrorKind::HostBusy) while a [`PinnedRead`] or [`PinnedWrite`] of it lives. Also
    /// what [any wait](crate#errors) may give.
    #[track_caller]
    pub fn write(&self) -> Result<PinnedWrite<'_, T>> {
        self.slot.permit(Call::new("PinnedBuffer::write"))?;
        Ok(PinnedWrite {
            guard: self.memory.write()?,
            len: self.len,
            element: PhantomData,
        })
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    pub(super) fn memory(&self) -> &Arc<Pinned> {
        &self.memory
    }
}

/// The bytes of `len` elements.
fn len_bytes<T>(len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or_else(|| {
        let text = format!(
            "no host can pin {} of {}; was the length computed from numbers that wrapped?",
            count(len, "element"),
            count(size_of::<T>(), "byte")
        );
        Error::new(ErrorKind::OutOfHostMemory, text)
    })
}

impl<T: Pod> Clone for PinnedBuffer<T> {
    fn clone(&self) -> Self {
        Self {
            memory: Arc::clone(&self.memory),
            len: self.len,
            slot: Arc::clone(&self.slot),
            element: PhantomData,
        }
    }
}

impl<T: Pod> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer")
            .field("element", &any::type_name::<T>())
            .field("len", &self.len)
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}

/// Pinned memory that is lent for reading, as a slice; from [`PinnedBuffer::read`].
#[must_use = "the memory is lent for as long as this lives"]
#[derive(Debug)]
pub struct PinnedRead<'a, T: Pod> {
    guard: ReadGuard<'a>,
    len: usize,
    element: PhantomData<&'a [T]>,
}

/// Pinned memory that is lent for reading and writing, as a slice; from [`PinnedBuffer::write`].
#[must_use = "the memory is lent for as long as this lives"]
#[derive(Debug)]
pub struct PinnedWrite<'a, T: Pod> {
    guard: WriteGuard<'a>,
    len: usize,
    element: PhantomData<&'a mut [T]>,
}

impl<T: Pod> Deref for PinnedRead<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.guard.elements(self.len)
    }
}

impl<T: Pod> Deref for PinnedWrite<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.guard.elements(self.len)
    }
}

impl<T: Pod> DerefMut for PinnedWrite<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.guard.elements_mut(self.len)
    }
}

impl Stream {
    /// Copies pinned memory to a buffer or view, which must have the same length; does not wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::HostBusy`] while a [`PinnedWrite`] of `src` lives, [`ErrorKind::InvalidArgument`] if
    /// the lengths differ, [`ErrorKind::InvalidDevice`] if either is on another device than the stream.
    /// Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{PinnedBuffer, Stream};
    ///
    /// let stream = Stream::new(0)?;
    /// let host = PinnedBuffer::from_slice(&[1u32, 2, 3])?;
    /// let numbers = stream.zeroed::<u32>(5)?;
    /// stream.copy_from_pinned(&host, numbers.view(1..4)?)?;
    /// assert_eq!(stream.to_vec(&numbers)?, [0, 1, 2, 3, 0]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn copy_from_pinned<'a, T: Pod>(
        &self,
        src: &PinnedBuffer<T>,
        dst: impl Into<View<'a, T>>,
    ) -> Result<()> {
        let dst = dst.into();
        self.check_device(Whose::Pinned, src.slot())?;
        self.check_device(Whose::Buffer, dst.buffer().slot())?;
        same_length::<T>(dst.len(), src.len())?;
        let Some(range) = dst.range() else {
            return Ok(());
        };
        let (core, _opened) = self.open()?;
        copy::from_pinned(&core, &src.memory, range.into())
    }

    /// Copies a buffer or view to pinned memory, which must have the same length; does not wait.
    ///
    /// [`PinnedBuffer::read`] waits for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::HostBusy`] while a [`PinnedRead`] or [`PinnedWrite`] of `dst` lives,
    /// [`ErrorKind::InvalidArgument`] if the lengths differ, [`ErrorKind::InvalidDevice`] if either is on
    /// another device than the stream. Also what [any command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{PinnedBuffer, Stream};
    ///
    /// let stream = Stream::new(0)?;
    /// let numbers = stream.upload(&[1u32, 2, 3])?;
    /// let host = PinnedBuffer::<u32>::new(3)?;
    /// stream.copy_to_pinned(&numbers, &host)?;
    /// assert_eq!(*host.read()?, [1, 2, 3]); // waits for the copy
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn copy_to_pinned<'a, T: Pod>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: &PinnedBuffer<T>,
    ) -> Result<()> {
        let src = src.into();
        self.check_device(Whose::Buffer, src.buffer().slot())?;
        self.check_device(Whose::Pinned, dst.slot())?;
        same_length::<T>(dst.len(), src.len())?;
        let Some(range) = src.range() else {
            return Ok(());
        };
        let (core, _opened) = self.open()?;
        copy::to_pinned(&core, range.into(), &dst.memory).map(drop)
    }
}

impl<T: Pod> Buffer<T> {
    /// Copies pinned memory, which must have the length of the buffer; does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_from_pinned`].
    pub fn copy_from_pinned(&self, src: &PinnedBuffer<T>) -> Result<()> {
        View::from(self).copy_from_pinned(src)
    }

    /// Copies the content to pinned memory, which must have the length of the buffer; does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_to_pinned`].
    pub fn copy_to_pinned(&self, dst: &PinnedBuffer<T>) -> Result<()> {
        View::from(self).copy_to_pinned(dst)
    }
}

impl<T: Pod> View<'_, T> {
    /// Copies pinned memory, which must have the length of the view; does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_from_pinned`].
    pub fn copy_from_pinned(&self, src: &PinnedBuffer<T>) -> Result<()> {
        self.stream().copy_from_pinned(src, *self)
    }

    /// Copies the content to pinned memory, which must have the length of the view; does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_to_pinned`].
    pub fn copy_to_pinned(&self, dst: &PinnedBuffer<T>) -> Result<()> {
        self.stream().copy_to_pinned(*self, dst)
    }
}
