//! Queues that are shown: each a line in front of one of the driver's, with a thread that works it
//! off.
//!
//! # Safety
//!
//! As at the root of the crate. A queue's handle points to a [`Face`], which lives until its device
//! is destroyed; no handle is used after that.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};

use ash::vk::{self, Handle};

use crate::device_core::Core;
use crate::submit::{self, Job};
use crate::sync::lock;
use crate::{config, faults};

/// How long a thread waits before it looks again whether its device is gone.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Submissions on their way to one of the driver's queues, in order.
#[derive(Debug)]
pub(crate) struct Line {
    family: u32,
    index: u32,
    /// Which of the driver's queues it leads to.
    real: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Whether the thread has one in hand.
    busy: bool,
    stopped: bool,
}

impl Line {
    pub(crate) fn new(family: u32, index: u32, real: usize) -> Self {
        Self {
            family,
            index,
            real,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn push(&self, jobs: impl IntoIterator<Item = Job>) {
        lock(&self.state).jobs.extend(jobs);
        self.changed.notify_all();
    }

    /// Drops what has not been begun.
    pub(crate) fn clear(&self) {
        lock(&self.state).jobs.clear();
        self.changed.notify_all();
    }

    /// Waits until everything is at the driver.
    pub(crate) fn wait_until_empty(&self) {
        let state = lock(&self.state);
        let is_busy = |state: &mut State| state.busy || !state.jobs.is_empty();
        let waited = self.changed.wait_while(state, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The next job, now in hand; nothing once the line is stopped.
    fn take(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        state.busy = false;
        self.changed.notify_all();
        let is_idle = |state: &mut State| state.jobs.is_empty() && !state.stopped;
        let waited = self.changed.wait_while(state, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let job = state.jobs.pop_front().filter(|_| !state.stopped)?;
        state.busy = true;
        Some(job)
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        state.jobs.clear();
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Sleeps, unless the line ends first.
    fn sleep(&self, time: Duration, core: &Core) {
        let end = Instant::now() + time;
        while !core.is_lost() && !self.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LOOK_AGAIN));
        }
    }
}

/// What a handle points to. It starts as the loader wants it.
#[repr(C)]
struct Face {
    /// The loader puts its own pointer here.
    loader: usize,
    core: Arc<Core>,
    line: usize,
}

/// What the loader expects in a handle that it has not yet seen.
const LOADER_MAGIC: usize = 0x01CD_C0DE;

/// A queue that is shown.
pub(crate) struct Queue {
    /// Made by `Box::into_raw`, given back by `stop`; the loader writes to it.
    face: *mut Face,
    core: Arc<Core>,
    line: usize,
    thread: Option<JoinHandle<()>>,
}

// SAFETY: the face is only read here; the loader's own word in it is the loader's business.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// The queue at the head of a line, with its thread.
    pub(crate) fn new(core: &Arc<Core>, line: usize) -> io::Result<Self> {
        let seed = config::get().map_or(0, |config| config.seed);
        let worker = Worker {
            core: Arc::clone(core),
            line,
            random: Random(seed ^ (line as u64 + 1) << 32),
        };
        let thread = thread::Builder::new()
            .name(format!("icd-shim-{line}"))
            .spawn(move || worker.run())?;
        let face = Box::new(Face {
            loader: LOADER_MAGIC,
            core: Arc::clone(core),
            line,
        });
        Ok(Self {
            face: Box::into_raw(face),
            core: Arc::clone(core),
            line,
            thread: Some(thread),
        })
    }

    pub(crate) fn handle(&self) -> vk::Queue {
        vk::Queue::from_raw(self.face.expose_provenance() as u64)
    }

    pub(crate) fn is(&self, family: u32, index: u32) -> bool {
        let line = &self.core.lines()[self.line];
        (line.family, line.index) == (family, index)
    }

    /// Ends the thread; what is still in the line is dropped.
    pub(crate) fn stop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.core.lines()[self.line].stop();
        if thread.join().is_err() {
            eprintln!("vkaccel-icd-shim: the thread of a queue has panicked");
        }
        // SAFETY: made by `Box::into_raw`, and given back once, since the thread is taken once.
        drop(unsafe { Box::from_raw(self.face) });
    }
}

struct Worker {
    core: Arc<Core>,
    line: usize,
    random: Random,
}

impl Worker {
    fn run(mut self) {
        let delay = config::get().map_or(Duration::ZERO, |config| config.delay);
        let core = Arc::clone(&self.core);
        let line = &core.lines()[self.line];
        while let Some(job) = line.take() {
            if !job.wait(&core, || line.is_stopped()) {
                continue;
            }
            line.sleep(self.random.up_to(delay), &core);
            if core.is_lost() {
                continue;
            }
            if let Some(result) = faults::of_call(faults::EXECUTION) {
                // A submission that was accepted can only fail by a loss.
                eprintln!("vkaccel-icd-shim: an execution fails with {result:?}");
                core.lose();
                continue;
            }
            if let Err(result) = core.submit(line.real, &job) {
                eprintln!("vkaccel-icd-shim: the driver refuses a submission: {result:?}");
                core.lose();
                continue;
            }
            job.open_gates();
        }
    }
}

/// Numbers that look random, the same ones for a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.next() % most.saturating_add(1).max(1))
    }
}

