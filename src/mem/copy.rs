//! Copies: from the host, to the host, between blocks, and fills.

use std::sync::{Arc, Weak};

use super::block::Range;
use super::direct;
use super::fill;
use super::host::{DeviceHost, is_exhaustion};
use super::overlap::{self, CopyStep};
use super::pinned::{Copying, Pinned};
use super::ring::CHUNK_MIN;
use super::staging::{Piece, Staging};
use super::temp::Through;
use crate::device::plan::MemoryRole;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{NoCommand, Sink, StreamCore, Ticket};
use crate::vk::Segment;
use crate::vk::command::Region;

impl Range<'_> {
    fn read(&self) -> Use {
        Use::read(
            self.segment.id(),
            self.start,
            self.start + self.len,
            Stages::TRANSFER,
        )
    }

    fn write(&self) -> Use {
        Use::write(
            self.segment.id(),
            self.start,
            self.start + self.len,
            Stages::TRANSFER,
        )
    }
}

/// Copies `bytes` to the start of `dst`; they may be changed once this returns.
pub(crate) fn upload(
    stream: &StreamCore,
    through: Through<'_>,
    mut dst: Range<'_>,
    bytes: &[u8],
) -> Result<()> {
    if !stream.is_captured() && direct::write(dst, bytes)? {
        return Ok(());
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let piece = match through.take(stream, rest.len() as u64) {
            Ok(piece) => piece,
            Err(error) if is_exhaustion(&error) && !stream.is_captured() => {
                // What the host reaches itself only has to be free.
                stream.newest().wait_for_staging()?;
                let written = direct::write(dst, rest)?;
                return if written { Ok(()) } else { Err(error) };
            }
            Err(error) => return Err(error),
        };
        let (now, later) = rest.split_at(piece.len());
        piece.fill(now)?;
        dst.len = now.len() as u64;
        let keep = |sink: &mut Sink<'_>| piece.retain_in(sink);
        let recorded = from_host(stream, piece.segment(), piece.offset(), dst, keep);
        piece.used_in(stream, &recorded);
        recorded?;
        dst.start += dst.len;
        rest = later;
    }
    Ok(())
}

/// Copies from host memory, which `keep` keeps, to all of `dst`.
fn from_host(
    stream: &StreamCore,
    host: &Arc<Segment>,
    offset: u64,
    dst: Range<'_>,
    keep: impl FnOnce(&mut Sink<'_>) -> Result<()>,
) -> Result<u64> {
    let read = Use::read(host.id(), offset, offset + dst.len, Stages::TRANSFER);
    let recorded = stream.record(&[read, dst.write()], |sink| {
        keep(sink)?;
        dst.retain_in(sink);
        let region = Region {
            src: offset,
            dst: dst.start,
            len: dst.len,
        };
        sink.copy(host, dst.segment, &[region]);
        Ok(())
    });
    dst.used_in(stream, &recorded);
    recorded
}

/// Copies all of `src` to host memory, which `keep` keeps and where the host sees it once the recording is
/// reached.
fn to_host(
    stream: &StreamCore,
    src: Range<'_>,
    host: &Arc<Segment>,
    offset: u64,
    keep: impl FnOnce(&mut Sink<'_>) -> Result<()>,
) -> Result<u64> {
    let copy = |sink: &mut Sink<'_>| {
        keep(sink)?;
        src.retain_in(sink);
        let region = Region {
            src: src.start,
            dst: offset,
            len: src.len,
        };
        sink.copy(src.segment, host, &[region]);
        Ok(())
    };
    let (id, end) = (host.id(), offset + src.len);
    let copied = [src.read(), Use::write(id, offset, end, Stages::TRANSFER)];
    // No command behind it, but the barrier that lets the host see what was copied.
    let seen = [Use::read(id, offset, end, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&copied, Some(copy)), (&seen, None)]);
    src.used_in(stream, &recorded);
    recorded
}

/// Copies pinned memory to all of `dst`, which is as long.
pub(crate) fn from_pinned(stream: &StreamCore, src: &Arc<Pinned>, dst: Range<'_>) -> Result<()> {
    let Some(host) = src.segment() else {
        return Ok(());
    };
    let keep = |sink: &mut Sink<'_>| {
        sink.lend(src, false);
        Ok(())
    };
    let queued = src.queue(stream, Copying::Reads, || {
        from_host(stream, host, 0, dst, keep)
    });
    queued.map(drop)
}

