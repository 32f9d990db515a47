//! Device memory: the caching allocator over the driver's segments.
//!
//! The lock around the allocator is held for decisions alone: what has to be waited for is waited for
//! outside of it, and segments go back to the driver outside of it.

use core::panic::Location;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::block::{Block, Held, Home};
use super::exhausted::{self, Circumstances};
use super::host::DeviceHost;
use super::leaving::{Going, Leaving, is_in_use, wait_until_let_go};
use super::pressure::{self, Callbacks};
use super::settings::MemorySettings;
use super::staging::Staging;
use crate::alloc::core::Addressed;
use crate::alloc::history::{Context, History};
use crate::alloc::{
    Allocation, BlockId, Core, HistoryOptions, Limits, MemorySnapshot, MemoryStats, PoolId,
    Request, Source, Step, StreamKey,
};
use crate::base::sync::Mutex;
use crate::device::MemoryInfo;
use crate::device::info::PhysicalInfo;
use crate::device::plan::MemoryRole;
use crate::error::{Error, OutOfMemory, OutOfMemoryReason, Result};
use crate::exec::{Capture, ExecDevice, Replays, StreamCore, Ticket};
use crate::vk::{Device, Segment};

/// The values of `recorded`.
const NOT_RECORDED: u8 = 0;
const WITH_SITES: u8 = 1;
const WITH_BACKTRACES: u8 = 2;

/// The memory of one opened device.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    state: Mutex<State>,
    /// Whether blocks wait for other streams, for whoever does not hold the lock.
    has_pending: AtomicBool,
    /// How many blocks are left whose buffers are gone, but that graphs or their replays still use.
    left: AtomicIsize,
    leaving: Leaving,
    /// What is recorded of a request, for whoever does not hold the lock.
    recorded: AtomicU8,
    pressure: Arc<Callbacks>,
    info: PhysicalInfo,
    /// Host memory that is kept idle, and makes way where the device is full.
    staging: Arc<Staging>,
    host: Arc<DeviceHost>,
    exec: Arc<ExecDevice>,
    device: Arc<Device>,
}

#[derive(Debug)]
struct State {
    core: Core<Arc<Segment>, Ticket>,
    /// The private pools whose owners hold them.
    owned: BTreeSet<PoolId>,
    /// The replays that use memory of a private pool, of it what is free too.
    replays: BTreeMap<PoolId, Weak<Replays>>,
}

impl Addressed for Arc<Segment> {
    fn address(&self) -> u64 {
        Segment::address(self)
    }
}

/// The driver, for the allocator.
struct Driver<'a> {
    device: &'a Arc<Device>,
    /// Who may forbid it: a capture, but for what it asks for itself.
    exec: Option<&'a ExecDevice>,
    /// Where the program asks for memory.
    site: &'static Location<'static>,
}

impl Source for Driver<'_> {
    type Segment = Arc<Segment>;
    type Refusal = Error;

    fn create(&mut self, bytes: u64) -> Result<Arc<Segment>> {
        if let Some(exec) = self.exec {
            exec.permit_memory(self.site)?;
        }
        Segment::new(self.device, bytes, MemoryRole::Device)
    }

    fn held(&self) -> u64 {
        u64::from(self.device.held_count())
    }
}

impl DeviceMemory {
    pub(crate) fn new(
        device: &Arc<Device>,
        exec: &Arc<ExecDevice>,
        info: &PhysicalInfo,
        (staging, host): (Arc<Staging>, Arc<DeviceHost>),
        settings: &MemorySettings,
        pressure: Arc<Callbacks>,
    ) -> Arc<Self> {
        let plan = device.plan();
        let limits = Limits {
            total: plan.device_heap_bytes,
            // What the heap alone is too small for is tried, as PyTorch tries it, and counts as tried.
            largest_segment: plan
                .limits
                .max_buffer_size
                .min(plan.limits.max_memory_allocation_size),
            most_allocations: u64::from(plan.limits.max_memory_allocation_count),
        };
        let memory = Self {
            state: Mutex::new(State {
                core: Core::new(settings.conf.clone(), limits),
                owned: BTreeSet::new(),
                replays: BTreeMap::new(),
            }),
            has_pending: AtomicBool::new(false),
            left: AtomicIsize::new(0),
            leaving: Leaving::default(),
            recorded: AtomicU8::new(NOT_RECORDED),
            pressure,
            info: info.clone(),
            staging,
            host,
            exec: Arc::clone(exec),
            device: Arc::clone(device),
        };
        memory.apply(settings);
        let memory = Arc::new(memory);
        memory.staging.share_with(&memory);
        memory.host.share_with(&memory);
        memory
    }

