// @generated from spec/memory_stats.yaml by build.rs (codegen/). Change the spec, not this text.

use core::fmt;
use std::collections::BTreeMap;

/// A number that goes up and down, with its history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// The value now.
    pub current: u64,
    /// The highest value since the start or the last reset of the peaks.
    pub peak: u64,
    /// The sum of all increases.
    pub allocated: u64,
    /// The sum of all decreases.
    pub freed: u64,
}

impl Stat {
    /// Notes that the number has grown.
    pub(crate) fn increase(&mut self, by: u64) {
        self.current = self.current.saturating_add(by);
        self.peak = self.peak.max(self.current);
        self.allocated = self.allocated.saturating_add(by);
    }

    /// Notes that the number has shrunk, by no more than it was.
    pub(crate) fn decrease(&mut self, by: u64) {
        debug_assert!(by <= self.current, "{by} of {} taken away", self.current);
        self.current = self.current.saturating_sub(by);
        self.freed = self.freed.saturating_add(by);
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    fn reset_accumulated(&mut self) {
        self.allocated = 0;
        self.freed = 0;
    }

    fn since(&self, earlier: &Self) -> StatDelta {
        StatDelta {
            current: change(self.current, earlier.current),
            allocated: growth(self.allocated, earlier.allocated),
            freed: growth(self.freed, earlier.freed),
        }
    }

    fn numbers(&self) -> [u64; 4] {
        [self.current, self.peak, self.allocated, self.freed]
    }
}

/// The pool that a change belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Requests of more than 1 MiB after rounding.
    LargePool,
    /// Requests of at most 1 MiB after rounding.
    SmallPool,
}

/// A [`Stat`] for each pool, and for all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStat {
    /// Both pools together.
    pub all: Stat,
    /// Requests of more than 1 MiB after rounding.
    pub large_pool: Stat,
    /// Requests of at most 1 MiB after rounding.
    pub small_pool: Stat,
}

impl PoolStat {
    /// Notes that the number has grown in a pool.
    pub(crate) fn increase(&mut self, pool: Pool, by: u64) {
        self.all.increase(by);
        self.part(pool).increase(by);
    }

    /// Notes that the number has shrunk in a pool, by no more than it was there.
    pub(crate) fn decrease(&mut self, pool: Pool, by: u64) {
        self.all.decrease(by);
        self.part(pool).decrease(by);
    }

    fn part(&mut self, pool: Pool) -> &mut Stat {
        match pool {
            Pool::LargePool => &mut self.large_pool,
            Pool::SmallPool => &mut self.small_pool,
        }
    }

    fn reset_peak(&mut self) {
        self.all.reset_peak();
        self.large_pool.reset_peak();
        self.small_pool.reset_peak();
    }

    fn reset_accumulated(&mut self) {
        self.all.reset_accumulated();
        self.large_pool.reset_accumulated();
        self.small_pool.reset_accumulated();
    }

    fn since(&self, earlier: &Self) -> PoolStatDelta {
        PoolStatDelta {
            all: self.all.since(&earlier.all),
            large_pool: self.large_pool.since(&earlier.large_pool),
            small_pool: self.small_pool.since(&earlier.small_pool),
        }
    }
}

