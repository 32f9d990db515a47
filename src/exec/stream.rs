//! The opened form of a stream: its open recording, what it has in flight, its order.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};

use super::callback;
use super::device::ExecDevice;
use super::hazard::{Planner, Use};
use super::losses::{Loss, Losses};
use super::part::Part;
use super::recording::{Finished, Recording};
use super::sink::Sink;
use super::submit::Seal;
use super::ticket::Points;
use crate::base::sync::Mutex;
use crate::error::{Error, Result};
use crate::vk::{Device, Lane, Segment};

/// The most commands that wait for their submission.
pub(super) const BATCH_MAX: u32 = 256;
/// How many times as many they are each time: a submission costs as much as dozens of launches, but a device
/// that runs one batch should get the next in time.
const BATCH_GROWTH: u32 = 4;
/// The most sealed recordings that wait for it.
const SEALED_MAX: usize = 32;

/// In place of the number of a recording, of which no stream has it: the commands were captured.
pub(crate) const CAPTURED: u64 = 0;

/// An in-order sequence of commands on a lane.
#[derive(Debug)]
pub(crate) struct StreamCore {
    id: u64,
    /// The lane that all its commands go to.
    pub(super) lane: Arc<Lane>,
    pub(super) state: Mutex<State>,
    /// Whether a scope of independent launches is open, readable without the lock.
    pub(super) has_scope: AtomicBool,
    /// Whether the stream takes part in a capture, readable without the lock.
    pub(super) is_captured: AtomicBool,
    pub(super) exec: Arc<ExecDevice>,
    pub(super) me: Weak<Self>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) open: Option<Box<Recording>>,
    /// Ended recordings that are not submitted yet, oldest first.
    pub(super) sealed: VecDeque<Box<Recording>>,
    /// How many commands these hold.
    pub(super) sealed_count: u32,
    /// Recordings that could not be ended.
    pub(super) losses: Losses,
    /// Lists what the stream has done since its last barrier, also in recordings that are submitted
    /// or have finished: what the host has seen finish is not ordered on the device.
    pub(super) planner: Planner,
    /// Whether a barrier that the planner counts on was in a recording that is lost.
    pub(super) lacks_barrier: bool,
    /// The thread that has opened a scope of independent launches, and how often.
    pub(super) apart: Option<(ThreadId, u32)>,
    /// The number of that scope, for what is captured in it.
    pub(super) apart_number: u64,
    /// The capture that takes what is put on the stream.
    pub(super) part: Option<Part>,
    /// Whether the pacer is going to submit what waits for it.
    pub(super) is_watched: bool,
    pub(super) in_flight: VecDeque<InFlight>,
    /// For tickets behind recordings to come.
    pub(super) points: Points,
    /// How many commands seal a recording; grows until somebody waits.
    pub(super) batch: u32,
    /// The number of the newest recording, the open one if there is one; from 1.
    newest: u64,
}

/// A submitted recording.
#[derive(Debug)]
pub(super) struct InFlight {
    /// The lane's value that says it has finished.
    pub(super) value: u64,
    pub(super) recording: Box<Recording>,
}

impl State {
    /// Takes note of a result that the caller of the stream gets.
    pub(super) fn hand_on(&mut self, result: &Result<()>) {
        if result.is_err() {
            self.losses.told();
        }
    }

    /// Whether anything waits for its submission.
    pub(super) fn has_waiting(&self) -> bool {
        self.open.is_some() || !self.sealed.is_empty()
    }

    /// Whether the thread has opened a scope of independent launches.
    pub(super) fn is_apart(&self) -> bool {
        let of = self.apart.as_ref();
        of.is_some_and(|(of, _)| *of == thread::current().id())
    }

    /// How many commands wait for their submission.
    fn waiting(&self) -> u32 {
        self.sealed_count + self.open.as_ref().map_or(0, |open| open.count)
    }
}

