//! What was done, in the order in which it was done: plain data, which the checker works on and tests
//! write by hand or take something out of.

use std::collections::BTreeSet;
use std::sync::Arc;

use ash::vk::{AccessFlags, PipelineStageFlags};

/// A piece of device memory, by a number that no other memory of the history has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub memory: u64,
    pub lo: u64,
    /// The byte behind the last.
    pub hi: u64,
}

impl Range {
    pub fn overlaps(&self, other: &Self) -> bool {
        self.memory == other.memory && self.lo.max(other.lo) < self.hi.min(other.hi)
    }

    pub fn contains(&self, other: &Self) -> bool {
        self.memory == other.memory && self.lo <= other.lo && other.hi <= self.hi
    }
}

/// One access of one stage to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub range: Range,
    pub stage: PipelineStageFlags,
    /// One bit.
    pub access: AccessFlags,
}

impl Touch {
    pub fn is_write(&self) -> bool {
        let writes = AccessFlags::SHADER_WRITE | AccessFlags::TRANSFER_WRITE;
        self.access.intersects(writes)
    }

    /// Whether it matters which of the two comes first.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.range.overlaps(&other.range) && (self.is_write() || other.is_write())
    }
}

/// A command that touches memory; the accesses of one command are in no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub name: &'static str,
    pub touches: Vec<Touch>,
}

/// A pipeline barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    pub from: PipelineStageFlags,
    pub to: PipelineStageFlags,
    pub memory: Vec<MemoryBarrier>,
}

/// Which accesses one waits for, and is seen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBarrier {
    pub from: AccessFlags,
    pub to: AccessFlags,
    /// All memory where there is none.
    pub range: Option<Range>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Work(Work),
    Barrier(Barrier),
}

/// A thing that commands use, and that must not end before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Buffer(u64),
    Memory(u64),
    Pipeline(u64),
    CommandPool(u64),
    DescriptorPool(u64),
}

/// A recorded command buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    pub commands: Vec<Command>,
    pub uses: BTreeSet<Object>,
    /// Whether it may be submitted again while it is pending.
    pub again: bool,
    /// What the test has said it is of.
    pub label: usize,
}

impl List {
    /// Whether it is what the crate puts between the work of two streams on one queue: a barrier alone,
    /// submitted as often as it is needed.
    pub fn is_divider(&self) -> bool {
        self.again && matches!(&self.commands[..], [Command::Barrier(_)])
    }
}

/// A value of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub semaphore: u64,
    pub value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub point: Point,
    /// The stages that wait.
    pub stages: PipelineStageFlags,
}

/// One of the batches of a `vkQueueSubmit`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    pub queue: u64,
    pub waits: Vec<Wait>,
    pub lists: Vec<Arc<List>>,
    pub signals: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Submission(Submission),
    /// The host has seen this value reached.
    Seen(Point),
    HostReads(Range),
    HostWrites(Range),
    /// Destroyed or reset.
    Ends(Object),
}

/// All that one device did, and what the host did to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    pub events: Vec<Event>,
}

/// Where something stands in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Which of the events.
    pub event: usize,
    /// Which of the submission's lists, or of its waits.
    pub part: usize,
    /// Which of the list's commands.
    pub command: usize,
}

impl History {
    pub fn submissions(&self) -> impl Iterator<Item = (usize, &Submission)> {
        let events = self.events.iter().enumerate();
        events.filter_map(|(at, event)| match event {
            Event::Submission(submission) => Some((at, submission)),
            _ => None,
        })
    }

    /// Every barrier as often as it was submitted, with its list.
    pub fn barriers(&self) -> Vec<(Spot, &Barrier, &List)> {
        let mut found = Vec::new();
        for (event, submission) in self.submissions() {
            for (part, list) in submission.lists.iter().enumerate() {
                for (command, one) in list.commands.iter().enumerate() {
                    if let Command::Barrier(barrier) = one {
                        let spot = Spot {
                            event,
                            part,
                            command,
                        };
                        found.push((spot, barrier, &**list));
                    }
                }
            }
        }
        found
    }

    /// Every wait between queues.
    pub fn waits(&self) -> Vec<(Spot, Wait)> {
        let mut found = Vec::new();
        for (event, submission) in self.submissions() {
            for (part, wait) in submission.waits.iter().enumerate() {
                let spot = Spot {
                    event,
                    part,
                    command: 0,
                };
                found.push((spot, *wait));
            }
        }
        found
    }

    /// What was done in the lists with a label, as if they had waited for nothing.
    #[must_use]
    pub fn of_label(&self, label: usize) -> Self {
        let mut left = self.clone();
        for event in &mut left.events {
            if let Event::Submission(submission) = event {
                let is_of = |list: &Arc<List>| list.label == label && !list.is_divider();
                submission.lists.retain(is_of);
                submission.waits.clear();
            }
        }
        left
    }

    /// The same, but some barriers are for nothing. All else stays where it is.
    #[must_use]
    pub fn without_barriers(&self, spots: &[Spot]) -> Self {
        let mut left = self.clone();
        for spot in spots {
            if let Event::Submission(submission) = &mut left.events[spot.event] {
                let list = Arc::make_mut(&mut submission.lists[spot.part]);
                list.commands[spot.command] = Command::Barrier(Barrier {
                    from: PipelineStageFlags::empty(),
                    to: PipelineStageFlags::empty(),
                    memory: Vec::new(),
                });
            }
        }
        left
    }

    /// The same, but some waits hold nothing back.
    #[must_use]
    pub fn without_waits(&self, spots: &[Spot]) -> Self {
        let mut left = self.clone();
        for spot in spots {
            if let Event::Submission(submission) = &mut left.events[spot.event] {
                submission.waits[spot.part].stages = PipelineStageFlags::empty();
            }
        }
        left
    }
}
