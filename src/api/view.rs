//! Views: parts of buffers.

use core::fmt;
use core::ops::RangeBounds;

use bytemuck::Pod;

use super::Buffer;
use super::buffer::element_range;
use crate::device::Device;
use crate::error::Result;
use crate::kernel::Address;
use crate::kernel::Arg;
use crate::kernel::value::MemoryArg;
use crate::mem::block::Range;

/// Part of a buffer. Cheap to copy; it borrows the buffer, so it cannot outlive it.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let buffer = vkaccel::Buffer::from_slice(&[1u32, 2, 3, 4])?;
/// let middle = buffer.view(1..3)?;
/// assert_eq!(middle.len(), 2);
/// assert_eq!(middle.to_vec()?, [2, 3]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, T: Pod> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
}

impl<'a, T: Pod> View<'a, T> {
    /// `start..start + len` lies in the buffer.
    pub(super) fn new(buffer: &'a Buffer<T>, start: usize, len: usize) -> Self {
        Self { buffer, start, len }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The buffer that it is part of.
    pub fn buffer(&self) -> &'a Buffer<T> {
        self.buffer
    }

    /// The device that holds it.
    pub fn device(&self) -> Device {
        self.buffer.device()
    }

    /// The device address of its first byte; 0 in a buffer without bytes.
    pub fn address(&self) -> Address {
        match self.buffer.address().get() {
            0 => Address::new(0),
            start => Address::new(start + self.start_bytes()),
        }
    }

    /// Part of the view, by its elements.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the range is not inside the view.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'a, T>> {
        let (start, end) = element_range(range, self.len)?;
        Ok(View::new(self.buffer, self.start + start, end - start))
    }

    pub(super) fn len_bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    fn start_bytes(&self) -> u64 {
        (self.start * size_of::<T>()) as u64
    }

    /// Its bytes; nothing where there are none.
    pub(super) fn range(&self) -> Option<Range<'a>> {
        self.buffer
            .block()
            .range(self.start_bytes(), self.len_bytes())
    }
}

impl<T: Pod> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("buffer", self.buffer)
            .field("start", &self.start)
            .field("len", &self.len)
            .finish()
    }
}

impl<'a, T: Pod> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self::new(buffer, 0, buffer.len())
    }
}

impl<'a, T: Pod> From<View<'a, T>> for Arg<'a> {
    fn from(view: View<'a, T>) -> Self {
        let block = view.buffer.block();
        let element = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
        Self::memory(MemoryArg::new(
            block,
            block.address() + view.start_bytes(),
            block.offset() + view.start_bytes(),
            view.len_bytes(),
            element,
        ))
    }
}

impl<'a, T: Pod> From<&View<'a, T>> for Arg<'a> {
    fn from(view: &View<'a, T>) -> Self {
        Self::from(*view)
    }
}

impl<'a, T: Pod> From<&'a Buffer<T>> for Arg<'a> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self::from(View::from(buffer))
    }
}
