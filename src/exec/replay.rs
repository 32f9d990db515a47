//! Replays: commands that were recorded once and are submitted again and again.

use std::sync::Arc;

use super::hazard::{Barrier, Use};
use super::node::Node;
use super::recording::{Outcome, Recording};
use super::stream::StreamCore;
use super::submit::Seal;
use crate::device::plan::LanePlan;
use crate::error::Result;
use crate::vk::command::Tally;
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
    /// What is looked at when it has finished.
    pub(crate) outcomes: &'a [Arc<dyn Outcome>],
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
            recording.attach(replay, kept);
            let seq = recording.seq;
            let counts = self.exec.device().counts();
            replay.body.tally.count(counts);
            counts.replays.add(1);
            self.seal(state, finished, Seal::Replay)?;
            // From here on it runs, now or as soon as the driver lets it.
            match self.submit_locked(state, finished, Seal::Replay) {
                Err(error) if self.exec.device().is_lost() => Err(error),
                _ => Ok(seq),
            }
        })
    }
}

impl Recording {
    /// Puts the body behind its commands.
    fn attach<T: Send + Sync + 'static>(&mut self, replay: &Replay<'_>, kept: &Arc<T>) {
        self.body = Some(Arc::clone(replay.body));
        self.retain(kept);
        for outcome in replay.outcomes {
            self.look_at(Arc::clone(outcome));
        }
        self.count += 1;
    }
}
