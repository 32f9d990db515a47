//! What was captured, in its executable form, and its replays.

use std::sync::Arc;

use super::dump;
use super::plan::{Item, Plan, plan};
use super::pool::GraphPool;
use crate::base::sync::Mutex;
use crate::device::plan::LanePlan;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::capture::{Draws, Taken};
use crate::exec::node::Node;
use crate::exec::replay::{Body, Replay};
use crate::exec::{Outcome, Replays, StreamCore};
use crate::mem::pinned::{Copying, Pinned};
use crate::rng::generator;
use crate::vk::{Device, Segment};

/// A captured graph.
#[derive(Debug)]
pub(crate) struct Recorded {
    source: Arc<Source>,
    executable: Mutex<Option<Arc<Executable>>>,
    /// The queue of the stream that it was captured on.
    lane: LanePlan,
    pool: Arc<GraphPool>,
}

/// What was captured, with all that it uses.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) nodes: Vec<Node>,
    pub(super) plan: Plan,
    /// The numbers of the streams, by branch.
    pub(super) streams: Vec<u64>,
    draws: Vec<Draws>,
    /// Where the states of the generators go.
    arguments: Option<Arc<Segment>>,
    lent: Vec<(Arc<Pinned>, Copying)>,
    outcomes: OutcomeList,
    replays: Arc<Replays>,
    /// Those of all graphs of the pool.
    pool_replays: Arc<Replays>,
    device: Arc<Device>,
}

struct OutcomeList(Vec<Arc<dyn Outcome>>);

impl core::fmt::Debug for OutcomeList {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} outcomes", self.0.len())
    }
}

/// Commands made of it, for each family of queues that it was replayed on.
#[derive(Debug)]
struct Executable {
    bodies: Mutex<Vec<(u32, Arc<Body>)>>,
    source: Arc<Source>,
}

impl Recorded {
    pub(super) fn new(taken: Taken, stream: &StreamCore, pool: Arc<GraphPool>) -> Result<Self> {
        let items: Vec<_> = taken
            .nodes
            .iter()
            .map(|node| Item {
                uses: &node.uses,
                scope: node.scope,
            })
            .collect();
        let plan = plan(&items);
        if cfg!(debug_assertions) && plan.contradiction.is_some() {
            return Err(not_independent());
        }
        let outcomes = taken.nodes.iter().flat_map(|node| &node.outcomes).cloned();
        let source = Source {
            plan,
            streams: taken.streams,
            draws: taken.draws,
            arguments: taken.arguments,
            lent: lent(&taken.nodes),
            outcomes: OutcomeList(outcomes.collect()),
            replays: taken.replays,
            pool_replays: Arc::clone(&pool.replays),
            device: Arc::clone(stream.device()),
            nodes: taken.nodes,
        };
        Ok(Self {
            source: Arc::new(source),
            executable: Mutex::default(),
            lane: stream.lane_plan(),
            pool,
        })
    }

    /// Makes the commands anew; replays under way keep those that they have.
    pub(crate) fn instantiate(&self) -> Result<()> {
        let made = self.make()?;
        // What it was before is dropped behind the lock.
        let before = self.executable.lock().replace(made);
        drop(before);
        Ok(())
    }

    fn make(&self) -> Result<Arc<Executable>> {
        let executable = Arc::new(Executable {
            bodies: Mutex::default(),
            source: Arc::clone(&self.source),
        });
        executable.body(self.lane)?;
        Ok(executable)
    }

    fn executable(&self) -> Result<Arc<Executable>> {
        let mut executable = self.executable.lock();
        if let Some(executable) = &*executable {
            return Ok(Arc::clone(executable));
        }
        Ok(Arc::clone(executable.insert(self.make()?)))
    }

