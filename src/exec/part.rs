//! What a stream has of a capture that it takes part in, and the points of such streams.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::branches::Clock;
use super::capture::Capture;
use super::permit::Call;
use super::stream::StreamCore;
use super::ticket::Ticket;
use crate::error::{Error, ErrorKind, Result};

/// A captured stream's part in its capture.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) capture: Arc<Capture>,
    pub(super) branch: usize,
}

/// A point of a stream: a ticket, or a place in a capture.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// Of a stream that nothing was ever put on.
    Nothing,
    Queued(Ticket),
    Captured(CapturedMark),
}

/// A point of a captured stream.
#[derive(Clone, Debug)]
pub(crate) struct CapturedMark {
    capture: Weak<Capture>,
    /// What comes before it.
    clock: Clock,
}

impl CapturedMark {
    pub(super) fn new(capture: &Arc<Capture>, clock: Clock) -> Self {
        Self {
            capture: Arc::downgrade(capture),
            clock,
        }
    }
}

impl Mark {
    /// Whether nothing leads to it.
    pub(crate) fn leads_nowhere(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// The ticket.
    ///
    /// # Errors
    ///
    /// `Capture` for a point of a capture: it is reached at each replay anew.
    pub(crate) fn ticket(&self) -> Result<&Ticket> {
        static NOTHING: Ticket = Ticket::REACHED;
        match self {
            Self::Nothing => Ok(&NOTHING),
            Self::Queued(ticket) => Ok(ticket),
            Self::Captured(_) => Err(Error::new(
                ErrorKind::Capture,
                "the event was recorded in a graph capture, where it only orders what is captured; record \
                 it again, behind the replay, to wait for it or to ask about it",
            )),
        }
    }
}

impl StreamCore {
    /// The capture that the stream takes part in.
    pub(crate) fn capture(&self) -> Option<Arc<Capture>> {
        if !self.is_captured() {
            return None;
        }
        let state = self.state.lock();
        state.part.as_ref().map(|part| Arc::clone(&part.capture))
    }

    /// Whether it takes part in one.
    pub(crate) fn is_captured(&self) -> bool {
        self.is_captured.load(Ordering::Acquire)
    }

    pub(crate) fn check_not_captured(&self, call: Call) -> Result<()> {
        match self.capture() {
            None => Ok(()),
            Some(capture) => Err(Error::new(
                ErrorKind::Capture,
                format!(
                    "{call}: stream {} is captured already, by the capture {}; end that one first",
                    self.id(),
                    capture.place()
                ),
            )
            .with_details(call.against(&capture))),
        }
    }

    /// Has what is put on the stream captured from here on.
    pub(super) fn take_part(
        &self,
        capture: &Arc<Capture>,
        behind: &Clock,
        call: Call,
    ) -> Result<()> {
        let stream = self.strong().ok_or_else(ended)?;
        let mut state = self.state.lock();
        if state.part.is_some() {
            drop(state);
            return self.check_not_captured(call).and_then(|()| Err(ended()));
        }
        let branch = capture.join(stream, behind)?;
        state.part = Some(Part {
            capture: Arc::clone(capture),
            branch,
        });
        self.is_captured.store(true, Ordering::Release);
        Ok(())
    }

    /// Has what is put on the stream queued again.
    pub(super) fn leave(&self, capture: &Capture) {
        let mut state = self.state.lock();
        let is_of = |part: &Part| part.capture.id() == capture.id();
        let part = state.part.take_if(|part| is_of(part));
        self.is_captured
            .store(state.part.is_some(), Ordering::Release);
        drop(state);
        drop(part);
    }

    /// Has all commands to come wait for a point of a capture, and be captured too.
    pub(super) fn wait_captured(&self, mark: &CapturedMark, call: Call) -> Result<()> {
        let capture = mark.capture.upgrade().ok_or_else(ended)?;
        let part = self.state.lock().part.clone();
        match part {
            Some(part) if part.capture.id() == capture.id() => {
                capture.merge(part.branch, &mark.clock)
            }
            Some(part) => {
                let error = Error::new(
                    ErrorKind::Capture,
                    format!(
                        "{call}: the event is of the capture {}, and stream {} is captured by another, {}; one \
                         graph can't wait for a point inside of another",
                        capture.place(),
                        self.id(),
                        part.capture.place()
                    ),
                )
                .with_details(call.against(&part.capture));
                part.capture.fail(&error);
                Err(error)
            }
            None => {
                self.flush()?;
                self.take_part(&capture, &mark.clock, call)
            }
        }
    }
}

#[cold]
pub(super) fn ended() -> Error {
    Error::new(
        ErrorKind::Capture,
        "the capture that this belongs to has ended; an event that was recorded in it only orders what \
         was captured with it",
    )
}
