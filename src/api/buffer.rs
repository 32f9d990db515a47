//! Buffers, and the forms of their operations that use the current stream of their device.

use core::any;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, RangeBounds};
use core::panic::Location;
use core::time::Duration;
use std::sync::Arc;

use bytemuck::Pod;

use super::View;
use crate::device::{Device, DeviceArg};
use crate::error::text::{self, count};
use crate::error::{Details, Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};
use crate::exec::Call;
use crate::kernel::Address;
use crate::mem::copy::PendingDownload;
use crate::mem::{Block, Home};
use crate::runtime::{Runtime, Slot, Stream, current_pool, current_stream};

/// Memory of a device, as elements of a plain type.
///
/// Not `Clone`: share one with an `Arc`. Dropping it gives the memory back once no queued command
/// uses it. No Rust reference to its content exists, so a shared buffer may be written by kernels
/// and copies; it is a `Cell` on the device. Operations run on the current stream of the buffer's
/// device; [`Stream`] has a form of each that names the stream.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::Buffer;
///
/// let numbers = Buffer::from_slice(&[1.0f32, 2.0, 3.0])?;
/// let copy = Buffer::<f32>::zeroed(3)?;
/// copy.copy_from(numbers.view(..)?)?;
/// assert_eq!(copy.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
pub struct Buffer<T: Pod> {
    block: Block,
    len: usize,
    slot: Arc<Slot>,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> Buffer<T> {
    /// A buffer with a copy of `data`, on the current device.
    ///
    /// `data` is read before the call returns.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory), with its [figures](OutOfMemory), if there is no
    /// room; [`NoDriver`](crate::ErrorKind::NoDriver), [`NoDevice`](crate::ErrorKind::NoDevice) or
    /// [`Config`](crate::ErrorKind::Config) without a device. Also what [any command](crate#errors) may
    /// give.
    #[track_caller]
    pub fn from_slice(data: &[T]) -> Result<Self> {
        Self::here()?.upload(data)
    }

    /// A buffer of `len` elements whose bytes are all 0, on the current device.
    ///
    /// # Errors
    ///
    /// As [`from_slice`](Self::from_slice).
    #[track_caller]
    pub fn zeroed(len: usize) -> Result<Self> {
        Self::here()?.zeroed(len)
    }

    /// A buffer of `len` elements with whatever content, on the current device.
    ///
    /// Every pattern of bits is a value of `T`, so reading it is wrong at worst, never undefined.
    ///
    /// # Errors
    ///
    /// As [`from_slice`](Self::from_slice).
    #[track_caller]
    pub fn uninit(len: usize) -> Result<Self> {
        Self::here()?.uninit(len)
    }

    fn here() -> Result<Stream> {
        Runtime::current().current_stream_of(&DeviceArg::CURRENT)
    }

    /// Memory on the stream's device.
    #[track_caller]
    pub(super) fn allocate(stream: &Stream, len: usize) -> Result<Self> {
        let home = Arc::clone(stream.home()?);
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        // Sizes in bytes must fit the host's own, so that they never wrap anywhere.
        let bytes = bytes.filter(|&bytes| usize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or_else(|| too_long::<T>(len))?;
        let pool = current_pool(stream.slot());
        let block = Home::allocate(home, bytes, pool, Location::caller())?;
        Ok(Self {
            block,
            len,
            slot: Arc::clone(stream.slot()),
            element: PhantomData,
        })
    }

    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// The current stream of the buffer's device.
    fn stream(&self) -> Stream {
        current_stream(&self.slot)
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that holds it.
    pub fn device(&self) -> Device {
        self.slot.device()
    }

    /// The device address of its first byte, the same for as long as it lives; 0 if it has no bytes.
    pub fn address(&self) -> Address {
        Address::new(self.block.address())
    }

    /// Part of the buffer, by elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the range is not inside the buffer.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        let (start, end) = element_range(range, self.len)?;
        Ok(View::new(self, start, end - start))
    }

    /// The same memory as elements of another type.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the bytes are no whole number of such elements.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let bytes = vkaccel::Buffer::from_slice(&[1u32, 2])?.cast::<u8>()?;
    /// assert_eq!(bytes.len(), 8);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn cast<U: Pod>(self) -> Result<Buffer<U>> {
        let bytes = self.len * size_of::<T>();
        let size = size_of::<U>();
        let len = match (bytes, size) {
            (0, 0) => self.len,
            (_, 0) => usize::MAX,
            _ => bytes / size,
        };
        if len.checked_mul(size) != Some(bytes) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "there is no whole number of elements of {} in {}",
                    count(size, "byte"),
                    count(bytes, "byte")
                ),
            ));
        }
        Ok(Buffer {
            block: self.block,
            len,
            slot: self.slot,
            element: PhantomData,
        })
    }

    /// Says that a stream uses the memory, where the crate can't see it.
    ///
    /// Once the buffer is dropped, its memory is not used for anything else before what the stream holds
    /// by then has finished. Launches and copies on any stream say so by themselves; this is for kernels
    /// that reach the memory through an address that no launch names. On a stream that a graph captures, the
    /// graph keeps the memory. It is torch's `record_stream`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`] if the stream is on another device. Also what [any
    /// command](crate#errors) may give.
    pub fn record_stream(&self, stream: &Stream) -> Result<()> {
        stream.record_use(self)
    }

    /// Overwrites the buffer with `data`, which is read before the call returns.
    ///
    /// Calls for the same bytes on several threads at once, with nothing that orders them, may meet parts of
    /// each other's content; each thread's own calls take effect in order.
    ///
    /// Does not wait for the device, but for room: an upload larger than the staging memory goes
    /// through it in pieces.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the lengths differ. Also what [any command](crate#errors) may
    /// give.
    pub fn write(&self, data: &[T]) -> Result<()> {
        self.stream().write(self, data)
    }

    /// Waits for the buffer's content and copies it into `out`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the lengths differ. Also what [any wait](crate#errors) may give.
    #[track_caller]
    pub fn read(&self, out: &mut [T]) -> Result<()> {
        let call = Call::new("Buffer::read");
        self.stream().read_as(call, View::from(self), out)
    }

    /// Waits for the buffer's content and gives a copy.
    ///
    /// # Errors
    ///
    /// [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) if the host has no room for it. Also what
    /// [any wait](crate#errors) may give.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let call = Call::new("Buffer::to_vec");
        self.stream().to_vec_as(call, View::from(self))
    }

    /// Starts to copy the content to the host.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no host memory for the device to copy to;
    /// [`NotPermitted`](crate::ErrorKind::NotPermitted) if the stream is captured. Also what [any
    /// command](crate#errors) may give.
    #[track_caller]
    pub fn read_async(&self) -> Result<Download<T>> {
        let call = Call::new("Buffer::read_async");
        self.stream().read_async_as(call, View::from(self))
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    ///
    /// What [any command](crate#errors) may give.
    pub fn fill(&self, value: T) -> Result<()> {
        self.stream().fill(self, value)
    }

    /// Copies `src`, which must have the length of the buffer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the lengths differ, [`ErrorKind::InvalidDevice`] if `src` is on
    /// another device. Also what [any command](crate#errors) may give.
    pub fn copy_from(&self, src: View<'_, T>) -> Result<()> {
        self.stream().copy(src, self)
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("element", &any::type_name::<T>())
            .field("len", &self.len)
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}

impl<T: Pod> View<'_, T> {
    pub(super) fn stream(&self) -> Stream {
        self.buffer().stream()
    }

    /// Overwrites the view with `data`; see [`Buffer::write`].
    ///
    /// # Errors
    ///
    /// As [`Buffer::write`].
    pub fn write(&self, data: &[T]) -> Result<()> {
        self.stream().write(*self, data)
    }

    /// Waits for the content and copies it into `out`.
    ///
    /// # Errors
    ///
    /// As [`Buffer::read`].
    #[track_caller]
    pub fn read(&self, out: &mut [T]) -> Result<()> {
        let call = Call::new("View::read");
        self.stream().read_as(call, *self, out)
    }

    /// Waits for the content and gives a copy.
    ///
    /// # Errors
    ///
    /// As [`Buffer::to_vec`].
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let call = Call::new("View::to_vec");
        self.stream().to_vec_as(call, *self)
    }

    /// Starts to copy the content to the host.
    ///
    /// # Errors
    ///
    /// As [`Buffer::read_async`].
    #[track_caller]
    pub fn read_async(&self) -> Result<Download<T>> {
        let call = Call::new("View::read_async");
        self.stream().read_async_as(call, *self)
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    ///
    /// As [`Buffer::fill`].
    pub fn fill(&self, value: T) -> Result<()> {
        self.stream().fill(*self, value)
    }

    /// Copies `src`, which must have the length of the view; see [`Stream::copy`] for overlaps.
    ///
    /// # Errors
    ///
    /// As [`Buffer::copy_from`].
    pub fn copy_from(&self, src: View<'_, T>) -> Result<()> {
        self.stream().copy(src, *self)
    }
}

