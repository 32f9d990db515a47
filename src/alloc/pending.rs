//! Blocks that were given back while other streams still use them: a queue of tickets a stream.

use std::collections::VecDeque;

use super::block::BlockId;
use super::ids::StreamKey;

/// The tickets of one stream, in the order in which they are reached.
#[derive(Debug)]
struct Queue<T> {
    stream: StreamKey,
    waiting: VecDeque<(T, BlockId)>,
}

/// The queues of all streams.
#[derive(Debug)]
pub(super) struct Pending<T> {
    /// In the order in which they were first needed.
    queues: Vec<Queue<T>>,
    /// An empty queue with room.
    spare: Option<VecDeque<(T, BlockId)>>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self {
            queues: Vec::new(),
            spare: None,
        }
    }
}

impl<T> Pending<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Lets a block wait for a ticket of a stream.
    pub(super) fn push(&mut self, stream: StreamKey, ticket: T, block: BlockId) {
        let found = self.queues.iter_mut().find(|queue| queue.stream == stream);
        if let Some(queue) = found {
            queue.waiting.push_back((ticket, block));
            return;
        }
        let mut waiting = self.spare.take().unwrap_or_default();
        waiting.push_back((ticket, block));
        self.queues.push(Queue { stream, waiting });
    }

    /// The block of the next ticket that is reached, from the queue at `at` on; `at` goes on behind
    /// queues whose first ticket isn't.
    pub(super) fn pop(&mut self, at: &mut usize, reached: &dyn Fn(&T) -> bool) -> Option<BlockId> {
        while let Some(queue) = self.queues.get_mut(*at) {
            match queue.waiting.front() {
                None => self.spare = Some(self.queues.remove(*at).waiting),
                Some((ticket, block)) if reached(ticket) => {
                    let block = *block;
                    queue.waiting.pop_front();
                    return Some(block);
                }
                Some(_) => *at += 1,
            }
        }
        None
    }
}

impl<T: Clone> Pending<T> {
    /// The blocks that wait; one that waits for several tickets is there several times.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        let entries = self.queues.iter().flat_map(|queue| &queue.waiting);
        entries.map(|(_, block)| *block)
    }

    /// The tickets that a block waits for. From now on another one waits for them, if any.
    pub(super) fn take(&mut self, block: BlockId, instead: Option<BlockId>) -> Vec<T> {
        let mut tickets = Vec::new();
        for queue in &mut self.queues {
            queue.waiting.retain_mut(|(ticket, waiting)| {
                if *waiting != block {
                    return true;
                }
                tickets.push(ticket.clone());
                *waiting = instead.unwrap_or(block);
                instead.is_some()
            });
        }
        tickets
    }

    /// The last ticket of each stream: when these are reached, all are.
    pub(super) fn last(&self) -> Vec<T> {
        let last = self.queues.iter().filter_map(|queue| queue.waiting.back());
        last.map(|(ticket, _)| ticket.clone()).collect()
    }
}
