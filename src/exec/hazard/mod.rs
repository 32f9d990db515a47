//! Owns the planning of hazards: which commands of a stream need a barrier between them, found out
//! from memory ranges alone.
//!
//! A [`Planner`] lists the ranges that the commands since the last barrier have touched. A command
//! that conflicts with one of them (one of the two writes, and the ranges overlap) gets one global
//! memory barrier before it, and the list starts anew. Ranges are memory, never buffers, so a block
//! that was freed and handed out again conflicts by itself.
//!
//! - Every barrier makes all earlier writes visible to the storage accesses of kernels and to
//!   transfers, whatever the command behind it is: only so may the list be cleared. The *late*
//!   readers (uniform reads, indirect arguments) are rare, and each costs something in some driver,
//!   so a barrier names them only when the command behind it is one. What they have not seen yet is
//!   kept in a second list, of writes alone.
//! - A host read always gets a barrier: what it reads may have been written by another stream, which
//!   is ordered with this one, but made visible to the device alone.
//! - Launches that the program has declared to be independent of each other (a *scope*) are only
//!   compared with what was there before the scope; any other command in between begins a new one.
//! - Uses of one command never conflict with each other: a kernel may read what it writes.
//! - The host's own accesses are listed nowhere: a submission makes host writes visible by itself,
//!   and a host read is over before the host lets its memory be written again.

#[cfg(test)]
mod scope_tests;
#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the tests use small numbers"
)]
mod tests;
mod uses;

use uses::merge_into;
pub(crate) use uses::{Barrier, Scope, Stages, Use};

/// How many ranges are listed before a barrier is given just to empty the list.
const LISTED_MAX: usize = 64;
/// How many ranges of writes that some late reader has not seen are kept apart.
const UNSEEN_MAX: usize = 16;

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
    /// The open scope of launches that are independent of each other.
    apart: Option<Apart>,
}

/// What was listed before a scope.
#[derive(Clone, Copy, Debug)]
struct Apart {
    /// The first range of the scope's own.
    start: usize,
    /// Whether the list had spilled.
    spilled: bool,
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
            apart: None,
        }
    }

    /// Lists the uses of one command, and returns the barrier that must be recorded before it.
    ///
    /// A barrier that is returned must be recorded even if the command then is not: the list has
    /// been cleared for it.
    pub(crate) fn access(&mut self, uses: &[Use]) -> Option<Barrier> {
        let reads = reads_of(uses);
        let needed = self.has_conflict(uses)
            || self.is_read_late(uses, reads)
            || reads.contains(Stages::HOST)
            || !self.has_room(uses);
        let barrier = needed.then(|| self.barrier_before(reads));
        for use_ in uses.iter().filter(|use_| use_.is_listed()) {
            self.list(use_, 0);
        }
        // What is launched in an open scope from here on is ordered behind this.
        self.split_scope();
        barrier
    }

    /// Opens a scope: launches in it are independent of each other.
    pub(crate) fn open_scope(&mut self) {
        self.apart = Some(self.now());
    }

    /// Has launches to come in an open scope ordered behind those so far.
    pub(crate) fn split_scope(&mut self) {
        self.apart = self.apart.map(|_| self.now());
    }

    /// Closes it.
    pub(crate) fn close_scope(&mut self) {
        self.apart = None;
    }

    /// The same as [`access`](Self::access) for a launch in the open scope.
    pub(crate) fn access_apart(&mut self, uses: &[Use]) -> Option<Barrier> {
        let Some(apart) = self.apart else {
            return self.access(uses);
        };
        let reads = reads_of(uses);
        let needed = apart.spilled && uses.iter().any(|use_| !use_.is_empty())
            || conflict(&self.listed()[..apart.start], uses)
            || self.is_read_late(uses, reads);
        let barrier = needed.then(|| self.barrier_before(reads));
        let start = self.apart.map_or(0, |apart| apart.start);
        for use_ in uses.iter().filter(|use_| use_.is_listed()) {
            self.list(use_, start);
        }
        barrier
    }

    /// Whether a launch with these uses is not independent of another in the open scope, as far as the
    /// list knows.
    pub(crate) fn contradicts(&self, uses: &[Use]) -> bool {
        let start = self.apart.map_or(self.listed_len, |apart| apart.start);
        conflict(&self.listed()[start..], uses)
    }

    fn now(&self) -> Apart {
        Apart {
            start: self.listed_len,
            spilled: self.spilled,
        }
    }

    /// A barrier between all that was done before and all that comes, and an empty list: for a
    /// stream whose barriers may not have come to the device.
    pub(crate) fn barrier_all(&mut self) -> Barrier {
        self.clear();
        Barrier::ALL
    }

    /// Forgets everything behind a barrier between all, and lists what was done since, in ranges that do not
    /// overlap.
    pub(crate) fn replace(&mut self, uses: &[Use]) {
        self.clear();
        for use_ in uses.iter().filter(|use_| use_.is_listed()) {
            self.since = self.since.union(use_.scope);
            match self.listed.get_mut(self.listed_len) {
                Some(slot) => {
                    *slot = *use_;
                    self.listed_len += 1;
                }
                None => self.spilled = true,
            }
        }
        self.split_scope();
    }

    /// Forgets everything, as if the stream had done nothing: for a device that starts anew.
    pub(crate) fn clear(&mut self) {
        self.listed_len = 0;
        self.since = Scope::default();
        self.spilled = false;
        self.unseen_len = 0;
        self.unseen_anywhere = Stages::NONE;
        self.unseen_writers = Stages::NONE;
        self.split_scope();
    }

    fn listed(&self) -> &[Use] {
        &self.listed[..self.listed_len]
    }

    fn has_conflict(&self, uses: &[Use]) -> bool {
        if self.spilled {
            return uses.iter().any(|use_| !use_.is_empty());
        }
        conflict(self.listed(), uses)
    }

    /// Whether a late reader reads a write that no barrier has made visible to it; `reads` is what the
    /// uses read.
    fn is_read_late(&self, uses: &[Use], reads: Stages) -> bool {
        if reads.intersection(Stages::LATE).is_empty() {
            return false;
        }
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

    /// The barrier before a command that reads so; what was listed becomes history.
    fn barrier_before(&mut self, reads: Stages) -> Barrier {
        let readers = reads.intersection(Stages::LATE);
        let host = reads.intersection(Stages::HOST);
        let mut src = self.since;
        if !host.is_empty() {
            src.writes = src.writes.union(Stages::ALWAYS);
        }
        if !readers.is_empty() {
            src.writes = src.writes.union(self.unseen_writers);
            self.mark_seen(readers);
        }
        self.retire(readers);
        let dst = Scope {
            reads: Stages::ALWAYS.union(readers).union(host),
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
        self.split_scope();
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

    /// Lists a use, in one of the ranges from `start` on or by itself.
    fn list(&mut self, use_: &Use, start: usize) {
        self.since = self.since.union(use_.scope);
        if merge_into(&mut self.listed[start..self.listed_len], use_) {
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

/// What these read, whichever range.
fn reads_of(uses: &[Use]) -> Stages {
    uses.iter()
        .filter(|use_| !use_.is_empty())
        .fold(Stages::NONE, |all, use_| all.union(use_.scope.reads))
}

/// Whether any of these conflicts with any of those.
fn conflict(listed: &[Use], uses: &[Use]) -> bool {
    uses.iter()
        .any(|use_| listed.iter().any(|listed| listed.conflicts(use_)))
}
