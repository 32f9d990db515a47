//! Pinned host memory over the driver: the cache that the devices of a runtime share.

use std::sync::Arc;
use std::time::Instant;

use super::device::DeviceMemory;
use super::neighbour::Neighbour;
use crate::alloc::AllocConf;
use crate::alloc::host::{HostBlock, HostCache, HostConf, HostMemoryStats, HostRequest, HostStep};
use crate::base::sync::Mutex;
use crate::device::plan::MemoryRole;
use crate::error::{Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};
use crate::exec::Ticket;
use crate::vk::{Device, Segment};

type Cache = HostCache<Key, Arc<Segment>, Ticket>;

/// What a block can serve: requests on its own device for its own kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    device: u32,
    role: MemoryRole,
}

/// The pinned host memory of a runtime.
#[derive(Debug)]
pub(crate) struct HostMemory {
    cache: Mutex<Cache>,
}

/// The pinned host memory that one opened device can use.
#[derive(Debug)]
pub(crate) struct DeviceHost {
    index: u32,
    shared: Arc<HostMemory>,
    /// What else may hold memory of the same heap idle.
    neighbour: Neighbour,
    device: Arc<Device>,
}

/// A block of pinned host memory; given back when dropped.
#[derive(Debug)]
pub(crate) struct HostPiece {
    segment: Arc<Segment>,
    /// Taken when it is given back.
    block: Option<HostBlock<Key, Arc<Segment>>>,
    home: Arc<HostMemory>,
}

impl HostMemory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            cache: Mutex::new(HostCache::new(HostConf::default())),
        })
    }

    /// Puts the settings of the config string in force that are about host memory.
    pub(crate) fn apply(&self, conf: &AllocConf) {
        self.cache.lock().set_conf(HostConf {
            max_round_threshold: conf.pinned_max_round_threshold(),
            max_cached_size: conf.pinned_max_cached_size(),
        });
    }

    /// Gives back what is cached for the devices that pass, but for what queued copies use.
    fn empty(&self, passes: impl Fn(&Key) -> bool) -> bool {
        let mut released = Vec::new();
        let reached = Ticket::known_reached;
        self.cache.lock().empty(passes, &reached, &mut released);
        let any = !released.is_empty();
        self.let_go(released);
        any
    }

    /// Gives back what is cached for all devices, but for what queued copies use.
    pub(crate) fn empty_cache(&self) {
        self.empty(|_| true);
    }

    pub(crate) fn stats(&self) -> HostMemoryStats {
        let mut released = Vec::new();
        let mut cache = self.cache.lock();
        cache.collect(&Ticket::known_reached, &mut released);
        let stats = cache.stats();
        drop(cache);
        self.let_go(released);
        stats
    }

    pub(crate) fn reset_peak(&self) {
        self.cache.lock().reset_peak();
    }

    pub(crate) fn reset_accumulated(&self) {
        self.cache.lock().reset_accumulated();
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        self.cache.lock().limit()
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.cache.lock().set_limit(limit);
    }

    /// Gives segments back to the driver, with no lock held, and notes how long that took.
    fn let_go(&self, released: Vec<Arc<Segment>>) {
        if released.is_empty() {
            return;
        }
        let times: Vec<_> = released
            .into_iter()
            .map(|segment| {
                let start = Instant::now();
                drop(segment);
                start.elapsed()
            })
            .collect();
        self.cache.lock().freed(times);
    }
}

impl DeviceHost {
    pub(crate) fn new(shared: &Arc<HostMemory>, index: u32, device: &Arc<Device>) -> Arc<Self> {
        Arc::new(Self {
            index,
            shared: Arc::clone(shared),
            neighbour: Neighbour::default(),
            device: Arc::clone(device),
        })
    }

    /// Has device memory make way where there is no room for more.
    pub(super) fn share_with(&self, memory: &Arc<DeviceMemory>) {
        self.neighbour.set(memory);
    }

    /// At least `bytes`, which are not 0, of memory of a kind.
    ///
    /// Where there is no room, gives back what is cached, then waits for copies that use blocks
    /// given back.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfHostMemory`], or [`ErrorKind::OutOfMemory`] where the host's memory is the
    /// device's.
    pub(crate) fn take(&self, role: MemoryRole, bytes: u64) -> Result<HostPiece> {
        self.device.check()?;
        let plan = self.device.plan();
        let most = plan.memory.best(role).heap_bytes;
        let most = most.min(plan.limits.max_buffer_size);
        let most = most.min(plan.limits.max_memory_allocation_size);
        let key = Key {
            device: self.index,
            role,
        };
        let mut request = HostRequest::new(key, bytes, most);
        let mut refusal = None;
        loop {
            let mut released = Vec::new();
            let reached = Ticket::known_reached;
            let step = self
                .shared
                .cache
                .lock()
                .allocate(&mut request, &reached, &mut released);
            self.shared.let_go(released);
            match step {
                HostStep::Done(block) => return Ok(self.piece(block)),
                HostStep::Create(size) => {
                    let start = Instant::now();
                    let made = self.create(role, size);
                    let mut cache = self.shared.cache.lock();
                    match made {
                        Ok(segment) => {
                            let time = start.elapsed();
                            let block = cache.created(&request, size, segment, time);
                            drop(cache);
                            return Ok(self.piece(block));
                        }
                        Err(error) => {
                            cache.refused(&mut request, size);
                            if !is_exhaustion(&error) {
                                return Err(error);
                            }
                            refusal = Some(error);
                        }
                    }
                }
                HostStep::Wait(tickets) => {
                    for ticket in tickets {
                        ticket.wait_for_memory()?;
                    }
                }
                HostStep::OverLimit(size) => return Err(self.over_limit(bytes, size)),
                HostStep::Refused => {
                    if !self.neighbour.make_way(&self.device, role)? {
                        return Err(self.refused(role, bytes, refusal));
                    }
                    request = HostRequest::new(key, bytes, most);
                }
                HostStep::NeverFits => return Err(self.never_fits(role, bytes, most)),
            }
        }
    }

