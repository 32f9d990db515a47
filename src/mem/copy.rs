//! Copies: from the host, to the host, between blocks, and fills.

use core::time::Duration;
use std::sync::{Arc, Weak};

use super::block::Range;
use super::direct;
use super::fill;
use super::host::{DeviceHost, is_exhaustion};
use super::overlap::{self, CopyStep, CopySteps};
use super::pinned::{Copying, Pinned};
use super::ring::CHUNK_MIN;
use super::staging::{Piece, Staging};
use super::strided;
use super::temp::{Temp, Through, is_not_captured};
use super::transfer::{Rows, Seen, transfer};
use crate::device::plan::MemoryRole;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{Call, NoCommand, Sink, StreamCore, Ticket};
use crate::vk::command::Region;

impl Range<'_> {
    fn write(&self) -> Use {
        Use::write(
            self.segment.id(),
            self.start,
            self.start + self.len,
            Stages::TRANSFER,
        )
    }
}

/// For memory that whoever copies keeps.
fn keeps_itself(_: &mut Sink<'_>) -> Result<()> {
    Ok(())
}

/// Copies `bytes` to the start of `dst`; they may be changed once this returns.
pub(crate) fn upload(
    stream: &StreamCore,
    through: Through<'_>,
    mut dst: Rows<'_>,
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
        let bytes = now.len() as u64;
        let keep = |sink: &mut Sink<'_>| piece.retain_in(sink);
        let staged = piece.rows(bytes);
        let recorded = transfer(stream, staged, dst, bytes, Seen::ByDevice, keep);
        piece.used_in(stream, &recorded);
        recorded?;
        dst = dst.skip(bytes);
        rest = later;
    }
    Ok(())
}

/// Copies pinned memory to `dst`, which is as long.
pub(crate) fn from_pinned(stream: &StreamCore, src: &Arc<Pinned>, dst: Rows<'_>) -> Result<()> {
    let Some(host) = src.segment() else {
        return Ok(());
    };
    let keep = |sink: &mut Sink<'_>| {
        sink.lend(src, false);
        Ok(())
    };
    let bytes = dst.bytes();
    let queued = src.queue(stream, Copying::Reads, || {
        let host = Rows::host(host, 0, bytes);
        transfer(stream, host, dst, bytes, Seen::ByDevice, keep)
    });
    queued.map(drop)
}

/// Copies `src` to pinned memory, which is as long.
pub(crate) fn to_pinned(
    stream: &StreamCore,
    src: Rows<'_>,
    dst: &Arc<Pinned>,
) -> Result<Option<Ticket>> {
    let Some(host) = dst.segment() else {
        return Ok(None);
    };
    let keep = |sink: &mut Sink<'_>| {
        sink.lend(dst, true);
        Ok(())
    };
    let bytes = src.bytes();
    let queued = dst.queue(stream, Copying::Writes, || {
        let host = Rows::host(host, 0, bytes);
        transfer(stream, src, host, bytes, Seen::ByHost, keep)
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

    /// Waits; `false` if `timeout` ran out first.
    pub(crate) fn reach(&self, call: Call, timeout: Option<Duration>) -> Result<bool> {
        if let Some(stream) = self.stream.upgrade() {
            stream.permit(call)?;
        }
        let ticket = self.ticket.as_ref();
        ticket.map_or(Ok(true), |ticket| ticket.wait(timeout))
    }

    /// Waits, then copies the bytes out.
    pub(crate) fn wait(self, call: Call, out: &mut [u8]) -> Result<()> {
        self.reach(call, None)?;
        out.copy_from_slice(self.memory.read()?.elements(out.len()));
        Ok(())
    }
}

/// Starts to copy `src` to host memory of its own.
pub(crate) fn start_download(
    stream: &StreamCore,
    host: &DeviceHost,
    src: Rows<'_>,
) -> Result<PendingDownload> {
    // A length in bytes that a buffer has fits the host's own.
    let len = usize::try_from(src.bytes()).unwrap_or(usize::MAX);
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
    mut src: Rows<'_>,
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
        let bytes = out.len() as u64;
        let staged = piece.rows(bytes);
        let recorded = transfer(stream, src, staged, bytes, Seen::ByHost, is_not_captured);
        piece.used_in(stream, &recorded);
        let ticket = stream.ticket(recorded?);
        stream.flush()?;
        src = src.skip(bytes);
        let newest = Under { piece, ticket, out };
        before.replace(newest).map_or(Ok(()), Under::finish)?;
    }
    before.map_or(Ok(()), Under::finish)
}

