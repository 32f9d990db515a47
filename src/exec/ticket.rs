//! Tickets: points of a stream that are reached or not.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::callback;
use super::losses::Loss;
use super::stream::StreamCore;
use crate::base::counters::{Count, Counts};
use crate::error::Result;
use crate::vk::Lane;

/// A point of a stream behind one of its recordings. Clones are the same point.
///
/// It keeps neither the stream nor what its commands use, so that it may be dropped under any lock
/// and outlive both.
#[derive(Clone, Debug)]
pub(crate) struct Ticket(Option<Arc<Point>>);

/// Where a recording is on its way, for the tickets behind it; made for the first of them.
#[derive(Debug)]
pub(super) struct Point {
    /// The lane's value behind the recording; 0 until it is submitted, which no lane uses.
    value: AtomicU64,
    /// Why its commands never ran.
    loss: OnceLock<Loss>,
    seq: u64,
    lane: Arc<Lane>,
    stream: Weak<StreamCore>,
}

/// Points behind finished recordings of one stream, to be used again once no ticket is left of them.
#[derive(Debug, Default)]
pub(super) struct Points(Vec<Arc<Point>>);

/// How many of them are kept.
const POINTS_MAX: usize = 32;

impl Points {
    /// The point behind recording `seq` of their stream.
    pub(super) fn take(&mut self, stream: &StreamCore, seq: u64) -> Arc<Point> {
        let mut all = self.0.iter_mut();
        if let Some(at) = all.position(|point| Arc::get_mut(point).is_some()) {
            let mut point = self.0.swap_remove(at);
            if let Some(point) = Arc::get_mut(&mut point) {
                point.renew(seq);
            }
            return point;
        }
        Arc::new(Point {
            value: AtomicU64::new(0),
            loss: OnceLock::new(),
            seq,
            lane: Arc::clone(&stream.lane),
            stream: Weak::clone(&stream.me),
        })
    }

    /// Takes the point behind a recording that has finished.
    pub(super) fn keep(&mut self, point: Arc<Point>) {
        if self.0.len() == POINTS_MAX {
            // Its ticket may be kept for long.
            self.0.remove(0);
        }
        self.0.push(point);
    }
}

impl Point {
    /// Makes it one that nobody has seen.
    fn renew(&mut self, seq: u64) {
        self.value = AtomicU64::new(0);
        self.loss = OnceLock::new();
        self.seq = seq;
    }

    /// The recording was submitted with this value.
    pub(super) fn submitted(&self, value: u64) {
        self.value.store(value, Ordering::Release);
    }

    /// The recording is gone.
    pub(super) fn lose(&self, loss: Loss) {
        // A second cause changes nothing.
        let _ = self.loss.set(loss);
    }

    /// The lane's value, if it is submitted.
    fn value(&self) -> Option<u64> {
        Some(self.value.load(Ordering::Acquire)).filter(|&value| value > 0)
    }

    /// Sees to it that the recording is submitted, and gives the lane's value behind it.
    ///
    /// Takes the lock of its stream.
    fn submit(&self, is_waited_for: bool) -> Result<u64> {
        loop {
            // Where the process is ending, who drops the stream submits nothing.
            self.lane.device().check()?;
            if let Some(loss) = self.loss.get() {
                return Err(loss.error());
            }
            if let Some(value) = self.value() {
                return Ok(value);
            }
            match self.stream.upgrade() {
                Some(stream) => stream.submit_up_to(self.seq, is_waited_for)?,
                // Another thread is dropping the stream, which submits it.
                None => std::thread::yield_now(),
            }
        }
    }

    /// Lets go of what finished work of its stream kept.
    fn let_go(&self) {
        if let Some(stream) = self.stream.upgrade() {
            stream.let_go();
        }
    }

    /// Tells somebody who has asked what finished work of its stream found wrong.
    fn tell_found(&self) -> Result<()> {
        let stream = self.stream.upgrade();
        stream.map_or(Ok(()), |stream| stream.tell_found())
    }
}

impl Ticket {
    /// A point that nothing leads to.
    pub(crate) const REACHED: Self = Self(None);

    pub(super) fn new(point: Arc<Point>) -> Self {
        Self(Some(point))
    }

