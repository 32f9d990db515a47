//! Where the replays of a graph are.

use super::ticket::Ticket;
use crate::base::sync::Mutex;
use crate::error::Result;

/// The points behind the replays of a graph that may still run.
#[derive(Debug, Default)]
pub(crate) struct Replays(Mutex<Vec<(u64, Ticket)>>);

impl Replays {
    /// A stream has a newer replay; those of one graph are noted in the order in which they run.
    pub(crate) fn note(&self, stream: u64, ticket: &Ticket) {
        let mut all = self.0.lock();
        all.retain(|(of, ticket)| *of != stream && !ticket.known_reached());
        all.push((stream, ticket.clone()));
    }

    /// The points that are not known to be reached.
    pub(crate) fn unfinished(&self) -> Vec<Ticket> {
        let mut list = Vec::new();
        self.list_unfinished(&mut list);
        list
    }

    /// Puts those of [`unfinished`](Self::unfinished) in a list in place of what is there.
    pub(crate) fn list_unfinished(&self, list: &mut Vec<Ticket>) {
        list.clear();
        let all = self.0.lock();
        let unfinished = all.iter().filter(|(_, ticket)| !ticket.known_reached());
        list.extend(unfinished.map(|(_, ticket)| ticket.clone()));
    }

    /// Whether all are reached; asks the driver, and waits for nothing.
    pub(crate) fn are_over(&self) -> Result<bool> {
        for ticket in self.unfinished() {
            if !ticket.poll()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