/// The queue behind a handle.
///
/// # Safety
///
/// A handle that came from here, whose device is alive for as long as the answer is used.
unsafe fn face<'a>(handle: vk::Queue) -> &'a Face {
    let address = usize::try_from(handle.as_raw()).unwrap_or(0);
    let face = core::ptr::with_exposed_provenance::<Face>(address);
    // SAFETY: as the caller says.
    unsafe { &*face }
}

/// Puts the batches of a call in the line, the fence behind the last.
fn enqueue(face: &Face, mut jobs: Vec<Job>, fence: vk::Fence) -> vk::Result {
    if fence != vk::Fence::null() {
        if jobs.is_empty() {
            jobs.push(Job::default());
        }
        jobs.iter_mut()
            .next_back()
            .into_iter()
            .for_each(|job| job.fence = fence);
    }
    face.core.lines()[face.line].push(jobs);
    vk::Result::SUCCESS
}

pub(crate) unsafe extern "system" fn submit(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: as the loader called.
    let face = unsafe { face(handle) };
    if let Err(result) = face.core.enter("vkQueueSubmit") {
        return result;
    }
    // SAFETY: as the loader called.
    let jobs = unsafe { submit::read(&face.core, infos, count) };
    enqueue(face, jobs, fence)
}

pub(crate) unsafe extern "system" fn submit2(
    handle: vk::Queue,
    count: u32,
    infos: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: as the loader called.
    let face = unsafe { face(handle) };
    if let Err(result) = face.core.enter("vkQueueSubmit2") {
        return result;
    }
    // SAFETY: as the loader called.
    let jobs = unsafe { submit::read2(&face.core, infos, count) };
    enqueue(face, jobs, fence)
}

pub(crate) unsafe extern "system" fn wait_idle(handle: vk::Queue) -> vk::Result {
    // SAFETY: as the loader called.
    let face = unsafe { face(handle) };
    if let Err(result) = face.core.enter("vkQueueWaitIdle") {
        return result;
    }
    let line = &face.core.lines()[face.line];
    line.wait_until_empty();
    if face.core.is_lost() {
        face.core.settle();
        return vk::Result::ERROR_DEVICE_LOST;
    }
    face.core.idle_queue(line.real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_the_same_for_a_seed_and_within_their_bound() {
        let most = Duration::from_micros(10);
        let delays = |seed| {
            let mut random = Random(seed);
            (0..100).map(|_| random.up_to(most)).collect::<Vec<_>>()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
        assert!(delays(3).iter().all(|delay| *delay <= most));
        assert_eq!(Random(1).up_to(Duration::ZERO), Duration::ZERO);
    }
}
