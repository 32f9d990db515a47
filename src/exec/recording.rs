//! Recordings: commands of one stream that are sealed and submitted together.

use core::any::Any;
use std::sync::Arc;

use super::losses::Loss;
use super::order::Values;
use super::replay::Body;
use super::ticket::Point;
use crate::error::{Error, Result};
use crate::vk::lane::Submission;
use crate::vk::{Commands, Segment};

/// Something that commands use, kept alive until they have finished.
pub(crate) type Retained = Arc<dyn Any + Send + Sync>;

/// What commands leave for the host to look at; kept alive until they have finished.
///
/// It is looked at under its stream's lock, so that whoever waits for the stream is told.
pub(crate) trait Outcome: Send + Sync {
    /// What the commands, which have finished, found wrong.
    fn error(&self) -> Option<Error>;

    /// Where the commands leave it: the segment, the first byte, the one behind the last.
    fn memory(&self) -> (&Arc<Segment>, u64, u64);

    /// Another place for the same, where what one run of the commands leaves is copied to.
    fn another(&self) -> Result<Arc<dyn Outcome>>;
}

/// Commands, with all that they use. Boxed, it is used again and again.
pub(crate) struct Recording {
    pub(crate) commands: Commands,
    /// What runs behind the commands.
    pub(super) body: Option<Arc<Body>>,
    retained: Vec<Retained>,
    outcomes: Vec<Arc<dyn Outcome>>,
    /// How many commands it holds.
    pub(crate) count: u32,
    /// Its number in its stream.
    pub(super) seq: u64,
    /// What it waits for of other lanes.
    pub(super) waits: Values,
    /// What tickets behind it know of it; nothing until there is one.
    point: Option<Arc<Point>>,
    /// The one before it in a list of finished ones.
    next: Option<Box<Self>>,
}

/// Recordings that have finished, to be let go of behind their stream's lock.
#[derive(Debug, Default)]
pub(super) struct Finished(Option<Box<Recording>>);

impl Finished {
    pub(super) fn push(&mut self, mut recording: Box<Recording>) {
        recording.next = self.0.take();
        self.0 = Some(recording);
    }
}

impl Iterator for Finished {
    type Item = Box<Recording>;

    fn next(&mut self) -> Option<Box<Recording>> {
        let mut recording = self.0.take()?;
        self.0 = recording.next.take();
        Some(recording)
    }
}

impl core::fmt::Debug for Recording {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recording")
            .field("seq", &self.seq)
            .field("count", &self.count)
            .field("retained", &self.retained.len())
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// An empty one, whose commands are not begun.
    pub(super) fn new(commands: Commands) -> Box<Self> {
        Box::new(Self {
            commands,
            body: None,
            retained: Vec::new(),
            outcomes: Vec::new(),
            count: 0,
            seq: 0,
            waits: Values::default(),
            point: None,
            next: None,
        })
    }

    /// Begins an empty one, which is the `seq`-th of its stream.
    pub(super) fn begin(&mut self, seq: u64) -> Result<()> {
        self.seq = seq;
        self.commands.begin()
    }

    /// Lets go of all that it keeps, and empties it; its commands have finished or were never submitted.
    pub(super) fn empty(&mut self) -> Result<()> {
        self.retained.clear();
        self.outcomes.clear();
        self.body = None;
        self.point = None;
        self.waits = Values::default();
        self.count = 0;
        self.commands.reset()
    }

    /// Keeps a thing alive until the recording has finished; the one kept last is not kept twice.
    pub(crate) fn retain<T: Any + Send + Sync>(&mut self, thing: &Arc<T>) {
        let is_same = |kept: &Retained| core::ptr::addr_eq(Arc::as_ptr(kept), Arc::as_ptr(thing));
        let newest = self.retained.len().saturating_sub(RECENT);
        if !self.retained[newest..].iter().any(is_same) {
            self.retained.push(Arc::clone(thing) as Retained);
        }
    }

    /// Has an outcome looked at when the commands have finished.
    pub(crate) fn look_at(&mut self, outcome: Arc<dyn Outcome>) {
        self.outcomes.push(outcome);
    }

    /// The first that its commands, which have finished, found wrong.
    pub(super) fn found(&self) -> Option<Error> {
        self.outcomes.iter().find_map(|outcome| outcome.error())
    }

    /// The point behind it, which `make` makes for the first ticket.
    pub(super) fn point(&mut self, make: impl FnOnce(u64) -> Arc<Point>) -> &Arc<Point> {
        let seq = self.seq;
        self.point.get_or_insert_with(|| make(seq))
    }

    /// That point, if there is one; it has finished, so that nothing is left to be told.
    pub(super) fn take_point(&mut self) -> Option<Arc<Point>> {
        self.point.take()
    }

    /// It was submitted with this value of its lane.
    pub(super) fn submitted(&self, value: u64) {
        if let Some(point) = &self.point {
            point.submitted(value);
        }
    }

    /// Its commands never ran and never will.
    pub(super) fn lose(&self, loss: Loss) {
        if let Some(point) = &self.point {
            point.lose(loss);
        }
    }

    /// Itself, for the queue.
    pub(super) fn submission(&self) -> Submission<'_> {
        Submission {
            commands: &self.commands,
            body: self.body.as_deref().map(Body::commands),
            waits: &self.waits,
        }
    }
}

/// How many of the newest things are looked at before another is kept.
const RECENT: usize = 8;
