//! Which commands of a stream need a barrier between them: pure planning by memory range.
//!
//! A [`Planner`] lists the ranges that the commands since the last barrier have touched. A command
//! that conflicts with one of them (one of the two writes, and the ranges overlap) gets one global
//! memory barrier before it, and the list starts anew. Ranges are memory, never buffers, so a block
//! that was freed and handed out again conflicts by itself.
//!
//! - Every barrier makes all earlier writes visible to the storage accesses of kernels and to
//!   transfers, whatever the command behind it is: only so may the list be cleared. The *late*
//!   readers (uniform reads, indirect arguments, the host) are rare, and each costs something in
//!   some driver, so a barrier names them only when the command behind it is one. What they have
//!   not seen yet is kept in a second list, of writes alone.
//! - Uses of one command never conflict with each other: a kernel may read what it writes.
//! - The host's own accesses are listed nowhere. A submission makes host writes visible by itself,
//!   and a host read is over before the host lets its memory be written again.

/// How many ranges are listed before a barrier is given just to empty the list.
const LISTED_MAX: usize = 64;
/// How many ranges of writes that some late reader has not seen are kept apart.
const UNSEEN_MAX: usize = 16;

/// A set of stages, each with the kind of access that it makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stages(u8);

impl Stages {
    /// No stage.
    pub(crate) const NONE: Self = Self(0);
    /// Kernels, through storage buffers and addresses.
    pub(crate) const COMPUTE: Self = Self(1);
    /// Copies, fills and updates.
    pub(crate) const TRANSFER: Self = Self(1 << 1);
    /// Kernels, through uniform buffers.
    pub(crate) const UNIFORM: Self = Self(1 << 2);
    /// The group counts of an indirect launch.
    pub(crate) const INDIRECT: Self = Self(1 << 3);
    /// The host, through mapped memory.
    pub(crate) const HOST: Self = Self(1 << 4);

    /// What every barrier makes memory visible to.
    const ALWAYS: Self = Self::COMPUTE.union(Self::TRANSFER);
    /// What a barrier makes memory visible to when the command behind it reads so.
    const LATE: Self = Self::UNIFORM.union(Self::INDIRECT).union(Self::HOST);

    /// The stages of either set.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The stages of both sets.
    pub(crate) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The stages of this set that are not in the other.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every stage of `other` is in this set.
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Accesses by stage and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The stages that read.
    pub(crate) reads: Stages,
    /// The stages that write.
    pub(crate) writes: Stages,
}

impl Scope {
    const fn union(self, other: Self) -> Self {
        Self {
            reads: self.reads.union(other.reads),
            writes: self.writes.union(other.writes),
        }
    }

    /// Every stage of the scope, whatever it does.
    pub(crate) const fn stages(self) -> Stages {
        self.reads.union(self.writes)
    }
}

/// One memory range that a command touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The segment, by a number that no other living segment has.
    pub(crate) segment: u64,
    /// The first byte, from the segment's start.
    pub(crate) lo: u64,
    /// The byte after the last; a range with `hi <= lo` is empty and conflicts with nothing.
    pub(crate) hi: u64,
    /// What is done with it.
    pub(crate) scope: Scope,
}

impl Use {
    const EMPTY: Self = Self {
        segment: 0,
        lo: 0,
        hi: 0,
        scope: Scope {
            reads: Stages::NONE,
            writes: Stages::NONE,
        },
    };

    /// A range that `stage` reads.
    pub(crate) const fn read(segment: u64, lo: u64, hi: u64, stage: Stages) -> Self {
        let scope = Scope {
            reads: stage,
            writes: Stages::NONE,
        };
        Self {
            segment,
            lo,
            hi,
            scope,
        }
    }

    /// A range that `stage` writes without reading it.
    pub(crate) const fn write(segment: u64, lo: u64, hi: u64, stage: Stages) -> Self {
        let scope = Scope {
            reads: Stages::NONE,
            writes: stage,
        };
        Self {
            segment,
            lo,
            hi,
            scope,
        }
    }

    /// A range that `stage` reads and writes.
    pub(crate) const fn read_write(segment: u64, lo: u64, hi: u64, stage: Stages) -> Self {
        let scope = Scope {
            reads: stage,
            writes: stage,
        };
        Self {
            segment,
            lo,
            hi,
            scope,
        }
    }

    const fn is_empty(&self) -> bool {
        self.hi <= self.lo
    }

