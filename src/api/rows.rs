//! Rows: elements of a buffer that lie a stride apart, and the copies from and to them.

use core::fmt;

use bytemuck::Pod;

use super::buffer::{host_vec, same_length};
use super::stream::Whose;
use super::{Buffer, Download, PinnedBuffer, View};
use crate::device::Device;
use crate::error::text::count;
use crate::error::{Details, Error, ErrorKind, Result};
use crate::exec::Call;
use crate::mem::{self, copy};
use crate::runtime::Stream;

/// Rows of elements that start a fixed distance apart: a matrix with padding, or a part of a larger one. Cheap to copy.
///
/// Made by [`View::rows`]. Copies from and to the host have its data without gaps, one row after the other.
///
/// Each row is a region of its own to the device, unless there are no gaps between them; many short ones take longer
/// than their bytes alone would.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// // The inner part of a matrix of 4 rows and 4 columns.
/// let matrix = vkaccel::Buffer::from_slice(&(0..16).collect::<Vec<u32>>())?;
/// let inner = matrix.view(5..)?.rows(2, 2, 4)?;
/// assert_eq!(inner.to_vec()?, [5, 6, 9, 10]);
///
/// inner.write(&[50, 60, 90, 100])?;
/// let left = matrix.rows(4, 2, 4)?;
/// assert_eq!(left.to_vec()?, [0, 1, 4, 50, 8, 90, 12, 13]);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[doc(alias = "cudaMemcpy2D")]
#[derive(Clone, Copy)]
pub struct Rows<'a, T: Pod> {
    view: View<'a, T>,
    count: usize,
    row_len: usize,
    stride: usize,
}

impl<'a, T: Pod> View<'a, T> {
    /// `count` rows of `len` elements each, the first ones of which lie `stride` elements apart.
    ///
    /// The first row starts with the view. After the last one there need be nothing. No rows, and rows of no
    /// elements, lie in any view, and copying them does nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the rows overlap each other or reach past the view.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let matrix = vkaccel::Buffer::from_slice(&[1u8, 2, 3, 4, 5, 6])?;
    /// let second_column = matrix.view(1..)?.rows(2, 1, 3)?;
    /// assert_eq!(second_column.to_vec()?, [2, 5]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn rows(self, count: usize, len: usize, stride: usize) -> Result<Rows<'a, T>> {
        let rows = Rows {
            view: self,
            count,
            row_len: len,
            stride,
        };
        if rows.is_empty() {
            return Ok(rows);
        }
        if stride < len && count > 1 {
            return Err(overlapping(&rows));
        }
        let end = (count - 1).checked_mul(stride);
        match end.and_then(|end| end.checked_add(len)) {
            Some(end) if end <= self.len() => Ok(rows),
            _ => Err(outside(&rows)),
        }
    }
}

impl<T: Pod> Buffer<T> {
    /// Rows from the start of the buffer on; see [`View::rows`].
    ///
    /// # Errors
    ///
    /// As [`View::rows`].
    pub fn rows(&self, count: usize, len: usize, stride: usize) -> Result<Rows<'_, T>> {
        View::from(self).rows(count, len, stride)
    }
}

impl<'a, T: Pod> Rows<'a, T> {
    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many elements each row has.
    pub fn row_len(&self) -> usize {
        self.row_len
    }

    /// How many elements there are from the start of a row to that of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many elements all rows have together.
    pub fn len(&self) -> usize {
        // No more than the view has, or none.
        self.count * self.row_len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0 || self.row_len == 0
    }