/// What a device's memory allocator has done so far: levels, peaks, sums and counts.
///
/// A plain value that follows nothing: take another one later, and [`since`](Self::since) tells
/// what happened in between. As a flat table it has the keys of PyTorch's `memory_stats`.
///
/// # Example
///
/// ```
/// use vkaccel::MemoryStats;
///
/// let stats = MemoryStats::default();
/// assert!(stats.is_empty());
/// assert_eq!(stats.allocated.all.current, 0);
/// assert_eq!(stats.get("allocated.all.current"), None);
/// assert!(MemoryStats::KEYS.contains(&"allocated.all.current"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Blocks that are handed out and not given back yet.
    ///
    /// In blocks. Documented by PyTorch, which really says `allocation`.
    pub allocated: PoolStat,
    /// The memory in those blocks, rounding included.
    ///
    /// In bytes. Documented by PyTorch.
    pub allocated_bytes: PoolStat,
    /// Allocations that the driver made for this process and that are still held.
    ///
    /// In segments. Documented by PyTorch.
    pub segment: PoolStat,
    /// The memory in those segments, whether handed out or cached.
    ///
    /// In bytes. Documented by PyTorch.
    pub reserved_bytes: PoolStat,
    /// Blocks that are handed out, or given back while commands that use them are unfinished.
    ///
    /// In blocks. Documented by PyTorch.
    pub active: PoolStat,
    /// The memory in the active blocks.
    ///
    /// In bytes. Documented by PyTorch.
    pub active_bytes: PoolStat,
    /// Free blocks that share their segment with others, so that it can't go back to the driver.
    ///
    /// In blocks. Documented by PyTorch.
    pub inactive_split: PoolStat,
    /// The memory in those free blocks.
    ///
    /// In bytes. Documented by PyTorch.
    pub inactive_split_bytes: PoolStat,
    /// What callers asked for, of the active blocks; what is missing to `active_bytes` is lost to
    /// rounding.
    ///
    /// In bytes. PyTorch has it, but its pages on accelerators do not say so.
    pub requested_bytes: PoolStat,
    /// Blocks handed out that are at least as large as `max_split_size`.
    ///
    /// In blocks. PyTorch has it, but its pages on accelerators do not say so.
    pub oversize_allocations: Stat,
    /// Segments that are at least as large as `max_split_size`.
    ///
    /// In segments. PyTorch has it, but its pages on accelerators do not say so.
    pub oversize_segments: Stat,
    /// Times that there was no room for a new segment, the cache was given back, and it was tried
    /// again: the driver had no memory, or a limit stood in the way and the driver was not asked.
    ///
    /// Documented by PyTorch.
    pub num_alloc_retries: u64,
    /// Errors of kind `OutOfMemory` that reached a caller.
    ///
    /// Documented by PyTorch.
    pub num_ooms: u64,
    /// Times that the allocator waited for every stream that still used memory given back.
    ///
    /// Documented by PyTorch.
    pub num_sync_all_streams: u64,
    /// Segments that were asked of the driver, and given.
    ///
    /// Documented by PyTorch.
    pub num_device_alloc: u64,
    /// Segments that went back to the driver.
    ///
    /// Documented by PyTorch.
    pub num_device_free: u64,
    /// Requests that failed since they would exceed the limit in bytes, which `set_memory_limit`
    /// sets. They count in `num_ooms` too; those that the memory fraction alone refuses count only
    /// there.
    ///
    /// PyTorch has it, but its pages on accelerators do not say so.
    pub num_oom_rejections: u64,
    /// The size from which a block is not split any more; none means that every block may be.
    ///
    /// In bytes. PyTorch has it, but its pages on accelerators do not say so. As a flat value
    /// `None` is -1.
    pub max_split_size: Option<u64>,
    /// Whether there is an allocator that these are of.
    filled: bool,
}

