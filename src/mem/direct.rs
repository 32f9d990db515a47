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

use super::block::Range;
use crate::error::Result;
use crate::exec::hazard::{Stages, Use};
use crate::exec::{NoCommand, StreamCore};

/// Copies `bytes` to the start of `dst` at once, where the host reaches the memory and nothing
/// unfinished uses it, whoever owned it before; whether it did.
pub(super) fn write(dst: Range<'_>, bytes: &[u8]) -> Result<bool> {
    if !dst.segment.is_mapped() || !dst.block.is_idle()? {
        return Ok(false);
    }
    let _alone = dst.block.host_access();
    // SAFETY: nothing unfinished uses the memory, and no other thread copies to it (see the top of
    // the file).
    unsafe { dst.segment.write(dst.start, bytes) }?;
    Ok(true)
}

/// Waits for what the stream does before, then copies the start of `src` out, where the host reads
/// the memory at full speed; whether it did.
pub(super) fn read(stream: &StreamCore, src: Range<'_>, out: &mut [u8]) -> Result<bool> {
    if !src.segment.is_cached() {
        return Ok(false);
    }
    let (lo, hi) = (src.start, src.start + src.len);
    // No command, but the barrier that lets the host see what was written.
    let seen = [Use::read(src.segment.id(), lo, hi, Stages::HOST)];
    let recorded = stream.record_steps(&mut [(&seen, None::<NoCommand>)]);
    src.used_in(stream, &recorded);
    stream.ticket(recorded?).wait(None)?;
    let _alone = src.block.host_access();
    // SAFETY: what the stream wrote has finished (see the top of the file).
    unsafe { src.segment.read(src.start, out) }?;
    Ok(true)
}
