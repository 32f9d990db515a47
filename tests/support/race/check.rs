//! Finds what nothing orders, by Vulkan's rules for barriers and semaphores alone. Pure.
//!
//! It knows nothing of how the crate plans: for every access it follows, through all that comes after
//! it, what waits for the access (stages, on each queue) and what its write was made available and
//! visible to. Each later access that conflicts must be among those. That is the square of the number of
//! accesses, and meant to be: there is no list that could be cleared too early.
//!
//! - A dependency counts only if the one behind it takes it up: the second scope of the first and the
//!   first scope of the second share a stage.
//! - A write must be available (its stage and access are in the first scope of some barrier, or a
//!   semaphore was signalled behind it) before what comes makes it visible, to the stages and accesses
//!   that are named. That goes for a write behind a write as for a read. A write behind a read is only
//!   ordered.
//! - What the host has seen finish is no order on the device: see [`Event::Seen`], which counts for the
//!   host's own accesses alone. A submission makes what the host wrote before visible by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ash::vk::{AccessFlags, PipelineStageFlags};

use super::history::{
    Barrier, Command, Event, History, MemoryBarrier, Object, Range, Spot, Submission, Touch, Wait,
};
use super::promises::promises;
use super::scopes::{DEVICE, accesses, first_scope, named, second_scope};

/// Something that should be ordered, and is not.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Two accesses of the device, and whether at least their stages are in order.
    Race {
        first: (Spot, &'static str, Touch),
        second: (Spot, &'static str, Touch),
        is_ordered: bool,
    },
    /// The host touches what a command may still be at, or what it can't see.
    Host {
        first: (Spot, &'static str, Touch),
        event: usize,
        range: Range,
        is_ordered: bool,
    },
    /// Something was destroyed or reset before the host had seen that a submission with it is over.
    Ends {
        object: Object,
        event: usize,
        submission: usize,
    },
    /// A wait for a value that nothing submitted before it signals.
    Wait { spot: Spot, wait: Wait },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |f: &mut fmt::Formatter<'_>, (spot, name, touch): &(Spot, &str, Touch)| {
            let Spot {
                event,
                part,
                command,
            } = spot;
            let Range { memory, lo, hi } = touch.range;
            let access = touch.access;
            write!(
                f,
                "{name} at {event}.{part}.{command} ({access:?} {memory}: {lo}..{hi})"
            )
        };
        match self {
            Self::Race {
                first,
                second,
                is_ordered,
            } => {
                side(f, first)?;
                f.write_str(match is_ordered {
                    true => " is not visible to ",
                    false => " is not ordered before ",
                })?;
                side(f, second)
            }
            Self::Host {
                first,
                event,
                range,
                is_ordered,
            } => {
                side(f, first)?;
                f.write_str(match is_ordered {
                    true => " is not visible to ",
                    false => " is not over before ",
                })?;
                let Range { memory, lo, hi } = range;
                write!(f, "the host's access at {event} to {memory}: {lo}..{hi}")
            }
            Self::Ends {
                object,
                event,
                submission,
            } => write!(
                f,
                "{object:?} ends at {event} before its use at {submission}"
            ),
            Self::Wait { spot, wait } => write!(f, "{wait:?} at {spot:?} is for nothing"),
        }
    }
}

/// All faults of a history.
pub fn faults(history: &History) -> Vec<Fault> {
    find(history).collect()
}

/// Whether it has any.
pub fn is_sound(history: &History) -> bool {
    find(history).next().is_none()
}

fn find(history: &History) -> impl Iterator<Item = Fault> {
    let facts = Facts::of(history);
    let promises = promises(history).into_iter();
    let touches = all_touches(history);
    let races =
        touches.flat_map(move |(spot, name, touch)| Flow::of(&facts, spot, name, touch).follow());
    promises.chain(races)
}

/// Every access of the device.
fn all_touches(history: &History) -> impl Iterator<Item = (Spot, &'static str, Touch)> {
    history.submissions().flat_map(|(event, submission)| {
        commands_of(event, submission).flat_map(|(spot, command)| {
            let work = match command {
                Command::Work(work) => Some(work),
                Command::Barrier(_) => None,
            };
            let touches = work.into_iter().flat_map(|work| &work.touches);
            touches.map(move |touch| (spot, work.map_or("", |work| work.name), *touch))
        })
    })
}

fn commands_of(event: usize, submission: &Submission) -> impl Iterator<Item = (Spot, &Command)> {
    let lists = submission.lists.iter().enumerate();
    lists.flat_map(move |(part, list)| {
        let commands = list.commands.iter().enumerate();
        commands.map(move |(command, one)| {
            let spot = Spot {
                event,
                part,
                command,
            };
            (spot, one)
        })
    })
}

