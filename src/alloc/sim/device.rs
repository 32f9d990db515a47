//! The memory and the streams of a simulated device.

use super::Events;
use super::table::Table;
use crate::alloc::core::{Addressed, Source};

/// Where simulated memory starts: no address is 0.
const FIRST_ADDRESS: u64 = 1 << 32;

/// The memory.
#[derive(Debug)]
pub(super) struct Device {
    total: u64,
    used: u64,
    segments: u64,
    /// Where the next segment starts.
    next: u64,
}

/// A segment of the simulated device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    address: u64,
    bytes: u64,
}

impl Device {
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            used: 0,
            segments: 0,
            next: FIRST_ADDRESS,
        }
    }

    pub(super) fn destroy(&mut self, piece: Piece) {
        self.used -= piece.bytes;
        self.segments -= 1;
    }
}

impl Piece {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Addressed for Piece {
    fn address(&self) -> u64 {
        self.address
    }
}

/// Behind the n-th event of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    stream: u64,
    event: u64,
}

/// How far the streams are.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    events: Events,
    /// Recorded and completed events by stream.
    streams: Table<(u64, u64)>,
}

impl Clocks {
    pub(super) fn set_events(&mut self, events: Events) {
        self.events = events;
    }

    /// Finishes what was recorded on a stream.
    pub(super) fn complete(&mut self, stream: u64) {
        let (recorded, completed) = self.streams.entry(stream).or_default();
        *completed = *recorded;
    }

    /// A ticket behind all that a stream does until now.
    pub(super) fn record(&mut self, stream: u64) -> Ticket {
        let (recorded, completed) = self.streams.entry(stream).or_default();
        *recorded += 1;
        if self.events == Events::Immediate {
            *completed = *recorded;
        }
        Ticket {
            stream,
            event: *recorded,
        }
    }

    pub(super) fn is_reached(&self, ticket: &Ticket) -> bool {
        let stream = self.streams.get(&ticket.stream);
        stream.is_some_and(|(_, completed)| *completed >= ticket.event)
    }

    /// Finishes what leads to a ticket.
    pub(super) fn wait(&mut self, ticket: &Ticket) {
        let (_, completed) = self.streams.entry(ticket.stream).or_default();
        *completed = ticket.event.max(*completed);
    }
}

impl Source for Device {
    type Segment = Piece;
    type Refusal = ();

    fn create(&mut self, bytes: u64) -> Result<Piece, ()> {
        if bytes > self.total - self.used {
            return Err(());
        }
        self.used += bytes;
        self.segments += 1;
        let address = self.next;
        // No address is used twice, so that each means one segment.
        self.next = address.saturating_add(bytes);
        Ok(Piece { address, bytes })
    }

    fn held(&self) -> u64 {
        self.segments
    }
}
