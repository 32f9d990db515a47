//! Copies: from the host, to the host, between blocks, and fills.

use std::sync::Arc;

use super::block::Range;
use super::fill;
use super::overlap::{self, CopyStep};
use super::staging::{Chunk, Staging};
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{Recording, StreamCore, Ticket};
use crate::vk::command::Region;

/// The bytes that one command copies from or to the host.
const PIECE: usize = 4 << 20;
/// An upload waits for its stream once this many bytes of staging are in use.
const STAGED_MAX: u64 = 32 << 20;

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
    staging: &Arc<Staging>,
    dst: Range<'_>,
    bytes: &[u8],
) -> Result<()> {
    let mut dst = Range { len: 0, ..dst };
    for piece in bytes.chunks(PIECE) {
        if staging.busy_bytes() >= STAGED_MAX {
            stream.device().counts().host_waits_staging.add(1);
            stream.synchronize(None)?;
        }
        dst.len = piece.len() as u64;
        let chunk = staging.take(dst.len)?;
        chunk.fill(piece)?;
        let recorded = stream.record(&[dst.write()], |recording| {
            recording.retain(&chunk);
            recording.retain(dst.segment);
            let region = Region {
                src: 0,
                dst: dst.start,
                len: dst.len,
            };
            recording
                .commands
                .copy(chunk.segment(), dst.segment, &[region]);
            Ok(())
        });
        dst.used_in(stream, &recorded);
        recorded?;
        dst.start += dst.len;
    }
    Ok(())
}

/// A copy to the host that is under way.
#[derive(Debug)]
pub(crate) struct PendingDownload {
    chunk: Arc<Chunk>,
    ticket: Ticket,
}

impl PendingDownload {
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.ticket.is_reached()
    }

    /// Waits, then copies the bytes out.
    pub(crate) fn wait(self, out: &mut [u8]) -> Result<()> {
        self.ticket.wait(None)?;
        self.chunk.copy_out(out)
    }
}

/// Starts to copy `src` to the host.
pub(crate) fn start_download(
    stream: &Arc<StreamCore>,
    staging: &Arc<Staging>,
    src: Range<'_>,
) -> Result<PendingDownload> {
    let chunk = staging.take(src.len)?;
    let segment = chunk.segment().id();
    let copy = |recording: &mut Recording| {
        recording.retain(&chunk);
        recording.retain(src.segment);
        let region = Region {
            src: src.start,
            dst: 0,
            len: src.len,
        };
        recording
            .commands
            .copy(src.segment, chunk.segment(), &[region]);
        Ok(())
    };
    let copied = [
        src.read(),
        Use::write(segment, 0, src.len, Stages::TRANSFER),
    ];
    // No command behind it, but the barrier that lets the host see what was copied.
    let seen = [Use::read(segment, 0, src.len, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&copied, Some(copy)), (&seen, None)]);
    src.used_in(stream, &recorded);
    let ticket = stream.ticket(recorded?);
    Ok(PendingDownload { chunk, ticket })
}

/// Copies `src` to the host and waits for it.
pub(crate) fn download(
    stream: &Arc<StreamCore>,
    staging: &Arc<Staging>,
    src: Range<'_>,
    out: &mut [u8],
) -> Result<()> {
    let mut src = Range { len: 0, ..src };
    let mut before: Option<(PendingDownload, &mut [u8])> = None;
    // While the host copies one piece out, the device copies the next one in.
    for piece in out.chunks_mut(PIECE) {
        src.len = piece.len() as u64;
        let pending = start_download(stream, staging, src)?;
        stream.flush()?;
        src.start += src.len;
        if let Some((pending, piece)) = before.replace((pending, piece)) {
            pending.wait(piece)?;
        }
    }
    match before {
        Some((pending, piece)) => pending.wait(piece),
        None => Ok(()),
    }
}

/// Copies `src` to `dst`, which has the same length; ranges of one block may overlap, and then
/// `dst` gets what `src` held before.
pub(crate) fn copy(
    stream: &StreamCore,
    staging: &Arc<Staging>,
    src: Range<'_>,
    dst: Range<'_>,
) -> Result<()> {
    let overlaps = src.segment.id() == dst.segment.id() && src.start.abs_diff(dst.start) < src.len;
    if overlaps {
        return copy_overlapping(stream, staging, src, dst);
    }
    let recorded = stream.record(&[src.read(), dst.write()], |recording| {
        recording.retain(src.segment);
        recording.retain(dst.segment);
        let region = Region {
            src: src.start,
            dst: dst.start,
            len: src.len,
        };
        recording.commands.copy(src.segment, dst.segment, &[region]);
        Ok(())
    });
    src.used_in(stream, &recorded);
    dst.used_in(stream, &recorded);
    recorded.map(drop)
}

fn copy_overlapping(
    stream: &StreamCore,
    staging: &Arc<Staging>,
    src: Range<'_>,
    dst: Range<'_>,
) -> Result<()> {
    let segment = src.segment;
    let steps = overlap::plan(src.start, dst.start, src.len);
    let temp_bytes = steps.temp_bytes();
    let temp = if temp_bytes > 0 {
        Some(staging.take(temp_bytes)?)
    } else {
        None
    };
    let temp_segment = temp.as_ref().map_or(segment, |chunk| chunk.segment());
    for step in steps {
        let (from, to, region) = match step {
            CopyStep::Direct { src, dst, len } => (segment, segment, Region { src, dst, len }),
            CopyStep::Save { src, len } => (segment, temp_segment, Region { src, dst: 0, len }),
            CopyStep::Restore { dst, len } => (temp_segment, segment, Region { src: 0, dst, len }),
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
        let recorded = stream.record(&uses, |recording| {
            recording.retain(segment);
            if let Some(chunk) = &temp {
                recording.retain(chunk);
            }
            recording.commands.copy(from, to, &[region]);
            Ok(())
        });
        src.used_in(stream, &recorded);
        recorded?;
    }
    Ok(())
}

/// Fills `dst` with a pattern that starts at its first byte.
pub(crate) fn fill(
    stream: &StreamCore,
    staging: &Arc<Staging>,
    dst: Range<'_>,
    pattern: &[u8],
) -> Result<()> {
    let plan = fill::plan(dst.start, dst.len, pattern);
    let chunk = if plan.block.is_empty() {
        None
    } else {
        let chunk = staging.take(plan.block.len() as u64)?;
        chunk.fill(&plan.block)?;
        Some(chunk)
    };
    let segment = dst.segment;
    let recorded = stream.record(&[dst.write()], |recording| {
        recording.retain(segment);
        if let Some(words) = plan.words {
            recording
                .commands
                .fill(segment, words.offset, words.len, words.word);
        }
        if let Some(chunk) = &chunk {
            recording.retain(chunk);
            let regions: Vec<_> = plan
                .copies
                .iter()
                .map(|copy| Region {
                    src: copy.block_offset,
                    dst: copy.offset,
                    len: copy.len,
                })
                .collect();
            recording.commands.copy(chunk.segment(), segment, &regions);
        }
        Ok(())
    });
    dst.used_in(stream, &recorded);
    recorded.map(drop)
}
