//! Owns the device without a driver: the same decisions, over memory that isn't there.

mod device;
mod table;

use self::device::{Clocks, Device, Piece, Ticket};
use self::table::Table;
use super::block::BlockId;
use super::conf::AllocConf;
use super::core::{Allocation, Core, Limits, Request, Step};
use super::history::{Context, History, HistoryOptions};
use super::ids::{PoolId, StreamKey};
use super::snapshot::MemorySnapshot;
use super::stats::{MemoryStats, Pool};
use crate::error::{Error, ErrorKind, OutOfMemoryReason, Result};

/// When commands that use memory count as finished on a simulated device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Events {
    /// As soon as they are recorded.
    #[default]
    Immediate,
    /// When [`Simulator::complete`] says so, or the allocator waits for them.
    Hold,
}

/// Where a simulated allocation was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The number of its segment among all that were ever made, from 0.
    pub segment: u64,
    /// The first byte in the segment.
    pub offset: u64,
    /// The size of the block, in bytes: what was asked for, rounded up.
    pub rounded: u64,
    /// The size of the segment, in bytes.
    pub segment_bytes: u64,
    /// Whether it lies in the small pool, else in the large one.
    pub small: bool,
}

/// The allocator of a simulated device: every decision and every number as on a real one, with no
/// memory behind it.
///
/// It replays what a program did, with other settings or on a smaller device. Blocks, streams and
/// private pools have numbers that the caller chooses; stream 0 is the default one.
///
/// # Example
///
/// ```
/// use vkaccel::alloc::{AllocConf, Simulator};
///
/// let mut device = Simulator::new(64 << 20, AllocConf::default());
/// let placed = device.allocate(1, 3 << 20, 0)?.expect("some bytes were asked for");
/// assert_eq!((placed.segment, placed.offset), (0, 0));
/// assert_eq!(placed.segment_bytes, 20 << 20);
/// device.free(1)?;
/// assert_eq!(device.stats().reserved_bytes.all.current, 20 << 20);
/// device.empty_cache();
/// assert_eq!(device.stats().reserved_bytes.all.current, 0);
/// assert!(device.allocate(2, 65 << 20, 0).unwrap_err().is_out_of_memory());
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Debug)]
pub struct Simulator {
    core: Core<Piece, Ticket>,
    device: Device,
    clocks: Clocks,
    /// The blocks by the caller's numbers; `None`: one of no bytes.
    blocks: Table<Option<BlockId>>,
    /// The private pools that requests go to, the innermost last.
    route: Vec<PoolId>,
    known_pools: Vec<PoolId>,
}

impl Simulator {
    /// A device with this many bytes of memory, on which nothing was allocated yet.
    pub fn new(total_bytes: u64, conf: AllocConf) -> Self {
        Self::with_limits(total_bytes, u64::MAX, u64::MAX, conf)
    }

    /// The same, of a device whose driver makes no allocation of more than `largest_segment` bytes,
    /// and holds no more than `most_allocations` at once.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::OutOfMemoryReason;
    /// use vkaccel::alloc::{AllocConf, Simulator};
    ///
    /// let mut device = Simulator::with_limits(8 << 30, 1 << 30, 4096, AllocConf::default());
    /// let error = device.allocate(1, (1 << 30) + 1, 0).unwrap_err();
    /// let figures = error.out_of_memory().expect("that is why");
    /// assert_eq!(figures.reason, OutOfMemoryReason::NeverFits);
    /// ```
    pub fn with_limits(
        total_bytes: u64,
        largest_segment: u64,
        most_allocations: u64,
        conf: AllocConf,
    ) -> Self {
        let limits = Limits {
            total: total_bytes,
            largest_segment,
            most_allocations,
        };
        Self {
            core: Core::new(conf, limits),
            device: Device::new(total_bytes),
            clocks: Clocks::default(),
            blocks: Table::default(),
            route: Vec::new(),
            known_pools: Vec::new(),
        }
    }

    /// Sets when commands count as finished.
    #[must_use]
    pub fn with_events(mut self, events: Events) -> Self {
        self.clocks.set_events(events);
        self
    }

