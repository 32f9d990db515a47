//! What the streams of one opened device share: the lanes, spare command buffers, work that lost
//! its stream, the pacer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use super::callback::{self, Callback};
use super::pacer::Pacer;
use super::permit::Captures;
use super::recording::{Finished, Recording};
use super::stream::{InFlight, StreamCore};
use super::submit::IN_FLIGHT_MAX;
use crate::base::{fork, sync::Mutex};
use crate::device::plan::MemoryRole;
use crate::error::{Error, Result};
use crate::kernel::interface::STAND_IN_BYTES;
use crate::vk::timestamps::Timestamps;
use crate::vk::{Commands, Device, Lane, Segment, Stamp};

/// How many idle recordings are kept for each lane: all that a stream has had in flight may finish at once.
const SPARE_MAX: usize = IN_FLIGHT_MAX + 1;

/// The executing side of an opened device.
///
/// Dropped last of all that executes: it waits for the lanes, then lets go of what was in flight.
#[derive(Debug)]
pub(crate) struct ExecDevice {
    pacer: Pacer,
    /// Every lane by its number: those for streams, then that for copies alone.
    lanes: Vec<LaneWork>,
    /// Every stream that may have work, to wait for all of them.
    streams: Mutex<Vec<Weak<StreamCore>>>,
    /// What kept the last work of a dropped stream from running, until somebody is told.
    failure: Mutex<Option<Error>>,
    pub(super) captures: Captures,
    /// How many threads of our own may be about to let go of what finished work kept.
    letting_go: AtomicUsize,
    /// Memory that stands in for buffers of no bytes; made on first use.
    stand_in: Mutex<Option<Arc<Segment>>>,
    timestamps: Arc<Timestamps>,
    device: Arc<Device>,
}

/// A lane, with what is kept for its streams.
#[derive(Debug)]
struct LaneWork {
    /// Work of streams that are gone, by the lane's value that says it has finished.
    orphans: Mutex<BTreeMap<u64, Box<Recording>>>,
    /// Empty recordings.
    #[expect(clippy::vec_box, reason = "a recording is moved by its box alone")]
    spare: Mutex<Vec<Box<Recording>>>,
    lane: Arc<Lane>,
}

impl LaneWork {
    fn new(lane: Arc<Lane>) -> Self {
        let working: Weak<Lane> = Arc::downgrade(&lane);
        fork::end_after(working);
        Self {
            orphans: Mutex::new(BTreeMap::new()),
            spare: Mutex::new(Vec::new()),
            lane,
        }
    }

    /// Lets go of what finished recordings kept, and keeps their command buffers.
    fn recycle(&self, finished: impl IntoIterator<Item = Box<Recording>>) {
        for mut recording in finished {
            // One that cannot be emptied is dropped.
            if recording.empty().is_ok() {
                let mut spare = self.spare.lock();
                if spare.len() < SPARE_MAX {
                    spare.push(recording);
                }
            }
        }
    }

    /// Lets go of finished work, and has `found` keep what it found wrong.
    fn collect_orphans(&self, found: impl Fn(Error)) {
        let reached = self.lane.known_reached();
        let finished = match self.orphans.try_lock() {
            Some(mut orphans)
                if orphans
                    .first_key_value()
                    .is_some_and(|(&v, _)| v <= reached) =>
            {
                let rest = orphans.split_off(&(reached + 1));
                let finished = core::mem::replace(&mut *orphans, rest);
                // Under the lock, so that whoever has had it knows.
                finished
                    .values()
                    .filter_map(|recording| recording.found())
                    .for_each(found);
                finished
            }
            _ => return,
        };
        self.recycle(finished.into_values());
    }
}

impl ExecDevice {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Arc<Self>> {
        let lanes = Lane::open_all(device)?;
        Ok(Arc::new(Self {
            pacer: Pacer::default(),
            lanes: lanes.into_iter().map(LaneWork::new).collect(),
            streams: Mutex::new(Vec::new()),
            failure: Mutex::new(None),
            captures: Captures::default(),
            letting_go: AtomicUsize::new(0),
            stand_in: Mutex::new(None),
            timestamps: Timestamps::new(device),
            device: Arc::clone(device),
        }))
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The lane of the device's `place`-th stream; its default stream is the one before the first.
    pub(super) fn lane_at(&self, place: usize) -> &Arc<Lane> {
        // A plan has a lane for kernels at least.
        let count = self.device.plan().lanes.len().max(1);
        &self.lanes[place % count].lane
    }

    /// An empty recording for a lane, already begun, that is the `seq`-th of its stream.
    pub(super) fn begin(&self, lane: &Lane, seq: u64) -> Result<Box<Recording>> {
        let spare = self.lanes[lane.number()].spare.lock().pop();
        let mut recording = match spare {
            Some(recording) => recording,
            None => Recording::new(Commands::new(&self.device, lane.plan().family)?),
        };
        recording.begin(seq)?;
        Ok(recording)
    }

    /// Lets go of what finished recordings of a lane kept, and keeps their command buffers.
    ///
    /// Called with no lock held: what is let go of may free memory.
    pub(super) fn recycle(&self, lane: &Lane, finished: Finished) {
        self.lanes[lane.number()].recycle(finished);
    }

