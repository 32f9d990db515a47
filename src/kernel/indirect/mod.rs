//! Owns what comes before a kernel whose group counts lie in memory: a launch of a shader of this
//! crate's that reads them and hands on what the device takes.
//!
//! Counts past the device's limits are undefined to Vulkan, and no host sees them in time, so the
//! device compares: it writes them to a place of ours, where no other command can change them, or
//! none and a note that the host finds once the launch has finished.
//!
//! # Safety
//!
//! The module is this crate's own, and a test holds it to its source in `shaders/`: valid for Vulkan
//! 1.2, without loops. It reads three words of its first buffer from the word on that it is told, and
//! writes at most four of each of the others, from their starts. [`Check::record`] binds as many.
#![allow(unsafe_code)]

mod pool;

use std::sync::Arc;

pub(crate) use self::pool::Launched;
use self::pool::{Place, Pool};
use super::check;
use super::interface::BindingKind;
use super::reflect::reflect;
use super::spirv::{Module, words_from_bytes};
use crate::base::sync::Mutex;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{Launch, Outcome, Sink};
use crate::mem::block::Range;
use crate::vk::command::{DescriptorRange, Groups};
use crate::vk::{Device, Pipeline};

const NAME: &str = "shaders/indirect.comp";
const MODULE: &[u8] = include_bytes!("../../../shaders/indirect.spv");

/// What the indirect launches of one opened device share.
#[derive(Debug)]
pub(crate) struct Indirect {
    /// Made on first use.
    pipeline: Mutex<Option<Arc<Pipeline>>>,
    pool: Arc<Pool>,
    name: Arc<str>,
    device: Arc<Device>,
}

/// The check of one launch's counts.
pub(super) struct Check<'a> {
    counts: Range<'a>,
    /// Where the first of the bytes lies that its descriptor spans.
    start: u64,
    place: Arc<Place>,
    pipeline: Arc<Pipeline>,
    name: Arc<str>,
}

impl Indirect {
    pub(crate) fn new(device: &Arc<Device>) -> Self {
        Self {
            pipeline: Mutex::new(None),
            pool: Pool::new(device),
            name: Arc::from(NAME),
            device: Arc::clone(device),
        }
    }

    /// A check of the counts of a launch.
    pub(super) fn check<'a>(&self, launch: Launched, counts: Range<'a>) -> Result<Check<'a>> {
        // Descriptors start where the device lets them, so the shader is told where the counts do.
        let align = self
            .device
            .plan()
            .limits
            .min_storage_buffer_offset_alignment;
        Ok(Check {
            counts,
            start: counts.start - counts.start % align.max(1),
            pipeline: self.pipeline()?,
            place: Arc::new(self.pool.take(launch)?),
            name: Arc::clone(&self.name),
        })
    }

    /// The pipeline. A failure can be tried again.
    fn pipeline(&self) -> Result<Arc<Pipeline>> {
        let mut made = self.pipeline.lock();
        if let Some(pipeline) = &*made {
            return Ok(Arc::clone(pipeline));
        }
        let words = words_from_bytes(MODULE)?;
        let interface = reflect(&Module::parse(&words)?, None, &[])?;
        let plan = self.device.plan();
        check::check_program(&interface, &plan.limits, plan.features)
            .map_err(|error| error.context(NAME))?;
        // SAFETY: the module is this crate's own, as the top of the file says; the interface was
        // read from it.
        let pipeline = unsafe { Pipeline::new(&self.device, &words, &interface, &[]) }?;
        Ok(Arc::clone(made.insert(pipeline)))
    }
}

impl Check<'_> {
    /// What the check itself does with memory.
    pub(super) fn uses(&self) -> [Use; 3] {
        let end = self.counts.start + self.counts.len;
        let (groups, lo, hi) = self.place.groups();
        let (note, ..) = self.place.note();
        [
            Use::read(self.counts.segment.id(), self.start, end, Stages::COMPUTE),
            Use::write(groups.id(), lo, hi, Stages::COMPUTE),
            Use::write(note.id(), lo, hi, Stages::COMPUTE),
        ]
    }

    /// What the launch behind it does with what it writes.
    pub(super) fn use_behind(&self) -> Use {
        let (groups, lo, hi) = self.place.groups();
        Use::read(groups.id(), lo, hi, Stages::INDIRECT)
    }

    /// What the host does with what it writes, once; of a replay, the host reads a copy.
    pub(super) fn use_by_host(&self) -> Use {
        let (note, lo, hi) = self.place.note();
        Use::read(note.id(), lo, hi, Stages::HOST)
    }

    /// What [`clear`](Self::clear) does with memory.
    pub(super) fn use_before(&self) -> Use {
        let (note, lo, hi) = self.place.note();
        Use::write(note.id(), lo, hi, Stages::TRANSFER)
    }

    /// Empties the note, for commands that run again.
    pub(super) fn clear(&self, sink: &mut Sink<'_>) {
        let (note, lo, hi) = self.place.note();
        sink.fill(note, lo, hi - lo, 0);
    }

    /// Records the check.
    pub(super) fn record(&self, sink: &mut Sink<'_>) -> Result<()> {
        sink.retain(self.counts.segment);
        self.counts.block.captured_in(sink);
        sink.look_at(Arc::clone(&self.place) as Arc<dyn Outcome>);
        let end = self.counts.start + self.counts.len;
        let (groups, lo, hi) = self.place.groups();
        let (note, ..) = self.place.note();
        let range = |binding, segment, lo, hi| DescriptorRange {
            set: 0,
            binding,
            kind: BindingKind::Storage,
            segment,
            offset: lo,
            len: hi - lo,
        };
        let ranges = [
            range(0, self.counts.segment, self.start, end),
            range(1, groups, lo, hi),
            range(2, note, lo, hi),
        ];
        let [x, y, z] = self.place.limits();
        let first = u32::try_from((self.counts.start - self.start) / 4).unwrap_or(0);
        let push = [x, y, z, first, self.place.tag()];
        let push = bytemuck::bytes_of(&push);
        sink.launch(&Launch {
            name: &self.name,
            pipeline: &self.pipeline,
            groups: Groups::Counts([1; 3]),
            ranges: &ranges,
            push,
        })
    }

    /// The groups of the launch behind it.
    pub(super) fn groups(&self) -> Groups<'_> {
        let (segment, offset, _) = self.place.groups();
        Groups::Indirect { segment, offset }
    }
}
