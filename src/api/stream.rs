//! The explicit forms: what a stream does with buffers and kernels, naming nothing of the thread.

use core::panic::Location;
use std::sync::Arc;

use bytemuck::Pod;

use super::buffer::{host_vec, same_length};
use super::{Buffer, Download, Kernel, View};
use crate::error::text::count;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Call;
use crate::kernel::{Args, Grid};
use crate::mem::copy;
use crate::runtime::{Slot, Stream};

impl Stream {
    /// A buffer of `len` elements whose bytes are all 0, on the stream's device.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory), with its [figures](crate::OutOfMemory), if there is
    /// no room. Also what [any command](crate#errors) may give.
    #[track_caller]
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = Buffer::allocate(self, len)?;
        self.fill_bytes(View::from(&buffer), &[0])?;
        Ok(buffer)
    }

    /// A buffer of `len` elements with whatever content, on the stream's device.
    ///
    /// # Errors
    ///
    /// As [`zeroed`](Self::zeroed).
    #[track_caller]
    pub fn uninit<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::allocate(self, len)
    }

    /// A buffer with a copy of `data`, which is read before the call returns.
    ///
    /// # Errors
    ///
    /// As [`zeroed`](Self::zeroed).
    #[track_caller]
    pub fn upload<T: Pod>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = Buffer::allocate(self, data.len())?;
        self.write(&buffer, data)?;
        Ok(buffer)
    }

    /// Overwrites a buffer or view with `data`; see [`Buffer::write`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the lengths differ, [`ErrorKind::InvalidDevice`] if the memory is
    /// on another device than the stream. Also what [any command](crate#errors) may give.
    pub fn write<'a, T: Pod>(&self, dst: impl Into<View<'a, T>>, data: &[T]) -> Result<()> {
        let dst = dst.into();
        self.check_device(Whose::Buffer, dst.buffer().slot())?;
        same_length::<T>(dst.len(), data.len())?;
        let Some(range) = dst.range() else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        let data = bytemuck::cast_slice(data);
        copy::upload(&core, opened.through(), range.into(), data)
    }

    /// Waits for the content of a buffer or view and copies it into `out`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the lengths differ, [`ErrorKind::InvalidDevice`] if the memory is
    /// on another device than the stream. Also what [any wait](crate#errors) may give.
    #[track_caller]
    pub fn read<'a, T: Pod>(&self, src: impl Into<View<'a, T>>, out: &mut [T]) -> Result<()> {
        self.read_as(Call::new("Stream::read"), src.into(), out)
    }

    pub(super) fn read_as<T: Pod>(
        &self,
        call: Call,
        src: View<'_, T>,
        out: &mut [T],
    ) -> Result<()> {
        self.check_device(Whose::Buffer, src.buffer().slot())?;
        same_length::<T>(out.len(), src.len())?;
        let Some(range) = src.range() else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        core.permit_on_captured(call)?;
        core.permit(call)?;
        let out = bytemuck::cast_slice_mut(out);
        copy::download(&core, &opened.staging, range.into(), out)
    }

    /// Waits for the content of a buffer or view and gives a copy.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if the memory is on another device than the
    /// stream, [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) if the host has no room for it. Also
    /// what [any wait](crate#errors) may give.
    #[track_caller]
    pub fn to_vec<'a, T: Pod>(&self, src: impl Into<View<'a, T>>) -> Result<Vec<T>> {
        self.to_vec_as(Call::new("Stream::to_vec"), src.into())
    }

    pub(super) fn to_vec_as<T: Pod>(&self, call: Call, src: View<'_, T>) -> Result<Vec<T>> {
        let mut out = host_vec(src.len())?;
        self.read_as(call, src, &mut out)?;
        Ok(out)
    }

    /// Starts to copy a buffer or view to the host.
    ///
    /// # Errors
    ///
    /// [`InvalidDevice`](crate::ErrorKind::InvalidDevice) if the memory is on another device than the
    /// stream, [`NotPermitted`](crate::ErrorKind::NotPermitted) if the stream is captured. Also what [any
    /// command](crate#errors) may give.
    #[track_caller]
    pub fn read_async<'a, T: Pod>(&self, src: impl Into<View<'a, T>>) -> Result<Download<T>> {
        self.read_async_as(Call::new("Stream::read_async"), src.into())
    }

    pub(super) fn read_async_as<T: Pod>(
        &self,
        call: Call,
        src: View<'_, T>,
    ) -> Result<Download<T>> {
        self.check_device(Whose::Buffer, src.buffer().slot())?;
        let Some(range) = src.range() else {
            return Ok(Download::new(None, src.len()));
        };
        let (core, opened) = self.open()?;
        core.permit_on_captured(call)?;
        let pending = copy::start_download(&core, &opened.host, range.into())?;
        Ok(Download::new(Some(pending), src.len()))
    }

    /// Sets every element of a buffer or view to `value`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidDevice`] if the memory is on another device than the stream. Also what [any
    /// command](crate#errors) may give.
    pub fn fill<'a, T: Pod>(&self, dst: impl Into<View<'a, T>>, value: T) -> Result<()> {
        self.fill_bytes(dst.into(), bytemuck::bytes_of(&value))
    }

    fn fill_bytes<T: Pod>(&self, dst: View<'_, T>, pattern: &[u8]) -> Result<()> {
        self.check_device(Whose::Buffer, dst.buffer().slot())?;
        let Some(range) = dst.range() else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        copy::fill(&core, opened.through(), range, pattern)
    }

    /// Copies `src` to `dst`, which must have the same length.
    ///
    /// Views of one buffer may overlap: `dst` gets what `src` held before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the lengths differ, [`ErrorKind::InvalidDevice`] if either is on
    /// another device than the stream. Also what [any command](crate#errors) may give.
    pub fn copy<'a, 'b, T: Pod>(
        &self,
        src: impl Into<View<'a, T>>,
        dst: impl Into<View<'b, T>>,
    ) -> Result<()> {
        let (src, dst) = (src.into(), dst.into());
        self.check_device(Whose::Buffer, src.buffer().slot())?;
        self.check_device(Whose::Buffer, dst.buffer().slot())?;
        same_length::<T>(dst.len(), src.len())?;
        let (Some(from), Some(to)) = (src.range(), dst.range()) else {
            return Ok(());
        };
        let (core, opened) = self.open()?;
        copy::copy(&core, opened.through(), from.into(), to.into())
    }

    /// Launches a kernel on this stream.
    ///
    /// Everything is checked before anything is recorded; a grid without groups is a no-op. The element types of
    /// buffers are not compared with the shader's; see [`Arg`](crate::Arg).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ArgumentMismatch`] if the arguments do not fit the kernel's interface,
    /// [`ErrorKind::LimitExceeded`] if the grid or a buffer is too large for the device,
    /// [`ErrorKind::Unsupported`] if a view starts where the device can't bind it (see
    /// [`Arg`](crate::Arg)), [`ErrorKind::InvalidArgument`] for a negative grid,
    /// [`ErrorKind::InvalidDevice`] if kernel or memory are on another device than the stream. Also what
    /// [any command](crate#errors) may give.
    pub fn launch<'a>(&self, kernel: &Kernel, grid: Grid, args: impl Args<'a>) -> Result<()> {
        self.check_device(Whose::Kernel, kernel.slot())?;
        let core = self.core()?;
        args.with_args(|args| kernel.program().launch(core, grid, args))
    }

    /// Launches a kernel with as many workgroups along x, y and z as three words of device memory say
    /// when it runs, so that a kernel or a copy before it on the stream can decide.
    ///
    /// A zero along any axis runs nothing. Counts that the device does not take run nothing either:
    /// the next wait for the stream that the program makes ([`synchronize`](Self::synchronize),
    /// [`query`](Self::query), an event, [`to_vec`](Self::to_vec), …) says so once, for the first such
    /// launch since the last wait. A small launch of the crate's own looks at the counts before;
    /// [`Counters`](crate::Counters) counts both. In [`concurrent`](Self::concurrent), an indirect
    /// launch takes effect in order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if there are not three counts, and as [`launch`](Self::launch) for
    /// kernel and arguments. Later, from a wait, [`ErrorKind::LimitExceeded`] with
    /// [`Details::Limit`](crate::Details::Limit) for counts that the device does not take. Also what [any
    /// command](crate#errors) may give.
    ///
    /// # Example
    ///
    /// ```
    /// # #[cfg(feature = "glsl")] {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// use vkaccel::{Grid, Kernel, Stream};
    ///
    /// let choose = Kernel::from_glsl(
    ///     "#version 450
    ///      layout(set = 0, binding = 0) buffer Counts { uint counts[]; };
    ///      void main() { counts[0] = 10; counts[1] = 1; counts[2] = 1; }",
    /// )?;
    /// let tick = Kernel::from_glsl(
    ///     "#version 450
    ///      layout(local_size_x = 64) in;
    ///      layout(set = 0, binding = 0) buffer Ticks { uint ticks; };
    ///      void main() { atomicAdd(ticks, 1); }",
    /// )?;
    /// let stream = Stream::new(0)?;
    /// let (counts, ticks) = (stream.zeroed::<u32>(3)?, stream.zeroed::<u32>(1)?);
    /// stream.launch(&choose, Grid::groups(1), (&counts,))?;
    /// stream.launch_indirect(&tick, &counts, (&ticks,))?;
    /// assert_eq!(stream.to_vec(&ticks)?, [640]);
    /// # }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    #[doc(alias = "vkCmdDispatchIndirect")]
    #[track_caller]
    pub fn launch_indirect<'a, 'b>(
        &self,
        kernel: &Kernel,
        counts: impl Into<View<'b, u32>>,
        args: impl Args<'a>,
    ) -> Result<()> {
        let (counts, site) = (counts.into(), Location::caller());
        self.check_device(Whose::Kernel, kernel.slot())?;
        self.check_device(Whose::Buffer, counts.buffer().slot())?;
        let range = counts.range().filter(|_| counts.len() == 3);
        let range = range.ok_or_else(|| not_three(counts.len()))?;
        let (core, opened) = self.open()?;
        args.with_args(|args| {
            kernel
                .program()
                .launch_indirect(&core, &opened.indirect, range, args, site)
        })
    }

    pub(super) fn record_use<T: Pod>(&self, buffer: &Buffer<T>) -> Result<()> {
        self.check_device(Whose::Buffer, buffer.slot())?;
        let (core, _opened) = self.open()?;
        if core.is_captured() {
            return buffer.block().keep_for_graph(&core);
        }
        buffer.block().record_stream(&core);
        Ok(())
    }

    pub(super) fn check_device(&self, what: Whose, other: &Arc<Slot>) -> Result<()> {
        if Arc::ptr_eq(self.slot(), other) {
            return self.slot().shared().check();
        }
        // What is over is no use on any stream, whichever of them it is.
        self.slot().shared().check()?;
        other.shared().check()?;
        Err(wrong_device(self.slot(), what, other))
    }
}