/// Copies all of `src` to pinned memory, which is as long.
pub(crate) fn to_pinned(
    stream: &StreamCore,
    src: Range<'_>,
    dst: &Arc<Pinned>,
) -> Result<Option<Ticket>> {
    let Some(host) = dst.segment() else {
        return Ok(None);
    };
    let keep = |sink: &mut Sink<'_>| {
        sink.lend(dst, true);
        Ok(())
    };
    let queued = dst.queue(stream, Copying::Writes, || {
        to_host(stream, src, host, 0, keep)
    });
    queued.map(Some)
}

/// A copy to the host that is under way.
#[derive(Debug)]
pub(crate) struct PendingDownload {
    memory: Arc<Pinned>,
    ticket: Option<Ticket>,
    stream: Weak<StreamCore>,
}

impl PendingDownload {
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.ticket.as_ref().map_or(Ok(true), Ticket::is_reached)
    }

    /// Waits, then copies the bytes out.
    #[track_caller]
    pub(crate) fn wait(self, out: &mut [u8]) -> Result<()> {
        if let Some(stream) = self.stream.upgrade() {
            stream.permit("Download::wait")?;
        }
        if let Some(ticket) = &self.ticket {
            ticket.wait(None)?;
        }
        out.copy_from_slice(self.memory.read()?.elements(out.len()));
        Ok(())
    }
}

/// Starts to copy `src` to host memory of its own.
pub(crate) fn start_download(
    stream: &StreamCore,
    host: &DeviceHost,
    src: Range<'_>,
) -> Result<PendingDownload> {
    // A length in bytes that a buffer has fits the host's own.
    let len = usize::try_from(src.len).unwrap_or(usize::MAX);
    let memory = Pinned::new(host, MemoryRole::Readback, len)?;
    let ticket = to_pinned(stream, src, &memory)?;
    let stream = stream
        .strong()
        .as_ref()
        .map_or_else(Weak::new, Arc::downgrade);
    Ok(PendingDownload {
        memory,
        ticket,
        stream,
    })
}

/// A piece of a download that is under way.
struct Under<'a> {
    piece: Piece,
    ticket: Ticket,
    out: &'a mut [u8],
}

impl Under<'_> {
    fn finish(self) -> Result<()> {
        self.ticket.wait(None)?;
        self.piece.copy_out(self.out)
    }
}

/// Copies `src` to the host and waits for it.
pub(crate) fn download(
    stream: &StreamCore,
    staging: &Arc<Staging>,
    mut src: Range<'_>,
    out: &mut [u8],
) -> Result<()> {
    if direct::read(stream, src, out)? {
        return Ok(());
    }
    let mut rest = out;
    let mut before: Option<Under<'_>> = None;
    // While the host copies one piece out, the device copies the next one in, where there is room.
    while !rest.is_empty() {
        let wish = rest.len() as u64;
        let piece = match before {
            None => Some(staging.take(stream, wish)?),
            Some(_) => staging.try_take(stream, wish)?,
        };
        let Some(piece) = piece else {
            // No more is waited for while a piece is held.
            before.take().map_or(Ok(()), Under::finish)?;
            continue;
        };
        let (out, later) = core::mem::take(&mut rest).split_at_mut(piece.len());
        rest = later;
        src.len = out.len() as u64;
        let nothing = |_: &mut Sink<'_>| Ok(());
        let recorded = to_host(stream, src, piece.segment(), piece.offset(), nothing);
        piece.used_in(stream, &recorded);
        let ticket = stream.ticket(recorded?);
        stream.flush()?;
        src.start += src.len;
        let newest = Under { piece, ticket, out };
        before.replace(newest).map_or(Ok(()), Under::finish)?;
    }
    before.map_or(Ok(()), Under::finish)
}

/// Copies `src` to `dst`, which has the same length; ranges of one block may overlap, and then
/// `dst` gets what `src` held before.
pub(crate) fn copy(
    stream: &StreamCore,
    through: Through<'_>,
    src: Range<'_>,
    dst: Range<'_>,
) -> Result<()> {
    let overlaps = src.segment.id() == dst.segment.id() && src.start.abs_diff(dst.start) < src.len;
    if overlaps {
        return copy_overlapping(stream, through, src, dst);
    }
    let recorded = stream.record(&[src.read(), dst.write()], |sink| {
        src.retain_in(sink);
        dst.retain_in(sink);
        let region = Region {
            src: src.start,
            dst: dst.start,
            len: src.len,
        };
        sink.copy(src.segment, dst.segment, &[region]);
        Ok(())
    });
    src.used_in(stream, &recorded);
    dst.used_in(stream, &recorded);
    recorded.map(drop)
}

