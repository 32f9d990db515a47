//! Memory that the host and queued copies take turns with.
//!
//! The host reads or writes it through guards. A guard waits for the queued copies that it must not
//! meet, and while it lives no copy that it must not meet can be queued: that is an error of kind
//! `HostBusy`. So no reference of the host's ever sees the device write.
//!
//! # Safety
//!
//! The memory is mapped for as long as [`Pinned`] lives. References into it exist only through
//! guards: shared ones while no other than shared guards live, a unique one while no other guard
//! lives, and neither while a queued copy writes, the unique one also not while one reads. A guard
//! that is never dropped keeps its claim for ever.
#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::host::{DeviceHost, HostPiece};
use crate::base::fork::Life;
use crate::base::sync::{Condvar, Mutex};
use crate::device::plan::MemoryRole;
use crate::error::text::count;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{StreamCore, Ticket};
use crate::vk::{Device, Segment};

/// Memory of the host's that copies use.
#[derive(Debug)]
pub(crate) struct Pinned {
    state: Mutex<State>,
    /// A copy that was being queued is queued now.
    queued: Condvar,
    memory: Memory,
    len: usize,
    life: Life,
}

#[derive(Debug)]
enum Memory {
    /// No bytes.
    None,
    /// Of the cache; taken when it goes back.
    Cached(Option<HostPiece>, Arc<Segment>),
    Imported(Arc<Segment>),
}

#[derive(Debug, Default)]
struct State {
    /// Guards that read; those that wait for copies before they do count too.
    readers: usize,
    has_writer: bool,
    /// Copies that are being queued, which read or write the memory.
    queueing: [usize; 2],
    /// Behind the newest queued copies of each stream that read or write the memory.
    queued: [Vec<Queued>; 2],
    /// What the last guard that wrote could not tell anybody.
    failure: Option<Error>,
}

/// What a copy does with the memory; the index of its places in [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    Reads = 0,
    Writes = 1,
}

impl Pinned {
    /// `len` bytes of the cache, with whatever content.
    pub(crate) fn new(host: &DeviceHost, role: MemoryRole, len: usize) -> Result<Arc<Self>> {
        let memory = if len == 0 {
            Memory::None
        } else {
            let piece = host.take(role, len as u64)?;
            let segment = Arc::clone(piece.segment());
            Memory::Cached(Some(piece), segment)
        };
        Ok(Self::of(memory, len))
    }

    /// `len` bytes that the program has.
    ///
    /// # Safety
    ///
    /// As for [`Segment::import`]; and nothing else reads or writes the memory until this and the
    /// copies that use it are gone.
    pub(crate) unsafe fn import(
        device: &Arc<Device>,
        start: NonNull<u8>,
        len: usize,
    ) -> Result<Arc<Self>> {
        if len == 0 {
            return Ok(Self::of(Memory::None, 0));
        }
        // SAFETY: the caller's word; a segment lives as long as this and the copies that use it.
        let segment = unsafe { Segment::import(device, start, len as u64) }?;
        Ok(Self::of(Memory::Imported(segment), len))
    }

