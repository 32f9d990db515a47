//! The pacer: one thread per opened device that submits what streams leave open.
//!
//! A recording stays open while its lane is busy, so that many commands share one submission. If
//! nobody else seals it, the pacer does once that lane has run dry. It also runs host callbacks. It
//! sleeps otherwise.

use core::mem::ManuallyDrop;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::callback::{self, Callback};
use super::stream::StreamCore;
use crate::base::fork;
use crate::base::sync::{Condvar, Mutex};
use crate::error::{Error, ErrorKind, Result};

/// The longest that an open recording waits for others to join while its lane is busy.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long the driver is left alone after it could not take a submission.
const RETRY: Duration = Duration::from_millis(10);
/// How long a recording gets to grow on an idle lane before it is submitted.
const GROW: Duration = Duration::from_micros(200);

#[derive(Debug, Default)]
pub(super) struct Pacer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    watched: Vec<Weak<StreamCore>>,
    callbacks: VecDeque<Callback>,
    started: bool,
    stopped: bool,
}

impl Pacer {
    /// Sees to it that the stream's open recording is submitted in time; false if it could not be started.
    ///
    /// Called once until it has done so: waking a thread costs more than many launches.
    pub(super) fn watch(&self, stream: Weak<StreamCore>) -> bool {
        self.give(|state| {
            // It may be there from a time when the thread could not be started.
            if !state.watched.iter().any(|known| known.ptr_eq(&stream)) {
                state.watched.push(stream);
            }
        })
    }

    /// Runs a callback once its point is reached.
    ///
    /// # Errors
    ///
    /// `ShutDown` if the thread has ended or is about to.
    pub(super) fn call(&self, callback: Callback) -> Result<()> {
        let mut callback = Some(callback);
        self.give(|state| {
            if !state.stopped {
                state.callbacks.extend(callback.take());
            }
        });
        callback.map_or(Ok(()), |late| {
            late.give_up();
            Err(stopped())
        })
    }

    fn give(&self, give: impl FnOnce(&mut State)) -> bool {
        let mut state = self.shared.state.lock();
        give(&mut state);
        let start = !core::mem::replace(&mut state.started, true);
        drop(state);
        self.shared.wake.notify_all();
        !start || self.start()
    }

    fn start(&self) -> bool {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new()
            .name("vkaccel-pacer".to_owned())
            .spawn(move || run(&shared));
        match thread {
            Ok(thread) => {
                *self.thread.lock() = Some(thread);
                true
            }
            // Without a thread, recordings are sealed by bounds and by whoever waits; the next
            // stream to be watched tries again.
            Err(_) => {
                self.shared.state.lock().started = false;
                false
            }
        }
    }

    /// Lets go of the thread without a word, where it may not be there: in a forked child, in which the
    /// system may have given its place to another.
    pub(super) fn forget(&mut self) {
        let _leaked = ManuallyDrop::new(self.thread.get_mut().take());
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        let mut state = self.shared.state.lock();
        state.stopped = true;
        // Where it could never be started, nobody else drops them, and what they hold may hold the device.
        let left = match state.started {
            true => VecDeque::new(),
            false => core::mem::take(&mut state.callbacks),
        };
        drop(state);
        left.into_iter().for_each(Callback::give_up);
        self.shared.wake.notify_all();
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        // It may itself be the one that drops the device's last stream.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}

#[cold]
fn stopped() -> Error {
    Error::new(
        ErrorKind::ShutDown,
        "the runtime of this stream was shut down while this thread gave the stream a callback",
    )
}

fn run(shared: &Shared) {
    // Those whose points are not reached yet.
    let mut callbacks = VecDeque::new();
    // Takes turns with the list of the streams that are watched, which so keeps its room.
    let mut watched = Vec::new();
    loop {
        let mut state = shared.state.lock();
        while state.watched.is_empty()
            && state.callbacks.is_empty()
            && callbacks.is_empty()
            && !state.stopped
        {
            state = shared.wake.wait(state);
        }
        callbacks.append(&mut state.callbacks);
        if state.stopped {
            break;
        }
        if !state.watched.is_empty() {
            // The streams stay in the list while they grow.
            state = shared.wake.wait_timeout(state, GROW);
        }
        core::mem::swap(&mut watched, &mut state.watched);
        drop(state);
        let Some(mut left) = pace(watched.drain(..)) else {
            return;
        };
        if callback::run_reached(&mut callbacks).is_none() {
            return;
        }
        if let Some(next) = callbacks.front() {
            let waited = fork::in_background(|| next.ticket().wait_a_moment(LOOK_AGAIN));
            if waited.is_none() {
                return;
            }
        }
        if !left.is_empty() {
            let mut state = shared.state.lock();
            state.watched.append(&mut left);
            drop(shared.wake.wait_timeout(state, RETRY));
        }
    }
    // What is reached by now still runs.
    let _ = callback::run_reached(&mut callbacks);
    callbacks.into_iter().for_each(Callback::give_up);
}

/// Submits what streams have left open, each once its lane has run dry or after a while; gives
/// those that have something left. Nothing if the process is ending.
fn pace(watched: impl Iterator<Item = Weak<StreamCore>>) -> Option<Vec<Weak<StreamCore>>> {
    let until = Instant::now() + LOOK_AGAIN;
    let mut busy = Vec::new();
    let mut left = Vec::new();
    // An error is kept by the device or the stream and meets its next user.
    for stream in watched {
        let paced = || match stream.upgrade() {
            // Somebody else has submitted it: no reason to wait for the driver.
            Some(core) if core.is_settled() => Some(true),
            Some(core) if !core.is_lane_dry(Duration::ZERO) => None,
            Some(core) => Some(core.pace()),
            None => Some(true),
        };
        match fork::in_background(paced)? {
            Some(true) => {}
            Some(false) => left.push(stream),
            None => busy.push(stream),
        }
    }
    for stream in busy {
        let paced = || {
            stream.upgrade().is_none_or(|core| {
                core.is_lane_dry(until.saturating_duration_since(Instant::now()));
                core.pace()
            })
        };
        if !fork::in_background(paced)? {
            left.push(stream);
        }
    }
    Some(left)
}
