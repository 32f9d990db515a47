//! How recordings of a stream are sealed, submitted and let go of.

use core::time::Duration;

use super::losses::Loss;
use super::recording::Finished;
use super::stream::{InFlight, State, StreamCore};
use crate::error::Result;

/// The most recordings of a stream in flight before it waits for the older half of them.
pub(super) const IN_FLIGHT_MAX: usize = 64;

/// Why a recording is sealed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seal {
    /// It has enough commands.
    Size,
    /// An event stands behind it.
    Event,
    /// What follows waits for another stream.
    Wait,
    /// Somebody waits for it, or asks whether it has finished.
    Host,
    /// It was asked for.
    Flush,
    /// A replay stands at its end.
    Replay,
    /// Nobody else did it in time.
    Pacer,
}

impl StreamCore {
    /// Seals and submits what is open.
    pub(crate) fn flush(&self) -> Result<()> {
        let result = self.locked(|state, finished| {
            let told = state.losses.tell();
            let result = told.and(self.submit_locked(state, finished, Seal::Flush));
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
        let _letting_go = self.exec.begin_letting_go();
        let is_left = self.locked(|state, finished| {
            let submitted = self.submit_locked(state, finished, Seal::Pacer);
            let is_left = submitted.is_err() && !state.sealed.is_empty();
            state.is_watched = is_left && !self.exec.device().is_lost();
            state.is_watched
        });
        self.exec.collect_orphans();
        !is_left
    }

    /// Whether nothing waits for its submission, so that the pacer may forget it until something does.
    pub(super) fn is_settled(&self) -> bool {
        let mut state = self.state.lock();
        state.is_watched = state.has_waiting();
        !state.is_watched
    }

    /// Whether all that was submitted to its lane has finished, or does so in this time.
    pub(super) fn is_lane_dry(&self, timeout: Duration) -> bool {
        let last = self.lane.last();
        let dry = if timeout.is_zero() {
            self.lane.poll().map(|reached| reached >= last)
        } else {
            self.lane.wait(last, Some(timeout))
        };
        // A loss is found again by whoever uses the device next.
        dry.unwrap_or(true)
    }

    /// Submits all, and gives the value to wait for, if anything is in flight.
    pub(super) fn submit_all(&self) -> Result<Option<u64>> {
        self.exec.device().check()?;
        self.locked(|state, finished| {
            state.batch = 1;
            let submitted = self.submit_locked(state, finished, Seal::Host);
            state.hand_on(&submitted);
            submitted?;
            state.losses.tell()?;
            Ok(state.in_flight.back().map(|work| work.value))
        })
    }

    /// Submits recordings up to `seq`, which somebody is about to wait for or not.
    pub(super) fn submit_up_to(&self, seq: u64, is_waited_for: bool) -> Result<()> {
        self.locked(|state, finished| {
            let cause = if is_waited_for {
                state.batch = 1;
                Seal::Host
            } else {
                Seal::Flush
            };
            let is_open = state.open.as_ref().is_some_and(|open| open.seq <= seq);
            let submitted = if is_open {
                self.submit_locked(state, finished, cause)
            } else {
                self.submit_ended(state, finished)
            };
            state.hand_on(&submitted);
            submitted
        })
    }

    pub(super) fn submit_locked(
        &self,
        state: &mut State,
        finished: &mut Finished,
        cause: Seal,
    ) -> Result<()> {
        // Where the open recording is lost, those before it go their way.
        let sealed = self.seal(state, finished, cause);
        self.submit_ended(state, finished)?;
        sealed
    }

    /// Submits what is sealed, and keeps the work in flight in its bound.
    fn submit_ended(&self, state: &mut State, finished: &mut Finished) -> Result<()> {
        self.submit_sealed(state)?;
        if state.in_flight.len() > IN_FLIGHT_MAX
            && let Some(work) = state.in_flight.get(IN_FLIGHT_MAX / 2)
        {
            // Waiting for the oldest alone, the stream would wait again each time.
            self.exec.device().counts().host_waits_in_flight.add(1);
            self.lane.wait(work.value, None)?;
        }
        self.retire(state, finished);
        Ok(())
    }

    /// Ends the open recording.
    pub(super) fn seal(
        &self,
        state: &mut State,
        finished: &mut Finished,
        cause: Seal,
    ) -> Result<()> {
        let Some(mut recording) = state.open.take() else {
            return Ok(());
        };
        if let Err(error) = recording.commands.end() {
            state.losses.add(recording.seq, &error);
            recording.lose(Loss::new(&error));
            state.lacks_barrier = true;
            finished.push(recording);
            return Err(error);
        }
        let counts = self.exec.device().counts();
        let count = match cause {
            Seal::Size => &counts.seals_by_size,
            Seal::Event => &counts.seals_by_event,
            Seal::Wait => &counts.seals_by_wait,
            Seal::Host => &counts.seals_by_host,
            Seal::Flush => &counts.seals_by_flush,
            Seal::Replay => &counts.seals_by_replay,
            Seal::Pacer => &counts.seals_by_pacer,
        };
        count.add(1);
        state.sealed_count += recording.count;
        state.sealed.push_back(recording);
        Ok(())
    }

    fn submit_sealed(&self, state: &mut State) -> Result<()> {
        while !state.sealed.is_empty() {
            let submissions = state.sealed.iter().map(|one| one.submission());
            let (first, count) = self.lane.submit(self.id(), submissions)?;
            for (recording, value) in state.sealed.drain(..count).zip(first..) {
                recording.submitted(value);
                state.sealed_count -= recording.count;
                state.in_flight.push_back(InFlight { value, recording });
            }
        }
        Ok(())
    }

    /// Moves what is known to have finished out of the state.
    pub(super) fn retire(&self, state: &mut State, finished: &mut Finished) {
        let reached = self.lane.known_reached();
        while state
            .in_flight
            .front()
            .is_some_and(|work| work.value <= reached)
        {
            let Some(InFlight { mut recording, .. }) = state.in_flight.pop_front() else {
                break;
            };
            if let Some(point) = recording.take_point() {
                state.points.keep(point);
            }
            if let Some(error) = recording.found() {
                state.losses.find(error);
            }
            finished.push(recording);
        }
    }
}