    /// Puts the graph behind what a stream of its device has.
    pub(crate) fn replay(&self, stream: &StreamCore) -> Result<()> {
        let executable = self.executable()?;
        let source = &self.source;
        let body = executable.body(stream.lane_plan())?;
        // The memory is the pool's: what runs in it runs in order.
        let mut before = self.pool.turn.lock();
        source.pool_replays.list_unfinished(&mut before);
        before
            .drain(..)
            .try_for_each(|ticket| stream.wait_queued(&ticket))?;
        let claims = source.lent.iter();
        let claims = claims.map(|(pinned, copying)| pinned.claim(stream, *copying));
        let claims = claims.collect::<Result<Vec<_>>>();
        let claims = claims.map_err(|error| error.context("the graph can't be replayed"))?;
        let outcomes = source.outcomes.0.iter();
        let outcomes = outcomes.map(|one| Ok((&**one, one.another()?)));
        let outcomes = outcomes.collect::<Result<Vec<_>>>()?;
        let drawn = Drawn::take(&source.draws)?;
        let replay = Replay {
            body: &body,
            uses: &source.plan.uses,
            outcomes: &outcomes,
            arguments: source.arguments.as_ref().map(|to| (to, &drawn.bytes[..])),
        };
        let seq = stream.replay(&replay, &executable)?;
        drawn.keep();
        for claim in claims {
            claim.queued(seq);
        }
        let ticket = stream.ticket(seq);
        source.replays.note(stream.id(), &ticket);
        source.pool_replays.note(stream.id(), &ticket);
        Ok(())
    }

    /// The graph in the language of graphviz.
    pub(crate) fn dot(&self) -> String {
        dump::dot(&self.source)
    }
}

impl Executable {
    /// The commands for queues of the lane's family.
    fn body(&self, lane: LanePlan) -> Result<Arc<Body>> {
        let mut bodies = self.bodies.lock();
        let known = bodies.iter().find(|(family, _)| *family == lane.family);
        if let Some((_, body)) = known {
            return Ok(Arc::clone(body));
        }
        let Source {
            nodes,
            plan,
            device,
            ..
        } = &*self.source;
        let steps = plan.steps.iter();
        let steps = steps.map(|step| (step.barrier, &nodes[step.node]));
        let body = Arc::new(Body::new(device, lane, steps)?);
        bodies.push((lane.family, Arc::clone(&body)));
        Ok(body)
    }
}

/// The draws of one replay; given back if it comes to nothing.
struct Drawn<'a> {
    /// The states before, as the shaders read them.
    bytes: Vec<u8>,
    taken: Vec<(&'a Draws, generator::Taken)>,
}

impl<'a> Drawn<'a> {
    fn take(draws: &'a [Draws]) -> Result<Self> {
        let mut drawn = Self {
            bytes: Vec::with_capacity(16 * draws.len()),
            taken: Vec::with_capacity(draws.len()),
        };
        for one in draws {
            let taken = one.generator.take(one.count)?;
            drawn.bytes.extend(taken.before.in_memory());
            drawn.taken.push((one, taken));
        }
        Ok(drawn)
    }

    fn keep(mut self) {
        self.taken.clear();
    }
}

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        for (draws, taken) in self.taken.drain(..).rev() {
            // What others have taken since stays behind a gap.
            let _ = draws.generator.give_back(taken);
        }
    }
}

/// The memory that the host takes turns with, each once for what is done with it.
fn lent(nodes: &[Node]) -> Vec<(Arc<Pinned>, Copying)> {
    let mut lent: Vec<(Arc<Pinned>, Copying)> = Vec::new();
    for (memory, is_written) in nodes.iter().flat_map(|node| &node.lent) {
        let copying = match is_written {
            true => Copying::Writes,
            false => Copying::Reads,
        };
        let Ok(pinned) = Arc::clone(memory).downcast::<Pinned>() else {
            continue;
        };
        let is_known =
            |(known, how): &(Arc<Pinned>, Copying)| Arc::ptr_eq(known, &pinned) && *how == copying;
        if !lent.iter().any(is_known) {
            lent.push((pinned, copying));
        }
    }
    lent
}

#[cold]
fn not_independent() -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "launches in `Stream::concurrent` must be independent of each other, but one that was captured writes \
         what another of them uses, or uses what another writes; launch it outside, or pass views that do not \
         overlap (only builds with debug assertions look for this)",
    )
}
