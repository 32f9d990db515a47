//! Copies from one device to another, through host memory of both.
//!
//! The content goes in chunks. The source's device copies each to its staging memory, the host moves it on to the
//! target's, and from there the target's device copies it. While the host moves one, the source is at the next ones and
//! the target at those before. Where the host reaches the memory of either device itself, that side's copy is left out.
//!
//! Two copies in opposite directions take pieces of the same two rings in opposite order. So nobody waits for others to
//! let go of a piece of one ring while holding pieces of the other: what is held is then taken out, into memory that is
//! nobody else's, and given back first. To wait for what a device does is no danger: no device waits for a host.

use std::collections::VecDeque;

use super::copy;
use super::direct;
use super::host::is_exhaustion;
use super::staging::Piece;
use super::temp::{Through, is_not_captured};
use super::transfer::{Rows, Seen, transfer};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{StreamCore, Ticket};

/// The bytes that are moved at once.
const CHUNK: u64 = 1 << 20;
/// The most chunks that the source has copied or is at.
const AHEAD: usize = 3;

/// A stream of one of the devices, with what its copies go through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) stream: &'a StreamCore,
    pub(crate) through: Through<'a>,
}

/// Copies `src`, as the source's stream has it now, to `dst`, which is as long and on another device.
///
/// Waits for the source alone, but for room; the last chunks are queued on the target's stream.
pub(crate) fn copy(from: End<'_>, to: End<'_>, src: Rows<'_>, mut dst: Rows<'_>) -> Result<()> {
    let mut source = Source::new(from, src)?;
    while let Some(chunk) = source.next()? {
        let len = match pass_on(to, &chunk, dst)? {
            Passed::All => chunk.len,
            Passed::Some(len) => {
                let bytes = source.take_out(chunk, len)?;
                copy::upload(to.stream, to.through, dst.skip(len), &bytes)?;
                len + bytes.len() as u64
            }
        };
        dst = dst.skip(len);
    }
    Ok(())
}

/// How much of a chunk is on its way to the target.
enum Passed {
    All,
    /// Others hold the memory for the rest, or there is none.
    Some(u64),
}

/// Moves a chunk on.
fn pass_on(to: End<'_>, chunk: &Chunk<'_>, dst: Rows<'_>) -> Result<Passed> {
    if !to.stream.is_captured() && direct::pass_on(chunk.rows(), dst, chunk.len)? {
        return Ok(Passed::All);
    }
    let mut done = 0;
    while done < chunk.len {
        let staging = &to.through.staging;
        let piece = match staging.take_unless_busy(to.stream, chunk.len - done) {
            Ok(Some(piece)) => piece,
            Ok(None) => return Ok(Passed::Some(done)),
            Err(error) if is_exhaustion(&error) => return Ok(Passed::Some(done)),
            Err(error) => return Err(error),
        };
        let bytes = piece.len() as u64;
        let staged = piece.rows(bytes);
        piece.fill_from(chunk.rows().skip(done))?;
        let dst = dst.skip(done);
        let recorded = transfer(
            to.stream,
            staged,
            dst,
            bytes,
            Seen::ByDevice,
            is_not_captured,
        );
        piece.used_in(to.stream, &recorded);
        recorded?;
        // It is copied while the host moves the next one.
        to.stream.flush()?;
        done += bytes;
    }
    Ok(Passed::All)
}

/// The source's content on its way to the host.
struct Source<'a> {
    from: End<'a>,
    /// What is left, but for what is under way.
    rest: Rows<'a>,
    under: VecDeque<Chunk<'a>>,
    /// The point from which on the host sees all of it, where it reads the memory itself.
    seen: Option<Ticket>,
}

/// Content that the host reads once the ticket is reached.
struct Chunk<'a> {
    held: Held<'a>,
    len: u64,
    ticket: Ticket,
}

enum Held<'a> {
    /// In the source's own memory.
    InPlace(Rows<'a>),
    Staged(Piece),
}

impl<'a> Source<'a> {
    fn new(from: End<'a>, src: Rows<'a>) -> Result<Self> {
        Ok(Self {
            from,
            rest: src,
            under: VecDeque::with_capacity(AHEAD),
            seen: direct::seen(from.stream, src)?,
        })
    }

    /// The next chunk, for the host to read, while the source is at those behind it.
    fn next(&mut self) -> Result<Option<Chunk<'a>>> {
        while self.under.len() < AHEAD && self.rest.bytes() > 0 {
            let len = self.rest.bytes().min(CHUNK);
            let Some(chunk) = self.start(len)? else {
                break;
            };
            self.rest = self.rest.skip(chunk.len);
            self.under.push_back(chunk);
        }
        let Some(chunk) = self.under.pop_front() else {
            return Ok(None);
        };
        chunk.ticket.wait_for_content()?;
        Ok(Some(chunk))
    }

    /// Has the source copy at most `len` bytes; nothing where that would wait while others are under way.
    fn start(&self, len: u64) -> Result<Option<Chunk<'a>>> {
        if let Some(ticket) = &self.seen {
            return Ok(Some(Chunk {
                held: Held::InPlace(self.rest),
                len,
                ticket: ticket.clone(),
            }));
        }
        let End { stream, through } = self.from;
        let piece = match self.under.is_empty() {
            true => Some(through.staging.take(stream, len)?),
            false => through.staging.try_take(stream, len)?,
        };
        let Some(piece) = piece else {
            return Ok(None);
        };
        let len = piece.len() as u64;
        let staged = piece.rows(len);
        let recorded = transfer(
            stream,
            self.rest,
            staged,
            len,
            Seen::ByHost,
            is_not_captured,
        );
        piece.used_in(stream, &recorded);
        let ticket = stream.ticket(recorded?);
        stream.flush()?;
        Ok(Some(Chunk {
            held: Held::Staged(piece),
            len,
            ticket,
        }))
    }

    /// The content of a chunk but for its first `done` bytes, and of all that is under way, none of which is held
    /// any more.
    fn take_out(&mut self, chunk: Chunk<'a>, done: u64) -> Result<Vec<u8>> {
        let len = chunk.len + self.under.iter().map(|chunk| chunk.len).sum::<u64>() - done;
        let mut all = host_bytes(len)?;
        let mut rest = &mut all[..];
        let mut skipped = done;
        for chunk in core::iter::once(chunk).chain(self.under.drain(..)) {
            chunk.ticket.wait_for_content()?;
            let len = usize::try_from(chunk.len - skipped).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at_mut(len);
            direct::copy_out(chunk.rows().skip(skipped), now)?;
            (rest, skipped) = (later, 0);
        }
        Ok(all)
    }
}

impl Chunk<'_> {
    fn rows(&self) -> Rows<'_> {
        match &self.held {
            Held::InPlace(rows) => *rows,
            Held::Staged(piece) => piece.rows(self.len),
        }
    }
}

/// Memory for a few chunks.
fn host_bytes(len: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|cause| {
        let text = format!("the host has no room for {len} bytes on their way between devices");
        Error::new(ErrorKind::OutOfHostMemory, text).with_source(cause)
    })?;
    bytes.resize(len, 0);
    Ok(bytes)
}