    /// The buffer that they are part of.
    pub fn buffer(&self) -> &'a Buffer<T> {
        self.view.buffer()
    }

    /// The device that holds them.
    pub fn device(&self) -> Device {
        self.view.device()
    }

    /// The current stream of their device.
    pub(super) fn stream(&self) -> Stream {
        self.view.stream()
    }

    /// Their bytes; nothing where there are none.
    pub(super) fn bytes(&self) -> Option<mem::Rows<'a>> {
        let range = self.view.range().filter(|_| !self.is_empty())?;
        let bytes = |elements: usize| (elements * size_of::<T>()) as u64;
        // The stride of one row alone may be any number.
        let stride = if self.count > 1 { self.stride } else { 0 };
        let (len, stride) = (bytes(self.row_len), bytes(stride));
        Some(mem::Rows::new(range, self.count as u64, len, stride))
    }

    /// Copies `src`, which must have as many rows, of the same length; see [`Stream::copy_rows`].
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_rows`].
    pub fn copy_from(&self, src: Rows<'_, T>) -> Result<()> {
        self.stream().copy_rows(src, *self)
    }

    /// Overwrites the rows with `data`; see [`Stream::write_rows`].
    ///
    /// # Errors
    ///
    /// As [`Stream::write_rows`].
    pub fn write(&self, data: &[T]) -> Result<()> {
        self.stream().write_rows(*self, data)
    }

    /// Waits for the content and copies it into `out`, without gaps.
    ///
    /// # Errors
    ///
    /// As [`Stream::read_rows`].
    #[track_caller]
    pub fn read(&self, out: &mut [T]) -> Result<()> {
        let call = Call::new("Rows::read");
        self.stream().read_rows_as(call, *self, out)
    }

    /// Waits for the content and gives a copy, without gaps.
    ///
    /// # Errors
    ///
    /// As [`Buffer::to_vec`].
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut out = host_vec(self.len())?;
        let call = Call::new("Rows::to_vec");
        self.stream().read_rows_as(call, *self, &mut out)?;
        Ok(out)
    }

    /// Starts to copy the content to the host, without gaps.
    ///
    /// # Errors
    ///
    /// As [`Buffer::read_async`].
    #[track_caller]
    pub fn read_async(&self) -> Result<Download<T>> {
        let call = Call::new("Rows::read_async");
        self.stream().read_rows_async_as(call, *self)
    }

    /// Copies pinned memory, which has the rows without gaps; does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_from_pinned`].
    pub fn copy_from_pinned(&self, src: &PinnedBuffer<T>) -> Result<()> {
        self.stream().copy_rows_from_pinned(src, *self)
    }

    /// Copies the content to pinned memory, without gaps; does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_to_pinned`].
    pub fn copy_to_pinned(&self, dst: &PinnedBuffer<T>) -> Result<()> {
        self.stream().copy_rows_to_pinned(*self, dst)
    }
}

impl<T: Pod> fmt::Debug for Rows<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("view", &self.view)
            .field("count", &self.count)
            .field("row_len", &self.row_len)
            .field("stride", &self.stride)
            .finish()
    }
}

impl Stream {
    /// Copies rows to rows: as many on both sides, of the same length. The strides may differ.
    ///
    /// Rows of one buffer may lie between each other, and may overlap: `dst` gets what `src` held before. Overlapping
    /// ones go through staging memory, for which the call may wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] with [`Details::Size`] if their number or their length differs,
    /// [`ErrorKind::InvalidDevice`] if either is on another device than the stream. Also what [any
    /// command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let matrix = stream.upload(&[1u32, 2, 3, 4, 5, 6])?;
    /// // Each row moves left by one.
    /// let (from, to) = (matrix.view(1..)?.rows(2, 2, 3)?, matrix.rows(2, 2, 3)?);
    /// stream.copy_rows(from, to)?;
    /// assert_eq!(stream.to_vec(&matrix)?, [2, 3, 3, 5, 6, 6]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "cudaMemcpy2DAsync")]
    pub fn copy_rows<T: Pod>(&self, src: Rows<'_, T>, dst: Rows<'_, T>) -> Result<()> {
        self.check_rows(&src)?;
        self.check_rows(&dst)?;
        same_rows(&dst, &src)?;
        let (Some(from), Some(to)) = (src.bytes(), dst.bytes()) else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        copy::copy(&core, opened.through(), from, to)
    }

