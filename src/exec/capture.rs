//! Captures: what streams are told between the beginning and the end of one is kept in place of being
//! queued.
//!
//! A capture begins on one stream. Another one joins when it waits for a point of it, and has to be
//! joined again, by a wait the other way, before the end. The commands of all are kept in the order of
//! the calls, in which each finds done what it may build on.

use core::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use super::branches::{Branches, Clock};
use super::device::ExecDevice;
use super::node::Node;
use super::part::{CapturedMark, ended};
use super::permit::Call;
use super::replays::Replays;
use super::sink::Sink;
use super::stream::StreamCore;
use crate::alloc::PoolId;
use crate::base::sync::Mutex;
use crate::device::plan::MemoryRole;
use crate::error::{Details, Error, ErrorKind, Result};
use crate::exec::hazard::Use;
use crate::rng::generator::GeneratorState;
use crate::vk::{Device, Segment};

/// The bytes of a generator's state.
const STATE_BYTES: u64 = 16;
/// The memory for the states of all generators of a graph.
const ARGUMENT_BYTES: u64 = 4096;

/// Whose calls a capture keeps from doing what it forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// Those of every thread.
    Global,
    /// Those of the thread that began it.
    ThreadLocal,
    /// Only those for streams that are captured.
    Relaxed,
}

/// A capture that is under way, or has ended.
#[derive(Debug)]
pub(crate) struct Capture {
    id: u64,
    pub(super) strictness: Strictness,
    pub(super) thread: ThreadId,
    /// Where it began.
    pub(super) site: &'static Location<'static>,
    /// Where memory comes from that is allocated on a captured stream.
    pool: PoolId,
    /// Where the replays of what becomes of it are.
    replays: Arc<Replays>,
    state: Mutex<State>,
    exec: Arc<ExecDevice>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    branches: Branches,
    /// By branch.
    streams: Vec<Arc<StreamCore>>,
    draws: Vec<Draws>,
    /// Where the states of generators are at a replay.
    arguments: Option<Arc<Segment>>,
    /// What it failed by.
    fault: Option<Fault>,
    has_ended: bool,
}

/// The error of the call that a capture failed by.
#[derive(Debug)]
struct Fault {
    text: String,
    details: Option<Details>,
}

/// What the captured fills take of one generator.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) generator: Arc<GeneratorState>,
    /// The draws of all of them, in whole blocks.
    pub(crate) count: u64,
}

/// What was captured.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) nodes: Vec<Node>,
    pub(crate) draws: Vec<Draws>,
    pub(crate) arguments: Option<Arc<Segment>>,
    /// The numbers of the streams, by branch.
    pub(crate) streams: Vec<u64>,
    pub(crate) replays: Arc<Replays>,
}

