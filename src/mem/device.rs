//! Device memory: blocks for buffers, and the errors of a device that is full.
//!
//! This is the seam behind which memory is cached: a buffer knows its block alone. A block is a
//! segment of its own for now.

use std::sync::Arc;

use super::staging::Staging;
use crate::device::plan::MemoryRole;
use crate::error::{Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};
use crate::exec::ExecDevice;
use crate::vk::{Device, Segment};

/// Blocks are multiples of this, so that whole words can be filled up to the end of any buffer.
const BLOCK_ALIGN: u64 = 512;

/// The memory of one opened device.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    device: Arc<Device>,
    exec: Arc<ExecDevice>,
    /// Host memory that is kept idle, and makes way where the device is full.
    staging: [Arc<Staging>; 2],
}

/// A piece of a segment; what a buffer occupies. A buffer of no bytes has one without a segment.
#[derive(Debug, Default)]
pub(crate) struct Block {
    segment: Option<Arc<Segment>>,
    offset: u64,
}

/// A range of a block with at least one byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'a> {
    pub(crate) segment: &'a Arc<Segment>,
    /// The first byte in the segment.
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Block {
    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        self.segment.as_ref()
    }

    /// Its first byte in the segment.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The device address of its first byte; 0 for one of no bytes.
    pub(crate) fn address(&self) -> u64 {
        self.segment
            .as_ref()
            .map_or(0, |segment| segment.address() + self.offset)
    }

    /// `len` bytes from `offset` on; nothing for no bytes.
    pub(crate) fn range(&self, offset: u64, len: u64) -> Option<Range<'_>> {
        let segment = self.segment.as_ref().filter(|_| len > 0)?;
        Some(Range {
            segment,
            start: self.offset + offset,
            len,
        })
    }
}

impl DeviceMemory {
    pub(crate) fn new(
        device: &Arc<Device>,
        exec: &Arc<ExecDevice>,
        staging: [Arc<Staging>; 2],
    ) -> Self {
        Self {
            device: Arc::clone(device),
            exec: Arc::clone(exec),
            staging,
        }
    }

    /// A block of at least `bytes`, with whatever content.
    ///
    /// Where the device is full, waits for the work in flight, whose memory may be free after it, and
    /// gives idle staging memory back.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`].
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Block> {
        self.device.check()?;
        if bytes == 0 {
            return Ok(Block::default());
        }
        let size = self.rounded(bytes)?;
        let segment = match self.segment(size) {
            Err(error) if error.is_out_of_memory() => {
                self.exec.synchronize()?;
                for staging in &self.staging {
                    staging.trim();
                }
                self.segment(size)
                    .map_err(|error| self.full(bytes, error))?
            }
            other => other?,
        };
        Ok(Block {
            segment: Some(segment),
            offset: 0,
        })
    }

    /// What the runtime holds of the device's memory, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.device.held_bytes()
    }

    fn rounded(&self, bytes: u64) -> Result<u64> {
        let most = self.device.plan().max_segment_bytes;
        match bytes.checked_next_multiple_of(BLOCK_ALIGN) {
            Some(size) if size <= most => Ok(size),
            // Rounding up never makes a request fail that fits exactly.
            _ if bytes <= most => Ok(bytes),
            _ => Err(self.never_fits(bytes, most)),
        }
    }

    fn segment(&self, size: u64) -> Result<Arc<Segment>> {
        Segment::new(&self.device, size, MemoryRole::Device)
    }

    #[cold]
    fn never_fits(&self, bytes: u64, most: u64) -> Error {
        let text = format!(
            "{} can never hold {bytes} bytes in one buffer: its largest buffer has {most} bytes; \
             split the data over several buffers",
            self.device.name()
        );
        let figures = self.figures(OutOfMemoryReason::NeverFits, bytes);
        Error::new(ErrorKind::OutOfMemory, text).with_out_of_memory(figures)
    }

    #[cold]
    fn full(&self, bytes: u64, error: Error) -> Error {
        let reason = error.out_of_memory().map(|figures| figures.reason);
        let reason = reason.unwrap_or(OutOfMemoryReason::RefusedByDriver);
        let figures = self.figures(reason, bytes);
        let (held, total) = (figures.reserved, figures.total);
        let text = match reason {
            OutOfMemoryReason::TooManyAllocations => format!(
                "no room for {bytes} bytes: {error}; use fewer, larger buffers or drop some"
            ),
            _ => format!(
                "no room for {bytes} bytes: {error}; this process holds {held} of the device's \
                 {total} bytes; drop buffers, or close other programs that use the device"
            ),
        };
        let raw = error.raw();
        let error = Error::new(ErrorKind::OutOfMemory, text).with_out_of_memory(figures);
        match raw {
            Some(raw) => error.with_raw(raw),
            None => error,
        }
    }

    fn figures(&self, reason: OutOfMemoryReason, bytes: u64) -> OutOfMemory {
        let mut figures = OutOfMemory::new(reason, bytes);
        figures.total = self.device.plan().device_heap_bytes;
        figures.reserved = self.held_bytes();
        figures.allocated = figures.reserved;
        figures.free = figures.total.saturating_sub(figures.reserved);
        figures
    }
}