    /// Overwrites rows with `data`, which has them without gaps and is read before the call returns; see
    /// [`Buffer::write`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if `data` has another length than all rows together,
    /// [`ErrorKind::InvalidDevice`] if the rows are on another device than the stream. Also what [any
    /// command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let matrix = stream.zeroed::<u32>(6)?;
    /// // The second and third column of two rows.
    /// stream.write_rows(matrix.view(1..)?.rows(2, 2, 3)?, &[1, 2, 3, 4])?;
    /// assert_eq!(stream.to_vec(&matrix)?, [0, 1, 2, 0, 3, 4]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn write_rows<T: Pod>(&self, dst: Rows<'_, T>, data: &[T]) -> Result<()> {
        self.check_rows(&dst)?;
        same_length::<T>(dst.len(), data.len())?;
        let Some(to) = dst.bytes() else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        copy::upload(&core, opened.through(), to, bytemuck::cast_slice(data))
    }

    /// Waits for the content of rows and copies it into `out`, without gaps.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if `out` has another length than all rows together,
    /// [`ErrorKind::InvalidDevice`] if the rows are on another device than the stream. Also what [any
    /// wait](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let stream = vkaccel::Stream::new(0)?;
    /// let matrix = stream.upload(&[1u32, 2, 3, 4, 5, 6])?;
    /// let mut column = [0; 2];
    /// stream.read_rows(matrix.rows(2, 1, 3)?, &mut column)?;
    /// assert_eq!(column, [1, 4]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[track_caller]
    pub fn read_rows<T: Pod>(&self, src: Rows<'_, T>, out: &mut [T]) -> Result<()> {
        self.read_rows_as(Call::new("Stream::read_rows"), src, out)
    }

    fn read_rows_as<T: Pod>(&self, call: Call, src: Rows<'_, T>, out: &mut [T]) -> Result<()> {
        self.check_rows(&src)?;
        same_length::<T>(out.len(), src.len())?;
        let Some(from) = src.bytes() else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        core.permit_on_captured(call)?;
        core.permit(call)?;
        let out = bytemuck::cast_slice_mut(out);
        copy::download(&core, &opened.staging, from, out)
    }

    /// Starts to copy rows to the host, without gaps.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if the rows are on another device than the
    /// stream, [`NotPermitted`](crate::ErrorKind::NotPermitted) if the stream is captured. Also what [any
    /// command](crate#errors) may give.
    #[track_caller]
    pub fn read_rows_async<T: Pod>(&self, src: Rows<'_, T>) -> Result<Download<T>> {
        self.read_rows_async_as(Call::new("Stream::read_rows_async"), src)
    }

    fn read_rows_async_as<T: Pod>(&self, call: Call, src: Rows<'_, T>) -> Result<Download<T>> {
        self.check_rows(&src)?;
        let Some(from) = src.bytes() else {
            return Ok(Download::new(None, src.len()));
        };
        let (core, opened) = self.open()?;
        core.permit_on_captured(call)?;
        let pending = copy::start_download(&core, &opened.host, from)?;
        Ok(Download::new(Some(pending), src.len()))
    }

    /// Copies pinned memory, which has them without gaps, to rows; does not wait.
    ///
    /// # Errors
    ///
    /// As [`copy_from_pinned`](Self::copy_from_pinned).
    pub fn copy_rows_from_pinned<T: Pod>(
        &self,
        src: &PinnedBuffer<T>,
        dst: Rows<'_, T>,
    ) -> Result<()> {
        self.check_device(Whose::Pinned, src.slot())?;
        self.check_rows(&dst)?;
        same_length::<T>(dst.len(), src.len())?;
        let Some(to) = dst.bytes() else {
            return Ok(());
        };
        let (core, _opened) = self.open()?;
        copy::from_pinned(&core, src.memory(), to)
    }

    /// Copies rows to pinned memory, without gaps; does not wait.
    ///
    /// # Errors
    ///
    /// As [`copy_to_pinned`](Self::copy_to_pinned).
    pub fn copy_rows_to_pinned<T: Pod>(
        &self,
        src: Rows<'_, T>,
        dst: &PinnedBuffer<T>,
    ) -> Result<()> {
        self.check_rows(&src)?;
        self.check_device(Whose::Pinned, dst.slot())?;
        same_length::<T>(dst.len(), src.len())?;
        let Some(from) = src.bytes() else {
            return Ok(());
        };
        let (core, _opened) = self.open()?;
        copy::to_pinned(&core, from, dst.memory()).map(drop)
    }

    pub(super) fn check_rows<T: Pod>(&self, rows: &Rows<'_, T>) -> Result<()> {
        self.check_device(Whose::Buffer, rows.buffer().slot())
    }
}

#[cold]
fn overlapping<T: Pod>(rows: &Rows<'_, T>) -> Error {
    let text = format!(
        "rows of {} that start {} apart overlap each other; the stride must be as long as a row at least",
        count(rows.row_len, "element"),
        rows.stride
    );
    Error::new(ErrorKind::InvalidArgument, text)
}

#[cold]
fn outside<T: Pod>(rows: &Rows<'_, T>) -> Error {
    let text = format!(
        "{} of {} that start {} apart do not lie in a view of {}",
        count(rows.count, "row"),
        count(rows.row_len, "element"),
        rows.stride,
        count(rows.view.len(), "element")
    );
    Error::new(ErrorKind::InvalidArgument, text)
}

/// An error unless both sides of a copy have the same number of rows of the same length.
pub(super) fn same_rows<T: Pod>(target: &Rows<'_, T>, source: &Rows<'_, T>) -> Result<()> {
    let shape = |rows: &Rows<'_, T>| (rows.count, rows.row_len);
    if shape(target) == shape(source) || target.is_empty() && source.is_empty() {
        return Ok(());
    }
    let bytes = |rows: &Rows<'_, T>| (rows.len() as u64).saturating_mul(size_of::<T>() as u64);
    let text = format!(
        "the source has {} of {} and the target {} of {}; both sides of a copy must have the same number of rows of \
         the same length",
        count(source.count, "row"),
        count(source.row_len, "element"),
        target.count,
        target.row_len
    );
    let error = Error::new(ErrorKind::InvalidArgument, text);
    Err(error.with_details(Details::Size {
        expected: bytes(target),
        given: bytes(source),
    }))
}
