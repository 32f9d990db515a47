//! Lanes: a queue, its lock, and the timeline that counts what was submitted to it.
//!
//! # Safety
//!
//! The queue is used under the lane's lock alone. Command buffers that are submitted are kept
//! alive, with all they use, by whoever submits them until the lane has reached their value.
#![allow(unsafe_code)]

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::command::Commands;
use super::device::Device;
use crate::base::{fork, sync::Mutex};
use crate::error::{Error, ErrorKind, Result};

/// A queue and its timeline semaphore.
#[derive(Debug)]
pub(crate) struct Lane {
    /// The lock around the queue; holds the last value whose signal was submitted.
    submitted: Mutex<u64>,
    /// A copy of the same, readable without the lock.
    last: AtomicU64,
    /// The highest value that was seen reached.
    reached: AtomicU64,
    queue: vk::Queue,
    timeline: vk::Semaphore,
    device: Arc<Device>,
}

/// How often the counter is read before a wait goes to the driver.
const SPINS: u32 = 16;

impl Lane {
    /// The lane over queue `index` of `family`.
    pub(crate) fn new(device: &Arc<Device>, family: u32, index: u32) -> Result<Self> {
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is alive and has timeline semaphores, which selection demands.
        let timeline = unsafe { device.raw().create_semaphore(&info, None) };
        let timeline = device.during("vkCreateSemaphore", timeline)?;
        // SAFETY: the device was opened with this queue, by the plan.
        let queue = unsafe { device.raw().get_device_queue(family, index) };
        Ok(Self {
            submitted: Mutex::new(0),
            last: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            queue,
            timeline,
            device: Arc::clone(device),
        })
    }

    /// The device that it is a queue of.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Submits recorded commands and gives the value that says when they have finished.
    ///
    /// The commands and all they use must live until then; `exec` keeps them.
    pub(crate) fn submit(&self, commands: &Commands) -> Result<u64> {
        let mut submitted = self.submitted.lock();
        let value = *submitted + 1;
        let values = [value];
        let signals = [self.timeline];
        let buffers = [commands.raw()];
        let mut timeline =
            vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let info = vk::SubmitInfo::default()
            .command_buffers(&buffers)
            .signal_semaphores(&signals)
            .push_next(&mut timeline);
        self.device.check()?;
        // SAFETY: the queue's lock is held; the buffer is recorded and not pending.
        let result = unsafe {
            self.device
                .raw()
                .queue_submit(self.queue, &[info], vk::Fence::null())
        };
        self.device.during("vkQueueSubmit", result)?;
        *submitted = value;
        self.last.store(value, Ordering::Release);
        Ok(value)
    }

    /// The last value that was submitted.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// The highest value known to be reached, without asking the driver.
    pub(crate) fn known_reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Asks the driver how far the lane is.
    pub(crate) fn poll(&self) -> Result<u64> {
        self.device.check()?;
        let last = self.last();
        // SAFETY: the semaphore is a timeline of this device.
        let value = unsafe { self.device.raw().get_semaphore_counter_value(self.timeline) };
        let value = self.device.during("vkGetSemaphoreCounterValue", value)?;
        // Some drivers answer a lost device with the highest number there is. A value can be reached
        // before its submission has returned, so that the lock has the last word.
        if value > last && value > *self.submitted.lock() {
            self.device.mark_lost();
            return Err(Error::new(
                ErrorKind::DeviceLost,
                format!(
                    "the device was lost: its timeline says {value}, but nothing past {last} was \
                     submitted"
                ),
            ));
        }
        self.reached.fetch_max(value, Ordering::AcqRel);
        Ok(value)
    }

    /// Waits until `value` is reached; `false` if `timeout` ran out first.
    pub(crate) fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool> {
        for _ in 0..SPINS {
            if self.known_reached() >= value || self.poll()? >= value {
                return Ok(true);
            }
            core::hint::spin_loop();
        }
        let semaphores = [self.timeline];
        let values = [value];
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let nanoseconds = timeout_nanoseconds(timeout);
        // SAFETY: the semaphore is alive; the value was submitted, so it will be signalled.
        match unsafe { self.device.raw().wait_semaphores(&info, nanoseconds) } {
            Ok(()) => {
                // The counter tells completion from loss, which the wait alone does not everywhere.
                self.poll()?;
                Ok(true)
            }
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(code) => self.device.during("vkWaitSemaphores", Err(code)),
        }
    }
}

impl fork::Working for Lane {
    fn wait_at_end(&self, timeout: Duration) {
        let last = *self.submitted.lock();
        if last <= self.known_reached() || self.device.is_lost() {
            return;
        }
        let semaphores = [self.timeline];
        let values = [last];
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let nanoseconds = timeout_nanoseconds(Some(timeout));
        // SAFETY: the semaphore is alive; the value was submitted, so it will be signalled.
        //
        // Nobody is left to be told of a loss, or that the time ran out.
        let _ = unsafe { self.device.raw().wait_semaphores(&info, nanoseconds) };
    }
}

/// The driver's form of a timeout; the longest where there is none.
fn timeout_nanoseconds(timeout: Option<Duration>) -> u64 {
    timeout.map_or(u64::MAX, |timeout| {
        u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)
    })
}

impl Drop for Lane {
    fn drop(&mut self) {
        if fork::may_call_driver() {
            // SAFETY: `exec` waits for the lane's last value before it lets go of it.
            unsafe { self.device.raw().destroy_semaphore(self.timeline, None) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_become_nanoseconds_and_clamp() {
        let cases = [
            (Some(Duration::ZERO), 0),
            (Some(Duration::from_nanos(1)), 1),
            (Some(Duration::from_millis(1500)), 1_500_000_000),
            (Some(Duration::new(18_446_744_073, 709_551_615)), u64::MAX),
            (Some(Duration::MAX), u64::MAX),
            (None, u64::MAX),
        ];
        for (timeout, expected) in cases {
            assert_eq!(timeout_nanoseconds(timeout), expected);
        }
    }
}