/// Copies `src` to `dst`: as many bytes, in as many rows. Where rows of one overlap rows of the other, `dst` gets
/// what `src` held before.
pub(crate) fn copy(
    stream: &StreamCore,
    through: Through<'_>,
    src: Rows<'_>,
    dst: Rows<'_>,
) -> Result<()> {
    let bytes = src.bytes();
    let is_one = src.segment.id() == dst.segment.id();
    if !is_one || !strided::overlap(&src.at, &dst.at) {
        let copied = transfer(stream, src, dst, bytes, Seen::ByDevice, keeps_itself);
        return copied.map(drop);
    }
    match (src.at.together(), dst.at.together()) {
        (Some((from, len)), Some((to, _))) => {
            let steps = overlap::plan(from, to, len);
            copy_overlapping(stream, through, src, dst, steps)
        }
        _ => move_rows(stream, through, src, dst),
    }
}

/// Copies bytes that lie together onto some of themselves.
fn copy_overlapping(
    stream: &StreamCore,
    through: Through<'_>,
    src: Rows<'_>,
    dst: Rows<'_>,
    mut steps: CopySteps,
) -> Result<()> {
    let temp = match steps.temp_bytes() {
        0 => None,
        bytes => Some(through.take(stream, bytes)?),
    };
    if let Some(piece) = &temp {
        steps = steps.with_temp(piece.len() as u64);
    }
    // Without it, no step goes there.
    let block = |len| temp.as_ref().map_or(src, |temp| temp.rows(len));
    let keep = |sink: &mut Sink<'_>| temp.as_ref().map_or(Ok(()), |temp| temp.retain_in(sink));
    for step in steps {
        let (from, to, len) = match step {
            CopyStep::Direct {
                src: lo,
                dst: to,
                len,
            } => (src.dense(lo, len), dst.dense(to, len), len),
            CopyStep::Save { src: lo, len } => (src.dense(lo, len), block(len), len),
            CopyStep::Restore { dst: to, len } => (block(len), dst.dense(to, len), len),
        };
        let recorded = transfer(stream, from, to, len, Seen::ByDevice, keep);
        if let Some(temp) = &temp {
            temp.used_in(stream, &recorded);
        }
        recorded?;
    }
    temp.map_or(Ok(()), |temp| leave(stream, &temp))
}

/// Leaves memory that the device has written to the host, which writes it next: what the device wrote has
/// to be over for it, too.
fn leave(stream: &StreamCore, temp: &Temp) -> Result<()> {
    let (at, len) = (temp.offset(), temp.len() as u64);
    let seen = [Use::read(temp.segment().id(), at, at + len, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&seen, None::<NoCommand>)]);
    temp.used_in(stream, &recorded);
    recorded.map(drop)
}

/// Copies rows onto others that they overlap.
fn move_rows(
    stream: &StreamCore,
    through: Through<'_>,
    src: Rows<'_>,
    dst: Rows<'_>,
) -> Result<()> {
    let moves = strided::moves(&src.at, &dst.at);
    if moves.temp_bytes() == 0 {
        return Ok(());
    }
    let temp = through.take(stream, moves.temp_bytes())?;
    let keep = |sink: &mut Sink<'_>| temp.retain_in(sink);
    for (from, len) in moves.with_temp(temp.len() as u64) {
        let block = temp.rows(len);
        let (saved, restored) = ((src.skip(from), block), (block, dst.skip(from)));
        for (from, to) in [saved, restored] {
            let recorded = transfer(stream, from, to, len, Seen::ByDevice, keep);
            temp.used_in(stream, &recorded);
            recorded?;
        }
    }
    leave(stream, &temp)
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
        let part = Range {
            start,
            len: left as u64,
            ..dst
        };
        upload(stream, through, part.into(), &pattern[..left])?;
    }
    Ok(())
}