    /// Allocates memory for a stream; `id` is what the block is called from now on. `None` for no
    /// bytes, which need no memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::InvalidArgument`] if `id` is in use.
    pub fn allocate(&mut self, id: u64, bytes: u64, stream: u64) -> Result<Option<Placement>> {
        if self.blocks.contains_key(&id) {
            return Err(wrong(format!("block {id} is allocated already")));
        }
        if bytes == 0 {
            self.blocks.insert(id, None);
            return Ok(None);
        }
        let pool = self.route.last().copied();
        let mut request = Request::new(bytes, StreamKey(stream)).in_pool(pool);
        let mut released = Vec::new();
        loop {
            let clocks = &self.clocks;
            let step = self.core.allocate(
                &mut request,
                &mut self.device,
                &|ticket| clocks.is_reached(ticket),
                &mut released,
            );
            self.take_back(&mut released);
            match step {
                Step::Done(found) => {
                    self.blocks.insert(id, Some(found.block));
                    return Ok(Some(self.placement(&found, bytes)));
                }
                Step::Wait(tickets) => tickets.iter().for_each(|ticket| self.clocks.wait(ticket)),
                Step::Exhausted { figures, .. } => {
                    self.core.give_up(&request);
                    let text = match figures.reason {
                        OutOfMemoryReason::OverLimit => "the limit that is set is reached",
                        OutOfMemoryReason::NeverFits => "the device can never hold them",
                        _ => "the device is full",
                    };
                    let text = format!(
                        "no room for {bytes} bytes: {text}; {} of {} bytes are reserved, {} of them \
                         cached",
                        figures.reserved, figures.total, figures.cached
                    );
                    let error = Error::new(ErrorKind::OutOfMemory, text);
                    return Err(error.with_out_of_memory(*figures));
                }
            }
        }
    }

    /// Gives a block back.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if there is no such block.
    pub fn free(&mut self, id: u64) -> Result<()> {
        let Some(block) = self.blocks.remove(&id) else {
            return Err(unknown(id));
        };
        let Some(block) = block else {
            return Ok(());
        };
        let streams = self.core.recorded(block).iter();
        let clocks = &mut self.clocks;
        let uses = streams.map(|stream| (*stream, clocks.record(stream.0)));
        let uses = uses.collect();
        let mut released = Vec::new();
        self.core
            .free(block, 0, uses, &Context::default(), &mut released);
        self.take_back(&mut released);
        Ok(())
    }

    /// Notes that a stream uses a block, as `record_stream` does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if there is no such block.
    pub fn record(&mut self, id: u64, stream: u64) -> Result<()> {
        let block = self.blocks.get(&id).ok_or_else(|| unknown(id))?;
        if let Some(block) = *block {
            self.core.record(block, StreamKey(stream));
        }
        Ok(())
    }