/// A copy to the host that is under way; it owns the memory that the device copies to.
///
/// Dropping it gives up the result; the copy itself runs on.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let buffer = vkaccel::Buffer::from_slice(&[1u8, 2, 3])?;
/// let download = buffer.read_async()?;
/// buffer.fill(9)?;
/// assert_eq!(download.wait()?, [1, 2, 3]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[must_use = "the content comes from `wait`"]
pub struct Download<T: Pod> {
    /// Nothing where there are no bytes to copy.
    pending: Option<PendingDownload>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("element", &any::type_name::<T>())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T: Pod> Download<T> {
    pub(super) fn new(pending: Option<PendingDownload>, len: usize) -> Self {
        Self {
            pending,
            len,
            element: PhantomData,
        }
    }

    /// Whether the copy has finished; does not wait.
    ///
    /// # Errors
    ///
    /// What [any wait](crate#errors) may give.
    pub fn is_done(&self) -> Result<bool> {
        self.pending
            .as_ref()
            .map_or(Ok(true), |pending| pending.is_done())
    }

    /// Waits until the copy has finished, or until the time has run out: `false`.
    ///
    /// Running out of time is no error, and leaves the copy under way. A time of 0 asks only. The content comes
    /// from [`wait`](Self::wait), which then waits no more.
    ///
    /// # Errors
    ///
    /// What [any wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let download = vkaccel::Buffer::from_slice(&[1u8, 2, 3])?.read_async()?;
    /// while !download.wait_timeout(core::time::Duration::from_millis(100))? {
    ///     println!("still computing");
    /// }
    /// assert_eq!(download.wait()?, [1, 2, 3]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool> {
        let call = Call::new("Download::wait_timeout");
        let pending = self.pending.as_ref();
        pending.map_or(Ok(true), |pending| pending.reach(call, Some(timeout)))
    }

