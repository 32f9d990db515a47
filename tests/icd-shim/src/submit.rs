//! Submissions, taken out of the caller's structures.
//!
//! # Safety
//!
//! As at the root of the crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ash::vk;

use crate::chain::find;
use crate::device_core::Core;
use crate::queue::LOOK_AGAIN;
use crate::sync::lock;

/// Open once the submission that signals a binary semaphore is at the driver: a wait for it that
/// came first would hang.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicBool);

/// One batch of a submission.
#[derive(Debug, Default)]
pub(crate) struct Job {
    /// Semaphores with their values, which binary ones ignore.
    pub(crate) waits: Vec<(vk::Semaphore, u64)>,
    pub(crate) commands: Vec<vk::CommandBuffer>,
    pub(crate) signals: Vec<(vk::Semaphore, u64)>,
    pub(crate) fence: vk::Fence,
    /// The waits that the host does first.
    timelines: Vec<(vk::Semaphore, u64)>,
    behind: Vec<Arc<Gate>>,
    opens: Vec<Arc<Gate>>,
}

impl Job {
    /// Sorts the semaphores by their kinds.
    fn sorted(mut self, core: &Core) -> Self {
        let mut semaphores = lock(&core.semaphores);
        for wait in &self.waits {
            if semaphores.timelines.contains(&wait.0) {
                self.timelines.push(*wait);
            } else {
                self.behind.extend(semaphores.gates.get(&wait.0).cloned());
            }
        }
        for (semaphore, _) in &self.signals {
            if !semaphores.timelines.contains(semaphore) {
                let gate = Arc::new(Gate::default());
                semaphores.gates.insert(*semaphore, Arc::clone(&gate));
                self.opens.push(gate);
            }
        }
        self
    }

    /// Waits on the host until the driver can run it without waiting; false if it never will.
    pub(crate) fn wait(&self, core: &Core, is_stopped: impl Fn() -> bool) -> bool {
        let is_over = || core.is_lost() || is_stopped();
        while self
            .behind
            .iter()
            .any(|gate| !gate.0.load(Ordering::Acquire))
        {
            if is_over() {
                return false;
            }
            thread::sleep(LOOK_AGAIN / 20);
        }
        if self.timelines.is_empty() {
            return !is_over();
        }
        let semaphores: Vec<_> = self.timelines.iter().map(|wait| wait.0).collect();
        let values: Vec<_> = self.timelines.iter().map(|wait| wait.1).collect();
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let slice = u64::try_from(LOOK_AGAIN.as_nanos()).unwrap_or(u64::MAX);
        loop {
            if is_over() {
                return false;
            }
            // SAFETY: the caller keeps semaphores alive until its submission has run.
            match unsafe { core.raw().wait_semaphores(&info, slice) } {
                Ok(()) => return true,
                Err(vk::Result::TIMEOUT) => {}
                Err(result) => {
                    eprintln!("vkaccel-icd-shim: the driver refuses a wait: {result:?}");
                    core.lose();
                    return false;
                }
            }
        }
    }

    /// Lets waits for its binary semaphores go to the driver.
    pub(crate) fn open_gates(&self) {
        for gate in &self.opens {
            gate.0.store(true, Ordering::Release);
        }
    }
}

/// A list of the caller's.
///
/// # Safety
///
/// `first` points to `count` values that live as long as the answer, unless there are none.
unsafe fn list<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts(first, count as usize) }
}

/// Semaphores with their values; 0 where there is none.
fn pairs(semaphores: &[vk::Semaphore], values: &[u64]) -> Vec<(vk::Semaphore, u64)> {
    let values = values.iter().copied().chain(core::iter::repeat(0));
    semaphores.iter().copied().zip(values).collect()
}

/// The batches of `vkQueueSubmit`.
///
/// # Safety
///
/// As the loader called it.
pub(crate) unsafe fn read(core: &Core, infos: *const vk::SubmitInfo<'_>, count: u32) -> Vec<Job> {
    // SAFETY: as the caller says.
    let infos = unsafe { list(infos, count) };
    let read = |info: &vk::SubmitInfo<'_>| {
        // SAFETY: as the caller says.
        let timeline = unsafe { find::<vk::TimelineSemaphoreSubmitInfo<'_>>(info.p_next) };
        let timeline = timeline.copied().unwrap_or_default();
        // SAFETY: as the caller says.
        let waits = unsafe { list(info.p_wait_semaphores, info.wait_semaphore_count) };
        // SAFETY: as the caller says.
        let wait_values = unsafe {
            list(
                timeline.p_wait_semaphore_values,
                timeline.wait_semaphore_value_count,
            )
        };
        // SAFETY: as the caller says.
        let commands = unsafe { list(info.p_command_buffers, info.command_buffer_count) };
        // SAFETY: as the caller says.
        let signals = unsafe { list(info.p_signal_semaphores, info.signal_semaphore_count) };
        // SAFETY: as the caller says.
        let signal_values = unsafe {
            list(
                timeline.p_signal_semaphore_values,
                timeline.signal_semaphore_value_count,
            )
        };
        let job = Job {
            waits: pairs(waits, wait_values),
            commands: commands.to_vec(),
            signals: pairs(signals, signal_values),
            ..Job::default()
        };
        job.sorted(core)
    };
    infos.iter().map(read).collect()
}

/// The batches of `vkQueueSubmit2`; stages are widened to all commands.
///
/// # Safety
///
/// As the loader called it.
pub(crate) unsafe fn read2(core: &Core, infos: *const vk::SubmitInfo2<'_>, count: u32) -> Vec<Job> {
    // SAFETY: as the caller says.
    let infos = unsafe { list(infos, count) };
    let pair = |info: &vk::SemaphoreSubmitInfo<'_>| (info.semaphore, info.value);
    let read = |info: &vk::SubmitInfo2<'_>| {
        // SAFETY: as the caller says.
        let waits = unsafe { list(info.p_wait_semaphore_infos, info.wait_semaphore_info_count) };
        // SAFETY: as the caller says.
        let commands = unsafe { list(info.p_command_buffer_infos, info.command_buffer_info_count) };
        // SAFETY: as the caller says.
        let signals = unsafe {
            list(
                info.p_signal_semaphore_infos,
                info.signal_semaphore_info_count,
            )
        };
        let job = Job {
            waits: waits.iter().map(pair).collect(),
            commands: commands.iter().map(|info| info.command_buffer).collect(),
            signals: signals.iter().map(pair).collect(),
            ..Job::default()
        };
        job.sorted(core)
    };
    infos.iter().map(read).collect()
}