    /// Finishes all commands that were queued on a stream so far.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::alloc::{AllocConf, Events, Simulator};
    ///
    /// let mut device = Simulator::new(1 << 30, AllocConf::default()).with_events(Events::Hold);
    /// let first = device.allocate(1, 4096, 0)?;
    /// device.record(1, 7)?;
    /// device.free(1)?;
    /// // Stream 7 is not done with it.
    /// assert_ne!(device.allocate(2, 4096, 0)?, first);
    /// device.complete(7);
    /// assert_eq!(device.allocate(3, 4096, 0)?, first);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn complete(&mut self, stream: u64) {
        self.clocks.complete(stream);
    }

    /// Returns what is cached to the device.
    pub fn empty_cache(&mut self) {
        let tickets = self.core.empty_cache_begin();
        tickets.iter().for_each(|ticket| self.clocks.wait(ticket));
        let clocks = &self.clocks;
        let mut released = Vec::new();
        self.core.empty_cache_end(
            &|ticket| clocks.is_reached(ticket),
            &Context::default(),
            &mut released,
        );
        self.take_back(&mut released);
    }

    /// Limits what is reserved to a part of the device's memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if `fraction` is not from 0 to 1.
    pub fn set_fraction(&mut self, fraction: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(wrong(format!(
                "a memory fraction is a number from 0 to 1, not {fraction}"
            )));
        }
        self.core.set_fraction(fraction);
        Ok(())
    }

    /// The memory fraction in force.
    pub fn fraction(&self) -> f64 {
        self.core.fraction()
    }

    /// Changes the settings, for what is done from now on.
    pub fn set_conf(&mut self, conf: AllocConf) {
        self.core.set_conf(conf);
    }

    /// The settings in force.
    pub fn conf(&self) -> &AllocConf {
        self.core.conf()
    }

    /// Limits what is reserved to a number of bytes, or no longer.
    pub fn set_limit(&mut self, bytes: Option<u64>) {
        self.core.set_cap(bytes);
    }

    /// Lets allocations go to a private pool, which is made on first use, until
    /// [`pool_end`](Self::pool_end).
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::alloc::{AllocConf, PoolId, Simulator};
    ///
    /// let mut device = Simulator::new(1 << 30, AllocConf::default());
    /// let pool = PoolId(0, 1);
    /// device.pool_begin(pool);
    /// device.allocate(1, 4096, 0)?;
    /// device.pool_end(pool);
    /// assert_eq!(device.private_pool_bytes(), [(pool, 2 << 20)]);
    ///
    /// device.free(1)?;
    /// device.pool_release(pool);
    /// device.empty_cache();
    /// assert_eq!(device.private_pool_bytes(), []);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn pool_begin(&mut self, pool: PoolId) {
        if !self.known_pools.contains(&pool) {
            self.known_pools.push(pool);
            self.core.pool_retain(pool);
        }
        self.route.push(pool);
    }

    /// Ends what [`pool_begin`](Self::pool_begin) began.
    pub fn pool_end(&mut self, pool: PoolId) {
        if let Some(place) = self.route.iter().rposition(|other| *other == pool) {
            self.route.remove(place);
        }
    }

    /// Gives a private pool up: what is free of it goes back with the next
    /// [`empty_cache`](Self::empty_cache).
    pub fn pool_release(&mut self, pool: PoolId) {
        if let Some(place) = self.known_pools.iter().position(|other| *other == pool) {
            self.known_pools.remove(place);
            self.core.pool_release(pool);
        }
    }

    /// The statistics as they are now.
    pub fn stats(&self) -> MemoryStats {
        *self.core.stats()
    }

    /// Sets every peak to what is current.
    pub fn reset_peak(&mut self) {
        self.core.stats_mut().reset_peak();
    }

    /// Sets every sum and every count to 0.
    pub fn reset_accumulated(&mut self) {
        self.core.stats_mut().reset_accumulated();
    }

    /// The bytes of the segments of each private pool.
    pub fn private_pool_bytes(&self) -> Vec<(PoolId, u64)> {
        self.core.private_pool_bytes()
    }

    /// What there is now, and what was recorded until now.
    pub fn snapshot(&self) -> MemorySnapshot {
        self.core.picture().develop(0)
    }

    /// Records what is done from now on, or no longer. Times are what [`set_time`](Self::set_time)
    /// says.
    ///
    /// # Example
    ///
    /// ```
    /// use vkaccel::alloc::{AllocConf, HistoryOptions, Simulator, TraceAction};
    ///
    /// let mut device = Simulator::new(1 << 30, AllocConf::default());
    /// device.record_history(Some(HistoryOptions::default()));
    /// device.allocate(1, 4096, 0)?;
    /// let history = device.snapshot().history;
    /// assert_eq!(history[0].action, TraceAction::SegmentAlloc);
    /// assert_eq!((history[1].action, history[1].size), (TraceAction::Alloc, 4096));
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn record_history(&mut self, options: Option<HistoryOptions>) {
        self.core.set_history(options.map(History::without_clock));
    }

    /// Sets the time of what is done from now on, in microseconds.
    pub fn set_time(&mut self, time_us: u64) {
        if let Some(history) = self.core.history_mut() {
            history.set_time(time_us);
        }
    }

    fn placement(&self, found: &Allocation<Ticket>, bytes: u64) -> Placement {
        let small = super::size::pool(super::size::rounded(self.core.conf(), bytes));
        Placement {
            segment: found.rank,
            offset: found.offset,
            rounded: found.size,
            segment_bytes: self.core.segment_of(found.block).bytes(),
            small: small == Pool::SmallPool,
        }
    }

    fn take_back(&mut self, released: &mut Vec<Piece>) {
        released
            .drain(..)
            .for_each(|piece| self.device.destroy(piece));
    }
}

#[cold]
fn unknown(id: u64) -> Error {
    wrong(format!("there is no block {id}"))
}

#[cold]
fn wrong(text: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, text)
}
