//! The opened form of a stream: its open recording, what it has in flight, its order.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::device::ExecDevice;
use super::hazard::{Planner, Use};
use super::losses::Losses;
use super::recording::Recording;
use super::ticket::Ticket;
use crate::base::{fork, sync::Mutex};
use crate::error::Result;
use crate::vk::Segment;

/// The most commands in one recording.
const BATCH_MAX: u32 = 256;
/// The most recordings of a stream in flight before it waits for the oldest.
const IN_FLIGHT_MAX: usize = 64;

/// An in-order sequence of commands on a lane.
#[derive(Debug)]
pub(crate) struct StreamCore {
    state: Mutex<State>,
    exec: Arc<ExecDevice>,
    me: Weak<Self>,
}

#[derive(Debug)]
struct State {
    open: Option<Recording>,
    /// An ended recording whose submission failed for want of memory; it goes first next time.
    sealed: Option<Recording>,
    /// Recordings that could not be ended.
    losses: Losses,
    planner: Planner,
    in_flight: VecDeque<InFlight>,
    /// How many commands seal a recording; doubles until somebody waits.
    batch: u32,
    /// The number of the newest recording, the open one if there is one; from 1.
    newest: u64,
}

impl State {
    /// Takes note of a result that the caller of the stream gets.
    fn hand_on(&mut self, result: &Result<()>) {
        if result.is_err() {
            self.losses.told();
        }
    }
}

/// A submitted recording.
#[derive(Debug)]
pub(super) struct InFlight {
    /// Its number in its stream.
    seq: u64,
    /// The lane's value that says it has finished.
    pub(super) value: u64,
    pub(super) recording: Recording,
}

impl StreamCore {
    pub(crate) fn new(exec: &Arc<ExecDevice>) -> Arc<Self> {
        let stream = Arc::new_cyclic(|me| Self {
            state: Mutex::new(State {
                open: None,
                sealed: None,
                losses: Losses::default(),
                planner: Planner::new(),
                in_flight: VecDeque::new(),
                batch: 1,
                newest: 0,
            }),
            exec: Arc::clone(exec),
            me: Weak::clone(me),
        });
        exec.register(&stream);
        stream
    }

    /// Records one command with the barrier that its uses call for.
    ///
    /// `record` is called with the open recording; all that the command uses must be retained in it.
    /// Gives the number of the recording, for [`ticket`](Self::ticket).
    pub(crate) fn record(
        &self,
        uses: &[Use],
        record: impl FnOnce(&mut Recording) -> Result<()>,
    ) -> Result<u64> {
        self.record_steps(&mut [(uses, Some(record))])
    }

    /// Records commands one after the other under one lock, each with its barrier.
    pub(crate) fn record_steps<F: FnOnce(&mut Recording) -> Result<()>>(
        &self,
        steps: &mut [(&[Use], Option<F>)],
    ) -> Result<u64> {
        self.exec.device().check()?;
        self.locked(|state, finished| {
            let result = match state.losses.tell() {
                Ok(()) => self.record_locked(state, steps, finished),
                told => told,
            };
            state.hand_on(&result);
            result.map(|()| state.newest)
        })
    }

    fn record_locked<F: FnOnce(&mut Recording) -> Result<()>>(
        &self,
        state: &mut State,
        steps: &mut [(&[Use], Option<F>)],
        finished: &mut Vec<Recording>,
    ) -> Result<()> {
        // What could not be submitted makes way before more is taken.
        let full = |open: &Recording| open.count >= BATCH_MAX;
        if state.open.as_ref().is_some_and(full) {
            self.submit_locked(state, finished)?;
        }
        let opened = state.open.is_none();
        let State {
            open,
            planner,
            newest,
            ..
        } = state;
        let recording = match open {
            Some(recording) => recording,
            None => {
                let mut recording = self.exec.begin()?;
                // Other streams may have submitted conflicting work that the host has seen finish;
                // being seen by the host orders nothing on the device.
                recording.commands.barrier(planner.barrier_all());
                *newest += 1;
                open.insert(recording)
            }
        };
        let recorded = steps.iter_mut().try_for_each(|(uses, record)| {
            if let Some(barrier) = planner.access(uses) {
                recording.commands.barrier(barrier);
            }
            recording.count += u32::from(record.is_some());
            record.take().map_or(Ok(()), |record| record(recording))
        });
        // Whether or not this command could be recorded, those before it go their way.
        if recording.count >= state.batch {
            state.batch = (state.batch * 2).min(BATCH_MAX);
            let submitted = self.submit_locked(state, finished);
            // The commands are taken: they go as soon as the driver lets them.
            let later = submitted.is_err() && state.sealed.is_some();
            if !later || self.exec.device().is_lost() {
                return submitted.and(recorded);
            }
            self.exec.watch(Weak::clone(&self.me));
            return recorded;
        }
        if opened {
            self.exec.watch(Weak::clone(&self.me));
        }
        recorded
    }

    /// Runs `f` on the state. What it finds finished is let go of behind the lock: that may free
    /// memory.
    fn locked<R>(&self, f: impl FnOnce(&mut State, &mut Vec<Recording>) -> R) -> R {
        let mut finished = Vec::new();
        let result = f(&mut self.state.lock(), &mut finished);
        self.exec.recycle(finished);
        result
    }

