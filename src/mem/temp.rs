//! Memory that a copy goes through: a piece of the staging ring, or, for a copy that is captured, memory that its
//! graph keeps.

use std::sync::Arc;

use super::host::DeviceHost;
use super::pinned::Pinned;
use super::ring::CHUNK_MAX;
use super::staging::{Piece, Staging};
use super::transfer::Rows;
use crate::device::plan::MemoryRole;
use crate::error::Result;
use crate::exec::{Sink, StreamCore};
use crate::vk::Segment;

/// Where the memory that copies go through comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Through<'a> {
    pub(crate) staging: &'a Arc<Staging>,
    pub(crate) host: &'a DeviceHost,
}

/// Memory that the host has written or the device uses, for one copy.
#[derive(Debug)]
pub(super) enum Temp {
    Staged(Piece),
    Kept(Arc<Pinned>, Arc<Segment>, usize),
}

impl Through<'_> {
    /// At most `bytes` for a command of the stream, and as many up to
    /// [`CHUNK_MIN`](super::ring::CHUNK_MIN).
    pub(super) fn take(&self, stream: &StreamCore, bytes: u64) -> Result<Temp> {
        if !stream.is_captured() {
            return self.staging.take(stream, bytes).map(Temp::Staged);
        }
        // No piece is longer than a few MiB.
        let len = usize::try_from(bytes.min(CHUNK_MAX)).unwrap_or(usize::MAX);
        let pinned = Pinned::new(self.host, MemoryRole::Upload, len)?;
        match pinned.segment().map(Arc::clone) {
            Some(segment) => Ok(Temp::Kept(pinned, segment, len)),
            None => self.staging.take(stream, bytes).map(Temp::Staged),
        }
    }
}

impl Temp {
    pub(super) fn segment(&self) -> &Arc<Segment> {
        match self {
            Self::Staged(piece) => piece.segment(),
            Self::Kept(_, segment, _) => segment,
        }
    }

    /// Its first byte in the segment.
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Staged(piece) => piece.offset(),
            Self::Kept(..) => 0,
        }
    }

    /// Its first bytes.
    pub(super) fn rows(&self, bytes: u64) -> Rows<'_> {
        Rows::host(self.segment(), self.offset(), bytes)
    }

    /// In bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Staged(piece) => piece.len(),
            Self::Kept(_, _, len) => *len,
        }
    }

    /// Fills the start; for memory that no command uses yet.
    pub(super) fn fill(&self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Staged(piece) => piece.fill(bytes),
            Self::Kept(pinned, ..) => {
                let mut guard = pinned.write()?;
                guard.elements_mut::<u8>(bytes.len()).copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Keeps the memory for a command that uses it.
    ///
    /// # Errors
    ///
    /// `Capture` where a capture has begun since the memory was taken.
    pub(super) fn retain_in(&self, sink: &mut Sink<'_>) -> Result<()> {
        match self {
            Self::Staged(piece) => {
                sink.retain(piece.segment());
                is_not_captured(sink)
            }
            Self::Kept(pinned, ..) => {
                sink.retain(pinned);
                Ok(())
            }
        }
    }

    /// Takes note of a use by a command that a stream has recorded, or maybe has.
    pub(super) fn used_in(&self, stream: &StreamCore, recorded: &Result<u64>) {
        if let Self::Staged(piece) = self {
            piece.used_in(stream, recorded);
        }
    }
}

/// For a command that is no part of a capture.
///
/// # Errors
///
/// `Capture` where one has begun since it was looked for.
pub(super) fn is_not_captured(sink: &mut Sink<'_>) -> Result<()> {
    sink.check_is_for(None)
}