impl MemoryStats {
    /// The keys of the flat table, sorted.
    pub const KEYS: &'static [&'static str] = &[
        "active.all.allocated",
        "active.all.current",
        "active.all.freed",
        "active.all.peak",
        "active.large_pool.allocated",
        "active.large_pool.current",
        "active.large_pool.freed",
        "active.large_pool.peak",
        "active.small_pool.allocated",
        "active.small_pool.current",
        "active.small_pool.freed",
        "active.small_pool.peak",
        "active_bytes.all.allocated",
        "active_bytes.all.current",
        "active_bytes.all.freed",
        "active_bytes.all.peak",
        "active_bytes.large_pool.allocated",
        "active_bytes.large_pool.current",
        "active_bytes.large_pool.freed",
        "active_bytes.large_pool.peak",
        "active_bytes.small_pool.allocated",
        "active_bytes.small_pool.current",
        "active_bytes.small_pool.freed",
        "active_bytes.small_pool.peak",
        "allocated.all.allocated",
        "allocated.all.current",
        "allocated.all.freed",
        "allocated.all.peak",
        "allocated.large_pool.allocated",
        "allocated.large_pool.current",
        "allocated.large_pool.freed",
        "allocated.large_pool.peak",
        "allocated.small_pool.allocated",
        "allocated.small_pool.current",
        "allocated.small_pool.freed",
        "allocated.small_pool.peak",
        "allocated_bytes.all.allocated",
        "allocated_bytes.all.current",
        "allocated_bytes.all.freed",
        "allocated_bytes.all.peak",
        "allocated_bytes.large_pool.allocated",
        "allocated_bytes.large_pool.current",
        "allocated_bytes.large_pool.freed",
        "allocated_bytes.large_pool.peak",
        "allocated_bytes.small_pool.allocated",
        "allocated_bytes.small_pool.current",
        "allocated_bytes.small_pool.freed",
        "allocated_bytes.small_pool.peak",
        "inactive_split.all.allocated",
        "inactive_split.all.current",
        "inactive_split.all.freed",
        "inactive_split.all.peak",
        "inactive_split.large_pool.allocated",
        "inactive_split.large_pool.current",
        "inactive_split.large_pool.freed",
        "inactive_split.large_pool.peak",
        "inactive_split.small_pool.allocated",
        "inactive_split.small_pool.current",
        "inactive_split.small_pool.freed",
        "inactive_split.small_pool.peak",
        "inactive_split_bytes.all.allocated",
        "inactive_split_bytes.all.current",
        "inactive_split_bytes.all.freed",
        "inactive_split_bytes.all.peak",
        "inactive_split_bytes.large_pool.allocated",
        "inactive_split_bytes.large_pool.current",
        "inactive_split_bytes.large_pool.freed",
        "inactive_split_bytes.large_pool.peak",
        "inactive_split_bytes.small_pool.allocated",
        "inactive_split_bytes.small_pool.current",
        "inactive_split_bytes.small_pool.freed",
        "inactive_split_bytes.small_pool.peak",
        "max_split_size",
        "num_alloc_retries",
        "num_device_alloc",
        "num_device_free",
        "num_oom_rejections",
        "num_ooms",
        "num_sync_all_streams",
        "oversize_allocations.allocated",
        "oversize_allocations.current",
        "oversize_allocations.freed",
        "oversize_allocations.peak",
        "oversize_segments.allocated",
        "oversize_segments.current",
        "oversize_segments.freed",
        "oversize_segments.peak",
        "requested_bytes.all.allocated",
        "requested_bytes.all.current",
        "requested_bytes.all.freed",
        "requested_bytes.all.peak",
        "requested_bytes.large_pool.allocated",
        "requested_bytes.large_pool.current",
        "requested_bytes.large_pool.freed",
        "requested_bytes.large_pool.peak",
        "requested_bytes.small_pool.allocated",
        "requested_bytes.small_pool.current",
        "requested_bytes.small_pool.freed",
        "requested_bytes.small_pool.peak",
        "reserved_bytes.all.allocated",
        "reserved_bytes.all.current",
        "reserved_bytes.all.freed",
        "reserved_bytes.all.peak",
        "reserved_bytes.large_pool.allocated",
        "reserved_bytes.large_pool.current",
        "reserved_bytes.large_pool.freed",
        "reserved_bytes.large_pool.peak",
        "reserved_bytes.small_pool.allocated",
        "reserved_bytes.small_pool.current",
        "reserved_bytes.small_pool.freed",
        "reserved_bytes.small_pool.peak",
        "segment.all.allocated",
        "segment.all.current",
        "segment.all.freed",
        "segment.all.peak",
        "segment.large_pool.allocated",
        "segment.large_pool.current",
        "segment.large_pool.freed",
        "segment.large_pool.peak",
        "segment.small_pool.allocated",
        "segment.small_pool.current",
        "segment.small_pool.freed",
        "segment.small_pool.peak",
    ];

    /// Other spellings of keys, sorted, with the keys that they mean.
    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("allocation.all.allocated", "allocated.all.allocated"),
        ("allocation.all.current", "allocated.all.current"),
        ("allocation.all.freed", "allocated.all.freed"),
        ("allocation.all.peak", "allocated.all.peak"),
        (
            "allocation.large_pool.allocated",
            "allocated.large_pool.allocated",
        ),
        (
            "allocation.large_pool.current",
            "allocated.large_pool.current",
        ),
        ("allocation.large_pool.freed", "allocated.large_pool.freed"),
        ("allocation.large_pool.peak", "allocated.large_pool.peak"),
        (
            "allocation.small_pool.allocated",
            "allocated.small_pool.allocated",
        ),
        (
            "allocation.small_pool.current",
            "allocated.small_pool.current",
        ),
        ("allocation.small_pool.freed", "allocated.small_pool.freed"),
        ("allocation.small_pool.peak", "allocated.small_pool.peak"),
    ];

    /// The statistics of an allocator that has done nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            filled: true,
            ..Self::default()
        }
    }

    /// Whether the device has no allocator yet: then every field is 0, and the flat forms have no
    /// entries.
    pub fn is_empty(&self) -> bool {
        !self.filled
    }

    /// The value of a key, given as in [`KEYS`](Self::KEYS) or in another spelling that PyTorch has.
    ///
    /// `None` for an unknown key, and while [`is_empty`](Self::is_empty). A setting that is not set
    /// is -1 here.
    pub fn get(&self, key: &str) -> Option<i64> {
        let alias = Self::ALIASES.binary_search_by_key(&key, |(alias, _)| alias);
        let key = alias.map_or(key, |found| Self::ALIASES[found].1);
        let found = Self::KEYS.binary_search(&key).ok()?;
        self.filled.then(|| self.values()[found])
    }

    /// Every key with its value, sorted by key; nothing while [`is_empty`](Self::is_empty).
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + use<> {
        let count = if self.filled { Self::KEYS.len() } else { 0 };
        let keys = Self::KEYS.iter().copied();
        keys.zip(self.values()).take(count)
    }

    /// [`iter`](Self::iter) as a map.
    pub fn to_map(&self) -> BTreeMap<&'static str, i64> {
        self.iter().collect()
    }

    /// What happened since `earlier`, an older value of the same device.
    ///
    /// A sum that was reset in between counts from the reset.
    pub fn since(&self, earlier: &Self) -> MemoryStatsDelta {
        MemoryStatsDelta {
            allocated: PoolStat::since(&self.allocated, &earlier.allocated),
            allocated_bytes: PoolStat::since(&self.allocated_bytes, &earlier.allocated_bytes),
            segment: PoolStat::since(&self.segment, &earlier.segment),
            reserved_bytes: PoolStat::since(&self.reserved_bytes, &earlier.reserved_bytes),
            active: PoolStat::since(&self.active, &earlier.active),
            active_bytes: PoolStat::since(&self.active_bytes, &earlier.active_bytes),
            inactive_split: PoolStat::since(&self.inactive_split, &earlier.inactive_split),
            inactive_split_bytes: PoolStat::since(
                &self.inactive_split_bytes,
                &earlier.inactive_split_bytes,
            ),
            requested_bytes: PoolStat::since(&self.requested_bytes, &earlier.requested_bytes),
            oversize_allocations: Stat::since(
                &self.oversize_allocations,
                &earlier.oversize_allocations,
            ),
            oversize_segments: Stat::since(&self.oversize_segments, &earlier.oversize_segments),
            num_alloc_retries: growth(self.num_alloc_retries, earlier.num_alloc_retries),
            num_ooms: growth(self.num_ooms, earlier.num_ooms),
            num_sync_all_streams: growth(self.num_sync_all_streams, earlier.num_sync_all_streams),
            num_device_alloc: growth(self.num_device_alloc, earlier.num_device_alloc),
            num_device_free: growth(self.num_device_free, earlier.num_device_free),
            num_oom_rejections: growth(self.num_oom_rejections, earlier.num_oom_rejections),
        }
    }

    /// Starts anew with `peak`.
    pub(crate) fn reset_peak(&mut self) {
        self.allocated.reset_peak();
        self.allocated_bytes.reset_peak();
        self.segment.reset_peak();
        self.reserved_bytes.reset_peak();
        self.active.reset_peak();
        self.active_bytes.reset_peak();
        self.inactive_split.reset_peak();
        self.inactive_split_bytes.reset_peak();
        self.requested_bytes.reset_peak();
        self.oversize_allocations.reset_peak();
        self.oversize_segments.reset_peak();
    }

    /// Starts anew with `allocated`, `freed`, and the counters.
    pub(crate) fn reset_accumulated(&mut self) {
        self.allocated.reset_accumulated();
        self.allocated_bytes.reset_accumulated();
        self.segment.reset_accumulated();
        self.reserved_bytes.reset_accumulated();
        self.active.reset_accumulated();
        self.active_bytes.reset_accumulated();
        self.inactive_split.reset_accumulated();
        self.inactive_split_bytes.reset_accumulated();
        self.requested_bytes.reset_accumulated();
        self.oversize_allocations.reset_accumulated();
        self.oversize_segments.reset_accumulated();
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
        self.num_oom_rejections = 0;
    }

    /// The values of the keys, in their order.
    fn values(&self) -> [i64; 123] {
        [
            signed(self.active.all.allocated),
            signed(self.active.all.current),
            signed(self.active.all.freed),
            signed(self.active.all.peak),
            signed(self.active.large_pool.allocated),
            signed(self.active.large_pool.current),
            signed(self.active.large_pool.freed),
            signed(self.active.large_pool.peak),
            signed(self.active.small_pool.allocated),
            signed(self.active.small_pool.current),
            signed(self.active.small_pool.freed),
            signed(self.active.small_pool.peak),
            signed(self.active_bytes.all.allocated),
            signed(self.active_bytes.all.current),
            signed(self.active_bytes.all.freed),
            signed(self.active_bytes.all.peak),
            signed(self.active_bytes.large_pool.allocated),
            signed(self.active_bytes.large_pool.current),
            signed(self.active_bytes.large_pool.freed),
            signed(self.active_bytes.large_pool.peak),
            signed(self.active_bytes.small_pool.allocated),
            signed(self.active_bytes.small_pool.current),
            signed(self.active_bytes.small_pool.freed),
            signed(self.active_bytes.small_pool.peak),
            signed(self.allocated.all.allocated),
            signed(self.allocated.all.current),
            signed(self.allocated.all.freed),
            signed(self.allocated.all.peak),
            signed(self.allocated.large_pool.allocated),
            signed(self.allocated.large_pool.current),
            signed(self.allocated.large_pool.freed),
            signed(self.allocated.large_pool.peak),
            signed(self.allocated.small_pool.allocated),
            signed(self.allocated.small_pool.current),
            signed(self.allocated.small_pool.freed),
            signed(self.allocated.small_pool.peak),
            signed(self.allocated_bytes.all.allocated),
            signed(self.allocated_bytes.all.current),
            signed(self.allocated_bytes.all.freed),
            signed(self.allocated_bytes.all.peak),
            signed(self.allocated_bytes.large_pool.allocated),
            signed(self.allocated_bytes.large_pool.current),
            signed(self.allocated_bytes.large_pool.freed),
            signed(self.allocated_bytes.large_pool.peak),
            signed(self.allocated_bytes.small_pool.allocated),
            signed(self.allocated_bytes.small_pool.current),
            signed(self.allocated_bytes.small_pool.freed),
            signed(self.allocated_bytes.small_pool.peak),
            signed(self.inactive_split.all.allocated),
            signed(self.inactive_split.all.current),
            signed(self.inactive_split.all.freed),
            signed(self.inactive_split.all.peak),
            signed(self.inactive_split.large_pool.allocated),
            signed(self.inactive_split.large_pool.current),
            signed(self.inactive_split.large_pool.freed),
            signed(self.inactive_split.large_pool.peak),
            signed(self.inactive_split.small_pool.allocated),
            signed(self.inactive_split.small_pool.current),
            signed(self.inactive_split.small_pool.freed),
            signed(self.inactive_split.small_pool.peak),
            signed(self.inactive_split_bytes.all.allocated),
            signed(self.inactive_split_bytes.all.current),
            signed(self.inactive_split_bytes.all.freed),
            signed(self.inactive_split_bytes.all.peak),
            signed(self.inactive_split_bytes.large_pool.allocated),
            signed(self.inactive_split_bytes.large_pool.current),
            signed(self.inactive_split_bytes.large_pool.freed),
            signed(self.inactive_split_bytes.large_pool.peak),
            signed(self.inactive_split_bytes.small_pool.allocated),
            signed(self.inactive_split_bytes.small_pool.current),
            signed(self.inactive_split_bytes.small_pool.freed),
            signed(self.inactive_split_bytes.small_pool.peak),
            signed_or_none(self.max_split_size),
            signed(self.num_alloc_retries),
            signed(self.num_device_alloc),
            signed(self.num_device_free),
            signed(self.num_oom_rejections),
            signed(self.num_ooms),
            signed(self.num_sync_all_streams),
            signed(self.oversize_allocations.allocated),
            signed(self.oversize_allocations.current),
            signed(self.oversize_allocations.freed),
            signed(self.oversize_allocations.peak),
            signed(self.oversize_segments.allocated),
            signed(self.oversize_segments.current),
            signed(self.oversize_segments.freed),
            signed(self.oversize_segments.peak),
            signed(self.requested_bytes.all.allocated),
            signed(self.requested_bytes.all.current),
            signed(self.requested_bytes.all.freed),
            signed(self.requested_bytes.all.peak),
            signed(self.requested_bytes.large_pool.allocated),
            signed(self.requested_bytes.large_pool.current),
            signed(self.requested_bytes.large_pool.freed),
            signed(self.requested_bytes.large_pool.peak),
            signed(self.requested_bytes.small_pool.allocated),
            signed(self.requested_bytes.small_pool.current),
            signed(self.requested_bytes.small_pool.freed),
            signed(self.requested_bytes.small_pool.peak),
            signed(self.reserved_bytes.all.allocated),
            signed(self.reserved_bytes.all.current),
            signed(self.reserved_bytes.all.freed),
            signed(self.reserved_bytes.all.peak),
            signed(self.reserved_bytes.large_pool.allocated),
            signed(self.reserved_bytes.large_pool.current),
            signed(self.reserved_bytes.large_pool.freed),
            signed(self.reserved_bytes.large_pool.peak),
            signed(self.reserved_bytes.small_pool.allocated),
            signed(self.reserved_bytes.small_pool.current),
            signed(self.reserved_bytes.small_pool.freed),
            signed(self.reserved_bytes.small_pool.peak),
            signed(self.segment.all.allocated),
            signed(self.segment.all.current),
            signed(self.segment.all.freed),
            signed(self.segment.all.peak),
            signed(self.segment.large_pool.allocated),
            signed(self.segment.large_pool.current),
            signed(self.segment.large_pool.freed),
            signed(self.segment.large_pool.peak),
            signed(self.segment.small_pool.allocated),
            signed(self.segment.small_pool.current),
            signed(self.segment.small_pool.freed),
            signed(self.segment.small_pool.peak),
        ]
    }

    /// What the table shows of families: name, unit and numbers.
    pub(crate) fn rows(&self) -> [(&'static str, &'static str, Stat); 29] {
        [
            ("allocated.all", "blocks", self.allocated.all),
            ("allocated.large_pool", "blocks", self.allocated.large_pool),
            ("allocated.small_pool", "blocks", self.allocated.small_pool),
            ("allocated_bytes.all", "bytes", self.allocated_bytes.all),
            (
                "allocated_bytes.large_pool",
                "bytes",
                self.allocated_bytes.large_pool,
            ),
            (
                "allocated_bytes.small_pool",
                "bytes",
                self.allocated_bytes.small_pool,
            ),
            ("segment.all", "segments", self.segment.all),
            ("segment.large_pool", "segments", self.segment.large_pool),
            ("segment.small_pool", "segments", self.segment.small_pool),
            ("reserved_bytes.all", "bytes", self.reserved_bytes.all),
            (
                "reserved_bytes.large_pool",
                "bytes",
                self.reserved_bytes.large_pool,
            ),
            (
                "reserved_bytes.small_pool",
                "bytes",
                self.reserved_bytes.small_pool,
            ),
            ("active.all", "blocks", self.active.all),
            ("active.large_pool", "blocks", self.active.large_pool),
            ("active.small_pool", "blocks", self.active.small_pool),
            ("active_bytes.all", "bytes", self.active_bytes.all),
            (
                "active_bytes.large_pool",
                "bytes",
                self.active_bytes.large_pool,
            ),
            (
                "active_bytes.small_pool",
                "bytes",
                self.active_bytes.small_pool,
            ),
            ("inactive_split.all", "blocks", self.inactive_split.all),
            (
                "inactive_split.large_pool",
                "blocks",
                self.inactive_split.large_pool,
            ),
            (
                "inactive_split.small_pool",
                "blocks",
                self.inactive_split.small_pool,
            ),
            (
                "inactive_split_bytes.all",
                "bytes",
                self.inactive_split_bytes.all,
            ),
            (
                "inactive_split_bytes.large_pool",
                "bytes",
                self.inactive_split_bytes.large_pool,
            ),
            (
                "inactive_split_bytes.small_pool",
                "bytes",
                self.inactive_split_bytes.small_pool,
            ),
            ("requested_bytes.all", "bytes", self.requested_bytes.all),
            (
                "requested_bytes.large_pool",
                "bytes",
                self.requested_bytes.large_pool,
            ),
            (
                "requested_bytes.small_pool",
                "bytes",
                self.requested_bytes.small_pool,
            ),
            ("oversize_allocations", "blocks", self.oversize_allocations),
            ("oversize_segments", "segments", self.oversize_segments),
        ]
    }

    /// What the table shows below them.
    pub(crate) fn singles(&self) -> [(&'static str, Option<u64>); 7] {
        [
            ("num_alloc_retries", Some(self.num_alloc_retries)),
            ("num_ooms", Some(self.num_ooms)),
            ("num_sync_all_streams", Some(self.num_sync_all_streams)),
            ("num_device_alloc", Some(self.num_device_alloc)),
            ("num_device_free", Some(self.num_device_free)),
            ("num_oom_rejections", Some(self.num_oom_rejections)),
            ("max_split_size", self.max_split_size),
        ]
    }
}

