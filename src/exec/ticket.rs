//! Tickets: points of a stream that are reached or not.

use core::time::Duration;
use std::sync::Arc;

use super::stream::StreamCore;
use crate::error::Result;

/// A point behind some command of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    stream: Arc<StreamCore>,
    seq: u64,
}

impl Ticket {
    pub(super) fn new(stream: Arc<StreamCore>, seq: u64) -> Self {
        Self { stream, seq }
    }

    /// Whether it is reached; submits what leads to it, and waits for nothing.
    pub(crate) fn is_reached(&self) -> Result<bool> {
        self.stream.has_finished(self.seq)
    }

    /// Waits until it is reached; `false` if `timeout` ran out first.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        self.stream.wait_for(self.seq, timeout)
    }
}
