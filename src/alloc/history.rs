//! What an allocator did, in order: a ring of entries, of which the oldest make room.
//!
//! An allocator that records nothing has no [`History`], and looks for one once an operation.

use std::collections::VecDeque;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) use super::frames::{Context, FrameCache};
use super::snapshot::{TraceAction, TraceEntry};

/// What to record of a device's allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// How many entries are kept at most: newer ones replace the oldest. With 0 only the blocks
    /// that are in use know who allocated them.
    pub max_entries: usize,
    /// Whether entries know the whole stack, and not only the place of the call. Capturing one takes
    /// microseconds.
    pub backtraces: bool,
}

impl HistoryOptions {
    /// How many entries are kept unless another number is set.
    pub const DEFAULT_MAX_ENTRIES: usize = 100_000;

    /// These options with another number of entries that are kept at most.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::HistoryOptions;
    ///
    /// let options = HistoryOptions::default().with_max_entries(1_000_000);
    /// assert_eq!((options.max_entries, options.backtraces), (1_000_000, false));
    /// ```
    #[must_use]
    pub const fn with_max_entries(mut self, max_entries: usize) -> Self {
        self.max_entries = max_entries;
        self
    }

    /// These options with whole stacks, or without them.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::alloc::{AllocConf, HistoryOptions, Simulator};
    ///
    /// let options = HistoryOptions::default().with_backtraces(true);
    /// assert!(options.backtraces);
    ///
    /// let mut device = Simulator::new(1 << 30, AllocConf::default());
    /// device.record_history(Some(options));
    /// ```
    #[must_use]
    pub const fn with_backtraces(mut self, backtraces: bool) -> Self {
        self.backtraces = backtraces;
        self
    }
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            max_entries: Self::DEFAULT_MAX_ENTRIES,
            backtraces: false,
        }
    }
}

/// What is to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) action: TraceAction,
    /// Where the block or segment starts; when out of memory, what the device has free.
    pub(crate) address: u64,
    /// What was asked for, of blocks; the size of segments.
    pub(crate) size: u64,
    pub(crate) stream: u64,
    pub(crate) pool: (u64, u64),
    pub(crate) context: Context,
}

/// Where times come from.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// The machine: when it was looked at first, both ways.
    Machine { start: Instant, start_us: u64 },
    /// Whoever replays something.
    Set(u64),
}

/// A ring of entries.
#[derive(Clone, Debug)]
pub(crate) struct History {
    options: HistoryOptions,
    records: VecDeque<Record>,
    /// How many entries those are.
    held: usize,
    dropped: u64,
    /// The pools, by the numbers that records have for them.
    pools: Vec<(u64, u64)>,
    clock: Clock,
}

/// An entry, or two: most blocks are free as soon as they are given back. Kept small, since what
/// recording costs is writing them to memory.
#[derive(Clone, Debug)]
struct Record {
    /// Nanoseconds of the clock.
    time: u64,
    address: u64,
    size: u64,
    stream: u64,
    context: Context,
    pool: u32,
    action: TraceAction,
    /// Whether the block that was given back was free at once.
    completed: bool,
}

impl Record {
    fn entries(&self) -> usize {
        1 + usize::from(self.completed)
    }
}