impl StreamCore {
    /// A stream with a number that no other stream of the process has, which goes to the lane that
    /// `place` says: 0 for a default stream, then counted by device.
    pub(crate) fn new(exec: &Arc<ExecDevice>, id: u64, place: usize) -> Arc<Self> {
        let stream = Arc::new_cyclic(|me| Self {
            id,
            lane: Arc::clone(exec.lane_at(place)),
            state: Mutex::new(State {
                open: None,
                sealed: VecDeque::new(),
                sealed_count: 0,
                losses: Losses::default(),
                planner: Planner::new(),
                lacks_barrier: false,
                apart: None,
                apart_number: 0,
                part: None,
                is_watched: false,
                in_flight: VecDeque::new(),
                points: Points::default(),
                batch: 1,
                newest: 0,
            }),
            has_scope: AtomicBool::new(false),
            is_captured: AtomicBool::new(false),
            exec: Arc::clone(exec),
            me: Weak::clone(me),
        });
        exec.register(&stream);
        stream
    }

    /// The device that it is a stream of.
    pub(crate) fn device(&self) -> &Arc<Device> {
        self.exec.device()
    }

    /// The number that it was made with.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Records one command with the barrier that its uses call for.
    ///
    /// `record` is called with where it goes; all that the command uses must be retained there. Gives the
    /// number of the recording, for [`ticket`](Self::ticket); [`CAPTURED`] where it is captured instead.
    pub(crate) fn record(
        &self,
        uses: &[Use],
        record: impl FnOnce(&mut Sink<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.record_steps(&mut [(uses, Some(record))])
    }

    /// Records commands one after the other under one lock, each with its barrier.
    pub(crate) fn record_steps<F: FnOnce(&mut Sink<'_>) -> Result<()>>(
        &self,
        steps: &mut [(&[Use], Option<F>)],
    ) -> Result<u64> {
        self.change(|state, finished| {
            if let Some(part) = &state.part {
                part.capture.keep(part.branch, None, steps)?;
                state.split_captured_scope();
                return Ok(CAPTURED);
            }
            self.make_room(state, finished)?;
            let (recording, planner) = self.opened(state)?;
            let recorded = steps.iter_mut().try_for_each(|(uses, record)| {
                if let Some(barrier) = planner.access(uses) {
                    recording.commands.barrier(barrier);
                }
                recording.count += u32::from(record.is_some());
                record
                    .take()
                    .map_or(Ok(()), |record| record(&mut Sink::Queued(recording)))
            });
            let seq = recording.seq;
            // Whether or not this command could be recorded, those before it go their way.
            self.submit_when_full(state, finished)
                .and(recorded)
                .map(|()| seq)
        })
    }

    /// Changes what the stream has recorded, for a caller who is told what went wrong before; the
    /// pacer looks after what is left to be submitted.
    pub(super) fn change<R>(
        &self,
        change: impl FnOnce(&mut State, &mut Finished) -> Result<R>,
    ) -> Result<R> {
        self.exec.device().check()?;
        self.locked(|state, finished| {
            let result = match state.losses.tell() {
                Ok(()) => change(state, finished),
                Err(error) => Err(error),
            };
            if result.is_err() {
                state.losses.told();
            }
            if state.has_waiting() && !state.is_watched {
                state.is_watched = self.exec.watch(Weak::clone(&self.me));
            }
            result
        })
    }

    /// What could not be submitted makes way before more is taken.
    pub(super) fn make_room(&self, state: &mut State, finished: &mut Finished) -> Result<()> {
        if state.waiting() >= BATCH_MAX {
            self.submit_locked(state, finished, Seal::Size)?;
        }
        Ok(())
    }

    /// The open recording, or a new one.
    pub(super) fn opened<'a>(
        &self,
        state: &'a mut State,
    ) -> Result<(&'a mut Recording, &'a mut Planner)> {
        let State {
            open,
            planner,
            lacks_barrier,
            newest,
            ..
        } = state;
        let recording = match open {
            Some(recording) => recording,
            None => {
                let mut recording = self.exec.begin(&self.lane, *newest + 1)?;
                if core::mem::take(lacks_barrier) {
                    recording.commands.barrier(planner.barrier_all());
                }
                *newest += 1;
                open.insert(recording)
            }
        };
        Ok((recording, planner))
    }

