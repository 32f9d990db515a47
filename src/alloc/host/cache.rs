//! The cache of host memory.

use std::collections::BTreeMap;

use core::time::Duration;

use super::size::HostConf;
use super::stats::HostMemoryStats;

/// Host memory that was handed out. The cache keeps nothing of it but the sums.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostBlock<K, S> {
    /// What it may serve: memory of other keys never mixes with it.
    pub(crate) key: K,
    /// In bytes, at least what was asked for.
    pub(crate) size: u64,
    pub(crate) segment: S,
}

/// A block that was given back while commands use it.
#[derive(Debug)]
struct Pending<K, S, T> {
    block: HostBlock<K, S>,
    uses: Vec<T>,
}

/// A request, with how far it has come.
#[derive(Debug)]
pub(crate) struct HostRequest<K> {
    key: K,
    bytes: u64,
    /// The most bytes that one segment can have; rounding never goes past it.
    most: u64,
    /// What is cached went back to the driver for it, since it last waited.
    emptied: bool,
    /// The copies that use blocks given back were waited for.
    waited: bool,
    /// The driver refused, and nothing went back to it since.
    refused: bool,
}

impl<K> HostRequest<K> {
    /// A request for at least `bytes`, which are not 0, where a segment has `most` at most.
    pub(crate) fn new(key: K, bytes: u64, most: u64) -> Self {
        Self {
            key,
            bytes,
            most,
            emptied: false,
            waited: false,
            refused: false,
        }
    }
}

/// What comes next for a request. Before it is done, what `released` got goes back to the driver.
#[derive(Debug)]
pub(crate) enum HostStep<K, S, T> {
    Done(HostBlock<K, S>),
    /// Ask the driver for a segment of so many bytes, then say [`HostCache::created`] or
    /// [`HostCache::refused`]; after the latter, ask again.
    Create(u64),
    /// Wait for these, then ask again.
    Wait(Vec<T>),
    /// The limit does not leave so many bytes; nothing can be given back any more.
    OverLimit(u64),
    /// The driver refused, and nothing can be given back any more.
    Refused,
    /// No segment can have so many bytes.
    NeverFits,
}

/// Cached host memory: `K` tells what a block can serve, `S` is a segment of the caller's, `T` one
/// of its tickets.
#[derive(Debug)]
pub(crate) struct HostCache<K, S, T> {
    conf: HostConf,
    limit: Option<u64>,
    /// Free blocks by key and size; of equal ones the one given back last serves first.
    idle: BTreeMap<(K, u64), Vec<S>>,
    pending: Vec<Pending<K, S, T>>,
    /// The bytes of blocks that the driver is being asked for.
    creating: u64,
    stats: HostMemoryStats,
}

impl<K: Ord + Copy, S, T: Clone> HostCache<K, S, T> {
    pub(crate) fn new(conf: HostConf) -> Self {
        Self {
            conf,
            limit: None,
            idle: BTreeMap::new(),
            pending: Vec::new(),
            creating: 0,
            stats: HostMemoryStats::default(),
        }
    }

    /// The next step of a request. Segments that go back to the driver are put into `released`: drop
    /// them behind the lock, before anything else is done for the request.
    pub(crate) fn allocate(
        &mut self,
        request: &mut HostRequest<K>,
        reached: &dyn Fn(&T) -> bool,
        released: &mut Vec<S>,
    ) -> HostStep<K, S, T> {
        self.collect(reached, released);
        let size = self.conf.block_size(request.bytes).unwrap_or(u64::MAX);
        let size = size.min(request.most);
        if size < request.bytes {
            return HostStep::NeverFits;
        }
        if let Some(block) = self.take_idle(request.key, size) {
            return HostStep::Done(block);
        }
        if self.may_create(request, size) {
            return HostStep::Create(size);
        }
        if !request.emptied {
            request.emptied = true;
            let before = released.len();
            self.release_idle(|_| true, released);
            request.refused &= released.len() == before;
            if self.may_create(request, size) {
                return HostStep::Create(size);
            }
        }
        if !request.waited && !self.pending.is_empty() {
            request.waited = true;
            request.emptied = false;
            let uses = self.pending.iter().flat_map(|pending| &pending.uses);
            return HostStep::Wait(uses.cloned().collect());
        }
        if request.refused {
            HostStep::Refused
        } else {
            HostStep::OverLimit(size)
        }
    }

    /// Sets the bytes of a new block aside, where the limit leaves them and the driver may have them.
    fn may_create(&mut self, request: &HostRequest<K>, size: u64) -> bool {
        let may = !request.refused && size <= self.room();
        self.creating += if may { size } else { 0 };
        may
    }

