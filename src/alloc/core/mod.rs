//! Owns the allocator of one device: its segments, its blocks, who may have which, and the numbers.

mod allocate;
mod free;
mod inherit;
#[cfg(test)]
mod interleaved_tests;
mod journal;
mod ladder;
mod limits;
mod picture;
mod release;
mod request;
mod reuse;
mod shelves;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use journal::Addressed;
pub(crate) use limits::Limits;
pub(crate) use request::{Allocation, Request, Source, Step};

use ::core::ops::Index;
use std::collections::BTreeMap;

use self::journal::Journal;
use self::limits::Allowed;
use self::shelves::{Pools, Shelves};
use super::block::{BlockId, Blocks};
use super::conf::AllocConf;
use super::history::Context;
use super::ids::{PoolId, StreamKey};
use super::pending::Pending;
use super::stats::{MemoryStats, Pool};

/// The allocator of one device, over segments `S` and tickets `T`.
///
/// Whoever holds it keeps the lock; nothing in here waits or calls the driver, but for
/// [`Source::create`].
#[derive(Debug)]
pub(crate) struct Core<S, T> {
    conf: AllocConf,
    allowed: Allowed,
    stats: MemoryStats,
    blocks: Blocks,
    segments: Segments<S>,
    shelves: Shelves,
    pools: Pools,
    pending: Pending<T>,
    /// Streams that are gone and have left something, with when they are done.
    retired: BTreeMap<StreamKey, T>,
    journal: Journal,
    /// Grows whenever a block becomes free, so that whoever waited knows whether to search again.
    freed: u64,
}

/// A segment and where its blocks begin.
#[derive(Debug)]
struct Segment<S> {
    handle: S,
    rank: u64,
    bytes: u64,
    first: BlockId,
    shelf: u32,
    pool: Pool,
    /// Whether it was counted among the oversize ones.
    oversize: bool,
    /// Who caused it, where that is recorded.
    context: Context,
}

/// A slab of segments.
#[derive(Debug)]
struct Segments<S> {
    slots: Vec<Option<Segment<S>>>,
    vacant: Vec<u32>,
    /// The number of segments ever made, which is the rank of the next one.
    made: u64,
}

impl<S, T: Clone> Core<S, T> {
    /// An allocator that holds nothing yet.
    pub(crate) fn new(conf: AllocConf, limits: Limits) -> Self {
        let mut core = Self {
            allowed: Allowed::new(limits),
            conf: AllocConf::default(),
            stats: MemoryStats::new(),
            blocks: Blocks::default(),
            segments: Segments {
                slots: Vec::new(),
                vacant: Vec::new(),
                made: 0,
            },
            shelves: Shelves::default(),
            pools: Pools::default(),
            pending: Pending::default(),
            retired: BTreeMap::new(),
            journal: Journal::default(),
            freed: 0,
        };
        core.set_conf(conf);
        core
    }

    pub(crate) fn conf(&self) -> &AllocConf {
        &self.conf
    }

    /// Changes the settings. What was handed out stays as it is; free blocks are reused by the new
    /// rules.
    pub(crate) fn set_conf(&mut self, conf: AllocConf) {
        if conf.per_process_memory_fraction() < 1.0 {
            self.set_fraction(conf.per_process_memory_fraction());
        }
        self.stats.max_split_size = conf.max_split_size();
        self.conf = conf;
    }

    pub(crate) fn stats(&self) -> &MemoryStats {
        &self.stats
    }

    /// The statistics, to be reset.
    pub(crate) fn stats_mut(&mut self) -> &mut MemoryStats {
        &mut self.stats
    }

    /// Whether blocks that were given back wait for other streams.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The segment that a block lies in.
    pub(crate) fn segment_of(&self, block: BlockId) -> &S {
        &self.segments[self.blocks[block].segment].handle
    }

    /// Notes that a stream uses a block. The block's own stream and repeats change nothing.
    pub(crate) fn record(&mut self, block: BlockId, stream: StreamKey) {
        let block = &mut self.blocks[block];
        let own = self.shelves[block.shelf].stream;
        if stream != own && !block.uses.contains(&stream) {
            block.uses.push(stream);
        }
    }

    /// The streams besides its own that use a block; [`free`](Self::free) wants a ticket of each.
    pub(crate) fn recorded(&self, block: BlockId) -> &[StreamKey] {
        &self.blocks[block].uses
    }

    /// Keeps a private pool's segments, until as many calls of [`pool_release`](Self::pool_release).
    pub(crate) fn pool_retain(&mut self, id: PoolId) {
        let pool = self.pools.place(id);
        self.pools[pool].holders += 1;
    }

    /// Gives one hold on a private pool up. With the last one, [`empty_cache_begin`](Self::empty_cache_begin)
    /// returns what is free of it.
    pub(crate) fn pool_release(&mut self, id: PoolId) {
        if let Some(pool) = self.pools.find(id) {
            let pool = &mut self.pools[pool];
            pool.holders = pool.holders.saturating_sub(1);
        }
        self.pools.forget_unused();
    }

    /// The bytes of the segments of each private pool that is held or not empty.
    pub(crate) fn private_pool_bytes(&self) -> Vec<(PoolId, u64)> {
        self.pools.private().collect()
    }
}

impl<S> Segments<S> {
    fn add(&mut self, segment: Segment<S>) -> u32 {
        self.made += 1;
        if let Some(place) = self.vacant.pop() {
            self.slots[place as usize] = Some(segment);
            return place;
        }
        self.slots.push(Some(segment));
        // Host memory ends long before so many segments are there.
        u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
    }

    fn set_first(&mut self, place: u32, first: BlockId) {
        if let Some(segment) = &mut self.slots[place as usize] {
            segment.first = first;
        }
    }

    fn set_shelf(&mut self, place: u32, shelf: u32) {
        if let Some(segment) = &mut self.slots[place as usize] {
            segment.shelf = shelf;
        }
    }

    fn remove(&mut self, place: u32) -> Option<Segment<S>> {
        let segment = self.slots[place as usize].take();
        if segment.is_some() {
            self.vacant.push(place);
        }
        segment
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &Segment<S>)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(place, slot)| slot.as_ref().map(|segment| (place, segment)))
    }
}

impl<S> Index<u32> for Segments<S> {
    type Output = Segment<S>;

    fn index(&self, place: u32) -> &Segment<S> {
        match &self.slots[place as usize] {
            Some(segment) => segment,
            None => unreachable!("a segment goes after its blocks"),
        }
    }
}
