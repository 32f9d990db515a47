//! The allocator's rules, in the plainest way: lists of blocks that are searched from end to end, and
//! statistics that are counted anew after each change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vkaccel::alloc::{AllocConf, BlockState, MemorySnapshot, Placement};
use vkaccel::{MemoryStats, OutOfMemoryReason, PoolStat, Stat};

pub const MIB: u64 = 1 << 20;

/// What one block is.
#[derive(Clone, Debug)]
pub struct Block {
    pub size: u64,
    pub state: BlockState,
    id: u64,
    requested: u64,
    uses: Vec<u64>,
    waits: usize,
    oversize: bool,
    /// The searches before it became free.
    freed_at: u64,
}

/// What one segment is.
#[derive(Clone, Debug)]
pub struct Segment {
    pub rank: u64,
    pub stream: u64,
    pub pool: Option<u64>,
    pub small: bool,
    pub bytes: u64,
    pub blocks: Vec<Block>,
    oversize: bool,
}

impl Segment {
    fn offset(&self, place: usize) -> u64 {
        self.blocks[..place].iter().map(|block| block.size).sum()
    }

    fn is_free(&self) -> bool {
        self.blocks.len() == 1 && self.blocks[0].state == BlockState::Inactive
    }
}

/// Families of statistics, in the order in which `counted` gives them.
const FAMILIES: usize = 9;

/// Current, peak, allocated, freed.
type Numbers = [u64; 4];

/// The levels of each family: of all, of the large and of the small pool; then what has no pools.
type Levels = [u64; 3 * FAMILIES + 2];

pub struct Model {
    total: u64,
    conf: AllocConf,
    pub segments: Vec<Segment>,
    made: u64,
    fraction: Option<f64>,
    limit: Option<u64>,
    /// Blocks that wait, by stream, in the order in which streams came up.
    queues: Vec<(u64, VecDeque<(u64, u64)>)>,
    /// Events recorded and completed, by stream.
    events: BTreeMap<u64, (u64, u64)>,
    immediate: bool,
    held: BTreeSet<u64>,
    searches: u64,
    levels: Levels,
    history: [Numbers; 3 * FAMILIES + 2],
    /// Retries, errors, waits, segments made, segments returned, refusals by the limit.
    pub counters: [u64; 6],
}

impl Model {
    pub fn new(total: u64, conf: AllocConf, immediate: bool) -> Self {
        Self {
            total,
            conf,
            segments: Vec::new(),
            made: 0,
            fraction: None,
            limit: None,
            queues: Vec::new(),
            events: BTreeMap::new(),
            immediate,
            held: BTreeSet::new(),
            searches: 0,
            levels: [0; 3 * FAMILIES + 2],
            history: [[0; 4]; 3 * FAMILIES + 2],
            counters: [0; 6],
        }
    }

    fn rounded(&self, bytes: u64) -> u64 {
        let divisions = self.conf.roundup_power2_divisions(bytes);
        if divisions > 1 && bytes > 512 * divisions {
            let mut power = 1;
            while power * 2 <= bytes {
                power *= 2;
            }
            return bytes.div_ceil(power / divisions) * (power / divisions);
        }
        bytes.div_ceil(512) * 512
    }