    /// Puts settings in force; what is held stays.
    pub(crate) fn apply(&self, settings: &MemorySettings) {
        self.with(|state| {
            state.core.set_conf(settings.conf.clone());
            if let Some(fraction) = settings.fraction {
                state.core.set_fraction(fraction);
            }
            state.core.set_cap(settings.limit);
        });
        self.record_history(settings.history.clone());
    }

    /// A block of at least `bytes`, with whatever content, for a stream.
    ///
    /// Where the device is full, gives back what is cached, and asks the program's pressure callbacks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory), with all figures.
    pub(crate) fn allocate(
        home: Arc<Home>,
        bytes: u64,
        pool: Option<PoolId>,
        site: &'static Location<'static>,
    ) -> Result<Block> {
        let memory = &home.memory;
        memory.device.check()?;
        if bytes == 0 {
            return Ok(Block::default());
        }
        if memory.has_pending.load(Ordering::Relaxed) {
            memory.exec.poll()?;
        }
        let stream = &home.stream;
        let capture = stream.capture();
        let pool = capture
            .as_ref()
            .map_or(pool, |capture| Some(capture.pool()));
        let mut request = Request::new(bytes, StreamKey(stream.id())).in_pool(pool);
        let recorded = memory.recorded.load(Ordering::Relaxed);
        if recorded != NOT_RECORDED {
            request = request.by(Context::capture(site, recorded == WITH_BACKTRACES));
        }
        let mut may_ask = !pressure::is_inside();
        loop {
            let gone = memory.leaving.ended();
            match memory.step(&mut request, capture.is_some(), site)? {
                Outcome::Block(found, segment) => {
                    stream.split_scope();
                    let replays = request.pool().and_then(|pool| memory.replays_in(pool));
                    return finish(home, found, segment, capture.as_deref(), replays);
                }
                Outcome::Wait(tickets) => wait_for(&tickets)?,
                Outcome::Exhausted(figures, refusal) => {
                    let refusal = match refusal {
                        Some(error) if !error.is_out_of_memory() => return Err(error),
                        other => other,
                    };
                    // What another thread is giving back was missing here.
                    if memory.leaving.wait() != gone {
                        continue;
                    }
                    let kept = memory.leaving.take_kept();
                    if !kept.is_empty() {
                        memory.exec.synchronize_for_memory()?;
                        let holders = |one: &Weak<Segment>| one.strong_count();
                        wait_until_let_go(0, || kept.iter().map(holders).sum());
                        continue;
                    }
                    if memory.take_left()? || memory.take_idle_host_memory() {
                        continue;
                    }
                    let figures = memory.completed(figures, refusal.as_ref());
                    // Once a request that something given up could help, and never from inside a callback.
                    let is_hopeless = figures.reason == OutOfMemoryReason::NeverFits
                        || exhausted::is_beyond_limit(&figures);
                    let ask = core::mem::replace(&mut may_ask, false) && !is_hopeless;
                    if ask && memory.pressure.ask(&figures) {
                        continue;
                    }
                    return Err(memory.give_up(&request, figures, refusal));
                }
            }
        }
    }

    /// Lets the allocator go on with a request as far as it can without waiting.
    fn step(
        &self,
        request: &mut Request,
        is_captured: bool,
        site: &'static Location<'static>,
    ) -> Result<Outcome> {
        let mut released = Vec::new();
        let (outcome, going) = self.with(|state| {
            // That of a capture is held by its graphs.
            if let Some(pool) = request.pool().filter(|_| !is_captured)
                && state.owned.insert(pool)
            {
                state.core.pool_retain(pool);
            }
            let core = &mut state.core;
            let mut driver = Driver {
                device: &self.device,
                exec: (!is_captured).then_some(&*self.exec),
                site,
            };
            let step = core.allocate(request, &mut driver, &Ticket::known_reached, &mut released);
            let outcome = match step {
                Step::Done(found) => {
                    let segment = Arc::clone(core.segment_of(found.block));
                    Outcome::Block(found, segment)
                }
                Step::Wait(tickets) => Outcome::Wait(tickets),
                Step::Exhausted { figures, refusal } => Outcome::Exhausted(*figures, refusal),
            };
            (outcome, self.going(&released))
        });
        match (self.let_go(released, going), &outcome) {
            // Who uses the block finds out what is wrong.
            (Err(error), Outcome::Wait(_) | Outcome::Exhausted(..)) => Err(error),
            _ => Ok(outcome),
        }
    }

