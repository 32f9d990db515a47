//! The places that the counts of indirect launches are handed on in, used again and again.
//!
//! # Safety
//!
//! The host writes the memory of notes once, before any command uses it. It reads a note when the
//! commands that may write it have finished, which the recording that has it looked at sees to.
#![allow(unsafe_code)]

use core::panic::Location;
use std::sync::{Arc, Weak};

use crate::base::sync::Mutex;
use crate::device::plan::MemoryRole;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Outcome;
use crate::kernel::grid::Grid;
use crate::vk::{Device, Segment};

/// How many places are made at once.
const PLACES: u32 = 256;
/// What a place has in each of both segments: three counts; these and the tag.
const WORDS: usize = 4;
const PLACE_BYTES: u64 = 4 * WORDS as u64;

/// The places of one opened device.
#[derive(Debug)]
pub(super) struct Pool {
    free: Mutex<Vec<Free>>,
    device: Arc<Device>,
}

/// Segments with many places.
#[derive(Debug)]
struct Chunk {
    /// What launches read their counts from.
    groups: Arc<Segment>,
    /// What the host reads.
    notes: Arc<Segment>,
    /// From one place to the next, in bytes: as far apart as descriptors must be.
    stride: u64,
}

/// A place that no command uses.
#[derive(Debug)]
struct Free {
    chunk: Arc<Chunk>,
    index: u32,
    /// How often it was used.
    tag: u32,
}

/// The launch that a place is for.
#[derive(Clone, Debug)]
pub(crate) struct Launched {
    pub(crate) kernel: Arc<str>,
    /// The number of its stream.
    pub(crate) stream: u64,
    /// Where it was made.
    pub(crate) site: &'static Location<'static>,
}

/// A place of one launch; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    chunk: Arc<Chunk>,
    index: u32,
    /// How often the place was used, at least.
    used: u32,
    tag: u32,
    launch: Launched,
    pool: Weak<Pool>,
}

impl Pool {
    pub(super) fn new(device: &Arc<Device>) -> Arc<Self> {
        Arc::new(Self {
            free: Mutex::new(Vec::new()),
            device: Arc::clone(device),
        })
    }

    /// A place for a launch.
    pub(super) fn take(self: &Arc<Self>, launch: Launched) -> Result<Place> {
        let mut free = self.free.lock();
        let Free { chunk, index, tag } = match free.pop() {
            Some(place) => place,
            None => {
                let chunk = Arc::new(Chunk::new(&self.device)?);
                let place = |index| Free {
                    chunk: Arc::clone(&chunk),
                    index,
                    tag: 0,
                };
                free.extend((1..PLACES).rev().map(place));
                place(0)
            }
        };
        drop(free);
        // 0 stands in memory that was never written.
        let tag = tag.wrapping_add(1).max(1);
        Ok(Place {
            chunk,
            index,
            used: tag,
            tag,
            launch,
            pool: Arc::downgrade(self),
        })
    }
}

impl Chunk {
    fn new(device: &Arc<Device>) -> Result<Self> {
        let align = device.plan().limits.min_storage_buffer_offset_alignment;
        let stride = PLACE_BYTES.next_multiple_of(align.max(1));
        let bytes = stride * u64::from(PLACES);
        let notes = Segment::new(device, bytes, MemoryRole::Readback)?;
        let empty = [0u32; WORDS];
        for index in 0..PLACES {
            // SAFETY: no command uses the segment yet.
            unsafe { notes.write(stride * u64::from(index), bytemuck::bytes_of(&empty)) }?;
        }
        Ok(Self {
            groups: Segment::new(device, bytes, MemoryRole::Device)?,
            notes,
            stride,
        })
    }
}

impl Place {
    /// Where the counts are handed on: the segment, the first byte, the one behind the last.
    pub(super) fn groups(&self) -> (&Arc<Segment>, u64, u64) {
        self.in_segment(&self.chunk.groups)
    }

    /// Where counts that the device does not take are noted, with the tag.
    pub(super) fn note(&self) -> (&Arc<Segment>, u64, u64) {
        self.in_segment(&self.chunk.notes)
    }

    fn in_segment<'a>(&self, segment: &'a Arc<Segment>) -> (&'a Arc<Segment>, u64, u64) {
        let lo = self.chunk.stride * u64::from(self.index);
        (segment, lo, lo + PLACE_BYTES)
    }

    /// What the note of this launch ends with.
    pub(super) fn tag(&self) -> u32 {
        self.tag
    }

    /// The most groups that the device takes along each axis.
    pub(super) fn limits(&self) -> [u32; 3] {
        let plan = self.chunk.groups.device().plan();
        plan.limits.max_compute_work_group_count
    }

    /// The counts that were too large, if they were.
    fn noted(&self) -> Option<[u32; 3]> {
        let (notes, at, _) = self.note();
        let mut words = [0u32; WORDS];
        // SAFETY: the commands that may write the note have finished (see the top of the file).
        unsafe { notes.read(at, bytemuck::bytes_of_mut(&mut words)) }.ok()?;
        let [x, y, z, tag] = words;
        (tag == self.tag).then_some([x, y, z])
    }
}

impl Outcome for Place {
    fn error(&self) -> Option<Error> {
        let counts = self.noted()?;
        let error = Grid::groups(counts).resolve([1; 3], self.limits()).err()?;
        let Launched {
            kernel,
            stream,
            site,
        } = &self.launch;
        Some(error.context(format_args!(
            "{kernel}: the indirect launch at {site}, on stream {stream}, found its counts too large and ran \
             nothing"
        )))
    }

    fn memory(&self) -> (&Arc<Segment>, u64, u64) {
        self.note()
    }

    /// The copy of a note ends with the tag of the original.
    fn another(&self) -> Result<Arc<dyn Outcome>> {
        let pool = self.pool.upgrade().ok_or_else(|| {
            Error::new(
                ErrorKind::ShutDown,
                "the device that the graph was captured on is closed",
            )
        })?;
        let mut place = pool.take(self.launch.clone())?;
        place.used = place.used.max(self.tag);
        place.tag = self.tag;
        Ok(Arc::new(place))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A forked child does not meet locks of its parent's threads.
        if self.chunk.notes.device().may_call_driver()
            && let Some(pool) = self.pool.upgrade()
        {
            pool.free.lock().push(Free {
                chunk: Arc::clone(&self.chunk),
                index: self.index,
                tag: self.used,
            });
        }
    }
}
