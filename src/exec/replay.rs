//! Replays: commands that were recorded once and are submitted again and again.

use std::sync::Arc;

use super::hazard::{Barrier, Stages, Use};
use super::node::Node;
use super::recording::{Outcome, Recording};
use super::stream::{State, StreamCore};
use super::submit::Seal;
use crate::device::plan::LanePlan;
use crate::error::Result;
use crate::vk::command::{Region, Tally};
use crate::vk::{Commands, Device, Segment};

/// Commands that may be submitted while they run; they begin with a barrier behind all before them.
pub(crate) struct Body {
    commands: Commands,
    tally: Tally,
}

impl core::fmt::Debug for Body {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// One replay.
pub(crate) struct Replay<'a> {
    pub(crate) body: &'a Arc<Body>,
    /// What the body does with memory.
    pub(crate) uses: &'a [Use],
    /// What the body leaves for the host, and where that is copied to, for this replay alone.
    pub(crate) outcomes: &'a [(&'a dyn Outcome, Arc<dyn Outcome>)],
    /// Memory to be written before, and what with.
    pub(crate) arguments: Option<(&'a Arc<Segment>, &'a [u8])>,
}

impl Body {
    /// Records the nodes, in this order, each with the barrier before it.
    pub(crate) fn new<'a>(
        device: &Arc<Device>,
        lane: LanePlan,
        steps: impl Iterator<Item = (Option<Barrier>, &'a Node)>,
    ) -> Result<Self> {
        let mut commands = Commands::reusable(device, lane.family)?;
        commands.barrier(Barrier::ALL);
        for (barrier, node) in steps {
            if let Some(barrier) = barrier {
                commands.barrier(barrier);
            }
            node.record(&mut commands)?;
        }
        let tally = commands.end_uncounted()?;
        Ok(Self { commands, tally })
    }

    pub(super) fn commands(&self) -> &Commands {
        &self.commands
    }
}

impl StreamCore {
    /// The queue that the stream's commands go to.
    pub(crate) fn lane_plan(&self) -> LanePlan {
        self.lane.plan()
    }

    /// Puts a replay behind all commands so far, and submits it; what `kept` is lives until it has finished.
    ///
    /// Gives the number of its recording. An error means that the replay never runs, or that the device is
    /// lost.
    pub(crate) fn replay<T: Send + Sync + 'static>(
        &self,
        replay: &Replay<'_>,
        kept: &Arc<T>,
    ) -> Result<u64> {
        self.change(|state, finished| {
            self.make_room(state, finished)?;
            let (recording, planner) = self.opened(state)?;
            if let Some((segment, bytes)) = replay.arguments {
                // The replay before may still read them.
                recording.commands.barrier(planner.barrier_all());
                recording.commands.update(segment, 0, bytes);
            }
            planner.replace(replay.uses);
            recording.attach(replay.body, kept);
            let seq = recording.seq;
            let counts = self.exec.device().counts();
            replay.body.tally.count(counts);
            counts.replays.add(1);
            self.seal(state, finished, Seal::Replay)?;
            // From here on it runs, now or as soon as the driver lets it.
            let newest = self
                .take_outcomes(state, replay, kept)
                .unwrap_or_else(|error| {
                    let what = "what a replay has found can't be looked at";
                    state.losses.blame(error.context(what));
                    None
                });
            let seq = newest.unwrap_or(seq);
            match self.submit_locked(state, finished, Seal::Replay) {
                Err(error) if self.exec.device().is_lost() => Err(error),
                _ => Ok(seq),
            }
        })
    }
}

impl StreamCore {
    /// Copies what the replay leaves to where the next one does not write; gives the newest recording.
    ///
    /// The copies are of the graph's memory, which is given back with what `kept` is.
    fn take_outcomes<T: Send + Sync + 'static>(
        &self,
        state: &mut State,
        replay: &Replay<'_>,
        kept: &Arc<T>,
    ) -> Result<Option<u64>> {
        if replay.outcomes.is_empty() {
            return Ok(None);
        }
        let (recording, planner) = self.opened(state)?;
        recording.retain(kept);
        for (left, taken) in replay.outcomes {
            let ((src, from, end), (dst, to, to_end)) = (left.memory(), taken.memory());
            let read = Use::read(src.id(), from, end, Stages::TRANSFER);
            let write = Use::write(dst.id(), to, to_end, Stages::TRANSFER);
            let seen = Use::read(dst.id(), to, to_end, Stages::HOST);
            if let Some(barrier) = planner.access(&[read, write]) {
                recording.commands.barrier(barrier);
            }
            let region = Region {
                src: from,
                dst: to,
                len: end - from,
            };
            recording.commands.copy(src, dst, &[region]);
            if let Some(barrier) = planner.access(&[seen]) {
                recording.commands.barrier(barrier);
            }
            recording.retain(dst);
            recording.look_at(Arc::clone(taken));
            recording.count += 1;
        }
        Ok(Some(recording.seq))
    }
}

impl Recording {
    /// Puts the body behind its commands.
    fn attach<T: Send + Sync + 'static>(&mut self, body: &Arc<Body>, kept: &Arc<T>) {
        self.body = Some(Arc::clone(body));
        self.retain(kept);
        self.count += 1;
    }
}
