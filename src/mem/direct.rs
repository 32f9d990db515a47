//! Copies between the host and device memory that is mapped: no command, no staging.
//!
//! # Safety
//!
//! The host only copies from and to the mapping; no reference into it is ever made. A block's lock
//! keeps the copies of two threads apart. That no command writes the memory meanwhile is seen to
//! before: a write goes ahead only where nothing unfinished uses the block, a read waits first. Where a
//! program queues a command for the same bytes on another thread at that very moment, with nothing that
//! orders the two, either may meet parts of the other's content: wrong numbers, as of any race of its own.
#![allow(unsafe_code)]

use core::cmp::Ordering;

use super::strided::{Strided, runs};
use super::transfer::Rows;
use crate::base::sync::MutexGuard;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{NoCommand, StreamCore, Ticket};

/// Copies `bytes` to the start of `dst` at once, where the host reaches the memory and nothing
/// unfinished uses it, whoever owned it before; whether it did.
pub(super) fn write(dst: Rows<'_>, bytes: &[u8]) -> Result<bool> {
    if !is_free(dst)? {
        return Ok(false);
    }
    let _alone = dst.host_access();
    let host = Strided::dense(0, bytes.len() as u64);
    let mut rest = bytes;
    for run in runs(host, dst.at, host.bytes()) {
        let (row, later) = rest.split_at(length(run.len));
        rest = later;
        // SAFETY: nothing unfinished uses the memory, and no other thread copies to it (see the top of
        // the file).
        unsafe { dst.segment.write(run.dst, row) }?;
    }
    Ok(true)
}

/// Whether the host reaches the memory and nothing unfinished uses it.
fn is_free(dst: Rows<'_>) -> Result<bool> {
    Ok(dst.segment.is_mapped() && dst.is_idle()?)
}

/// Waits for what the stream does before, then copies `src` out, where the host reads the memory at
/// full speed; whether it did.
pub(super) fn read(stream: &StreamCore, src: Rows<'_>, out: &mut [u8]) -> Result<bool> {
    let Some(ticket) = seen(stream, src)? else {
        return Ok(false);
    };
    ticket.wait(None)?;
    copy_out(src, out)?;
    Ok(true)
}

/// The point from which on the host sees what the stream has in `src`, where it reads the memory at full
/// speed.
pub(super) fn seen(stream: &StreamCore, src: Rows<'_>) -> Result<Option<Ticket>> {
    if !src.segment.is_cached() {
        return Ok(None);
    }
    let (lo, hi) = src.bounds();
    // No command, but the barrier that lets the host see what was written.
    let seen = [Use::read(src.segment.id(), lo, hi, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&seen, None::<NoCommand>)]);
    src.used_in(stream, &recorded);
    recorded.map(|seq| Some(stream.ticket(seq)))
}

/// Copies the start of `src`, which the host sees, out.
pub(super) fn copy_out(src: Rows<'_>, out: &mut [u8]) -> Result<()> {
    let _alone = src.host_access();
    let host = Strided::dense(0, out.len() as u64);
    let mut rest = out;
    for run in runs(src.at, host, host.bytes()) {
        let (row, later) = rest.split_at_mut(length(run.len));
        rest = later;
        // SAFETY: what wrote it has finished (see the top of the file).
        unsafe { src.segment.read(run.src, row) }?;
    }
    Ok(())
}

/// Copies the first `bytes` of `src`, which the host sees, to memory of another device that the host
/// reaches, if nothing unfinished uses that; whether it did.
pub(super) fn pass_on(src: Rows<'_>, dst: Rows<'_>, bytes: u64) -> Result<bool> {
    if !is_free(dst)? {
        return Ok(false);
    }
    let _alone = both_alone(src, dst);
    for run in runs(src.at, dst.at, bytes) {
        // SAFETY: as in `write` and `copy_out`.
        unsafe {
            dst.segment
                .write_from(run.dst, src.segment, run.src, length(run.len))
        }?;
    }
    Ok(true)
}

/// Keeps other threads from copying to or from two blocks.
fn both_alone<'a>(one: Rows<'a>, other: Rows<'a>) -> [Option<MutexGuard<'a, ()>>; 2] {
    let place = |rows: Rows<'a>| rows.block.map(core::ptr::from_ref);
    // All threads lock them in the same order.
    match place(one).cmp(&place(other)) {
        Ordering::Less => [one.host_access(), other.host_access()],
        Ordering::Greater => [other.host_access(), one.host_access()],
        Ordering::Equal => [one.host_access(), None],
    }
}

/// The bytes of a row, which are in the host's memory too.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