    /// Whether a later use has something to wait for, or to be waited for by.
    fn is_listed(&self) -> bool {
        !self.is_empty() && !self.scope.stages().without(Stages::HOST).is_empty()
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.segment == other.segment && self.lo.max(other.lo) < self.hi.min(other.hi)
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.overlaps(other) && !(self.scope.writes.is_empty() && other.scope.writes.is_empty())
    }

    /// The one range that says exactly what both say, where there is one.
    fn merged(&self, other: &Self) -> Option<Self> {
        if self.segment != other.segment {
            return None;
        }
        if self.lo == other.lo && self.hi == other.hi {
            let scope = self.scope.union(other.scope);
            return Some(Self { scope, ..*self });
        }
        let touch = self.lo <= other.hi && other.lo <= self.hi;
        (touch && self.scope == other.scope).then(|| Self {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
            ..*self
        })
    }
}

/// Puts `new` into one of `ranges`, if one takes it.
fn merge_into(ranges: &mut [Use], new: &Use) -> bool {
    for range in ranges {
        if let Some(merged) = range.merged(new) {
            *range = merged;
            return true;
        }
    }
    false
}

/// A global memory barrier: what must be over and written back, and what it must be visible to.
///
/// Where nothing was written before it (`src.writes` is empty), it orders alone and needs no
/// memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    /// The accesses before the barrier.
    pub(crate) src: Scope,
    /// The accesses behind it.
    pub(crate) dst: Scope,
}

/// The ranges that the commands of one stream have touched since its last barrier.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    listed: [Use; LISTED_MAX],
    listed_len: usize,
    /// All that the commands since the last barrier do, those of `spilled` included.
    since: Scope,
    /// One command touched more ranges than the list holds, so whatever comes next may conflict.
    spilled: bool,
    /// Writes before the last barrier, each with the late readers that it is not visible to (as
    /// the reads of its scope).
    unseen: [Use; UNSEEN_MAX],
    unseen_len: usize,
    /// The late readers that some write before the last barrier may not be visible to, no matter
    /// which range; takes over when `unseen` is full.
    unseen_anywhere: Stages,
    /// The stages that made the writes of `unseen` and `unseen_anywhere`.
    unseen_writers: Stages,
}

impl Default for Planner {
    fn default() -> Self {
        Self::new()
    }
}

impl Planner {
    /// A planner of a stream that has done nothing yet.
    pub(crate) const fn new() -> Self {
        Self {
            listed: [Use::EMPTY; LISTED_MAX],
            listed_len: 0,
            since: Scope {
                reads: Stages::NONE,
                writes: Stages::NONE,
            },
            spilled: false,
            unseen: [Use::EMPTY; UNSEEN_MAX],
            unseen_len: 0,
            unseen_anywhere: Stages::NONE,
            unseen_writers: Stages::NONE,
        }
    }

    /// Lists the uses of one command, and returns the barrier that must be recorded before it.
    ///
    /// A barrier that is returned must be recorded even if the command then is not: the list has
    /// been cleared for it.
    pub(crate) fn access(&mut self, uses: &[Use]) -> Option<Barrier> {
        let needed = self.has_conflict(uses) || self.is_read_late(uses) || !self.has_room(uses);
        let barrier = needed.then(|| self.barrier_before(uses));
        for use_ in uses.iter().filter(|use_| use_.is_listed()) {
            self.list(use_);
        }
        barrier
    }

    /// A barrier between all that any stream has done before on the lane and all that comes, and
    /// an empty list: for the start of a recording, and for a wait on the same lane.
    pub(crate) fn barrier_all(&mut self) -> Barrier {
        let device = Stages::ALWAYS
            .union(Stages::UNIFORM)
            .union(Stages::INDIRECT);
        let everything = Scope {
            reads: device,
            writes: Stages::ALWAYS,
        };
        self.clear();
        // The host reads rarely, and what it reads was copied for it by this very stream, so it is
        // left to a barrier of its own.
        self.unseen_anywhere = Stages::HOST;
        self.unseen_writers = Stages::ALWAYS;
        Barrier {
            src: everything,
            dst: everything,
        }
    }

    /// Forgets everything, as if the stream had done nothing: for a device that starts anew.
    pub(crate) fn clear(&mut self) {
        self.listed_len = 0;
        self.since = Scope::default();
        self.spilled = false;
        self.unseen_len = 0;
        self.unseen_anywhere = Stages::NONE;
        self.unseen_writers = Stages::NONE;
    }

    fn listed(&self) -> &[Use] {
        &self.listed[..self.listed_len]
    }