/// What is looked up again and again.
pub struct Facts<'a> {
    history: &'a History,
    /// The last event that touches a piece of memory.
    last: BTreeMap<u64, usize>,
    /// The memory that the host touches.
    of_host: BTreeSet<u64>,
    /// Every value that a semaphore is signalled with.
    signalled: BTreeMap<u64, BTreeSet<u64>>,
    queues: BTreeSet<u64>,
    /// The accesses that there are.
    kinds: Vec<(PipelineStageFlags, AccessFlags)>,
}

impl<'a> Facts<'a> {
    pub fn of(history: &'a History) -> Self {
        let mut facts = Self {
            history,
            last: BTreeMap::new(),
            of_host: BTreeSet::new(),
            signalled: BTreeMap::new(),
            queues: BTreeSet::new(),
            kinds: Vec::new(),
        };
        for (spot, _, touch) in all_touches(history) {
            facts.last.insert(touch.range.memory, spot.event);
            if !facts.kinds.contains(&(touch.stage, touch.access)) {
                facts.kinds.push((touch.stage, touch.access));
            }
        }
        for (at, event) in history.events.iter().enumerate() {
            match event {
                Event::HostReads(range) | Event::HostWrites(range) => {
                    facts.of_host.insert(range.memory);
                    let last = facts.last.entry(range.memory).or_default();
                    *last = at.max(*last);
                }
                Event::Submission(submission) => {
                    facts.queues.insert(submission.queue);
                    for signal in &submission.signals {
                        let values = facts.signalled.entry(signal.semaphore).or_default();
                        values.insert(signal.value);
                    }
                }
                Event::Seen(_) | Event::Ends(_) => {}
            }
        }
        facts
    }

    /// The value that a semaphore has at least once a wait for `value` is over.
    pub fn reached(&self, semaphore: u64, value: u64) -> u64 {
        let values = self.signalled.get(&semaphore);
        let next = values.and_then(|values| values.range(value..).next());
        next.copied().unwrap_or(0)
    }
}

/// What holds on one queue from here on for the access that is followed.
#[derive(Default)]
struct Behind {
    /// The stages that come after it.
    ordered: PipelineStageFlags,
    /// What it is visible to.
    visible: Vec<(PipelineStageFlags, AccessFlags)>,
}

impl Behind {
    fn show(&mut self, stages: PipelineStageFlags, accesses: AccessFlags) {
        self.visible.push((stages, accesses));
    }

    fn is_visible_to(&self, stage: PipelineStageFlags, access: AccessFlags) -> bool {
        let shows = |(stages, accesses): &(PipelineStageFlags, AccessFlags)| {
            stages.contains(stage) && accesses.intersects(access)
        };
        self.visible.iter().any(shows)
    }
}

/// Follows one access through what comes after it.
struct Flow<'a> {
    facts: &'a Facts<'a>,
    spot: Spot,
    name: &'static str,
    touch: Touch,
    /// The queue that it is made on.
    home: u64,
    is_available: bool,
    behind: BTreeMap<u64, Behind>,
    /// The lowest value of each semaphore that is signalled behind it.
    signals: BTreeMap<u64, u64>,
    /// The same for those behind which the host sees it.
    shown: BTreeMap<u64, u64>,
    /// The highest value of each semaphore that the host has seen.
    seen: BTreeMap<u64, u64>,
    faults: Vec<Fault>,
}