    /// Whether it is known to be reached, or never will be: takes no lock and asks no driver.
    ///
    /// True for ever once it is.
    pub(crate) fn known_reached(&self) -> bool {
        self.0.as_ref().is_none_or(|point| {
            let reached = |value| value <= point.lane.known_reached();
            point.value().is_some_and(reached) || point.loss.get().is_some()
        })
    }

    /// Whether it is reached, or never will be; asks the driver, but submits nothing, so that it
    /// takes no stream's lock.
    pub(crate) fn poll(&self) -> Result<bool> {
        if self.known_reached() {
            return Ok(true);
        }
        let Some(point) = &self.0 else {
            return Ok(true);
        };
        match point.value() {
            Some(value) => Ok(point.lane.poll()? >= value),
            None => Ok(false),
        }
    }

    /// Submits what leads to it, and gives the lane with the value behind it; nothing where nothing
    /// leads to it.
    pub(super) fn submitted(&self) -> Result<Option<(&Arc<Lane>, u64)>> {
        let Some(point) = &self.0 else {
            return Ok(None);
        };
        Ok(Some((&point.lane, point.submit(false)?)))
    }

    /// Whether it is a point of this stream.
    pub(super) fn is_of(&self, stream: &Weak<StreamCore>) -> bool {
        let point = self.0.as_ref();
        point.is_some_and(|point| Weak::ptr_eq(&point.stream, stream))
    }

    /// Whether the commands before it were lost, so that they never run.
    pub(super) fn is_lost(&self) -> bool {
        let point = self.0.as_ref();
        point.is_some_and(|point| point.loss.get().is_some())
    }

    /// Waits for a moment, if it is submitted.
    pub(super) fn wait_a_moment(&self, timeout: Duration) {
        if let Some(point) = &self.0
            && let Some(value) = point.value()
        {
            // A loss is found by who asks next.
            let _ = point.lane.wait(value, Some(timeout));
        }
    }

    /// Whether it is reached; submits what leads to it, and waits for nothing.
    pub(crate) fn is_reached(&self) -> Result<bool> {
        let Some(point) = &self.0 else {
            return Ok(true);
        };
        let value = point.submit(true)?;
        let done = point.lane.poll()? >= value;
        point.let_go();
        point.tell_found().map(|()| done)
    }

    /// Waits until it is reached, as the program asked; `false` if `timeout` ran out first.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let done = self.wait_counted(timeout, |counts| &counts.host_waits_asked)?;
        let told = self.0.as_ref().map_or(Ok(()), |point| point.tell_found());
        told.map(|()| done)
    }

    /// Waits until it is reached, for the memory that may then be used.
    pub(crate) fn wait_for_memory(&self) -> Result<()> {
        self.wait_for_use(|counts| &counts.host_waits_memory)
    }

    /// Waits until it is reached, for the staging memory that may then be used.
    pub(crate) fn wait_for_staging(&self) -> Result<()> {
        self.wait_for_use(|counts| &counts.host_waits_staging)
    }

    /// Waits until it is reached, for what was copied to where the host moves it on.
    pub(crate) fn wait_for_content(&self) -> Result<()> {
        self.wait_counted(None, |counts| &counts.host_waits_staging)?;
        self.0.as_ref().map_or(Ok(()), |point| point.tell_found())
    }

    /// Waits until it is reached, or known never to be: then nothing uses the memory either.
    fn wait_for_use(&self, count: impl FnOnce(&Counts) -> &Count) -> Result<()> {
        match self.wait_counted(None, count) {
            // Who lost the commands is told by their stream.
            Err(_) if self.known_reached() => Ok(()),
            waited => waited.map(drop),
        }
    }

    fn wait_counted(
        &self,
        timeout: Option<Duration>,
        count: impl FnOnce(&Counts) -> &Count,
    ) -> Result<bool> {
        callback::check()?;
        let Some(point) = &self.0 else {
            return Ok(true);
        };
        count(point.lane.device().counts()).add(1);
        let value = point.submit(true)?;
        let done = point.lane.wait(value, timeout)?;
        point.let_go();
        Ok(done)
    }
}
