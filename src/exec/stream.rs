//! The opened form of a stream: its open recording, what it has in flight, its order.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::device::ExecDevice;
use super::hazard::{Planner, Use};
use super::losses::{Loss, Losses};
use super::recording::Recording;
use super::ticket::{Point, Ticket};
use crate::base::{fork, sync::Mutex};
use crate::error::Result;
use crate::vk::{Lane, Segment};

/// The most commands in one recording.
const BATCH_MAX: u32 = 256;
/// The most recordings of a stream in flight before it waits for the oldest.
const IN_FLIGHT_MAX: usize = 64;

/// An in-order sequence of commands on a lane.
#[derive(Debug)]
pub(crate) struct StreamCore {
    id: u64,
    /// The lane that all its commands go to.
    lane: Arc<Lane>,
    state: Mutex<State>,
    exec: Arc<ExecDevice>,
    me: Weak<Self>,
}

#[derive(Debug)]
struct State {
    open: Option<Recording>,
    /// Ended recordings that are not submitted yet, oldest first.
    sealed: VecDeque<Recording>,
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
    /// The lane's value that says it has finished.
    pub(super) value: u64,
    pub(super) recording: Recording,
}

impl StreamCore {
    /// A stream with a number that no other stream of the process has.
    pub(crate) fn new(exec: &Arc<ExecDevice>, id: u64) -> Arc<Self> {
        let stream = Arc::new_cyclic(|me| Self {
            id,
            lane: Arc::clone(exec.lane()),
            state: Mutex::new(State {
                open: None,
                sealed: VecDeque::new(),
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

    /// The number that it was made with.
    pub(crate) fn id(&self) -> u64 {
        self.id
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
                let mut recording = self.exec.begin(*newest + 1)?;
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
            let later = submitted.is_err() && !state.sealed.is_empty();
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
            submitted.is_err() && !state.sealed.is_empty()
        });
        self.exec.collect_orphans();
        !is_left || self.exec.device().is_lost()
    }

    fn submit_locked(&self, state: &mut State, finished: &mut Vec<Recording>) -> Result<()> {
        // What could not be submitted before goes first.
        self.submit_sealed(state)?;
        self.seal(state, finished)?;
        self.submit_sealed(state)?;
        if state.in_flight.len() > IN_FLIGHT_MAX
            && let Some(oldest) = state.in_flight.front()
        {
            self.lane.wait(oldest.value, None)?;
        }
        self.retire(state, finished);
        Ok(())
    }

    /// Ends the open recording.
    fn seal(&self, state: &mut State, finished: &mut Vec<Recording>) -> Result<()> {
        let Some(mut recording) = state.open.take() else {
            return Ok(());
        };
        if let Err(error) = recording.commands.end() {
            state.losses.add(recording.seq, &error);
            recording.lose(Loss::new(&error));
            finished.push(recording);
            return Err(error);
        }
        state.sealed.push_back(recording);
        Ok(())
    }

    fn submit_sealed(&self, state: &mut State) -> Result<()> {
        while let Some(recording) = state.sealed.pop_front() {
            match self.lane.submit(&recording.commands) {
                Ok(value) => {
                    recording.submitted(value);
                    state.in_flight.push_back(InFlight { value, recording });
                }
                Err(error) => {
                    state.sealed.push_front(recording);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Moves what is known to have finished out of the state.
    fn retire(&self, state: &mut State, finished: &mut Vec<Recording>) {
        let reached = self.lane.known_reached();
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
    pub(crate) fn ticket(&self, seq: u64) -> Ticket {
        let mut state = self.state.lock();
        let State {
            open,
            sealed,
            in_flight,
            losses,
            ..
        } = &mut *state;
        let waiting = open.iter_mut().chain(sealed);
        if let Some(recording) = waiting.into_iter().find(|one| one.seq == seq) {
            return self.ticket_of(recording, None);
        }
        if let Some(work) = in_flight.iter_mut().find(|work| work.recording.seq == seq) {
            return self.ticket_of(&mut work.recording, Some(work.value));
        }
        // Else it has finished.
        losses.of(seq).map_or(Ticket::REACHED, |loss| {
            let point = self.new_point(seq);
            point.lose(loss.clone());
            Ticket::new(point)
        })
    }

    /// A point behind all commands so far.
    ///
    /// Takes the stream's lock.
    pub(crate) fn newest(&self) -> Ticket {
        let mut state = self.state.lock();
        let State {
            open,
            sealed,
            in_flight,
            ..
        } = &mut *state;
        if let Some(recording) = open.as_mut().or_else(|| sealed.back_mut()) {
            return self.ticket_of(recording, None);
        }
        in_flight.back_mut().map_or(Ticket::REACHED, |work| {
            self.ticket_of(&mut work.recording, Some(work.value))
        })
    }

    /// The ticket behind a recording, which was submitted with `value` if there is one.
    fn ticket_of(&self, recording: &mut Recording, value: Option<u64>) -> Ticket {
        let point = recording.point(|seq| self.new_point(seq));
        if let Some(value) = value {
            point.submitted(value);
        }
        Ticket::new(Arc::clone(point))
    }

    fn new_point(&self, seq: u64) -> Arc<Point> {
        Point::new(Weak::clone(&self.me), &self.lane, seq)
    }

    /// Waits until all commands so far have finished; `false` if `timeout` ran out first.
    pub(crate) fn synchronize(&self, timeout: Option<Duration>) -> Result<bool> {
        let Some(value) = self.submit_all()? else {
            return Ok(true);
        };
        let done = self.lane.wait(value, timeout)?;
        self.let_go();
        Ok(done)
    }

    /// Whether all commands so far have finished; submits them, and waits for nothing.
    pub(crate) fn query(&self) -> Result<bool> {
        let Some(value) = self.submit_all()? else {
            return Ok(true);
        };
        let done = self.lane.poll()? >= value;
        self.let_go();
        Ok(done)
    }

    /// Submits all, and gives the value to wait for, if anything is in flight.
    fn submit_all(&self) -> Result<Option<u64>> {
        self.exec.device().check()?;
        self.locked(|state, finished| {
            state.batch = 1;
            let submitted = self.submit_locked(state, finished);
            state.hand_on(&submitted);
            submitted?;
            state.losses.tell()?;
            Ok(state.in_flight.back().map(|work| work.value))
        })
    }

    /// Submits recordings up to `seq`, which somebody is about to wait for or not.
    pub(super) fn submit_up_to(&self, seq: u64, is_waited_for: bool) -> Result<()> {
        self.locked(|state, finished| {
            if is_waited_for {
                state.batch = 1;
            }
            let is_open = state.open.as_ref().is_some_and(|open| open.seq <= seq);
            if !is_open && state.sealed.is_empty() {
                return Ok(());
            }
            let submitted = self.submit_locked(state, finished);
            state.hand_on(&submitted);
            submitted
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
        let state = self.state.get_mut();
        if let Err(error) = flushed {
            for recording in state.sealed.iter().chain(&state.open) {
                recording.lose(Loss::new(&error));
            }
            self.exec.keep_failure(error);
        }
        self.exec.adopt(state.in_flight.drain(..));
    }
}
