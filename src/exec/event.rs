//! Points of a stream, and streams that wait for points of others.

use std::sync::Arc;

use super::callback::Callback;
use super::part::Mark;
use super::permit::Call;
use super::recording::{Finished, Recording};
use super::stream::{State, StreamCore};
use super::submit::Seal;
use super::ticket::{Points, Ticket};
use crate::error::Result;
use crate::vk::{Lane, Stamp};

/// The time of a point, on its lane's clock.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    pub(crate) stamp: Arc<Stamp>,
    /// How many bits of it are meaningful.
    pub(crate) valid_bits: u32,
    /// The number of the lane.
    pub(crate) lane: usize,
}

impl StreamCore {
    /// The point behind recording `seq`.
    pub(crate) fn ticket(&self, seq: u64) -> Ticket {
        let mut state = self.state.lock();
        let State {
            open,
            sealed,
            in_flight,
            losses,
            points,
            ..
        } = &mut *state;
        let waiting = open.iter_mut().chain(sealed);
        if let Some(recording) = waiting.into_iter().find(|one| one.seq == seq) {
            return self.ticket_of(recording, points, None);
        }
        if let Some(work) = in_flight.iter_mut().find(|work| work.recording.seq == seq) {
            return self.ticket_of(&mut work.recording, points, Some(work.value));
        }
        // Else it has finished.
        losses.of(seq).map_or(Ticket::REACHED, |loss| {
            let point = points.take(self, seq);
            point.lose(loss.clone());
            Ticket::new(point)
        })
    }

    /// A point behind all commands so far, and behind those that join them before they are sealed.
    ///
    /// Takes the stream's lock.
    pub(crate) fn newest(&self) -> Ticket {
        self.newest_in(&mut self.state.lock())
    }

    fn newest_in(&self, state: &mut State) -> Ticket {
        let State {
            open,
            sealed,
            in_flight,
            points,
            ..
        } = state;
        if let Some(recording) = open.as_mut().or_else(|| sealed.back_mut()) {
            return self.ticket_of(recording, points, None);
        }
        in_flight.back_mut().map_or(Ticket::REACHED, |work| {
            self.ticket_of(&mut work.recording, points, Some(work.value))
        })
    }

    /// The ticket behind a recording, which was submitted with `value` if there is one.
    fn ticket_of(
        &self,
        recording: &mut Recording,
        points: &mut Points,
        value: Option<u64>,
    ) -> Ticket {
        let point = recording.point(|seq| points.take(self, seq));
        if let Some(value) = value {
            point.submitted(value);
        }
        Ticket::new(Arc::clone(point))
    }

    /// A point behind all commands so far, and before all that come.
    pub(crate) fn mark(&self) -> Result<Mark> {
        self.change(|state, finished| match &state.part {
            Some(part) => part.capture.mark(part.branch).map(Mark::Captured),
            None => self.mark_locked(state, finished).map(Mark::Queued),
        })
    }

    /// The same with its time; without one in a capture, and where the queue of the stream writes none.
    pub(crate) fn mark_timed(&self) -> Result<(Mark, Option<Time>)> {
        let valid_bits = self.lane.plan().timestamp_valid_bits;
        if valid_bits == 0 || self.is_captured() {
            return Ok((self.mark()?, None));
        }
        let stamp = self.exec.stamp()?;
        let ticket = self.change(|state, finished| {
            let (recording, _) = self.opened(state)?;
            recording.commands.write_time(&stamp);
            recording.retain(&stamp);
            recording.count += 1;
            self.mark_locked(state, finished)
        })?;
        let time = Time {
            stamp,
            valid_bits,
            lane: self.lane.number(),
        };
        Ok((Mark::Queued(ticket), Some(time)))
    }

    fn mark_locked(&self, state: &mut State, finished: &mut Finished) -> Result<Ticket> {
        self.seal(state, finished, Seal::Event)?;
        let ticket = self.newest_in(state);
        self.submit_when_full(state, finished)?;
        Ok(ticket)
    }

    /// Runs a function on the pacer's thread once all commands so far have finished.
    pub(crate) fn call(&self, function: Box<dyn FnOnce() + Send>, call: Call) -> Result<()> {
        let ticket = loop {
            match self.mark()? {
                Mark::Queued(ticket) => break ticket,
                // Where another thread has ended the capture since, there is a point of the stream.
                Mark::Captured(_) | Mark::Nothing => self.permit_on_captured(call)?,
            }
        };
        self.exec
            .call(Callback::new(self, ticket, function, call.site))
    }

    /// Has all commands to come wait for a point of any stream of the device, itself included.
    ///
    /// Where the point is of a capture, the stream takes part in that from here on.
    pub(crate) fn wait(&self, mark: &Mark, call: Call) -> Result<()> {
        match mark {
            Mark::Captured(mark) => self.wait_captured(mark, call),
            Mark::Nothing => Ok(()),
            // Whether it is reached by now is chance, and a graph must not depend on that.
            Mark::Queued(ticket) => match self.capture() {
                Some(capture) => Err(capture.fails_by_outside(self.id(), call)),
                None => self.wait_queued(ticket),
            },
        }
    }

    /// Has all commands to come wait for a point that is reached once.
    ///
    /// What leads to the point is submitted before anything that waits for it, so that no order of
    /// waits can hang.
    pub(crate) fn wait_queued(&self, ticket: &Ticket) -> Result<()> {
        if ticket.is_of(&self.me) {
            return Ok(());
        }
        // This takes the other stream's lock, and gives it back before this one's is taken.
        let Some((lane, value)) = ticket.submitted()? else {
            return Ok(());
        };
        self.change(|state, finished| self.wait_locked(state, lane, value, finished))
    }

    fn wait_locked(
        &self,
        state: &mut State,
        lane: &Lane,
        value: u64,
        finished: &mut Finished,
    ) -> Result<()> {
        if value <= lane.known_reached() {
            // Every submission waits for what was seen reached of other lanes by then.
            return Ok(());
        }
        if lane.number() == self.lane.number() {
            // The other stream has submitted it: the lane puts a barrier before what this one submits
            // next. The recording is there for those who wait for this stream.
            self.opened(state)?;
            return Ok(());
        }
        if state.open.as_ref().is_some_and(|open| open.count > 0) {
            // Those commands need not wait.
            self.seal(state, finished, Seal::Wait)?;
        }
        let (recording, _) = self.opened(state)?;
        recording.waits.raise(lane.number(), value);
        self.submit_when_full(state, finished)
    }
}
