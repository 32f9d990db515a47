//! Where the commands of a call go: into the open recording of a stream, or into a node that is kept
//! for a graph.

use std::any::Any;
use std::sync::Arc;

use super::capture::Capture;
use super::node::Node;
use super::recording::{Outcome, Recording, Retained};
use crate::error::{Error, ErrorKind, Result};
use crate::vk::command::{DescriptorRange, Groups, Region};
use crate::vk::{Pipeline, Segment};

/// Takes commands, with all that they use.
#[derive(Debug)]
pub(crate) enum Sink<'a> {
    /// To be submitted before long, once.
    Queued(&'a mut Recording),
    /// To be recorded and submitted again and again.
    Captured(&'a mut Node, &'a Arc<Capture>),
}

/// A launch that was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) pipeline: &'a Arc<Pipeline>,
    pub(crate) groups: Groups<'a>,
    pub(crate) ranges: &'a [DescriptorRange<'a>],
    pub(crate) push: &'a [u8],
}

impl Sink<'_> {
    /// The capture that the commands are for.
    pub(crate) fn capture(&self) -> Option<&Arc<Capture>> {
        match self {
            Self::Queued(_) => None,
            Self::Captured(_, capture) => Some(capture),
        }
    }

    /// The check of commands that depend on being part of this capture, or of none.
    ///
    /// # Errors
    ///
    /// `Capture` where another thread has begun or ended one since it was looked for.
    pub(crate) fn check_is_for(&self, capture: Option<&Arc<Capture>>) -> Result<()> {
        match (self.capture(), capture) {
            (None, None) => Ok(()),
            (Some(of), Some(capture)) if Arc::ptr_eq(of, capture) => Ok(()),
            (Some(_), None) => Err(changed_meanwhile("begun to capture the stream", "begin")),
            (_, Some(_)) => Err(changed_meanwhile("ended the capture of the stream", "end")),
        }
    }

    /// Keeps a thing alive for as long as the commands may run.
    pub(crate) fn retain<T: Any + Send + Sync>(&mut self, thing: &Arc<T>) {
        match self {
            Self::Queued(recording) => recording.retain(thing),
            Self::Captured(node, _) => node.retain(Arc::clone(thing) as Retained),
        }
    }

    /// Has an outcome looked at whenever the commands have finished.
    pub(crate) fn look_at(&mut self, outcome: Arc<dyn Outcome>) {
        match self {
            Self::Queued(recording) => recording.look_at(outcome),
            Self::Captured(node, _) => node.outcomes.push(outcome),
        }
    }

    /// A copy; regions lie in their segments and do not overlap each other's destinations.
    pub(crate) fn copy(&mut self, src: &Arc<Segment>, dst: &Arc<Segment>, regions: &[Region]) {
        self.retain(src);
        self.retain(dst);
        match self {
            Self::Queued(recording) => recording.commands.copy(src, dst, regions),
            Self::Captured(node, _) => node.copy(src, dst, regions),
        }
    }

    /// A fill with a word; offset and length are multiples of 4.
    pub(crate) fn fill(&mut self, dst: &Arc<Segment>, offset: u64, len: u64, word: u32) {
        self.retain(dst);
        match self {
            Self::Queued(recording) => recording.commands.fill(dst, offset, len, word),
            Self::Captured(node, _) => node.fill(dst, offset, len, word),
        }
    }

    /// Says that the commands use memory which the host takes turns with.
    pub(crate) fn lend<T: Any + Send + Sync>(&mut self, memory: &Arc<T>, is_written: bool) {
        if let Self::Captured(node, _) = self {
            node.lent.push((Arc::clone(memory) as Retained, is_written));
        }
    }

    /// A launch; what it reaches by addresses is to be retained too.
    pub(crate) fn launch(&mut self, launch: &Launch<'_>) -> Result<()> {
        match self {
            Self::Queued(recording) => {
                recording.retain(launch.pipeline);
                for range in launch.ranges {
                    recording.retain(range.segment);
                }
                recording.commands.dispatch(
                    launch.pipeline,
                    launch.groups,
                    launch.ranges,
                    launch.push,
                )
            }
            Self::Captured(node, _) => {
                node.launch(launch);
                Ok(())
            }
        }
    }
}

#[cold]
fn changed_meanwhile(done: &str, it: &str) -> Error {
    Error::new(
        ErrorKind::Capture,
        format!(
            "another thread has {done} while this thread put a call on it; let the capture {it} before or behind"
        ),
    )
}

/// What is recorded where nothing is: for steps without a command.
pub(crate) type NoCommand = fn(&mut Sink<'_>) -> Result<()>;
