//! Nodes: the commands of one call, kept to be recorded when its graph is made.

use std::sync::Arc;

use super::hazard::Use;
use super::recording::{Outcome, Retained};
use super::sink::Launch;
use crate::error::Result;
use crate::kernel::interface::BindingKind;
use crate::vk::command::{DescriptorRange, Groups, Region};
use crate::vk::{Commands, Pipeline, Segment};

/// The commands of one call, with all that they use. One command to the hazard planner.
pub(crate) struct Node {
    /// Which of the captured streams it is of.
    pub(crate) branch: usize,
    /// The scope of independent launches that it is one of.
    pub(crate) scope: Option<u64>,
    pub(crate) uses: Vec<Use>,
    pub(crate) commands: Vec<Command>,
    pub(crate) outcomes: Vec<Arc<dyn Outcome>>,
    /// Memory that the host takes turns with, and whether it is written.
    pub(crate) lent: Vec<(Retained, bool)>,
    retained: Vec<Retained>,
}

/// A command that owns what it names.
#[derive(Debug)]
pub(crate) enum Command {
    Copy {
        src: Arc<Segment>,
        dst: Arc<Segment>,
        regions: Vec<Region>,
    },
    Fill {
        dst: Arc<Segment>,
        offset: u64,
        len: u64,
        word: u32,
    },
    Launch(KeptLaunch),
}

/// A launch that was checked.
#[derive(Debug)]
pub(crate) struct KeptLaunch {
    pub(crate) name: Arc<str>,
    pub(crate) groups: KeptGroups,
    pipeline: Arc<Pipeline>,
    ranges: Vec<KeptRange>,
    push: Vec<u8>,
}

/// As [`Groups`].
#[derive(Debug)]
pub(crate) enum KeptGroups {
    Counts([u32; 3]),
    Indirect { segment: Arc<Segment>, offset: u64 },
}

/// As [`DescriptorRange`].
#[derive(Debug)]
struct KeptRange {
    set: u32,
    binding: u32,
    kind: BindingKind,
    segment: Arc<Segment>,
    offset: u64,
    len: u64,
}

impl core::fmt::Debug for Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Node")
            .field("branch", &self.branch)
            .field("commands", &self.commands)
            .field("uses", &self.uses)
            .finish_non_exhaustive()
    }
}

impl Node {
    pub(super) fn new(branch: usize, scope: Option<u64>, uses: &[Use]) -> Self {
        Self {
            branch,
            scope,
            uses: uses.to_vec(),
            commands: Vec::new(),
            outcomes: Vec::new(),
            lent: Vec::new(),
            retained: Vec::new(),
        }
    }

    pub(super) fn retain(&mut self, thing: Retained) {
        self.retained.push(thing);
    }

    pub(super) fn copy(&mut self, src: &Arc<Segment>, dst: &Arc<Segment>, regions: &[Region]) {
        self.commands.push(Command::Copy {
            src: Arc::clone(src),
            dst: Arc::clone(dst),
            regions: regions.to_vec(),
        });
    }

    pub(super) fn fill(&mut self, dst: &Arc<Segment>, offset: u64, len: u64, word: u32) {
        self.commands.push(Command::Fill {
            dst: Arc::clone(dst),
            offset,
            len,
            word,
        });
    }

    pub(super) fn launch(&mut self, launch: &Launch<'_>) {
        let ranges = launch.ranges.iter().map(|range| KeptRange {
            set: range.set,
            binding: range.binding,
            kind: range.kind,
            segment: Arc::clone(range.segment),
            offset: range.offset,
            len: range.len,
        });
        self.commands.push(Command::Launch(KeptLaunch {
            name: Arc::clone(launch.name),
            groups: match launch.groups {
                Groups::Counts(counts) => KeptGroups::Counts(counts),
                Groups::Indirect { segment, offset } => KeptGroups::Indirect {
                    segment: Arc::clone(segment),
                    offset,
                },
            },
            pipeline: Arc::clone(launch.pipeline),
            ranges: ranges.collect(),
            push: launch.push.to_vec(),
        }));
    }

    /// Records its commands.
    pub(crate) fn record(&self, commands: &mut Commands) -> Result<()> {
        for command in &self.commands {
            match command {
                Command::Copy { src, dst, regions } => commands.copy(src, dst, regions),
                Command::Fill {
                    dst,
                    offset,
                    len,
                    word,
                } => commands.fill(dst, *offset, *len, *word),
                Command::Launch(launch) => launch.record(commands)?,
            }
        }
        Ok(())
    }
}

impl KeptLaunch {
    fn record(&self, commands: &mut Commands) -> Result<()> {
        let groups = match &self.groups {
            KeptGroups::Counts(counts) => Groups::Counts(*counts),
            KeptGroups::Indirect { segment, offset } => Groups::Indirect {
                segment,
                offset: *offset,
            },
        };
        let ranges = self.ranges.iter().map(|range| DescriptorRange {
            set: range.set,
            binding: range.binding,
            kind: range.kind,
            segment: &range.segment,
            offset: range.offset,
            len: range.len,
        });
        let ranges: Vec<_> = ranges.collect();
        commands.dispatch(&self.pipeline, groups, &ranges, &self.push)
    }
}