    /// Waits for the copy and gives the content.
    ///
    /// # Errors
    ///
    /// [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) if the host has no room for it. Also what
    /// [any wait](crate#errors) may give.
    #[track_caller]
    pub fn wait(self) -> Result<Vec<T>> {
        let mut out = host_vec(self.len)?;
        if let Some(pending) = self.pending {
            let call = Call::new("Download::wait");
            pending.wait(call, bytemuck::cast_slice_mut(&mut out))?;
        }
        Ok(out)
    }
}

/// A vector of zeros; an error where the host has no memory for it.
pub(super) fn host_vec<T: Pod>(len: usize) -> Result<Vec<T>> {
    // Elements of no bytes need no room, and any number of them no time.
    if size_of::<T>() == 0 {
        return Ok(bytemuck::allocation::zeroed_vec(len));
    }
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|cause| {
        let text = format!(
            "the host has no room for {} of {}",
            count(len, "element"),
            count(size_of::<T>(), "byte")
        );
        Error::new(ErrorKind::OutOfHostMemory, text).with_source(cause)
    })?;
    out.resize(len, T::zeroed());
    Ok(out)
}

#[cold]
fn too_long<T>(len: usize) -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        format!(
            "no device can hold {} of {}; was the length computed from numbers that wrapped?",
            count(len, "element"),
            count(size_of::<T>(), "byte")
        ),
    )
    .with_out_of_memory(OutOfMemory::new(OutOfMemoryReason::NeverFits, u64::MAX))
}

/// The first element of a range among `len`, and the one after its last.
pub(super) fn element_range(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end)),
        _ => Err(outside(range.start_bound(), range.end_bound(), len)),
    }
}

#[cold]
fn outside(start: Bound<&usize>, end: Bound<&usize>, len: usize) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "a view of {} does not lie in a buffer of {}",
            text::range(start, end),
            count(len, "element")
        ),
    )
}

/// An error unless both sides of a copy have the same length.
pub(super) fn same_length<T>(target: usize, source: usize) -> Result<()> {
    if target == source {
        return Ok(());
    }
    let size = size_of::<T>() as u64;
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "the source has {} and the target {target}; both sides of a copy must have the same length, so \
             pass a view or a slice of the other's length",
            count(source, "element")
        ),
    )
    .with_details(Details::Size {
        expected: (target as u64).saturating_mul(size),
        given: (source as u64).saturating_mul(size),
    }))
}