/// A table to be read: a line for each family and pool, then the counters and settings.
impl fmt::Display for MemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.filled {
            return f.write_str("no statistics: the device has no allocator yet");
        }
        write!(f, "{:31}", "")?;
        for metric in ["current", "peak", "allocated", "freed"] {
            write!(f, " {metric:>14}")?;
        }
        for (name, unit, stat) in self.rows() {
            write!(f, "\n{name:31}")?;
            for number in stat.numbers() {
                write!(f, " {number:>14}")?;
            }
            write!(f, " {unit}")?;
        }
        for (name, number) in self.singles() {
            match number {
                Some(number) => write!(f, "\n{name:31} {number:>14}")?,
                None => write!(f, "\n{name:31} {:>14}", "-")?,
            }
        }
        Ok(())
    }
}

/// The flat table: a map from keys to integers; empty while there is no allocator.
#[cfg(feature = "serde")]
impl serde::Serialize for MemoryStats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// How a [`Stat`] changed. The difference of two highest values would mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatDelta {
    /// How far `current` moved, up or down.
    pub current: i64,
    /// How far `allocated` grew.
    pub allocated: u64,
    /// How far `freed` grew.
    pub freed: u64,
}

/// How a [`PoolStat`] changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStatDelta {
    /// Both pools together.
    pub all: StatDelta,
    /// Requests of more than 1 MiB after rounding.
    pub large_pool: StatDelta,
    /// Requests of at most 1 MiB after rounding.
    pub small_pool: StatDelta,
}