    /// A new segment, where the heap's budget leaves it.
    fn create(&self, role: MemoryRole, size: u64) -> Result<Arc<Segment>> {
        let heap = self.device.plan().memory.best(role).heap;
        let left = self.device.budget_left(heap).unwrap_or(u64::MAX);
        if size > left {
            let text = format!("the driver leaves this process {left} bytes of host memory");
            let reason = OutOfMemoryReason::FullNow;
            return Err(Error::new(ErrorKind::OutOfMemory, text)
                .with_out_of_memory(OutOfMemory::new(reason, size)));
        }
        Segment::new(&self.device, size, role)
    }

    fn piece(&self, block: HostBlock<Key, Arc<Segment>>) -> HostPiece {
        HostPiece {
            segment: Arc::clone(&block.segment),
            block: Some(block),
            home: Arc::clone(&self.shared),
        }
    }

    /// Gives back what is cached for this device; whether there was anything.
    pub(crate) fn trim(&self) -> bool {
        self.shared.empty(|key| key.device == self.index)
    }

    #[cold]
    fn over_limit(&self, bytes: u64, size: u64) -> Error {
        let held = self.shared.stats().allocated_bytes.current;
        let limit = self.shared.limit().unwrap_or(u64::MAX);
        let text = format!(
            "no room to pin {bytes} bytes: with rounding they take {size}, and the limit of {limit} \
             bytes on pinned host memory leaves {}; drop pinned buffers, or raise the limit with \
             set_host_memory_limit",
            limit.saturating_sub(held)
        );
        Error::new(ErrorKind::OutOfHostMemory, text)
    }

    #[cold]
    fn never_fits(&self, role: MemoryRole, bytes: u64, most: u64) -> Error {
        let text = format!(
            "{} can never have {bytes} bytes of pinned host memory in one piece: {most} is the most; \
             split the data over several buffers",
            self.device.name()
        );
        self.exhausted(role, OutOfMemoryReason::NeverFits, bytes, text)
    }

    #[cold]
    fn refused(&self, role: MemoryRole, bytes: u64, refusal: Option<Error>) -> Error {
        let held = self.shared.stats().allocated_bytes.current;
        let why = refusal.as_ref().map(ToString::to_string);
        let why = why.unwrap_or_else(|| "the driver refused".to_owned());
        let text = format!(
            "no room to pin {bytes} bytes: {why}; {held} bytes of host memory are pinned; drop pinned \
             buffers, or what else uses the machine's memory"
        );
        let figures = refusal.as_ref().and_then(Error::out_of_memory);
        let reason = figures.map_or(OutOfMemoryReason::RefusedByDriver, |figures| figures.reason);
        let error = self.exhausted(role, reason, bytes, text);
        match refusal.as_ref().and_then(Error::raw) {
            Some(raw) => error.with_raw(raw),
            None => error,
        }
    }

    /// Host memory is the device's own where it lies in the same heap.
    fn exhausted(
        &self,
        role: MemoryRole,
        reason: OutOfMemoryReason,
        bytes: u64,
        text: String,
    ) -> Error {
        let choice = self.device.plan().memory.best(role);
        if choice.heap != self.device.device_heap() {
            return Error::new(ErrorKind::OutOfHostMemory, text);
        }
        let mut figures = OutOfMemory::new(reason, bytes);
        figures.total = choice.heap_bytes;
        figures.reserved = self.device.held_bytes();
        figures.free = figures.total.saturating_sub(figures.reserved);
        Error::new(ErrorKind::OutOfMemory, text).with_out_of_memory(figures)
    }
}

/// Whether an error says that there is no memory.
pub(super) fn is_exhaustion(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::OutOfMemory | ErrorKind::OutOfHostMemory
    )
}

impl HostPiece {
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Gives it back, to serve again when all of `uses` are reached.
    pub(crate) fn give_back(mut self, uses: Vec<Ticket>) {
        self.give_back_now(uses);
    }

    fn give_back_now(&mut self, uses: Vec<Ticket>) {
        let Some(block) = self.block.take() else {
            return;
        };
        let mut released = Vec::new();
        self.home.cache.lock().free(block, uses, &mut released);
        self.home.let_go(released);
    }
}

impl Drop for HostPiece {
    fn drop(&mut self) {
        // In a forked child, a thread that is not there any more may hold the lock for ever.
        if self.segment.device().may_call_driver() {
            self.give_back_now(Vec::new());
        }
    }
}