    fn reserved(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// A share of a number of bytes, as PyTorch computes it.
    fn share(fraction: f64, bytes: u64) -> u64 {
        (fraction * bytes as f64) as u64
    }

    fn collects(&self) -> bool {
        self.conf.garbage_collection_threshold().is_some() && self.fraction.is_some()
    }

    /// Whether there may be and is memory for a segment, and if not, whether the limit forbids it.
    fn has_room(&self, bytes: u64) -> Result<(), bool> {
        let reserved = self.reserved() + bytes;
        if self.limit.is_some_and(|limit| reserved > limit) {
            return Err(true);
        }
        let allowed = self
            .fraction
            .map(|fraction| Self::share(fraction, self.total));
        let fits = reserved <= self.total && allowed.is_none_or(|allowed| reserved <= allowed);
        fits.then_some(()).ok_or(false)
    }

    pub fn allocate(
        &mut self,
        id: u64,
        bytes: u64,
        stream: u64,
        pool: Option<u64>,
    ) -> Result<(u64, u64, u64), OutOfMemoryReason> {
        self.poll();
        let size = self.rounded(bytes);
        let small = size <= MIB;
        if self.collects() && !small && pool.is_none() {
            self.searches += 1;
        }
        if let Some((segment, block)) = self.best(size, stream, pool, small) {
            return Ok(self.hand_out(segment, block, id, bytes, size));
        }
        let segment = match size {
            _ if small => 2 * MIB,
            _ if size < 10 * MIB => self.conf.large_segment_size(),
            _ => size.div_ceil(2 * MIB) * 2 * MIB,
        };
        self.collect();
        let mut room = self.has_room(segment);
        if room.is_err() && self.spare(size, stream, pool, small) {
            room = self.has_room(segment);
        }
        if room.is_err() {
            self.empty_cache();
            self.counters[0] += 1;
            room = self.has_room(segment);
        }
        if let Err(over_limit) = room {
            self.counters[1] += 1;
            self.counters[5] += u64::from(over_limit);
            let allowed = self
                .fraction
                .map(|fraction| Self::share(fraction, self.total));
            let reserved = self.reserved() + segment;
            return Err(match () {
                () if size > self.total => OutOfMemoryReason::NeverFits,
                () if over_limit || allowed.is_some_and(|allowed| reserved > allowed) => {
                    OutOfMemoryReason::OverLimit
                }
                () => OutOfMemoryReason::FullNow,
            });
        }
        self.counters[3] += 1;
        self.segments.push(Segment {
            rank: self.made,
            stream,
            pool,
            small,
            bytes: segment,
            blocks: vec![free_block(segment)],
            oversize: self
                .conf
                .max_split_size()
                .is_some_and(|most| segment >= most),
        });
        self.made += 1;
        Ok(self.hand_out(self.segments.len() - 1, 0, id, bytes, size))
    }

    /// The free block for a request: the smallest, then of the oldest segment, then the first.
    fn best(
        &self,
        size: u64,
        stream: u64,
        pool: Option<u64>,
        small: bool,
    ) -> Option<(usize, usize)> {
        let mut best: Option<(u64, usize, usize)> = None;
        for (place, segment) in self.segments.iter().enumerate() {
            if (segment.stream, segment.pool, segment.small) != (stream, pool, small) {
                continue;
            }
            for (inner, block) in segment.blocks.iter().enumerate() {
                let fits = block.state == BlockState::Inactive && block.size >= size;
                if fits && best.is_none_or(|(smallest, ..)| block.size < smallest) {
                    best = Some((block.size, place, inner));
                }
            }
        }
        let (found, segment, block) = best?;
        let takes = match self.conf.max_split_size() {
            None => true,
            Some(most) if size < most => found < most,
            Some(_) => found < size + self.conf.max_non_split_rounding(),
        };
        takes.then_some((segment, block))
    }

    fn hand_out(
        &mut self,
        segment: usize,
        place: usize,
        id: u64,
        requested: u64,
        size: u64,
    ) -> (u64, u64, u64) {
        let max_split = self.conf.max_split_size().unwrap_or(u64::MAX);
        let searches = self.searches;
        let segment = &mut self.segments[segment];
        let rest = segment.blocks[place].size - size;
        let splits = match segment.small {
            true => rest >= 512,
            false => rest > MIB && size < max_split,
        };
        if splits {
            segment.blocks[place].size = size;
            let mut rest = free_block(rest);
            rest.freed_at = searches;
            segment.blocks.insert(place + 1, rest);
        }
        let block = &mut segment.blocks[place];
        block.state = BlockState::ActiveAllocated;
        (block.id, block.requested) = (id, requested);
        block.oversize = block.size >= max_split;
        let placed = (
            segment.rank,
            segment.offset(place),
            segment.blocks[place].size,
        );
        self.count();
        placed
    }

    /// Where a block is.
    fn find(&self, id: u64) -> (usize, usize) {
        for (place, segment) in self.segments.iter().enumerate() {
            let mut blocks = segment.blocks.iter();
            let is_it = |block: &Block| block.id == id && block.state != BlockState::Inactive;
            if let Some(inner) = blocks.position(is_it) {
                return (place, inner);
            }
        }
        panic!("no block {id}")
    }

    pub fn record(&mut self, id: u64, stream: u64) {
        let (segment, block) = self.find(id);
        let segment = &mut self.segments[segment];
        let uses = &mut segment.blocks[block].uses;
        if segment.stream != stream && !uses.contains(&stream) {
            uses.push(stream);
        }
    }

    pub fn free(&mut self, id: u64) {
        let (segment, place) = self.find(id);
        let block = &mut self.segments[segment].blocks[place];
        let uses = std::mem::take(&mut block.uses);
        block.oversize = false;
        if uses.is_empty() {
            self.settle(id);
            return;
        }
        block.state = BlockState::ActivePendingFree;
        block.waits = uses.len();
        for stream in uses {
            let (recorded, completed) = self.events.entry(stream).or_default();
            *recorded += 1;
            if self.immediate {
                *completed = *recorded;
            }
            let entry = (*recorded, id);
            match self.queues.iter_mut().find(|(other, _)| *other == stream) {
                Some((_, queue)) => queue.push_back(entry),
                None => self.queues.push((stream, VecDeque::from([entry]))),
            }
        }
        self.count();
    }

    pub fn complete(&mut self, stream: u64) {
        let (recorded, completed) = self.events.entry(stream).or_default();
        *completed = *recorded;
    }

    fn poll(&mut self) {
        for place in 0..self.queues.len() {
            let stream = self.queues[place].0;
            let (_, completed) = self.events[&stream];
            while let Some(&(event, id)) = self.queues[place].1.front()
                && event <= completed
            {
                self.queues[place].1.pop_front();
                let (segment, block) = self.find(id);
                let block = &mut self.segments[segment].blocks[block];
                block.waits -= 1;
                if block.waits == 0 {
                    self.settle(id);
                }
            }
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
    }

    fn settle(&mut self, id: u64) {
        let (segment, mut place) = self.find(id);
        let blocks = &mut self.segments[segment].blocks;
        let size = blocks[place].size;
        blocks[place] = free_block(size);
        blocks[place].freed_at = self.searches;
        let is_free = |block: &Block| block.state == BlockState::Inactive;
        if blocks.get(place + 1).is_some_and(is_free) {
            blocks[place].size += blocks.remove(place + 1).size;
        }
        if place > 0 && is_free(&blocks[place - 1]) {
            place -= 1;
            blocks[place + 1].size += blocks[place].size;
            blocks.remove(place);
        }
        self.count();
    }

    fn release(&mut self, rank: u64) {
        self.segments.retain(|segment| segment.rank != rank);
        self.counters[4] += 1;
        self.count();
    }

    pub fn empty_cache(&mut self) {
        self.counters[2] += 1;
        for (stream, queue) in &self.queues {
            if let (Some((last, _)), Some((_, completed))) =
                (queue.back(), self.events.get_mut(stream))
            {
                *completed = (*completed).max(*last);
            }
        }
        self.poll();
        let is_held =
            |segment: &Segment| segment.pool.is_some_and(|pool| self.held.contains(&pool));
        let free = self
            .segments
            .iter()
            .filter(|segment| segment.is_free() && !is_held(segment));
        let ranks: Vec<u64> = free.map(|segment| segment.rank).collect();
        ranks.into_iter().for_each(|rank| self.release(rank));
    }

    fn collect(&mut self) {
        let (Some(threshold), Some(fraction)) =
            (self.conf.garbage_collection_threshold(), self.fraction)
        else {
            return;
        };
        let keep = Self::share(threshold, Self::share(fraction, self.total));
        let mut excess = self.reserved().saturating_sub(keep);
        loop {
            let common = self
                .segments
                .iter()
                .filter(|segment| segment.is_free() && !segment.small && segment.pool.is_none());
            let ages =
                common.map(|segment| (segment.rank, self.searches - segment.blocks[0].freed_at));
            let ages: Vec<(u64, u64)> = ages.collect();
            if excess == 0 || ages.is_empty() {
                return;
            }
            let mean = ages.iter().map(|(_, age)| *age).sum::<u64>() as f64 / ages.len() as f64;
            for (rank, _) in ages.into_iter().filter(|(_, age)| *age as f64 >= mean) {
                let segment = self
                    .segments
                    .iter()
                    .find(|segment| segment.rank == rank)
                    .unwrap();
                excess = excess.saturating_sub(segment.bytes);
                self.release(rank);
            }
        }
    }

    fn spare(&mut self, size: u64, stream: u64, pool: Option<u64>, small: bool) -> bool {
        let Some(max_split) = self.conf.max_split_size() else {
            return false;
        };
        let key = size.max(max_split);
        let near = self.segments.iter().filter(|segment| {
            let same = (segment.stream, segment.pool, segment.small) == (stream, pool, small);
            same && segment.is_free() && segment.bytes >= max_split
        });
        let mut free: Vec<(u64, u64)> = near.map(|segment| (segment.bytes, segment.rank)).collect();
        free.sort_unstable();
        if let Some((_, rank)) = free.iter().find(|(bytes, _)| *bytes >= key) {
            self.release(*rank);
            return true;
        }
        let mut freed = 0;
        while freed < key
            && let Some((bytes, rank)) = free.pop()
        {
            freed += bytes;
            self.release(rank);
        }
        freed >= key
    }

    pub fn set_fraction(&mut self, fraction: f64) {
        self.fraction = Some(fraction);
    }

    pub fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    pub fn hold(&mut self, pool: u64) {
        self.held.insert(pool);
    }

    pub fn let_go(&mut self, pool: u64) {
        self.held.remove(&pool);
    }

    /// Counts everything anew, and notes what has changed.
    fn count(&mut self) {
        let levels = self.levels_now();
        for ((numbers, new), old) in self.history.iter_mut().zip(levels).zip(self.levels) {
            numbers[0] = new;
            numbers[1] = numbers[1].max(new);
            numbers[2] += new.saturating_sub(old);
            numbers[3] += old.saturating_sub(new);
        }
        self.levels = levels;
    }

    fn levels_now(&self) -> Levels {
        let mut levels = [0; 3 * FAMILIES + 2];
        for segment in &self.segments {
            let mut add = |family: usize, by: u64| {
                levels[3 * family] += by;
                levels[3 * family + 1 + usize::from(segment.small)] += by;
            };
            add(2, 1);
            add(3, segment.bytes);
            for block in &segment.blocks {
                if block.state == BlockState::ActiveAllocated {
                    add(0, 1);
                    add(1, block.size);
                }
                if block.state != BlockState::Inactive {
                    add(4, 1);
                    add(5, block.size);
                    add(8, block.requested);
                } else if segment.blocks.len() > 1 {
                    add(6, 1);
                    add(7, block.size);
                }
            }
            levels[27] += segment.blocks.iter().filter(|block| block.oversize).count() as u64;
            levels[28] += u64::from(segment.oversize);
        }
        levels
    }

    pub fn reset_peak(&mut self) {
        self.history
            .iter_mut()
            .for_each(|numbers| numbers[1] = numbers[0]);
    }

    pub fn reset_accumulated(&mut self) {
        for numbers in &mut self.history {
            (numbers[2], numbers[3]) = (0, 0);
        }
        self.counters = [0; 6];
    }

    /// Panics unless the statistics are these.
    pub fn check_stats(&self, stats: &MemoryStats) {
        let of = |stat: Stat| [stat.current, stat.peak, stat.allocated, stat.freed];
        let families: [PoolStat; FAMILIES] = [
            stats.allocated,
            stats.allocated_bytes,
            stats.segment,
            stats.reserved_bytes,
            stats.active,
            stats.active_bytes,
            stats.inactive_split,
            stats.inactive_split_bytes,
            stats.requested_bytes,
        ];
        for (place, family) in families.into_iter().enumerate() {
            let found = [family.all, family.large_pool, family.small_pool].map(of);
            assert_eq!(
                found,
                self.history[3 * place..3 * place + 3],
                "family {place}"
            );
        }
        let singles = [stats.oversize_allocations, stats.oversize_segments].map(of);
        assert_eq!(singles, self.history[27..]);
        let counters = [
            stats.num_alloc_retries,
            stats.num_ooms,
            stats.num_sync_all_streams,
            stats.num_device_alloc,
            stats.num_device_free,
            stats.num_oom_rejections,
        ];
        assert_eq!(counters, self.counters);
    }

    /// Panics unless segments and blocks are these: nothing overlaps or is lost, and no two free blocks
    /// are neighbours.
    pub fn check_blocks(&self, snapshot: &MemorySnapshot) {
        assert_eq!(snapshot.segments.len(), self.segments.len());
        for (found, expected) in snapshot.segments.iter().zip(&self.segments) {
            assert_eq!(found.registration_counter, expected.rank);
            assert_eq!(
                (found.stream, found.is_large),
                (expected.stream, !expected.small)
            );
            assert_eq!(found.pool.1, expected.pool.map_or(0, |pool| pool + 1));
            assert_eq!(found.total_size, expected.bytes);
            assert_eq!(found.blocks.len(), expected.blocks.len());
            let mut end = found.address;
            let mut was_free = false;
            for (block, expected) in found.blocks.iter().zip(&expected.blocks) {
                let is_free = block.state == BlockState::Inactive;
                assert_eq!((block.address, block.size), (end, expected.size));
                assert_eq!(
                    (block.state, block.requested_size),
                    (expected.state, expected.requested)
                );
                assert!(!(is_free && was_free), "two free neighbours");
                (end, was_free) = (end + block.size, is_free);
            }
            assert_eq!(end, found.address + found.total_size);
        }
    }
}

fn free_block(size: u64) -> Block {
    Block {
        size,
        state: BlockState::Inactive,
        id: 0,
        requested: 0,
        uses: Vec::new(),
        waits: 0,
        oversize: false,
        freed_at: 0,
    }
}

/// What the model says of a placement.
pub fn told(placed: &Placement) -> (u64, u64, u64) {
    (placed.segment, placed.offset, placed.rounded)
}