/// What happened between two [`MemoryStats`] of a device.
///
/// # Example
///
/// ```
/// use vkaccel::MemoryStats;
///
/// let (earlier, now) = (MemoryStats::default(), MemoryStats::default());
/// assert_eq!(now.since(&earlier).allocated.all.current, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStatsDelta {
    /// See [`MemoryStats::allocated`].
    pub allocated: PoolStatDelta,
    /// See [`MemoryStats::allocated_bytes`].
    pub allocated_bytes: PoolStatDelta,
    /// See [`MemoryStats::segment`].
    pub segment: PoolStatDelta,
    /// See [`MemoryStats::reserved_bytes`].
    pub reserved_bytes: PoolStatDelta,
    /// See [`MemoryStats::active`].
    pub active: PoolStatDelta,
    /// See [`MemoryStats::active_bytes`].
    pub active_bytes: PoolStatDelta,
    /// See [`MemoryStats::inactive_split`].
    pub inactive_split: PoolStatDelta,
    /// See [`MemoryStats::inactive_split_bytes`].
    pub inactive_split_bytes: PoolStatDelta,
    /// See [`MemoryStats::requested_bytes`].
    pub requested_bytes: PoolStatDelta,
    /// See [`MemoryStats::oversize_allocations`].
    pub oversize_allocations: StatDelta,
    /// See [`MemoryStats::oversize_segments`].
    pub oversize_segments: StatDelta,
    /// See [`MemoryStats::num_alloc_retries`].
    pub num_alloc_retries: u64,
    /// See [`MemoryStats::num_ooms`].
    pub num_ooms: u64,
    /// See [`MemoryStats::num_sync_all_streams`].
    pub num_sync_all_streams: u64,
    /// See [`MemoryStats::num_device_alloc`].
    pub num_device_alloc: u64,
    /// See [`MemoryStats::num_device_free`].
    pub num_device_free: u64,
    /// See [`MemoryStats::num_oom_rejections`].
    pub num_oom_rejections: u64,
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn signed_or_none(value: Option<u64>) -> i64 {
    value.map_or(-1, signed)
}

/// How far a level has moved, up or down.
fn change(now: u64, earlier: u64) -> i64 {
    now.wrapping_sub(earlier).cast_signed()
}

/// How far a sum has grown: all of it, where it was set to 0 in between.
fn growth(now: u64, earlier: u64) -> u64 {
    now.checked_sub(earlier).unwrap_or(now)
}