    /// Seals and submits what is open.
    pub(crate) fn flush(&self) -> Result<()> {
        let result = self.locked(|state, finished| {
            let told = state.losses.tell();
            let result = told.and(self.submit_locked(state, finished));
            state.hand_on(&result);
            result
        });
        self.exec.collect_orphans();
        result
    }

    /// The same, for a thread of our own: what goes wrong is kept for who uses the stream next.
    ///
    /// False if something is left that can be tried again.
    pub(super) fn pace(&self) -> bool {
        let is_left = self.locked(|state, finished| {
            let submitted = self.submit_locked(state, finished);
            submitted.is_err() && state.sealed.is_some()
        });
        self.exec.collect_orphans();
        !is_left || self.exec.device().is_lost()
    }

    fn submit_locked(&self, state: &mut State, finished: &mut Vec<Recording>) -> Result<()> {
        self.submit_sealed(state)?;
        if let Some(mut recording) = state.open.take() {
            if let Err(error) = recording.commands.end() {
                state.losses.add(state.newest, &error);
                finished.push(recording);
                return Err(error);
            }
            state.sealed = Some(recording);
            self.submit_sealed(state)?;
        }
        if state.in_flight.len() > IN_FLIGHT_MAX
            && let Some(oldest) = state.in_flight.front()
        {
            self.exec.lane().wait(oldest.value, None)?;
        }
        self.retire(state, finished);
        Ok(())
    }

    fn submit_sealed(&self, state: &mut State) -> Result<()> {
        let Some(recording) = state.sealed.take() else {
            return Ok(());
        };
        match self.exec.lane().submit(&recording.commands) {
            Ok(value) => {
                // Whatever was opened since, a sealed recording is the newest or the one before it.
                let seq = state.newest - u64::from(state.open.is_some());
                state.in_flight.push_back(InFlight {
                    seq,
                    value,
                    recording,
                });
                Ok(())
            }
            Err(error) => {
                state.sealed = Some(recording);
                Err(error)
            }
        }
    }

    /// Moves what is known to have finished out of the state.
    fn retire(&self, state: &mut State, finished: &mut Vec<Recording>) {
        let reached = self.exec.lane().known_reached();
        while state
            .in_flight
            .front()
            .is_some_and(|work| work.value <= reached)
        {
            finished.extend(state.in_flight.pop_front().map(|work| work.recording));
        }
    }

    /// Memory that stands in for buffers of no bytes, where something must be bound.
    pub(crate) fn stand_in(&self) -> Result<Arc<Segment>> {
        self.exec.stand_in()
    }

    /// The point behind recording `seq`.
    pub(crate) fn ticket(self: &Arc<Self>, seq: u64) -> Ticket {
        Ticket::new(Arc::clone(self), seq)
    }

    /// Waits until all commands so far have finished; `false` if `timeout` ran out first.
    pub(crate) fn synchronize(&self, timeout: Option<Duration>) -> Result<bool> {
        self.wait_for(u64::MAX, timeout)
    }

    /// Waits until recording `seq` and those before it have finished; `false` if `timeout` ran out.
    pub(super) fn wait_for(&self, seq: u64, timeout: Option<Duration>) -> Result<bool> {
        let Some(value) = self.submit_up_to(seq)? else {
            return Ok(true);
        };
        let done = self.exec.lane().wait(value, timeout)?;
        self.let_go();
        Ok(done)
    }

    /// Whether recording `seq` and those before it have finished; submits them, waits for nothing.
    pub(super) fn has_finished(&self, seq: u64) -> Result<bool> {
        let Some(value) = self.submit_up_to(seq)? else {
            return Ok(true);
        };
        let done = self.exec.lane().poll()? >= value;
        self.let_go();
        Ok(done)
    }

    /// Whether all commands so far have finished; submits them, and waits for nothing.
    pub(crate) fn query(&self) -> Result<bool> {
        self.has_finished(u64::MAX)
    }

    /// Submits recordings up to `seq`, and gives the value to wait for, if any is in flight.
    fn submit_up_to(&self, seq: u64) -> Result<Option<u64>> {
        self.exec.device().check()?;
        self.locked(|state, finished| {
            state.batch = 1;
            let is_open = state.open.is_some() && state.newest <= seq;
            if is_open || state.sealed.is_some() {
                let submitted = self.submit_locked(state, finished);
                state.hand_on(&submitted);
                submitted?;
            }
            match seq {
                u64::MAX => state.losses.tell()?,
                _ => state.losses.of(seq)?,
            }
            let in_flight = state.in_flight.iter();
            Ok(in_flight
                .rev()
                .find(|work| work.seq <= seq)
                .map(|work| work.value))
        })
    }

    /// Lets go of what is known to have finished.
    pub(super) fn let_go(&self) {
        self.locked(|state, finished| self.retire(state, finished));
        self.exec.collect_orphans();
    }
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        if !fork::may_call_driver() {
            return;
        }
        // What was recorded still runs, if the driver can be made to take it.
        let mut flushed = self.flush();
        if flushed.is_err() && self.exec.synchronize_lane().is_ok() {
            flushed = self.flush();
        }
        if let Err(error) = flushed {
            self.exec.keep_failure(error);
        }
        let state = self.state.get_mut();
        self.exec.adopt(state.in_flight.drain(..));
    }
}
