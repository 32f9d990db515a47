//! Copies between devices.

use std::sync::Arc;

use bytemuck::Pod;

use super::buffer::same_length;
use super::rows::same_rows;
use super::stream::Whose;
use super::{Buffer, Rows, View};
use crate::error::Result;
use crate::exec::Call;
use crate::mem::peer::{self, End};
use crate::mem::{self, copy};
use crate::runtime::Stream;

impl Stream {
    /// Copies `src`, as the stream `from` of its device has it by now, to `dst` on this stream, which may be of
    /// another device.
    ///
    /// Between devices, the content goes through host memory in pieces: while the host moves one on, the source's
    /// device copies the next ones, and the target's those before. The call waits for all of `src`, which may be changed
    /// once it returns, and not for `dst`, but for room in staging memory;
    /// [`Counters::host_waits_staging`](crate::Counters::host_waits_staging) of either device counts the waits. On one
    /// device it is a copy there, and the two streams wait for each other on the device alone.
    ///
    /// The devices need not be of the same runtime.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the lengths differ,
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if `src` is not on the device of `from`, or `dst`
    /// not on that of this stream, [`NotPermitted`](crate::ErrorKind::NotPermitted) if either stream is
    /// captured. What has arrived of a copy that fails is unspecified. Also what [any wait](crate#errors)
    /// may give.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::Stream;
    ///
    /// // From the first device to the last, which may be the same.
    /// let Some(last) = vkaccel::device_count().checked_sub(1) else { return Ok(()); };
    /// let (here, there) = (Stream::new(0)?, Stream::new(last)?);
    /// let numbers = here.upload(&[1u32, 2, 3])?;
    /// let copy = there.uninit::<u32>(3)?;
    /// there.copy_from_peer(&here, &numbers, &copy)?;
    /// here.fill(&numbers, 9)?;
    /// assert_eq!(there.to_vec(&copy)?, [1, 2, 3]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "cudaMemcpyPeerAsync")]
    #[track_caller]
    pub fn copy_from_peer<'a, 'b, T: Pod>(
        &self,
        from: &Self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<View<'b, T>>,
    ) -> Result<()> {
        let call = Call::new("Stream::copy_from_peer");
        self.copy_from_peer_as(call, from, src.into(), dst.into())
    }

    fn copy_from_peer_as<T: Pod>(
        &self,
        call: Call,
        from: &Self,
        src: View<'_, T>,
        dst: View<'_, T>,
    ) -> Result<()> {
        from.check_device(Whose::Buffer, src.buffer().slot())?;
        self.check_device(Whose::Buffer, dst.buffer().slot())?;
        same_length::<T>(dst.len(), src.len())?;
        match (src.range(), dst.range()) {
            (Some(src), Some(dst)) => self.copy_over(call, from, src.into(), dst.into()),
            _ => Ok(()),
        }
    }

    /// The same with rows: as many on both sides, of the same length. The strides may differ.
    ///
    /// # Errors
    ///
    /// As [`copy_from_peer`](Self::copy_from_peer) and [`copy_rows`](Self::copy_rows).
    ///
    /// # Example
    ///
    /// ```
    /// # let Some(last) = vkaccel::device_count().checked_sub(1) else { return Ok(()); };
    /// # let (here, there) = (vkaccel::Stream::new(0)?, vkaccel::Stream::new(last)?);
    /// let matrix = here.upload(&[1u32, 2, 3, 4, 5, 6])?;
    /// let right = there.uninit::<u32>(4)?;
    /// let columns = matrix.view(1..)?.rows(2, 2, 3)?;
    /// there.copy_rows_from_peer(&here, columns, right.rows(2, 2, 2)?)?;
    /// assert_eq!(there.to_vec(&right)?, [2, 3, 5, 6]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "cudaMemcpy3DPeerAsync")]
    #[track_caller]
    pub fn copy_rows_from_peer<T: Pod>(
        &self,
        from: &Self,
        src: Rows<'_, T>,
        dst: Rows<'_, T>,
    ) -> Result<()> {
        let call = Call::new("Stream::copy_rows_from_peer");
        self.copy_rows_from_peer_as(call, from, src, dst)
    }

    fn copy_rows_from_peer_as<T: Pod>(
        &self,
        call: Call,
        from: &Self,
        src: Rows<'_, T>,
        dst: Rows<'_, T>,
    ) -> Result<()> {
        from.check_rows(&src)?;
        self.check_rows(&dst)?;
        same_rows(&dst, &src)?;
        match (src.bytes(), dst.bytes()) {
            (Some(src), Some(dst)) => self.copy_over(call, from, src, dst),
            _ => Ok(()),
        }
    }

    fn copy_over(
        &self,
        call: Call,
        from: &Self,
        src: mem::Rows<'_>,
        dst: mem::Rows<'_>,
    ) -> Result<()> {
        let (there, opened_there) = from.open()?;
        let (here, opened) = self.open()?;
        there.permit_on_captured(call)?;
        here.permit_on_captured(call)?;
        if Arc::ptr_eq(self.slot(), from.slot()) {
            self.hold_back_for(from, call)?;
            let copied = copy::copy(&here, opened.through(), src, dst);
            // What the other stream does next to the source comes behind.
            return from.hold_back_for(self, call).and(copied);
        }
        there.permit(call)?;
        let from = End {
            stream: &there,
            through: opened_there.through(),
        };
        let to = End {
            stream: &here,
            through: opened.through(),
        };
        peer::copy(from, to, src, dst)
    }
}

impl<T: Pod> Buffer<T> {
    /// Copies `src`, which may be on another device and must have the length of the buffer.
    ///
    /// On the current streams of both devices; see [`Stream::copy_from_peer`].
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_from_peer`].
    #[track_caller]
    pub fn copy_from_peer(&self, src: View<'_, T>) -> Result<()> {
        let (call, to) = (Call::new("Buffer::copy_from_peer"), View::from(self));
        to.stream().copy_from_peer_as(call, &src.stream(), src, to)
    }
}

impl<T: Pod> View<'_, T> {
    /// Copies `src`, which may be on another device and must have the length of the view.
    ///
    /// On the current streams of both devices; see [`Stream::copy_from_peer`].
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_from_peer`].
    #[track_caller]
    pub fn copy_from_peer(&self, src: View<'_, T>) -> Result<()> {
        let call = Call::new("View::copy_from_peer");
        self.stream()
            .copy_from_peer_as(call, &src.stream(), src, *self)
    }
}

impl<T: Pod> Rows<'_, T> {
    /// Copies `src`, which may be on another device and must have as many rows, of the same length.
    ///
    /// On the current streams of both devices; see [`Stream::copy_from_peer`].
    ///
    /// # Errors
    ///
    /// As [`Stream::copy_rows_from_peer`].
    #[track_caller]
    pub fn copy_from_peer(&self, src: Rows<'_, T>) -> Result<()> {
        let call = Call::new("Rows::copy_from_peer");
        self.stream()
            .copy_rows_from_peer_as(call, &src.stream(), src, *self)
    }
}