    /// Whether drops may call the driver, and take locks.
    pub(super) fn may_call_driver(&self) -> bool {
        self.device.may_call_driver()
    }

    /// There are so many more blocks that graphs or their replays use, and nothing else.
    pub(super) fn has_left(&self, more: isize) {
        self.left.fetch_add(more, Ordering::AcqRel);
    }

    /// Waits for replays that may be the last to use memory; whether any were.
    fn take_left(&self) -> Result<bool> {
        let before = self.left.load(Ordering::Acquire);
        if before == 0 {
            return Ok(false);
        }
        self.exec.synchronize_for_memory()?;
        Ok(self.left.load(Ordering::Acquire) < before)
    }

    /// Gives idle host memory back, which may lie in the same heap and is one of the driver's allocations
    /// anyway; whether there was any.
    fn take_idle_host_memory(&self) -> bool {
        let before = self.device.count_and_bytes();
        self.staging.trim();
        self.host.trim();
        self.device.count_and_bytes() < before
    }

    /// Says that segments are about to go, under the lock.
    fn going(&self, released: &[Arc<Segment>]) -> Option<Going<'_>> {
        (!released.is_empty()).then(|| self.leaving.begin())
    }

    /// Gives segments back to the driver before it returns, whatever still uses them.
    fn let_go(&self, released: Vec<Arc<Segment>>, going: Option<Going<'_>>) -> Result<()> {
        if released.iter().any(is_in_use) {
            self.exec.synchronize_for_memory()?;
            wait_until_let_go(released.len(), || {
                released.iter().map(Arc::strong_count).sum()
            });
        }
        drop(released);
        drop(going);
        Ok(())
    }

    /// Takes a block back, with the newest use by its own stream and the tickets of others.
    pub(super) fn free(&self, id: BlockId, last_use: u64, uses: Vec<(StreamKey, Ticket)>) {
        let mut released = Vec::new();
        // The place of a drop is nowhere to be had.
        let nobody = Context::default();
        let _going = self.with(|state| {
            let core = &mut state.core;
            core.free(id, last_use, uses, &nobody, &mut released);
            self.going(&released)
        });
        // A drop waits for nothing: what still runs keeps its segments.
        self.leaving.let_go(released);
    }

    /// Gives what is cached back to the driver before it returns.
    pub(crate) fn empty_cache(&self) -> Result<()> {
        self.device.check()?;
        self.take_left()?;
        let tickets = self.with(|state| state.core.empty_cache_begin());
        wait_for(&tickets)?;
        let mut released = Vec::new();
        let going = self.with(|state| {
            let core = &mut state.core;
            core.empty_cache_end(&Ticket::known_reached, &Context::default(), &mut released);
            self.going(&released)
        });
        self.let_go(released, going)
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        *self.state.lock().core.stats()
    }

    pub(crate) fn change_stats(&self, change: fn(&mut MemoryStats)) {
        self.with(|state| change(state.core.stats_mut()));
    }

    /// The segments and blocks, and what was recorded.
    pub(crate) fn snapshot(&self, device: u32) -> MemorySnapshot {
        let picture = self.state.lock().core.picture();
        picture.develop(device)
    }

    /// Records what happens from now on, or no longer.
    pub(crate) fn record_history(&self, options: Option<HistoryOptions>) {
        let recorded = match &options {
            None => NOT_RECORDED,
            Some(options) if options.backtraces => WITH_BACKTRACES,
            Some(_) => WITH_SITES,
        };
        self.with(|state| {
            let core = &mut state.core;
            match (options, core.history_mut()) {
                (Some(options), Some(history)) => history.set_options(options),
                (options, _) => core.set_history(options.map(History::new)),
            }
        });
        self.recorded.store(recorded, Ordering::Relaxed);
    }

    pub(crate) fn private_pool_bytes(&self) -> Vec<(PoolId, u64)> {
        self.state.lock().core.private_pool_bytes()
    }

    /// A stream asks for no more memory.
    pub(crate) fn retire(&self, stream: &StreamCore) {
        let done = stream.newest();
        self.with(|state| state.core.retire(StreamKey(stream.id()), done));
    }

    /// Gives up a private pool, for its owner.
    pub(crate) fn release_pool(&self, pool: PoolId) {
        self.with(|state| {
            if state.owned.remove(&pool) {
                state.core.pool_release(pool);
            }
        });
    }

    /// Holds a private pool, for graphs; see [`let_go_of_pool`](Self::let_go_of_pool). Gives the list of the
    /// replays that use its memory, which lives for as long as one of them, at least.
    pub(crate) fn hold_pool(&self, pool: PoolId) -> Arc<Replays> {
        self.with(|state| {
            state.core.pool_retain(pool);
            let State { replays, .. } = state;
            replays.retain(|_, replays| replays.strong_count() > 0);
            let known = replays.get(&pool).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let new = Arc::default();
                replays.insert(pool, Arc::downgrade(&new));
                new
            })
        })
    }

    fn replays_in(&self, pool: PoolId) -> Option<Arc<Replays>> {
        let state = self.state.lock();
        state.replays.get(&pool).and_then(Weak::upgrade)
    }

    /// Gives such a hold up.
    pub(crate) fn let_go_of_pool(&self, pool: PoolId) {
        self.with(|state| state.core.pool_release(pool));
    }

    /// What the runtime holds of the device's memory, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.device.held_bytes()
    }

    /// Free and total memory.
    pub(crate) fn info(&self) -> MemoryInfo {
        self.device.memory_info(&self.info, self.held_bytes())
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        let result = f(&mut state);
        self.has_pending
            .store(state.core.has_pending(), Ordering::Relaxed);
        result
    }

    /// The allocator's figures, with what the device really has free, and the reason that the driver
    /// gives.
    fn completed(&self, figures: OutOfMemory, refusal: Option<&Error>) -> OutOfMemory {
        let mut figures = figures;
        figures.free = self.info().free;
        let told = refusal
            .and_then(Error::out_of_memory)
            .map(|told| told.reason);
        if let Some(reason) = told.filter(|_| figures.reason == OutOfMemoryReason::RefusedByDriver)
        {
            figures.reason = reason;
        }
        figures
    }

    #[cold]
    fn give_up(&self, request: &Request, figures: OutOfMemory, refusal: Option<Error>) -> Error {
        let circumstances = self.with(|state| {
            state.core.give_up(request);
            let core = &state.core;
            let fraction_bytes = core.fraction_bytes();
            Circumstances {
                largest_buffer: self.device.plan().max_segment_bytes,
                most_allocations: self.device.plan().limits.max_memory_allocation_count,
                splits_are_bounded: core.conf().max_split_size().is_some(),
                limit_is_fraction: fraction_bytes.is_some() && fraction_bytes == figures.limit,
            }
        });
        exhausted::error(self.device.name(), figures, circumstances, refusal)
    }
}

