//! The pacer: one thread per opened device that submits what streams leave open.
//!
//! A recording stays open while the lane is busy, so that many commands share one submission. If
//! nobody else seals it, the pacer does once the lane has run dry. It sleeps otherwise.

use core::time::Duration;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use super::stream::StreamCore;
use crate::base::fork;
use crate::base::sync::{Condvar, Mutex};
use crate::vk::Lane;

/// The longest that an open recording waits for others to join while the lane is busy.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long the driver is left alone after it could not take a submission.
const RETRY: Duration = Duration::from_millis(10);
/// How long a recording gets to grow on an idle lane before it is submitted.
const GROW: Duration = Duration::from_micros(200);

#[derive(Debug)]
pub(super) struct Pacer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    lane: Weak<Lane>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    watched: Vec<Weak<StreamCore>>,
    started: bool,
    stopped: bool,
}

impl Pacer {
    pub(super) fn new(lane: &Arc<Lane>) -> Self {
        Self {
            shared: Arc::default(),
            thread: Mutex::new(None),
            lane: Arc::downgrade(lane),
        }
    }

    /// Sees to it that the stream's open recording is submitted in time.
    pub(super) fn watch(&self, stream: Weak<StreamCore>) {
        let mut state = self.shared.state.lock();
        state.watched.push(stream);
        let start = !core::mem::replace(&mut state.started, true);
        drop(state);
        self.shared.wake.notify_all();
        if start {
            self.start();
        }
    }

    fn start(&self) {
        let shared = Arc::clone(&self.shared);
        let lane = Weak::clone(&self.lane);
        let thread = thread::Builder::new()
            .name("vkaccel-pacer".to_owned())
            .spawn(move || run(&shared, &lane));
        match thread {
            Ok(thread) => *self.thread.lock() = Some(thread),
            // Without a thread, recordings are sealed by bounds and by whoever waits; the next
            // stream to be watched tries again.
            Err(_) => self.shared.state.lock().started = false,
        }
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.shared.state.lock().stopped = true;
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

fn run(shared: &Shared, lane: &Weak<Lane>) {
    loop {
        let mut state = shared.state.lock();
        while state.watched.is_empty() && !state.stopped {
            state = shared.wake.wait(state);
        }
        if state.stopped {
            return;
        }
        // The streams stay in the list while they grow, so that they are not watched twice.
        state = shared.wake.wait_timeout(state, GROW);
        drop(state);
        if fork::in_background(|| wait_until_dry(lane)).is_none() {
            return;
        }
        let watched = core::mem::take(&mut shared.state.lock().watched);
        let mut left = Vec::new();
        for stream in watched {
            // An error is kept by the device or the stream and meets its next user.
            let paced = || stream.upgrade().is_none_or(|stream| stream.pace());
            match fork::in_background(paced) {
                Some(true) => {}
                Some(false) => left.push(stream),
                None => return,
            }
        }
        if !left.is_empty() {
            let mut state = shared.state.lock();
            state.watched.append(&mut left);
            drop(shared.wake.wait_timeout(state, RETRY));
        }
    }
}

/// Waits a moment for the lane to run dry.
fn wait_until_dry(lane: &Weak<Lane>) {
    if let Some(lane) = lane.upgrade() {
        // A loss is found again by whoever uses the device next.
        let _ = lane.wait(lane.last(), Some(LOOK_AGAIN));
    }
}