/// What was passed to a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    Buffer,
    Pinned,
    Kernel,
    Generator,
    Graph,
}

#[cold]
fn not_three(len: usize) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "an indirect launch takes a view of 3 counts, for x, y and z, but this one has {}; pass \
             `counts.view(..3)`",
            count(len, "element")
        ),
    )
}

#[cold]
fn wrong_device(stream: &Slot, kind: Whose, other: &Slot) -> Error {
    let (what, way) = match kind {
        Whose::Buffer => (
            "buffer",
            "copy it to one of the stream's device with `Stream::copy_from_peer`",
        ),
        Whose::Pinned => (
            "pinned buffer",
            "make one with `PinnedBuffer::new_on` for that device",
        ),
        Whose::Kernel => (
            "kernel",
            "build one with `KernelBuilder::device` for that device",
        ),
        Whose::Generator => (
            "generator",
            "make one with `Generator::new` for that device",
        ),
        Whose::Graph => ("graph", "capture one on a stream of that device"),
    };
    let text = if stream.runtime_id() == other.runtime_id() {
        format!(
            "the stream is on {}, but the {what} is on {}; use a stream of that device, or {way}",
            stream.device(),
            other.device()
        )
    } else {
        let way = match kind {
            Whose::Buffer => format!(", or {way}"),
            _ => String::new(),
        };
        format!(
            "the stream and the {what} were made in different runtimes; make both in the same one, \
             with `Runtime::enter`{way}"
        )
    };
    Error::new(ErrorKind::InvalidDevice, text)
}