impl History {
    pub(crate) fn new(options: HistoryOptions) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let start_us = since.map_or(0, |since| since.as_micros());
        Self {
            options,
            records: VecDeque::new(),
            held: 0,
            dropped: 0,
            pools: vec![(0, 0)],
            clock: Clock::Machine {
                start: Instant::now(),
                start_us: u64::try_from(start_us).unwrap_or(u64::MAX),
            },
        }
    }

    /// One whose times are what [`set_time`](Self::set_time) says.
    pub(crate) fn without_clock(options: HistoryOptions) -> Self {
        Self {
            clock: Clock::Set(0),
            ..Self::new(options)
        }
    }

    /// Sets what is recorded from now on; the newest entries stay, as many as fit.
    pub(crate) fn set_options(&mut self, options: HistoryOptions) {
        self.options = options;
        self.make_room(0);
    }

    /// Sets the time of entries to come, in microseconds; one with a clock goes by that.
    pub(crate) fn set_time(&mut self, time_us: u64) {
        if let Clock::Set(time) = &mut self.clock {
            *time = time_us.saturating_mul(1000);
        }
    }

    /// The time for entries of one moment.
    pub(crate) fn now(&self) -> u64 {
        match self.clock {
            Clock::Machine { start, .. } => {
                u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
            }
            Clock::Set(time) => time,
        }
    }

    /// Records with a time that [`now`](Self::now) gave: looking at the clock costs more than the
    /// rest.
    #[inline]
    pub(crate) fn record_at(&mut self, now: u64, entry: Entry) {
        if !self.make_room(1) {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.held += 1;
        let pool = self.number_of(entry.pool);
        self.records.push_back(Record {
            time: now,
            address: entry.address,
            size: entry.size,
            stream: entry.stream,
            context: entry.context,
            pool,
            action: entry.action,
            completed: false,
        });
    }

    /// Records that the block which was given back last is free, if it is this one, and that happened
    /// just now; else it is an entry of its own.
    #[inline]
    pub(crate) fn complete(&mut self, now: u64, address: u64, size: u64) -> bool {
        let is_of_last = |last: &Record| {
            last.action == TraceAction::FreeRequested
                && !last.completed
                && (last.time, last.address, last.size) == (now, address, size)
        };
        if !self.records.back().is_some_and(is_of_last) || !self.make_room(1) {
            return false;
        }
        // Making room may have dropped it, where there is room for one entry alone.
        match self.records.back_mut() {
            Some(last) => last.completed = true,
            None => return false,
        }
        self.held += 1;
        true
    }

    /// Drops the oldest entries until there is room for more; false if there never is.
    #[inline]
    fn make_room(&mut self, more: usize) -> bool {
        while self.held.saturating_add(more) > self.options.max_entries {
            let Some(oldest) = self.records.pop_front() else {
                return false;
            };
            self.held -= oldest.entries();
            self.dropped = self.dropped.saturating_add(oldest.entries() as u64);
        }
        true
    }

    #[inline]
    fn number_of(&mut self, pool: (u64, u64)) -> u32 {
        if pool == (0, 0) {
            return 0;
        }
        let found = self.pools.iter().position(|known| *known == pool);
        let place = found.unwrap_or_else(|| {
            self.pools.push(pool);
            self.pools.len() - 1
        });
        u32::try_from(place).unwrap_or(0)
    }

    /// How many entries had to make room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What is recorded, the oldest first.
    pub(crate) fn entries(&self, frames: &mut FrameCache) -> Vec<TraceEntry> {
        let start_us = match self.clock {
            Clock::Machine { start_us, .. } => start_us,
            Clock::Set(_) => 0,
        };
        let mut entries = Vec::with_capacity(self.held);
        for record in &self.records {
            let is_oom = record.action == TraceAction::Oom;
            let pool = usize::try_from(record.pool).ok();
            let entry = TraceEntry {
                action: record.action,
                address: if is_oom { 0 } else { record.address },
                size: record.size,
                stream: record.stream,
                pool: pool
                    .and_then(|place| self.pools.get(place).copied())
                    .unwrap_or_default(),
                time_us: start_us.saturating_add(record.time / 1000),
                device_free: if is_oom { record.address } else { 0 },
                frames: frames.frames(&record.context),
            };
            if record.completed {
                entries.push(entry.clone());
                let action = TraceAction::FreeCompleted;
                entries.push(TraceEntry { action, ..entry });
            } else {
                entries.push(entry);
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl History {
        fn record(&mut self, entry: Entry) {
            self.record_at(self.now(), entry);
        }
    }

    fn entry(action: TraceAction, address: u64) -> Entry {
        Entry {
            action,
            address,
            size: 512,
            stream: 3,
            pool: (0, 7),
            context: Context::default(),
        }
    }

    fn addresses(history: &History) -> Vec<u64> {
        let entries = history.entries(&mut FrameCache::default());
        entries.iter().map(|entry| entry.address).collect()
    }

    #[test]
    fn the_oldest_entries_make_room_and_are_counted() {
        let mut history = History::new(HistoryOptions {
            max_entries: 3,
            ..HistoryOptions::default()
        });
        for address in 0..5 {
            history.record(entry(TraceAction::Alloc, address));
        }
        assert_eq!(addresses(&history), [2, 3, 4]);
        assert_eq!(history.dropped(), 2);
        history.set_options(HistoryOptions {
            max_entries: 1,
            backtraces: true,
        });
        assert_eq!(addresses(&history), [4]);
        assert_eq!(history.dropped(), 4);
    }

    #[test]
    fn what_is_free_at_once_counts_as_two_and_reads_as_two() {
        let mut history = History::without_clock(HistoryOptions {
            max_entries: 5,
            ..HistoryOptions::default()
        });
        let actions = |history: &History| -> Vec<TraceAction> {
            let entries = history.entries(&mut FrameCache::default());
            entries.iter().map(|entry| entry.action).collect()
        };
        use TraceAction::{Alloc, FreeCompleted, FreeRequested};
        for action in [Alloc, FreeRequested] {
            history.record(entry(action, 1));
        }
        assert!(history.complete(0, 1, 512));
        assert!(!history.complete(0, 1, 512), "it is free already");
        history.record(entry(FreeRequested, 1));
        assert!(!history.complete(0, 2, 512), "of another block");
        assert!(!history.complete(1, 1, 512), "at another time");
        history.record(entry(FreeCompleted, 2));
        let all = [
            Alloc,
            FreeRequested,
            FreeCompleted,
            FreeRequested,
            FreeCompleted,
        ];
        assert_eq!(actions(&history), all);
        assert_eq!(addresses(&history), [1, 1, 1, 1, 2]);
        history.record(entry(Alloc, 3));
        assert_eq!((history.dropped(), actions(&history).len()), (1, 5));
        history.record(entry(Alloc, 4));
        assert_eq!((history.dropped(), actions(&history).len()), (3, 4));
        assert_eq!(history.held, 4);
        let mut one = History::without_clock(HistoryOptions {
            max_entries: 1,
            ..HistoryOptions::default()
        });
        one.record(entry(FreeRequested, 1));
        assert!(!one.complete(0, 1, 512), "there is no room for both");
        assert_eq!((one.dropped(), one.held), (1, 0));
    }

    #[test]
    fn a_ring_without_room_keeps_nothing() {
        let mut history = History::new(HistoryOptions {
            max_entries: 0,
            ..HistoryOptions::default()
        });
        history.record(entry(TraceAction::Alloc, 1));
        assert_eq!(addresses(&history), [0; 0]);
    }

    #[test]
    fn times_are_those_of_the_machine_or_those_set() {
        let options = HistoryOptions::default();
        let now = |history: &History| history.entries(&mut FrameCache::default())[0].time_us;
        let mut machine = History::new(options.clone());
        machine.set_time(5);
        machine.record(entry(TraceAction::Alloc, 0));
        // After the year 2020.
        assert!(now(&machine) > 1_577_836_800_000_000);
        let mut set = History::without_clock(options);
        set.set_time(5);
        set.record(entry(TraceAction::Alloc, 0));
        assert_eq!(now(&set), 5);
    }

    #[test]
    fn out_of_memory_has_what_was_free_in_place_of_an_address() {
        let mut history = History::new(HistoryOptions::default());
        history.record(entry(TraceAction::Oom, 99));
        let entries = history.entries(&mut FrameCache::default());
        let oom = &entries[0];
        assert_eq!((oom.address, oom.device_free), (0, 99));
        assert_eq!((oom.size, oom.stream, oom.pool), (512, 3, (0, 7)));
    }
}