    /// Takes over the submitted work of a stream that is being dropped.
    pub(super) fn adopt(&self, lane: &Lane, work: impl IntoIterator<Item = InFlight>) {
        let work = work.into_iter().map(|work| (work.value, work.recording));
        self.lanes[lane.number()].orphans.lock().extend(work);
    }

    /// Lets go of the finished work of dropped streams.
    pub(super) fn collect_orphans(&self) {
        for lane in &self.lanes {
            lane.collect_orphans(|error| self.keep_failure(error));
        }
    }

    /// Asks the driver how far the device is, for what is only known to be reached then.
    pub(crate) fn poll(&self) -> Result<()> {
        self.lanes
            .iter()
            .try_for_each(|work| work.lane.poll().map(drop))
    }

    /// Lets go of what finished work kept; asks the driver how far it is, and waits for nothing.
    pub(crate) fn let_go(&self) -> Result<()> {
        self.poll()?;
        let streams = self.live_streams();
        for stream in &streams {
            stream.let_go();
        }
        self.collect_orphans();
        Ok(())
    }

    /// Has the pacer look after a stream that has something to submit.
    ///
    /// False if the pacer could not be started.
    pub(super) fn watch(&self, stream: Weak<StreamCore>) -> bool {
        self.pacer.watch(stream)
    }

    /// Has the pacer run a callback.
    ///
    /// # Errors
    ///
    /// `ShutDown` if it is shut down meanwhile.
    pub(super) fn call(&self, callback: Callback) -> Result<()> {
        self.pacer.call(callback)
    }

    /// Memory that stands in for buffers of no bytes.
    pub(super) fn stand_in(&self) -> Result<Arc<Segment>> {
        let mut stand_in = self.stand_in.lock();
        if let Some(segment) = &*stand_in {
            return Ok(Arc::clone(segment));
        }
        let segment = Segment::new(&self.device, STAND_IN_BYTES, MemoryRole::Device)?;
        Ok(Arc::clone(stand_in.insert(segment)))
    }

    /// A place for the time of a point.
    pub(super) fn stamp(&self) -> Result<Arc<Stamp>> {
        self.timestamps.take()
    }

    /// The streams that are alive; held by the caller, with no lock.
    fn live_streams(&self) -> Vec<Arc<StreamCore>> {
        let streams = self.streams.lock();
        streams.iter().filter_map(Weak::upgrade).collect()
    }

    /// Remembers a stream.
    pub(super) fn register(&self, stream: &Arc<StreamCore>) {
        let mut streams = self.streams.lock();
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        streams.push(Arc::downgrade(stream));
    }

    /// Waits until all commands of all streams so far have finished, and lets go of what they kept.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.check()?;
        callback::check()?;
        let streams = self.live_streams();
        for stream in &streams {
            stream.flush()?;
        }
        self.synchronize_lanes()?;
        for stream in &streams {
            stream.let_go();
        }
        self.collect_orphans();
        // What others have found finished is let go of, too.
        while self.letting_go.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        self.failure.lock().take().map_or(Ok(()), Err)
    }

    /// Says that a thread of our own may let go of what finished work kept, until the result is dropped.
    pub(super) fn begin_letting_go(&self) -> LettingGo<'_> {
        self.letting_go.fetch_add(1, Ordering::AcqRel);
        LettingGo(self)
    }

    /// The same for the program, which is told what the commands found wrong.
    pub(crate) fn synchronize_and_tell(&self) -> Result<()> {
        self.synchronize()?;
        for lane in &self.lanes {
            // Another thread may be about to keep what it found.
            drop(lane.orphans.lock());
        }
        self.failure.lock().take().map_or(Ok(()), Err)?;
        let streams = self.streams.lock().clone();
        let mut streams = streams.iter().filter_map(Weak::upgrade);
        streams.try_for_each(|stream| stream.tell_found())
    }

    /// The same, for memory that may then be used.
    pub(crate) fn synchronize_for_memory(&self) -> Result<()> {
        self.device.counts().host_waits_memory.add(1);
        self.synchronize()
    }

    /// Waits for what was submitted so far.
    pub(super) fn synchronize_lanes(&self) -> Result<()> {
        for LaneWork { lane, .. } in &self.lanes {
            lane.wait(lane.last(), None)?;
        }
        Ok(())
    }

    /// Keeps an error of a dropped stream for whoever waits for the device next.
    pub(super) fn keep_failure(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
    }

    /// Waits for all work and ends the pacer; for a runtime that shuts down.
    pub(crate) fn close(&self) -> Result<()> {
        let waited = self.synchronize();
        // What callbacks wait for is reached, so that all of them run.
        self.pacer.stop();
        waited.and(self.synchronize())
    }
}

/// See [`ExecDevice::begin_letting_go`].
#[derive(Debug)]
pub(super) struct LettingGo<'a>(&'a ExecDevice);

impl Drop for LettingGo<'_> {
    fn drop(&mut self) {
        self.0.letting_go.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for ExecDevice {
    fn drop(&mut self) {
        if !self.device.may_call_driver() {
            self.pacer.forget();
            return;
        }
        if !self.device.is_lost() {
            // An error here is a loss, after which nothing runs any more, or the process is ending.
            let waited = self.synchronize_lanes();
            let is_over = self.device.is_lost() || !self.device.may_call_driver();
            debug_assert!(waited.is_ok() || is_over, "{waited:?}");
        }
        self.pacer.stop();
    }
}