fn copy_overlapping(
    stream: &StreamCore,
    through: Through<'_>,
    src: Range<'_>,
    dst: Range<'_>,
) -> Result<()> {
    let segment = src.segment;
    let mut steps = overlap::plan(src.start, dst.start, src.len);
    let temp = match steps.temp_bytes() {
        0 => None,
        bytes => Some(through.take(stream, bytes)?),
    };
    let (temp_segment, at) = match &temp {
        Some(piece) => (piece.segment(), piece.offset()),
        None => (segment, 0),
    };
    if let Some(piece) = &temp {
        steps = steps.with_temp(piece.len() as u64);
    }
    for step in steps {
        let (from, to, region) = match step {
            CopyStep::Direct { src, dst, len } => (segment, segment, Region { src, dst, len }),
            CopyStep::Save { src, len } => (segment, temp_segment, Region { src, dst: at, len }),
            CopyStep::Restore { dst, len } => (temp_segment, segment, Region { src: at, dst, len }),
        };
        let uses = [
            Use::read(
                from.id(),
                region.src,
                region.src + region.len,
                Stages::TRANSFER,
            ),
            Use::write(
                to.id(),
                region.dst,
                region.dst + region.len,
                Stages::TRANSFER,
            ),
        ];
        let recorded = stream.record(&uses, |sink| {
            src.retain_in(sink);
            temp.as_ref().map_or(Ok(()), |temp| temp.retain_in(sink))?;
            sink.copy(from, to, &[region]);
            Ok(())
        });
        src.used_in(stream, &recorded);
        if let Some(piece) = &temp {
            piece.used_in(stream, &recorded);
        }
        recorded?;
    }
    let Some(piece) = &temp else {
        return Ok(());
    };
    // The host writes it next, and what the device wrote has to be over for it, too.
    let end = at + piece.len() as u64;
    let seen = [Use::read(temp_segment.id(), at, end, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&seen, None::<NoCommand>)]);
    piece.used_in(stream, &recorded);
    recorded.map(drop)
}

/// Fills `dst` with a pattern that starts at its first byte.
pub(crate) fn fill(
    stream: &StreamCore,
    through: Through<'_>,
    dst: Range<'_>,
    pattern: &[u8],
) -> Result<()> {
    let mut plan = fill::plan(dst.start, dst.len, pattern);
    let mut block = None;
    if !plan.block.is_empty() {
        if pattern.len() as u64 > CHUNK_MIN {
            return fill_by_uploads(stream, through, dst, pattern);
        }
        let piece = match through.take(stream, plan.block.len() as u64) {
            Ok(piece) => piece,
            Err(error) if is_exhaustion(&error) => {
                // Whole patterns, in few pieces.
                let count = 1 + plan.block.len() / pattern.len();
                return fill_by_uploads(stream, through, dst, &pattern.repeat(count));
            }
            Err(error) => return Err(error),
        };
        if piece.len() < plan.block.len() {
            plan = fill::plan_within(dst.start, dst.len, pattern, piece.len() as u64);
        }
        piece.fill(&plan.block)?;
        block = Some(piece);
    }
    let segment = dst.segment;
    let staged = block.as_ref().map_or(dst.write(), |piece| {
        let (start, len) = (piece.offset(), piece.len() as u64);
        Use::read(piece.segment().id(), start, start + len, Stages::TRANSFER)
    });
    let uses = [dst.write(), staged];
    let uses = &uses[..1 + usize::from(block.is_some())];
    let recorded = stream.record(uses, |sink| {
        dst.retain_in(sink);
        if let Some(words) = plan.words {
            sink.fill(segment, words.offset, words.len, words.word);
        }
        if let Some(piece) = &block {
            piece.retain_in(sink)?;
            let regions: Vec<_> = plan
                .copies
                .iter()
                .map(|copy| Region {
                    src: piece.offset() + copy.block_offset,
                    dst: copy.offset,
                    len: copy.len,
                })
                .collect();
            sink.copy(piece.segment(), segment, &regions);
        }
        Ok(())
    });
    dst.used_in(stream, &recorded);
    if let Some(piece) = &block {
        piece.used_in(stream, &recorded);
    }
    recorded.map(drop)
}

/// The same with a pattern that is too long to be staged whole.
fn fill_by_uploads(
    stream: &StreamCore,
    through: Through<'_>,
    dst: Range<'_>,
    pattern: &[u8],
) -> Result<()> {
    let width = pattern.len() as u64;
    for done in (0..dst.len).step_by(pattern.len()) {
        let left = usize::try_from((dst.len - done).min(width)).unwrap_or(pattern.len());
        let start = dst.start + done;
        upload(stream, through, Range { start, ..dst }, &pattern[..left])?;
    }
    Ok(())
}
