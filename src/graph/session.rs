//! A capture under way, for the graph that it is to become.

use std::sync::Arc;

use super::pool::GraphPool;
use super::recorded::Recorded;
use crate::error::Result;
use crate::exec::capture::Strictness;
use crate::exec::{Call, Capture, StreamCore};

/// A capture under way; given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    capture: Arc<Capture>,
    stream: Arc<StreamCore>,
    pool: Arc<GraphPool>,
}

impl Session {
    /// Begins to capture a stream.
    ///
    /// # Errors
    ///
    /// `Capture` if the stream is captured already; those of submitting what it has.
    pub(crate) fn begin(
        stream: &Arc<StreamCore>,
        pool: Arc<GraphPool>,
        strictness: Strictness,
        call: Call,
    ) -> Result<Self> {
        let capture = Capture::begin(stream, pool.id(), strictness, call)?;
        Ok(Self {
            capture,
            stream: Arc::clone(stream),
            pool,
        })
    }

    /// Where it began, in words.
    pub(crate) fn place(&self) -> String {
        self.capture.place()
    }

    /// Ends it. With `keeps`, what was captured may be made into commands again and again; else it is made
    /// now.
    ///
    /// # Errors
    ///
    /// `Capture` if it has failed, or has streams that did not join again; those of making the commands.
    pub(crate) fn end(self, call: Call, keeps: bool) -> Result<Recorded> {
        let taken = self.capture.end(call)?;
        let recorded = Recorded::new(taken, &self.stream, Arc::clone(&self.pool))?;
        if !keeps {
            recorded.instantiate()?;
        }
        Ok(recorded)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // In a forked child, threads that are not there may hold locks for ever.
        if self.stream.device().may_call_driver() {
            // Nothing is left to give up of one that has ended.
            self.capture.abandon();
        }
    }
}