    fn has_conflict(&self, uses: &[Use]) -> bool {
        if self.spilled {
            return uses.iter().any(|use_| !use_.is_empty());
        }
        uses.iter()
            .any(|use_| self.listed().iter().any(|listed| listed.conflicts(use_)))
    }

    /// Whether a late reader reads a write that no barrier has made visible to it.
    fn is_read_late(&self, uses: &[Use]) -> bool {
        uses.iter().any(|use_| {
            let readers = use_.scope.reads.intersection(Stages::LATE);
            if readers.is_empty() || use_.is_empty() {
                return false;
            }
            let is_unseen = |stages: Stages| !stages.intersection(readers).is_empty();
            is_unseen(self.unseen_anywhere)
                || self.unseen[..self.unseen_len]
                    .iter()
                    .any(|write| write.overlaps(use_) && is_unseen(write.scope.reads))
        })
    }

    /// Whether the list takes all of these. A list that is empty counts as one that does: no
    /// barrier could make more room.
    fn has_room(&self, uses: &[Use]) -> bool {
        if self.listed_len == 0 || self.listed_len + uses.len() <= LISTED_MAX {
            return true;
        }
        let new = uses
            .iter()
            .filter(|use_| use_.is_listed())
            .filter(|use_| {
                !self
                    .listed()
                    .iter()
                    .any(|range| range.merged(use_).is_some())
            })
            .count();
        self.listed_len + new <= LISTED_MAX
    }

    /// The barrier before a command with these uses; what was listed becomes history.
    #[cold]
    fn barrier_before(&mut self, uses: &[Use]) -> Barrier {
        let readers = uses
            .iter()
            .filter(|use_| !use_.is_empty())
            .fold(Stages::NONE, |all, use_| all.union(use_.scope.reads))
            .intersection(Stages::LATE);
        let mut src = self.since;
        if !readers.is_empty() {
            src.writes = src.writes.union(self.unseen_writers);
            self.mark_seen(readers);
        }
        self.retire(readers);
        let dst = Scope {
            reads: Stages::ALWAYS.union(readers),
            writes: Stages::ALWAYS,
        };
        Barrier { src, dst }
    }

    /// All writes before the last barrier are now visible to `readers`.
    fn mark_seen(&mut self, readers: Stages) {
        self.unseen_anywhere = self.unseen_anywhere.without(readers);
        let mut kept = 0;
        for index in 0..self.unseen_len {
            let mut write = self.unseen[index];
            write.scope.reads = write.scope.reads.without(readers);
            if !write.scope.reads.is_empty() {
                self.unseen[kept] = write;
                kept += 1;
            }
        }
        self.unseen_len = kept;
    }

    /// Empties the list behind a barrier that made its writes visible to `readers` and to all
    /// that is always named.
    fn retire(&mut self, readers: Stages) {
        let late = Stages::LATE.without(readers);
        self.unseen_writers = self.unseen_writers.union(self.since.writes);
        if self.spilled {
            self.unseen_anywhere = self.unseen_anywhere.union(late);
        }
        for index in 0..self.listed_len {
            let mut write = self.listed[index];
            let reads = late.without(self.unseen_anywhere);
            if !write.scope.writes.is_empty() && !reads.is_empty() {
                write.scope = Scope {
                    reads,
                    writes: Stages::NONE,
                };
                self.keep_unseen(write);
            }
        }
        self.listed_len = 0;
        self.since = Scope::default();
        self.spilled = false;
    }

    fn keep_unseen(&mut self, write: Use) {
        if merge_into(&mut self.unseen[..self.unseen_len], &write) {
            return;
        }
        if let Some(slot) = self.unseen.get_mut(self.unseen_len) {
            *slot = write;
            self.unseen_len += 1;
            return;
        }
        let all = self.unseen.iter().chain(core::iter::once(&write));
        self.unseen_anywhere = all.fold(self.unseen_anywhere, |readers, write| {
            readers.union(write.scope.reads)
        });
        self.unseen_len = 0;
    }

    fn list(&mut self, use_: &Use) {
        self.since = self.since.union(use_.scope);
        if merge_into(&mut self.listed[..self.listed_len], use_) {
            return;
        }
        if let Some(slot) = self.listed.get_mut(self.listed_len) {
            *slot = *use_;
            self.listed_len += 1;
        } else {
            self.spilled = true;
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the tests use small numbers"
)]
#[path = "hazard_tests.rs"]
mod tests;
