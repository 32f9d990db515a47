//! Copies between rows of bytes, as commands of a bounded number of regions each.

use std::sync::Arc;

use super::block::{Block, Range};
use super::strided::{REGIONS_MAX, Run, Strided, runs};
use crate::base::sync::MutexGuard;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{Sink, StreamCore};
use crate::vk::Segment;
use crate::vk::command::Region;

/// Rows of bytes in a segment: of a block, or of memory that its user keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(super) segment: &'a Arc<Segment>,
    pub(super) block: Option<&'a Block>,
    pub(super) at: Strided,
}

/// Who waits for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    ByDevice,
    /// The host too, which sees it once the recording is reached.
    ByHost,
}

impl<'a> Rows<'a> {
    /// `count` rows of `len` bytes each in a range, whose starts are `stride` bytes apart.
    pub(crate) fn new(range: Range<'a>, count: u64, len: u64, stride: u64) -> Self {
        Self {
            at: Strided::new(range.start, count, len, stride),
            ..Self::from(range)
        }
    }

    /// Bytes of host memory that lie together.
    pub(super) fn host(segment: &'a Arc<Segment>, start: u64, len: u64) -> Self {
        Self {
            segment,
            block: None,
            at: Strided::dense(start, len),
        }
    }

    /// The bytes of their content.
    pub(crate) fn bytes(&self) -> u64 {
        self.at.bytes()
    }

    /// Others of the same memory, which lie together.
    pub(super) fn dense(self, start: u64, len: u64) -> Self {
        Self {
            at: Strided::dense(start, len),
            ..self
        }
    }

    /// The same but for the first bytes of their content.
    pub(super) fn skip(self, bytes: u64) -> Self {
        Self {
            at: self.at.skip(bytes),
            ..self
        }
    }

    /// Where they start and end, with the gaps between them.
    pub(super) fn bounds(&self) -> (u64, u64) {
        self.at.bounds()
    }

    /// Whether no unfinished command uses the block that they are in.
    pub(super) fn is_idle(&self) -> Result<bool> {
        self.block.map_or(Ok(true), Block::is_idle)
    }

    /// Keeps other threads from copying to or from the block, where the host reaches it.
    pub(super) fn host_access(&self) -> Option<MutexGuard<'a, ()>> {
        self.block?.host_access()
    }

    /// Takes note of a use by a command that a stream has recorded, or maybe has.
    pub(super) fn used_in(&self, stream: &StreamCore, recorded: &Result<u64>) {
        if let Some(block) = self.block {
            block.used_in(stream, recorded);
        }
    }

    fn retain_in(&self, sink: &mut Sink<'_>) {
        sink.retain(self.segment);
        if let Some(block) = self.block {
            block.captured_in(sink);
        }
    }
}

impl<'a> From<Range<'a>> for Rows<'a> {
    fn from(range: Range<'a>) -> Self {
        Self {
            segment: range.segment,
            block: Some(range.block),
            at: Strided::dense(range.start, range.len),
        }
    }
}

/// Copies the first `bytes` of one side to the other, with `keep` called for each command; gives the recording of the
/// last one.
pub(super) fn transfer(
    stream: &StreamCore,
    src: Rows<'_>,
    dst: Rows<'_>,
    bytes: u64,
    seen: Seen,
    keep: impl Fn(&mut Sink<'_>) -> Result<()>,
) -> Result<u64> {
    let mut runs = runs(src.at, dst.at, bytes).peekable();
    let Some(first) = runs.next().map(Region::from) else {
        return Ok(stream.newest_seq());
    };
    // Of most copies it is all, for which no list is made.
    let alone = [first];
    let mut list = Vec::new();
    if runs.peek().is_some() {
        list.push(first);
    }
    loop {
        let room = REGIONS_MAX - list.len();
        if runs.peek().is_some() {
            list.extend(runs.by_ref().take(room).map(Region::from));
        }
        let regions = if list.is_empty() { &alone[..] } else { &list };
        let is_last = runs.peek().is_none();
        let is_seen = is_last && seen == Seen::ByHost;
        let recorded = command(stream, src, dst, regions, is_seen, &keep);
        src.used_in(stream, &recorded);
        dst.used_in(stream, &recorded);
        if is_last || recorded.is_err() {
            return recorded;
        }
        list.clear();
    }
}

/// One command for some regions in ascending order.
fn command(
    stream: &StreamCore,
    src: Rows<'_>,
    dst: Rows<'_>,
    regions: &[Region],
    is_seen: bool,
    keep: &impl Fn(&mut Sink<'_>) -> Result<()>,
) -> Result<u64> {
    let (Some(first), Some(last)) = (regions.first(), regions.last()) else {
        return Ok(stream.newest_seq());
    };
    let (id, lo, hi) = (dst.segment.id(), first.dst, last.dst + last.len);
    // With the gaps between the rows.
    let copied = [
        Use::read(
            src.segment.id(),
            first.src,
            last.src + last.len,
            Stages::TRANSFER,
        ),
        Use::write(id, lo, hi, Stages::TRANSFER),
    ];
    // No command behind it, but the barrier that lets the host see what was copied.
    let host = [Use::read(id, lo, hi, Stages::HOST)];
    let copy = |sink: &mut Sink<'_>| {
        keep(sink)?;
        src.retain_in(sink);
        dst.retain_in(sink);
        sink.copy(src.segment, dst.segment, regions);
        Ok(())
    };
    let mut steps: [(&[Use], _); 2] = [(&copied, Some(copy)), (&host, None)];
    stream.record_steps(&mut steps[..1 + usize::from(is_seen)])
}

impl From<Run> for Region {
    fn from(Run { src, dst, len }: Run) -> Self {
        Self { src, dst, len }
    }
}