    /// Submits what has gathered if it is enough.
    pub(super) fn submit_when_full(
        &self,
        state: &mut State,
        finished: &mut Finished,
    ) -> Result<()> {
        if state.waiting() < state.batch && state.sealed.len() < SEALED_MAX {
            return Ok(());
        }
        state.batch = (state.batch * BATCH_GROWTH).min(BATCH_MAX);
        self.submit_taken(state, finished, Seal::Size)
    }

    /// Submits commands that were taken, now or later.
    pub(super) fn submit_taken(
        &self,
        state: &mut State,
        finished: &mut Finished,
        cause: Seal,
    ) -> Result<()> {
        let submitted = self.submit_locked(state, finished, cause);
        // They go as soon as the driver lets them.
        let later = submitted.is_err() && !state.sealed.is_empty();
        if later && !self.exec.device().is_lost() {
            return Ok(());
        }
        submitted
    }

    /// Runs `f` on the state. What it finds finished is let go of behind the lock: that may free
    /// memory.
    pub(super) fn locked<R>(&self, f: impl FnOnce(&mut State, &mut Finished) -> R) -> R {
        let mut finished = Finished::default();
        let result = f(&mut self.state.lock(), &mut finished);
        self.exec.recycle(&self.lane, finished);
        result
    }

    /// The number of the newest recording.
    pub(crate) fn newest_seq(&self) -> u64 {
        self.state.lock().newest
    }

    /// An owner of the stream; none while it is being dropped.
    pub(crate) fn strong(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// Memory that stands in for buffers of no bytes, where something must be bound.
    pub(crate) fn stand_in(&self) -> Result<Arc<Segment>> {
        self.exec.stand_in()
    }

    /// Waits until all commands so far have finished; `false` if `timeout` ran out first.
    pub(crate) fn synchronize(&self, timeout: Option<Duration>) -> Result<bool> {
        callback::check()?;
        let Some(value) = self.submit_all()? else {
            return self.tell_found().map(|()| true);
        };
        let done = self.lane.wait(value, timeout)?;
        self.let_go();
        self.tell_found().map(|()| done)
    }

    /// Whether all commands so far have finished; submits them, and waits for nothing.
    pub(crate) fn query(&self) -> Result<bool> {
        let Some(value) = self.submit_all()? else {
            return self.tell_found().map(|()| true);
        };
        let done = self.lane.poll()? >= value;
        self.let_go();
        self.tell_found().map(|()| done)
    }

    /// Keeps an error for whoever uses the stream next.
    pub(super) fn blame(&self, error: Error) {
        self.state.lock().losses.blame(error);
    }

    /// Tells somebody who has waited what finished commands found wrong, once.
    pub(super) fn tell_found(&self) -> Result<()> {
        self.state.lock().losses.tell_found()
    }

    /// Lets go of what is known to have finished.
    pub(super) fn let_go(&self) {
        self.locked(|state, finished| self.retire(state, finished));
        self.exec.collect_orphans();
    }
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        if !self.device().may_call_driver() {
            return;
        }
        // What was recorded still runs, if the driver can be made to take it.
        let mut flushed = self.flush();
        if flushed.is_err() && self.exec.synchronize_lanes().is_ok() {
            flushed = self.flush();
        }
        let state = self.state.get_mut();
        if let Err(error) = flushed {
            for recording in state.sealed.iter().chain(&state.open) {
                recording.lose(Loss::new(&error));
            }
            self.exec.keep_failure(error);
        }
        if let Err(error) = state.losses.tell_found() {
            self.exec.keep_failure(error);
        }
        self.exec.adopt(&self.lane, state.in_flight.drain(..));
    }
}
