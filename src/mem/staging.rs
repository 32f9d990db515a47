//! Staging: the host memory that copies go through, bounded, and given back by tickets.
//!
//! # Safety
//!
//! A [`Piece`] belongs to one copy. Its bytes are written before the command that reads them is
//! recorded, and read after the command that wrote them was waited for. Its memory serves nobody else
//! until the piece is dropped and the commands that [`Piece::used_in`] names are reached.
#![allow(unsafe_code)]

use core::time::Duration;
use std::sync::Arc;

use super::device::DeviceMemory;
use super::direct;
use super::host::is_exhaustion;
use super::ledger::RuntimeMemory;
use super::neighbour::Neighbour;
use super::ring::{CHUNK_MIN, Place, Ring, RingStep, Wish};
use super::transfer::Rows;
use crate::base::sync::{Condvar, Mutex};
use crate::device::plan::MemoryRole;
use crate::error::Result;
use crate::exec::{StreamCore, Ticket};
use crate::vk::{Device, Segment};

/// The kind of memory for both directions: the host reads it at full speed, and devices reach it as
/// they do what the host only writes.
const ROLE: MemoryRole = MemoryRole::Readback;

/// How long one waits for others to let go before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The staging memory of a device.
#[derive(Debug)]
pub(crate) struct Staging {
    ring: Mutex<Ring<Arc<Segment>, Ticket>>,
    /// A piece was let go.
    let_go: Condvar,
    /// What else may hold memory of the same heap idle.
    neighbour: Neighbour,
    device: Arc<Device>,
}

/// A piece of staging memory, for one copy.
#[derive(Debug)]
pub(crate) struct Piece {
    place: Place<Arc<Segment>>,
    home: Arc<Staging>,
}

impl Staging {
    /// Staging with a little memory that stays, so that a device that is full can still be written
    /// and read. Where the host does that itself, if nothing uses the memory, it is made when it is
    /// needed first.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Arc<Self>> {
        let mut ring = Ring::new();
        let memory = device.plan().memory.best(MemoryRole::Device);
        if !(memory.is_mappable() && memory.is_cached()) {
            ring.reserve(Segment::new(device, CHUNK_MIN, ROLE)?);
        }
        Ok(Arc::new(Self {
            ring: Mutex::new(ring),
            let_go: Condvar::default(),
            neighbour: Neighbour::default(),
            device: Arc::clone(device),
        }))
    }

    /// A piece of at most `bytes` for a command of the stream; as long as asked for up to
    /// [`CHUNK_MIN`].
    ///
    /// Where there is no room, waits for the stream's own oldest copy; for another's only where the
    /// driver has no memory. For callers who hold no other piece.
    pub(crate) fn take(self: &Arc<Self>, stream: &StreamCore, bytes: u64) -> Result<Piece> {
        let mut wish = Wish::new(stream.id(), bytes);
        loop {
            if let Some(piece) = self.take_or_busy(&mut wish)? {
                return Ok(piece);
            }
            let ring = self.ring.lock();
            // Looked at once more, as somebody may have let go since.
            drop(self.let_go.wait_timeout(ring, LOOK_AGAIN));
        }
    }

    /// The same without waiting for other threads to let go: nothing where that is all that helps. For callers
    /// who hold pieces of another device's.
    pub(crate) fn take_unless_busy(
        self: &Arc<Self>,
        stream: &StreamCore,
        bytes: u64,
    ) -> Result<Option<Piece>> {
        self.take_or_busy(&mut Wish::new(stream.id(), bytes))
    }

    /// A piece, once what devices do is waited for; nothing where others hold all there is.
    fn take_or_busy(self: &Arc<Self>, wish: &mut Wish) -> Result<Option<Piece>> {
        loop {
            match self.step(wish)? {
                Ok(piece) => return Ok(Some(piece)),
                Err(Some(ticket)) => ticket.wait_for_staging()?,
                Err(None) => return Ok(None),
            }
        }
    }

    /// The same, where there is room without waiting.
    pub(crate) fn try_take(
        self: &Arc<Self>,
        stream: &StreamCore,
        bytes: u64,
    ) -> Result<Option<Piece>> {
        Ok(self.step(&mut Wish::new(stream.id(), bytes))?.ok())
    }

    /// A piece, or what to wait for: a ticket, or that somebody lets go.
    fn step(self: &Arc<Self>, wish: &mut Wish) -> Result<Result<Piece, Option<Ticket>>> {
        self.reserve();
        let mut refusal = None;
        loop {
            let mut released = Vec::new();
            let reached = Ticket::known_reached;
            let step = self.ring.lock().take(wish, &reached, &mut released);
            drop(released);
            match step {
                RingStep::Done(place) => return Ok(Ok(self.piece(place))),
                RingStep::Poll(ticket) => {
                    wish.polled = true;
                    ticket.poll()?;
                }
                RingStep::Create(size) => match self.grow(size) {
                    Ok(segment) => {
                        let place = self.ring.lock().created(wish, size, segment);
                        return Ok(Ok(self.piece(place)));
                    }
                    Err(error) => {
                        self.ring.lock().refused(size);
                        if !is_exhaustion(&error) {
                            return Err(error);
                        }
                        wish.refused = true;
                        refusal = Some(error);
                    }
                },
                RingStep::Wait(ticket) => return Ok(Err(Some(ticket))),
                RingStep::Busy => return Ok(Err(None)),
                RingStep::Exhausted => match refusal {
                    Some(error) => return Err(error.context("no memory to copy through")),
                    // It was refused in an earlier step; there may be some now.
                    None => wish.refused = false,
                },
            }
        }
    }

    /// Makes the memory that stays, if it is not there yet and the driver has it.
    fn reserve(&self) {
        if self.ring.lock().has_reserve() {
            return;
        }
        if let Ok(segment) = Segment::new(&self.device, CHUNK_MIN, ROLE) {
            let mut ring = self.ring.lock();
            // Another thread may have been here meanwhile.
            if !ring.has_reserve() {
                ring.reserve(segment);
            }
        }
    }

    /// A new segment; where there is no room, in place of device memory that is cached.
    fn grow(&self, size: u64) -> Result<Arc<Segment>> {
        match Segment::new(&self.device, size, ROLE) {
            Err(error)
                if is_exhaustion(&error) && self.neighbour.make_way(&self.device, ROLE)? =>
            {
                Segment::new(&self.device, size, ROLE)
            }
            other => other,
        }
    }

    /// Has device memory make way where there is no room for more.
    pub(super) fn share_with(&self, memory: &Arc<DeviceMemory>) {
        self.neighbour.set(memory);
    }

    fn piece(self: &Arc<Self>, place: Place<Arc<Segment>>) -> Piece {
        Piece {
            place,
            home: Arc::clone(self),
        }
    }

    /// Gives what is free back to the driver.
    pub(crate) fn trim(&self) {
        let mut released = Vec::new();
        let reached = Ticket::known_reached;
        self.ring.lock().trim(&reached, &mut released);
        drop(released);
    }

    /// What is held from the driver.
    pub(crate) fn ledger(&self) -> RuntimeMemory {
        RuntimeMemory {
            staging_bytes: self.ring.lock().held(),
        }
    }
}

