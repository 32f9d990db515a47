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

use super::strided::{Strided, runs};
use super::transfer::Rows;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{NoCommand, StreamCore};

/// Copies `bytes` to `dst`, which is as long, at once, where the host reaches the memory and nothing
/// unfinished uses it, whoever owned it before; whether it did.
pub(super) fn write(dst: Rows<'_>, bytes: &[u8]) -> Result<bool> {
    if !dst.segment.is_mapped() || !dst.is_idle()? {
        return Ok(false);
    }
    let _alone = dst.host_access();
    let host = Strided::dense(0, bytes.len() as u64);
    let mut rest = bytes;
    for run in runs(host, dst.at, dst.bytes()) {
        let (row, later) = rest.split_at(length(run.len));
        rest = later;
        // SAFETY: nothing unfinished uses the memory, and no other thread copies to it (see the top of
        // the file).
        unsafe { dst.segment.write(run.dst, row) }?;
    }
    Ok(true)
}

/// Waits for what the stream does before, then copies `src` out, where the host reads the memory at
/// full speed; whether it did.
pub(super) fn read(stream: &StreamCore, src: Rows<'_>, out: &mut [u8]) -> Result<bool> {
    if !src.segment.is_cached() {
        return Ok(false);
    }
    let (lo, hi) = src.bounds();
    // No command, but the barrier that lets the host see what was written.
    let seen = [Use::read(src.segment.id(), lo, hi, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&seen, None::<NoCommand>)]);
    src.used_in(stream, &recorded);
    stream.ticket(recorded?).wait(None)?;
    let _alone = src.host_access();
    let host = Strided::dense(0, out.len() as u64);
    let mut rest = out;
    for run in runs(src.at, host, src.bytes()) {
        let (row, later) = rest.split_at_mut(length(run.len));
        rest = later;
        // SAFETY: what the stream wrote has finished (see the top of the file).
        unsafe { src.segment.read(run.src, row) }?;
    }
    Ok(true)
}

/// The bytes of a row, which are in the host's memory too.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