    fn of(memory: Memory, len: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            queued: Condvar::default(),
            memory,
            len,
            life: Life::now(),
        })
    }

    /// The memory; none where there are no bytes.
    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        match &self.memory {
            Memory::None => None,
            Memory::Cached(_, segment) | Memory::Imported(segment) => Some(segment),
        }
    }

    /// Whether its start is a place for values of this alignment.
    pub(crate) fn is_aligned_to(&self, alignment: usize) -> bool {
        self.start()
            .is_none_or(|start| start.as_ptr().addr() % alignment == 0)
    }

    fn start(&self) -> Option<NonNull<u8>> {
        self.segment()?.host_range(0, self.len).ok()
    }

    /// Waits for queued copies that write the memory, then lends it.
    pub(crate) fn read(&self) -> Result<ReadGuard<'_>> {
        self.life.check()?;
        let mut state = self.state.lock();
        while state.queueing[Copying::Writes as usize] > 0 && !state.has_writer {
            state = self.queued.wait(state);
        }
        if state.has_writer {
            return Err(self.busy("read", "a PinnedWrite"));
        }
        state.readers += 1;
        drop(state);
        // From here on no copy that writes can be queued.
        let guard = ReadGuard(self);
        self.wait_for(&[Copying::Writes])?;
        if let Some(segment) = self.segment() {
            segment.invalidate(0, self.len as u64)?;
        }
        Ok(guard)
    }

    /// Waits for all queued copies that use the memory, then lends it.
    pub(crate) fn write(&self) -> Result<WriteGuard<'_>> {
        self.life.check()?;
        let mut state = self.state.lock();
        while state.queueing != [0, 0] && !state.is_lent() {
            state = self.queued.wait(state);
        }
        if state.is_lent() {
            return Err(self.busy("write", "a PinnedRead or PinnedWrite"));
        }
        state.has_writer = true;
        drop(state);
        let guard = WriteGuard(self);
        self.wait_for(&[Copying::Reads, Copying::Writes])?;
        if let Some(segment) = self.segment() {
            segment.invalidate(0, self.len as u64)?;
        }
        Ok(guard)
    }

    /// Waits for the queued copies of these kinds, with no lock held.
    fn wait_for(&self, kinds: &[Copying]) -> Result<()> {
        for &kind in kinds {
            // A copy: others wait for the same ones.
            let queued = self.state.lock().queued[kind as usize].clone();
            for copy in &queued {
                copy.ticket.wait(None)?;
            }
        }
        Ok(())
    }

    /// Queues a copy with `queue`, unless a guard lends the memory out.
    pub(crate) fn queue(
        &self,
        stream: &StreamCore,
        kind: Copying,
        queue: impl FnOnce() -> Result<u64>,
    ) -> Result<Ticket> {
        let queueing = self.claim(stream, kind)?;
        let seq = queue()?;
        queueing.queued(seq);
        Ok(stream.ticket(seq))
    }

    /// Says that a copy is being queued, unless a guard lends the memory out.
    pub(crate) fn claim<'a>(
        &'a self,
        stream: &'a StreamCore,
        kind: Copying,
    ) -> Result<Queueing<'a>> {
        let mut state = self.state.lock();
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let is_lent = match kind {
            Copying::Reads => state.has_writer,
            Copying::Writes => state.is_lent(),
        };
        if is_lent {
            return Err(match kind {
                Copying::Reads => self.busy("copy from", "a PinnedWrite"),
                Copying::Writes => self.busy("copy to", "a PinnedRead or PinnedWrite"),
            });
        }
        state.queueing[kind as usize] += 1;
        drop(state);
        Ok(Queueing {
            pinned: self,
            stream,
            kind,
            seq: None,
        })
    }

    #[cold]
    fn busy(&self, what: &str, guard: &str) -> Error {
        let text = format!(
            "can't {what} this pinned memory of {} while the host holds {guard} of it; drop that first, or, if \
             it was leaked, use other memory",
            count(self.len, "byte")
        );
        Error::new(ErrorKind::HostBusy, text)
    }

    /// The queued copies that may still use it.
    fn uses(state: &mut State) -> Vec<Ticket> {
        let queued = core::mem::take(&mut state.queued);
        let tickets = queued.into_iter().flatten().map(|copy| copy.ticket);
        tickets.filter(|ticket| !ticket.known_reached()).collect()
    }
}

/// A queued copy.
#[derive(Clone, Debug)]
struct Queued {
    stream: u64,
    /// The recording of the stream that it is in, or one before that.
    seq: u64,
    ticket: Ticket,
}

impl Queued {
    /// Takes the place of the older copies of its stream. Threads that queue copies on one stream may
    /// come here in another order than they did so.
    fn join(self, queued: &mut Vec<Self>) {
        queued.retain(|one| !one.ticket.known_reached());
        match queued.iter_mut().find(|one| one.stream == self.stream) {
            Some(one) if one.seq > self.seq => {}
            Some(one) => *one = self,
            None => queued.push(self),
        }
    }
}