impl Piece {
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.place.segment
    }

    /// Its first byte in the segment.
    pub(crate) fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Its first bytes.
    pub(super) fn rows(&self, bytes: u64) -> Rows<'_> {
        Rows::host(self.segment(), self.offset(), bytes)
    }

    /// In bytes.
    pub(crate) fn len(&self) -> usize {
        // No piece is longer than a few MiB.
        usize::try_from(self.place.len).unwrap_or(usize::MAX)
    }

    /// Fills the start of the piece; for one that no command uses yet.
    pub(crate) fn fill(&self, bytes: &[u8]) -> Result<()> {
        // SAFETY: the piece was just taken, for the copy that fills it (see the top of the file).
        unsafe { self.segment().write(self.offset(), bytes) }
    }

    /// Fills the piece from memory of another device, which the host sees; for one that no command uses yet.
    pub(super) fn fill_from(&self, src: Rows<'_>) -> Result<()> {
        let bytes = self.place.len;
        direct::pass_on(src, self.rows(bytes), bytes).map(drop)
    }

    /// Copies the start of the piece out; for one whose commands were waited for.
    pub(crate) fn copy_out(&self, out: &mut [u8]) -> Result<()> {
        // SAFETY: the command that wrote the piece has finished (see the top of the file).
        unsafe { self.segment().read(self.offset(), out) }
    }

    /// Takes note of a use by a command that a stream has recorded, or maybe has.
    pub(crate) fn used_in(&self, stream: &StreamCore, recorded: &Result<u64>) {
        let (seq, ticket) = match recorded {
            Ok(seq) => (*seq, stream.ticket(*seq)),
            Err(_) => (stream.newest_seq(), stream.newest()),
        };
        self.home.ring.lock().used(self.place.chunk, seq, ticket);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // In a forked child, a thread that is not there any more may hold the lock for ever.
        if !self.home.device.may_call_driver() {
            return;
        }
        self.home.ring.lock().let_go(self.place.chunk);
        self.home.let_go.notify_all();
    }
}