/// Waits for what the allocator wants finished.
fn wait_for(tickets: &[Ticket]) -> Result<()> {
    tickets.iter().try_for_each(Ticket::wait_for_memory)
}

/// The block of what was found, behind what its stream has to wait for on the device.
fn finish(
    home: Arc<Home>,
    found: Allocation<Ticket>,
    segment: Arc<Segment>,
    capture: Option<&Capture>,
    replays: Option<Arc<Replays>>,
) -> Result<Block> {
    let mut behind = found.waits;
    match (capture, &replays) {
        // Replays of one pool run in order, but calls on its memory are ordered by the stream alone.
        (Some(_), _) => {
            let calls = home.stream.ticket(found.mark);
            behind.extend((!calls.known_reached()).then_some(calls));
        }
        // What is free between replays is in use while they run.
        (None, Some(replays)) => behind.extend(replays.unfinished()),
        (None, None) => {}
    }
    let waiting = (!behind.is_empty()).then(|| (Arc::clone(&home), behind.clone()));
    let block = Block::new(Held {
        id: found.block,
        segment,
        offset: found.offset,
        last_use: AtomicU64::new(found.mark),
        behind,
        others: Mutex::default(),
        host: Mutex::default(),
        born_in: capture.map_or(0, Capture::id),
        replays,
        kept: OnceLock::new(),
        home,
    });
    if let Some((home, tickets)) = waiting {
        match capture {
            None => tickets
                .iter()
                .try_for_each(|ticket| home.stream.wait_queued(ticket))?,
            // Nothing outside of a capture can be waited for in it.
            Some(_) => wait_for(&tickets)?,
        }
    }
    Ok(block)
}

/// What came of a step.
enum Outcome {
    Block(Allocation<Ticket>, Arc<Segment>),
    Wait(Vec<Ticket>),
    Exhausted(OutOfMemory, Option<Error>),
}
