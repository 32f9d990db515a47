//! What all functions of a device share: the driver's functions and queues, the lines that lead to
//! these, and whether the device is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;

use crate::faults;
use crate::queue::Line;
use crate::submit::{Gate, Job};
use crate::sync::lock;

/// A queue of the driver, used under its lock alone.
#[derive(Debug)]
pub(crate) struct RealQueue(Mutex<vk::Queue>);

impl RealQueue {
    pub(crate) fn new(queue: vk::Queue) -> Self {
        Self(Mutex::new(queue))
    }
}

/// The core of an opened device.
pub(crate) struct Core {
    raw: ash::Device,
    real: Vec<RealQueue>,
    lines: Vec<Line>,
    lost: AtomicBool,
    pub(crate) semaphores: Mutex<Semaphores>,
}

/// What is known of a device's semaphores.
#[derive(Debug, Default)]
pub(crate) struct Semaphores {
    pub(crate) timelines: BTreeSet<vk::Semaphore>,
    /// Of each binary semaphore the last submission that signals it.
    pub(crate) gates: BTreeMap<vk::Semaphore, Arc<Gate>>,
}

impl Core {
    pub(crate) fn new(raw: ash::Device, real: Vec<RealQueue>, lines: Vec<Line>) -> Self {
        Self {
            raw,
            real,
            lines,
            lost: AtomicBool::new(false),
            semaphores: Mutex::default(),
        }
    }

    /// The driver's functions.
    pub(crate) fn raw(&self) -> &ash::Device {
        &self.raw
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Counts a call of a function that can report a loss.
    ///
    /// # Errors
    ///
    /// The result that the call must give instead of the driver's.
    pub(crate) fn enter(&self, function: &str) -> Result<(), vk::Result> {
        self.fault(function)?;
        if self.is_lost() {
            self.settle();
            return Err(vk::Result::ERROR_DEVICE_LOST);
        }
        Ok(())
    }

    /// Counts a call of a function that can't report a loss.
    ///
    /// # Errors
    ///
    /// The result that the call must give instead of the driver's.
    pub(crate) fn fault(&self, function: &str) -> Result<(), vk::Result> {
        let Some(result) = faults::of_call(function) else {
            return Ok(());
        };
        if result == vk::Result::ERROR_DEVICE_LOST {
            self.lose();
            self.settle();
        }
        Err(result)
    }

    /// Nothing runs from here on but what is already at the driver.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.lines.iter().for_each(Line::clear);
    }

    /// Waits for what a lost device has at the driver: whoever learns of the loss may destroy all
    /// that this uses.
    pub(crate) fn settle(&self) {
        self.drain();
        // A driver that lost it, too, has nothing left to wait for.
        let _ = self.idle();
    }

    /// Waits until everything that was submitted is at the driver.
    pub(crate) fn drain(&self) {
        self.lines.iter().for_each(Line::wait_until_empty);
    }

    /// Waits for what is at the driver.
    pub(crate) fn idle(&self) -> vk::Result {
        let _all: Vec<_> = self.real.iter().map(|queue| lock(&queue.0)).collect();
        // SAFETY: the device is alive, and all of its queues are locked.
        match unsafe { self.raw.device_wait_idle() } {
            Ok(()) => vk::Result::SUCCESS,
            Err(result) => result,
        }
    }

    /// Waits for what is at one of the driver's queues.
    pub(crate) fn idle_queue(&self, real: usize) -> vk::Result {
        let queue = lock(&self.real[real].0);
        // SAFETY: the queue is locked.
        match unsafe { self.raw.queue_wait_idle(*queue) } {
            Ok(()) => vk::Result::SUCCESS,
            Err(result) => result,
        }
    }

    /// Submits to one of the driver's queues.
    pub(crate) fn submit(&self, real: usize, job: &Job) -> Result<(), vk::Result> {
        let waits: Vec<_> = job.waits.iter().map(|wait| wait.0).collect();
        let wait_values: Vec<_> = job.waits.iter().map(|wait| wait.1).collect();
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let signals: Vec<_> = job.signals.iter().map(|signal| signal.0).collect();
        let signal_values: Vec<_> = job.signals.iter().map(|signal| signal.1).collect();
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .command_buffers(&job.commands)
            .signal_semaphores(&signals)
            .push_next(&mut timeline);
        let queue = lock(&self.real[real].0);
        // SAFETY: the queue is locked; whoever submitted keeps all that this uses until it has run.
        unsafe { self.raw.queue_submit(*queue, &[info], job.fence) }
    }
}