impl State {
    fn is_lent(&self) -> bool {
        self.has_writer || self.readers > 0
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.life.may_call_driver() {
            return;
        }
        if let Memory::Cached(piece, _) = &mut self.memory
            && let Some(piece) = piece.take()
        {
            piece.give_back(Self::uses(self.state.get_mut()));
        }
    }
}

/// A copy that is being queued.
#[derive(Debug)]
pub(crate) struct Queueing<'a> {
    pinned: &'a Pinned,
    stream: &'a StreamCore,
    kind: Copying,
    /// The recording that it is in, once it is queued.
    seq: Option<u64>,
}

impl Queueing<'_> {
    /// It is in this recording of its stream.
    pub(crate) fn queued(mut self, seq: u64) {
        self.seq = Some(seq);
    }
}

impl Drop for Queueing<'_> {
    fn drop(&mut self) {
        // One that failed may have been recorded nevertheless.
        let seq = self.seq.unwrap_or_else(|| self.stream.newest_seq());
        let copy = Queued {
            stream: self.stream.id(),
            seq,
            ticket: match self.seq {
                Some(seq) => self.stream.ticket(seq),
                None => self.stream.newest(),
            },
        };
        let mut state = self.pinned.state.lock();
        state.queueing[self.kind as usize] -= 1;
        copy.join(&mut state.queued[self.kind as usize]);
        drop(state);
        self.pinned.queued.notify_all();
    }
}

/// Lends the memory for reading.
#[derive(Debug)]
pub(crate) struct ReadGuard<'a>(&'a Pinned);

/// Lends the memory for reading and writing.
#[derive(Debug)]
pub(crate) struct WriteGuard<'a>(&'a Pinned);

impl ReadGuard<'_> {
    /// The memory as `len` elements, which it holds and is aligned for.
    pub(crate) fn elements<T: Pod>(&self, len: usize) -> &[T] {
        let start = self.0.elements::<T>(len);
        // SAFETY: `elements` checked room and alignment; any bytes are a `T`; the guard keeps all
        // that writes away (see the top of the file).
        unsafe { core::slice::from_raw_parts(start.as_ptr(), len) }
    }
}

impl WriteGuard<'_> {
    /// The memory as `len` elements, which it holds and is aligned for.
    pub(crate) fn elements<T: Pod>(&self, len: usize) -> &[T] {
        let start = self.0.elements::<T>(len);
        // SAFETY: as for a guard that reads.
        unsafe { core::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// The same, to be written.
    pub(crate) fn elements_mut<T: Pod>(&mut self, len: usize) -> &mut [T] {
        let start = self.0.elements::<T>(len);
        // SAFETY: as above; the guard is the only one, and borrowed for as long as the result.
        unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }
}

impl Pinned {
    /// Where `len` elements are; nowhere in particular for elements of no bytes.
    fn elements<T: Pod>(&self, len: usize) -> NonNull<T> {
        let bytes = len.checked_mul(size_of::<T>());
        assert!(
            bytes.is_some_and(|bytes| bytes <= self.len) && self.is_aligned_to(align_of::<T>()),
            "checked when the memory was pinned"
        );
        match self.start() {
            Some(start) if size_of::<T>() > 0 => start.cast(),
            _ => NonNull::dangling(),
        }
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        // In a forked child, a thread that is not there any more may hold the lock for ever.
        if self.0.life.may_call_driver() {
            self.0.state.lock().readers -= 1;
        }
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if !self.0.life.may_call_driver() {
            return;
        }
        // Before any copy that reads it can be queued.
        let flushed = self
            .0
            .segment()
            .map_or(Ok(()), |segment| segment.flush(0, self.0.len as u64));
        let mut state = self.0.state.lock();
        state.failure = flushed.err();
        state.has_writer = false;
    }
}