impl<'a> Flow<'a> {
    fn of(facts: &'a Facts<'a>, spot: Spot, name: &'static str, touch: Touch) -> Self {
        let home = match &facts.history.events[spot.event] {
            Event::Submission(submission) => submission.queue,
            _ => 0,
        };
        Self {
            facts,
            spot,
            name,
            touch,
            home,
            is_available: false,
            behind: BTreeMap::new(),
            signals: BTreeMap::new(),
            shown: BTreeMap::new(),
            seen: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    fn follow(mut self) -> Vec<Fault> {
        let memory = self.touch.range.memory;
        let last = self.facts.last.get(&memory).copied().unwrap_or(0);
        let has_host = self.facts.of_host.contains(&memory);
        // A value may have been seen before the submission that signals it had come back.
        if has_host {
            self.see_all_before();
        }
        for at in self.spot.event..=last {
            match &self.facts.history.events[at] {
                Event::Submission(submission) => {
                    self.submission(at, submission);
                    // All only grows: what comes is behind it, whatever it is.
                    if !has_host && self.is_settled() {
                        break;
                    }
                }
                Event::Seen(point) => {
                    let seen = self.seen.entry(point.semaphore).or_default();
                    *seen = point.value.max(*seen);
                }
                Event::HostReads(range) if self.touch.is_write() => self.host(at, *range),
                Event::HostWrites(range) => self.host(at, *range),
                Event::HostReads(_) | Event::Ends(_) => {}
            }
        }
        self.faults
    }

    fn see_all_before(&mut self) {
        for event in &self.facts.history.events[..self.spot.event] {
            if let Event::Seen(point) = event {
                let seen = self.seen.entry(point.semaphore).or_default();
                *seen = point.value.max(*seen);
            }
        }
    }

    fn is_settled(&self) -> bool {
        let knows_all = |behind: &Behind| {
            self.facts.kinds.iter().all(|&(stage, access)| {
                behind.ordered.contains(stage)
                    && (!self.touch.is_write() || behind.is_visible_to(stage, access))
            })
        };
        let mut queues = self.facts.queues.iter();
        queues.all(|queue| self.behind.get(queue).is_some_and(knows_all))
    }

    fn submission(&mut self, at: usize, submission: &Submission) {
        for wait in &submission.waits {
            self.wait(submission.queue, wait);
        }
        for (spot, command) in commands_of(at, submission) {
            if spot <= self.spot {
                continue;
            }
            match command {
                Command::Barrier(barrier) => self.barrier(submission.queue, barrier),
                Command::Work(work) => {
                    for touch in &work.touches {
                        self.meet(submission.queue, (spot, work.name, *touch));
                    }
                }
            }
        }
        let behind = self.behind.entry(submission.queue).or_default();
        if submission.queue != self.home && !behind.ordered.intersects(DEVICE) {
            return;
        }
        // A signal comes behind all commands before it, and makes all they wrote available.
        self.is_available = true;
        let is_shown = behind.is_visible_to(PipelineStageFlags::HOST, AccessFlags::HOST_READ);
        for signal in &submission.signals {
            let first = self.signals.entry(signal.semaphore).or_insert(signal.value);
            *first = signal.value.min(*first);
            if is_shown {
                let first = self.shown.entry(signal.semaphore).or_insert(signal.value);
                *first = signal.value.min(*first);
            }
        }
    }

    fn wait(&mut self, queue: u64, wait: &Wait) {
        let point = wait.point;
        let reached = self.facts.reached(point.semaphore, point.value);
        let first = self.signals.get(&point.semaphore);
        if first.is_some_and(|first| *first <= reached) {
            let behind = self.behind.entry(queue).or_default();
            behind.ordered |= second_scope(wait.stages);
            behind.show(named(wait.stages), AccessFlags::from_raw(u32::MAX));
        }
    }

    fn barrier(&mut self, queue: u64, barrier: &Barrier) {
        let is_home = queue == self.home;
        let behind = self.behind.entry(queue).or_default();
        let mut before = behind.ordered;
        if is_home {
            before |= self.touch.stage;
        }
        if !first_scope(barrier.from).intersects(before) {
            return;
        }
        behind.ordered |= second_scope(barrier.to);
        let touch = &self.touch;
        let covers = |memory: &&MemoryBarrier| {
            memory
                .range
                .is_none_or(|range| range.contains(&touch.range))
        };
        let takes = |memory: &MemoryBarrier| accesses(memory.from).intersects(touch.access);
        let memory: Vec<_> = barrier.memory.iter().filter(covers).collect();
        if is_home && named(barrier.from).contains(touch.stage) {
            self.is_available |= memory.iter().any(|memory| takes(memory));
        }
        if self.is_available {
            for memory in memory {
                behind.show(named(barrier.to), accesses(memory.to));
            }
        }
    }

    fn meet(&mut self, queue: u64, second: (Spot, &'static str, Touch)) {
        let touch = second.2;
        if !self.touch.conflicts(&touch) {
            return;
        }
        let behind = self.behind.entry(queue).or_default();
        let is_ordered = behind.ordered.contains(touch.stage);
        let is_visible = !self.touch.is_write() || behind.is_visible_to(touch.stage, touch.access);
        if !is_ordered || !is_visible {
            self.faults.push(Fault::Race {
                first: (self.spot, self.name, self.touch),
                second,
                is_ordered,
            });
        }
    }

    fn host(&mut self, event: usize, range: Range) {
        if !self.touch.range.overlaps(&range) {
            return;
        }
        let is_seen = |of: &BTreeMap<u64, u64>| {
            of.iter()
                .any(|(semaphore, value)| self.seen.get(semaphore) >= Some(value))
        };
        let is_ordered = is_seen(&self.signals);
        if !is_ordered || self.touch.is_write() && !is_seen(&self.shown) {
            self.faults.push(Fault::Host {
                first: (self.spot, self.name, self.touch),
                event,
                range,
                is_ordered,
            });
        }
    }
}
