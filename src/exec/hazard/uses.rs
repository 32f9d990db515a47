//! What commands do with memory: stages, accesses, ranges, and the barrier between them.

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
    pub(super) const ALWAYS: Self = Self::COMPUTE.union(Self::TRANSFER);
    /// What a barrier makes memory visible to when the command behind it reads so.
    pub(super) const LATE: Self = Self::UNIFORM.union(Self::INDIRECT);

    /// How many sets there are.
    pub(crate) const SETS: usize = 1 << 5;

    /// The set of a number; the other way round than [`number`](Self::number).
    pub(crate) const fn numbered(number: usize) -> Self {
        Self(number.to_le_bytes()[0])
    }

    /// Its number, below [`SETS`](Self::SETS).
    pub(crate) const fn number(self) -> usize {
        self.0 as usize % Self::SETS
    }

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
    pub(crate) const fn union(self, other: Self) -> Self {
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
    pub(super) const EMPTY: Self = Self {
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

    pub(super) const fn is_empty(&self) -> bool {
        self.hi <= self.lo
    }

    /// Whether a later use has something to wait for, or to be waited for by.
    pub(super) fn is_listed(&self) -> bool {
        !self.is_empty() && !self.scope.stages().without(Stages::HOST).is_empty()
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.segment == other.segment && self.lo.max(other.lo) < self.hi.min(other.hi)
    }

    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.overlaps(other) && !(self.scope.writes.is_empty() && other.scope.writes.is_empty())
    }

    /// The one range that says exactly what both say, where there is one.
    pub(super) fn merged(&self, other: &Self) -> Option<Self> {
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
pub(super) fn merge_into(ranges: &mut [Use], new: &Use) -> bool {
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

impl Barrier {
    /// Between all that the device does before it and behind it; what the host reads gets a barrier
    /// of its own.
    pub(crate) const ALL: Self = {
        let device = Stages::ALWAYS
            .union(Stages::UNIFORM)
            .union(Stages::INDIRECT);
        let everything = Scope {
            reads: device,
            writes: Stages::ALWAYS,
        };
        Self {
            src: everything,
            dst: everything,
        }
    };
}