    /// The driver gave the segment of a [`HostStep::Create`] of `size` bytes, and took so long.
    pub(crate) fn created(
        &mut self,
        request: &HostRequest<K>,
        size: u64,
        segment: S,
        time: Duration,
    ) -> HostBlock<K, S> {
        self.creating -= size;
        self.stats.allocations.increase(1);
        self.stats.allocated_bytes.increase(size);
        self.stats.num_host_alloc += 1;
        self.stats.host_alloc_time.add(time);
        self.handed_out(HostBlock {
            key: request.key,
            size,
            segment,
        })
    }

    /// The driver did not give the segment of a [`HostStep::Create`] of `size` bytes.
    pub(crate) fn refused(&mut self, request: &mut HostRequest<K>, size: u64) {
        self.creating -= size;
        request.refused = true;
    }

    /// Takes a block back. It serves again once all of `uses` are reached.
    pub(crate) fn free(&mut self, block: HostBlock<K, S>, uses: Vec<T>, released: &mut Vec<S>) {
        if uses.is_empty() {
            self.settle(block, released);
        } else {
            self.pending.push(Pending { block, uses });
        }
    }

    /// Looks which of the blocks given back are not used any more.
    pub(crate) fn collect(&mut self, reached: &dyn Fn(&T) -> bool, released: &mut Vec<S>) {
        let mut index = 0;
        while let Some(pending) = self.pending.get_mut(index) {
            pending.uses.retain(|ticket| !reached(ticket));
            if pending.uses.is_empty() {
                let pending = self.pending.swap_remove(index);
                self.settle(pending.block, released);
            } else {
                index += 1;
            }
        }
    }

    /// Gives back what is cached for the keys that pass; blocks that commands use stay.
    pub(crate) fn empty(
        &mut self,
        passes: impl Fn(&K) -> bool,
        reached: &dyn Fn(&T) -> bool,
        released: &mut Vec<S>,
    ) {
        self.collect(reached, released);
        self.release_idle(passes, released);
    }

    /// Notes how long the driver took for each of the segments that were released.
    pub(crate) fn freed(&mut self, times: impl IntoIterator<Item = Duration>) {
        for time in times {
            self.stats.host_free_time.add(time);
        }
    }

    /// Puts settings in force; what is held stays.
    pub(crate) fn set_conf(&mut self, conf: HostConf) {
        self.conf = conf;
    }

    /// The most bytes that may be held from the driver from now on; none means as much as there is.
    pub(crate) fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        self.limit
    }

    pub(crate) fn stats(&self) -> HostMemoryStats {
        self.stats
    }

    pub(crate) fn reset_peak(&mut self) {
        self.stats.reset_peak();
    }

    pub(crate) fn reset_accumulated(&mut self) {
        self.stats.reset_accumulated();
    }

    /// What the limit leaves.
    fn room(&self) -> u64 {
        let held = self.stats.allocated_bytes.current + self.creating;
        self.limit
            .map_or(u64::MAX, |limit| limit.saturating_sub(held))
    }

    /// The best cached block for a request whose own would be `size`.
    fn take_idle(&mut self, key: K, size: u64) -> Option<HostBlock<K, S>> {
        let fits = (key, size)..=(key, HostConf::largest_fit(size));
        let (&place, _) = self.idle.range(fits).next()?;
        let list = self.idle.get_mut(&place)?;
        let segment = list.pop()?;
        if list.is_empty() {
            self.idle.remove(&place);
        }
        let (key, size) = place;
        Some(self.handed_out(HostBlock { key, size, segment }))
    }

    fn handed_out(&mut self, block: HostBlock<K, S>) -> HostBlock<K, S> {
        self.stats.active_requests.increase(1);
        self.stats.active_bytes.increase(block.size);
        block
    }

    /// A block that nothing uses any more becomes idle, or goes back where it is not kept.
    fn settle(&mut self, block: HostBlock<K, S>, released: &mut Vec<S>) {
        self.stats.active_requests.decrease(1);
        self.stats.active_bytes.decrease(block.size);
        if self.conf.is_kept(block.size) {
            let list = self.idle.entry((block.key, block.size)).or_default();
            list.push(block.segment);
        } else {
            self.count_release(block.size, 1);
            released.push(block.segment);
        }
    }

    fn release_idle(&mut self, passes: impl Fn(&K) -> bool, released: &mut Vec<S>) {
        let all = core::mem::take(&mut self.idle);
        for ((key, size), list) in all {
            if passes(&key) {
                self.count_release(size, list.len() as u64);
                released.extend(list);
            } else {
                self.idle.insert((key, size), list);
            }
        }
    }

    fn count_release(&mut self, size: u64, count: u64) {
        self.stats.allocations.decrease(count);
        self.stats.allocated_bytes.decrease(size * count);
        self.stats.num_host_free += count;
    }
}