impl Capture {
    /// Begins a capture on a stream, whose commands so far are submitted.
    ///
    /// # Errors
    ///
    /// `Capture` if the stream is captured already.
    pub(crate) fn begin(
        stream: &Arc<StreamCore>,
        pool: PoolId,
        strictness: Strictness,
        call: Call,
    ) -> Result<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        stream.check_not_captured(call)?;
        stream.flush()?;
        let capture = Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            strictness,
            thread: thread::current().id(),
            site: call.site,
            pool,
            replays: Arc::default(),
            state: Mutex::default(),
            exec: Arc::clone(&stream.exec),
        });
        stream.take_part(&capture, &Clock::default(), call)?;
        stream.exec.captures.add(&capture);
        Ok(capture)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn pool(&self) -> PoolId {
        self.pool
    }

    pub(crate) fn replays(&self) -> &Arc<Replays> {
        &self.replays
    }

    /// The device that it captures commands for.
    pub(crate) fn device(&self) -> &Arc<Device> {
        self.exec.device()
    }

    /// Where it began, in words.
    pub(crate) fn place(&self) -> String {
        format!("begun at {}", self.site)
    }

    /// Makes a stream one of those that are captured, behind what a clock says.
    pub(super) fn join(&self, stream: Arc<StreamCore>, behind: &Clock) -> Result<usize> {
        let mut state = self.state.lock();
        state.check()?;
        state.streams.push(stream);
        Ok(state.branches.add(behind))
    }

    /// Puts what comes next on a branch behind what a clock says.
    pub(super) fn merge(&self, branch: usize, clock: &Clock) -> Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        state.branches.merge(branch, clock);
        Ok(())
    }

    /// A point behind all commands of a branch so far.
    pub(super) fn mark(self: &Arc<Self>, branch: usize) -> Result<CapturedMark> {
        let state = self.state.lock();
        state.check()?;
        Ok(CapturedMark::new(
            self,
            state.branches.clock(branch).clone(),
        ))
    }

    /// Keeps the commands of one call, all or none.
    pub(super) fn keep<F: FnOnce(&mut Sink<'_>) -> Result<()>>(
        self: &Arc<Self>,
        branch: usize,
        scope: Option<u64>,
        steps: &mut [(&[Use], Option<F>)],
    ) -> Result<()> {
        // What is dropped where one fails is dropped with no lock of the capture's held.
        let mut nodes = Vec::with_capacity(steps.len());
        for (uses, record) in steps {
            let mut node = Node::new(branch, scope, uses);
            if let Some(record) = record.take() {
                record(&mut Sink::Captured(&mut node, self))?;
            }
            nodes.push(node);
        }
        let mut state = self.state.lock();
        state.check()?;
        state.branches.advance(branch, nodes.len());
        state.nodes.append(&mut nodes);
        Ok(())
    }

    /// Takes draws of a generator at each replay: gives where its state is then, and how many come before.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for too many generators, and those of making memory.
    pub(crate) fn draw(
        &self,
        generator: &Arc<GeneratorState>,
        count: u64,
    ) -> Result<(Arc<Segment>, u64, u64)> {
        let mut state = self.state.lock();
        state.check()?;
        state.draw(self.device(), generator, count)
    }

    /// Fails the capture: it goes on, and says so at its end.
    pub(crate) fn fail(&self, cause: &Error) {
        let mut state = self.state.lock();
        if state.fault.is_none() {
            state.fault = Some(Fault {
                text: cause.to_string(),
                details: cause.details().cloned(),
            });
        }
    }

    /// Fails it, as a captured stream is to wait for what is outside of it.
    #[cold]
    pub(super) fn fails_by_outside(&self, stream: u64, call: Call) -> Error {
        let error = Error::new(
            ErrorKind::Capture,
            format!(
                "{call}: stream {stream} is captured, by the capture {}, and can't wait for a point outside of \
                 it; wait for that before the capture begins, or on the stream that the graph is replayed on",
                self.place()
            ),
        )
        .with_details(call.against(self));
        self.fail(&error);
        error
    }

    /// Ends it: its streams queue commands again.
    ///
    /// # Errors
    ///
    /// `Capture` if it has failed, or streams were left that did not join again.
    pub(crate) fn end(&self, call: Call) -> Result<Taken> {
        let state = self.detach();
        if let Some(Fault { text, details }) = state.fault {
            let text = format!(
                "the capture {} has failed and gives no graph, as a call in it was refused: {text}",
                self.place()
            );
            let error = Error::new(ErrorKind::Capture, text);
            return Err(match details {
                Some(details) => error.with_details(details),
                None => error,
            });
        }
        let streams: Vec<_> = state.streams.iter().map(|stream| stream.id()).collect();
        let loose = state.branches.unjoined();
        if !loose.is_empty() {
            let loose: Vec<_> = loose.iter().map(|&branch| streams[branch]).collect();
            return Err(self.unjoined(call, &loose, streams[0]));
        }
        Ok(Taken {
            nodes: state.nodes,
            draws: state.draws,
            arguments: state.arguments,
            streams,
            replays: Arc::clone(&self.replays),
        })
    }

    #[cold]
    fn unjoined(&self, call: Call, loose: &[u64], first: u64) -> Error {
        let names: Vec<_> = loose.iter().map(|id| format!("stream {id}")).collect();
        Error::new(
            ErrorKind::Capture,
            format!(
                "{call}: the capture {} ended before what it had captured on {} was joined; call \
                 `wait_stream` on stream {first}, where it began, for each of them before the end",
                self.place(),
                names.join(", ")
            ),
        )
        .with_details(call.against(self))
    }

    /// Ends it and forgets what it has.
    pub(crate) fn abandon(&self) {
        drop(self.detach());
    }

    /// Lets its streams go; gives what it has, to be dropped with no lock held.
    fn detach(&self) -> State {
        let mut state = self.state.lock();
        let taken = core::mem::take(&mut *state);
        state.has_ended = true;
        drop(state);
        for stream in &taken.streams {
            stream.leave(self);
        }
        self.exec.captures.remove(self);
        taken
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match self.has_ended {
            false => Ok(()),
            true => Err(ended()),
        }
    }

    fn draw(
        &mut self,
        device: &Arc<Device>,
        generator: &Arc<GeneratorState>,
        count: u64,
    ) -> Result<(Arc<Segment>, u64, u64)> {
        let segment = match &self.arguments {
            Some(segment) => Arc::clone(segment),
            None => {
                let segment = Segment::new(device, ARGUMENT_BYTES, MemoryRole::Device)?;
                Arc::clone(self.arguments.insert(segment))
            }
        };
        let known = self
            .draws
            .iter()
            .position(|one| Arc::ptr_eq(&one.generator, generator));
        let place = known.unwrap_or(self.draws.len());
        let offset = STATE_BYTES * place as u64;
        if offset >= ARGUMENT_BYTES {
            return Err(too_many_generators());
        }
        if known.is_none() {
            self.draws.push(Draws {
                generator: Arc::clone(generator),
                count: 0,
            });
        }
        let draws = &mut self.draws[place];
        let before = draws.count;
        let blocks = count.checked_next_multiple_of(4);
        draws.count = blocks
            .and_then(|blocks| before.checked_add(blocks))
            .ok_or_else(too_many_draws)?;
        Ok((segment, offset, before))
    }
}

#[cold]
fn too_many_generators() -> Error {
    let limit = ARGUMENT_BYTES / STATE_BYTES;
    Error::new(
        ErrorKind::LimitExceeded,
        format!("a graph takes numbers of up to {limit} generators; capture the rest in another"),
    )
}

#[cold]
fn too_many_draws() -> Error {
    Error::new(
        ErrorKind::LimitExceeded,
        "the graph would take more draws than a generator has",
    )
}
