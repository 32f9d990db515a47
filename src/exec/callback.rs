//! Host callbacks: functions of the program that run when a point of a stream is reached.

use core::cell::Cell;
use core::panic::Location;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;

use super::stream::StreamCore;
use super::ticket::Ticket;
use crate::base::fork;
use crate::error::{Error, ErrorKind, Result};

thread_local! {
    /// Whether the thread runs a callback.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The check that opens every wait of the program's for a device.
///
/// A callback runs on the thread that keeps streams going, so that it must not be held up there.
///
/// # Errors
///
/// [`ErrorKind::NotPermitted`] inside of a callback.
pub(crate) fn check() -> Result<()> {
    if INSIDE.try_with(Cell::get).unwrap_or(false) {
        return Err(Error::new(
            ErrorKind::NotPermitted,
            "a host callback may not wait for the device: it runs on the thread that keeps streams \
             going; send a message to a thread of your own and wait there",
        ));
    }
    Ok(())
}

/// A function that is to run once a point of its stream is reached.
pub(super) struct Callback {
    stream: Weak<StreamCore>,
    stream_id: u64,
    ticket: Ticket,
    function: Box<dyn FnOnce() + Send>,
    /// Where it was added.
    site: &'static Location<'static>,
}

impl core::fmt::Debug for Callback {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Callback")
            .field("stream", &self.stream_id)
            .finish_non_exhaustive()
    }
}

impl Callback {
    pub(super) fn new(
        stream: &StreamCore,
        ticket: Ticket,
        function: Box<dyn FnOnce() + Send>,
        site: &'static Location<'static>,
    ) -> Self {
        Self {
            stream: Weak::clone(&stream.me),
            stream_id: stream.id(),
            ticket,
            function,
            site,
        }
    }

    /// The point that it waits for.
    pub(super) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Drops it.
    pub(super) fn give_up(self) {
        let_go(self);
    }

    /// Runs it; a panic becomes an error of its stream.
    fn run(self) {
        let Self {
            stream,
            function,
            site,
            ..
        } = self;
        INSIDE.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(function));
        INSIDE.set(false);
        let panicked = panicked.map_err(|payload| {
            let text = message(&*payload);
            let_go(payload);
            text
        });
        // In a child that the function has forked, locks may be taken for ever.
        let stream = stream.upgrade();
        let Some(stream) = stream.filter(|stream| stream.device().may_call_driver()) else {
            return;
        };
        stream.exec.device().counts().callbacks.add(1);
        if let Err(text) = panicked {
            stream.blame(Error::new(
                ErrorKind::CallbackPanicked,
                format!(
                    "the host callback of this stream that was added at {site} panicked: {text}"
                ),
            ));
        }
    }
}

/// Drops what is the program's, and may panic then; so may what that panic leaves, and so on, which is
/// forgotten.
fn let_go<T>(thing: T) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(thing)));
    dropped.unwrap_or_else(core::mem::forget);
}

/// What a panic says.
fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    let text = payload.downcast_ref::<String>();
    text.map_or_else(|| "it gave no text".to_owned(), Clone::clone)
}

/// Runs those whose points are reached, in the order of each stream; the others stay.
///
/// Those whose points will never be reached, as the device or their commands were lost, are dropped. Nothing if the process is ending.
pub(super) fn run_reached(waiting: &mut VecDeque<Callback>) -> Option<()> {
    let mut held_up: Vec<u64> = Vec::new();
    for _ in 0..waiting.len() {
        let Some(callback) = waiting.pop_front() else {
            break;
        };
        if held_up.contains(&callback.stream_id) {
            waiting.push_back(callback);
            continue;
        }
        match fork::in_background(|| callback.ticket.poll())? {
            Ok(true) if !callback.ticket.is_lost() => callback.run(),
            Ok(false) => {
                held_up.push(callback.stream_id);
                waiting.push_back(callback);
            }
            // It will never be reached.
            _ => callback.give_up(),
        }
    }
    // The last of them may have forked, and this be the child.
    fork::in_background(|| ())
}
