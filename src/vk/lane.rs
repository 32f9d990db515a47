//! Lanes: each a queue, its lock, and the timeline that counts what was submitted to it.
//!
//! # Safety
//!
//! A queue is used under its lane's lock alone. Command buffers that are submitted are kept alive,
//! with all they use, by whoever submits them until the lane has reached their value. Semaphores live
//! as long as any lane of their device; `exec` waits for every lane's last value before it lets go
//! of the lanes.
#![allow(unsafe_code)]

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use super::command::Commands;
use super::device::Device;
use crate::base::{fork, sync::Mutex};
use crate::device::plan::{LANES_MAX, LanePlan};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::order::{Values, Waited};

/// A queue with its lock, and one of its device's timelines.
#[derive(Debug)]
pub(crate) struct Lane {
    number: usize,
    plan: LanePlan,
    queue: vk::Queue,
    /// The lock around the queue.
    state: Mutex<State>,
    timelines: Arc<Timelines>,
}

#[derive(Debug, Default)]
struct State {
    /// The last value whose signal was submitted.
    last: u64,
    /// The stream that submitted it; 0 without one.
    newest: u64,
    waited: Waited,
    /// A barrier between all before it and all behind it; made when it is first needed.
    divider: Option<Commands>,
}

impl State {
    /// What stands before a submission of `stream`.
    ///
    /// Streams order their own commands by barriers of their own, and know nothing of each other's. But
    /// what the host has seen finish, or what a stream was told to wait for, may be work of another
    /// stream on the same lane. So whenever another one has submitted since, a barrier comes first; it
    /// holds for all that the stream submits until then.
    fn divider(&mut self, stream: u64, lane: &Lane) -> Result<Option<vk::CommandBuffer>> {
        if self.last == 0 || self.newest == stream {
            return Ok(None);
        }
        let divider = match &mut self.divider {
            Some(divider) => divider,
            none => none.insert(Commands::divider(lane.device(), lane.plan.family)?),
        };
        Ok(Some(divider.raw()))
    }
}

/// The timelines of a device's lanes, by their numbers.
#[derive(Debug)]
pub(super) struct Timelines {
    all: Vec<Timeline>,
    device: Arc<Device>,
}

/// How far a lane is.
#[derive(Debug)]
struct Timeline {
    /// The last value whose signal was submitted, readable without the queue's lock.
    last: AtomicU64,
    /// The highest value that was seen reached.
    reached: AtomicU64,
    semaphore: vk::Semaphore,
}

/// A recording on its way to the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) commands: &'a Commands,
    /// Commands that run behind those, and may be pending already.
    pub(crate) body: Option<&'a Commands>,
    /// The values of other lanes that they wait for, which were submitted before.
    pub(crate) waits: &'a Values,
}

/// How often the counter is read before a wait goes to the driver.
const SPINS: u32 = 16;

/// The most command buffers that go to the driver at once.
const SUBMIT_MAX: usize = 8;

impl Lane {
    /// The lanes over all queues of the device's plan, by number.
    pub(crate) fn open_all(device: &Arc<Device>) -> Result<Vec<Arc<Self>>> {
        let mut timelines = Timelines {
            all: Vec::new(),
            device: Arc::clone(device),
        };
        for _ in device.plan().all_lanes() {
            timelines.add()?;
        }
        let timelines = Arc::new(timelines);
        device.watch(&timelines);
        let lanes = device.plan().all_lanes().enumerate();
        Ok(lanes
            .map(|(number, plan)| {
                // SAFETY: the device was opened with this queue, by the plan.
                let queue = unsafe { device.raw().get_device_queue(plan.family, plan.queue) };
                Arc::new(Self {
                    number,
                    plan,
                    queue,
                    state: Mutex::default(),
                    timelines: Arc::clone(&timelines),
                })
            })
            .collect())
    }

    /// Its number among the lanes of its device.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The queue that it is over.
    pub(crate) fn plan(&self) -> LanePlan {
        self.plan
    }

    /// The device that it is a lane of.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.timelines.device
    }

    fn timeline(&self) -> &Timeline {
        &self.timelines.all[self.number]
    }

    /// Submits recorded commands, and gives the value that says when the first of them have finished; the
    /// others follow by one each.
    ///
    /// Takes the first [`SUBMIT_MAX`] at most, and says how many. The commands and all they use must
    /// live until then; `exec` keeps them. `stream` is the number of the stream that they are of.
    pub(crate) fn submit<'a>(
        &self,
        stream: u64,
        recordings: impl ExactSizeIterator<Item = Submission<'a>>,
    ) -> Result<(u64, usize)> {
        // Mostly there is one, whose lists are made in no time.
        match recordings.len() {
            1 => self.submit_up_to::<1>(stream, recordings),
            _ => self.submit_up_to::<SUBMIT_MAX>(stream, recordings),
        }
    }

    fn submit_up_to<'a, const MAX: usize>(
        &self,
        stream: u64,
        recordings: impl Iterator<Item = Submission<'a>>,
    ) -> Result<(u64, usize)> {
        let mut state = self.state.lock();
        let divider = state.divider(stream, self)?;
        let mut buffers = [BufferList::default(); MAX];
        let mut signals = [0; MAX];
        let mut waits = [WaitList::default(); MAX];
        let mut count = 0;
        let mut waited = state.waited;
        let seen = self.timelines.seen();
        for (one, at) in recordings.zip(0..MAX) {
            let before = divider.filter(|_| at == 0);
            buffers[at] = BufferList::new(before, &one);
            signals[at] = state.last + 1 + at as u64;
            let values = waited.next(self.number, one.waits, &seen);
            waits[at] = WaitList::new(&values, &self.timelines);
            count = at + 1;
        }
        let signalled = [self.timeline().semaphore];
        let mut timelines: [_; MAX] = core::array::from_fn(|at| {
            vk::TimelineSemaphoreSubmitInfo::default()
                .wait_semaphore_values(waits[at].values())
                .signal_semaphore_values(&signals[at..=at])
        });
        let mut infos = [vk::SubmitInfo::default(); MAX];
        for (at, (info, timeline)) in infos.iter_mut().zip(&mut timelines).enumerate() {
            *info = info
                .wait_semaphores(waits[at].semaphores())
                .wait_dst_stage_mask(waits[at].stages())
                .command_buffers(buffers[at].all())
                .signal_semaphores(&signalled)
                .push_next(timeline);
        }
        let device = self.device();
        device.check()?;
        // SAFETY: the queue's lock is held; the buffers are recorded and not pending.
        let result = unsafe {
            device
                .raw()
                .queue_submit(self.queue, &infos[..count], vk::Fence::null())
        };
        device.during("vkQueueSubmit", result)?;
        let counts = device.counts();
        counts.submits.add(1);
        counts.dividers.add(u64::from(divider.is_some()));
        counts.recordings.add(count as u64);
        counts
            .waits
            .add(waits[..count].iter().map(|list| list.count as u64).sum());
        let first = state.last + 1;
        state.last += count as u64;
        state.waited = waited;
        state.newest = stream;
        self.timeline().last.store(state.last, Ordering::Release);
        Ok((first, count))
    }

    /// The last value that was submitted.
    pub(crate) fn last(&self) -> u64 {
        self.timeline().last.load(Ordering::Acquire)
    }

    /// The highest value known to be reached, without asking the driver.
    pub(crate) fn known_reached(&self) -> u64 {
        self.timeline().reached.load(Ordering::Acquire)
    }

    /// Asks the driver how far the lane is.
    pub(crate) fn poll(&self) -> Result<u64> {
        let device = self.device();
        device.check()?;
        let last = self.last();
        // SAFETY: the semaphore is a timeline of this device.
        let value = unsafe {
            device
                .raw()
                .get_semaphore_counter_value(self.timeline().semaphore)
        };
        let value = device.during("vkGetSemaphoreCounterValue", value)?;
        // Some drivers answer a lost device with the highest number there is. A value can be reached
        // before its submission has returned, so that the lock has the last word.
        if value > last && value > self.state.lock().last {
            device.mark_lost();
            return Err(Error::new(
                ErrorKind::DeviceLost,
                format!(
                    "the device was lost: its timeline says {value}, but nothing past {last} was \
                     submitted; {}",
                    self.timelines.progress()
                ),
            ));
        }
        self.timeline().reached.fetch_max(value, Ordering::AcqRel);
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
        match self.wait_in_driver(value, timeout_nanoseconds(timeout)) {
            Ok(()) => {
                // The counter tells completion from loss, which the wait alone does not everywhere.
                self.poll()?;
                Ok(true)
            }
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(code) => self.device().during("vkWaitSemaphores", Err(code)),
        }
    }

    /// Waits for a value that was submitted.
    fn wait_in_driver(&self, value: u64, nanoseconds: u64) -> Result<(), vk::Result> {
        let semaphores = [self.timeline().semaphore];
        let values = [value];
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        // SAFETY: the semaphore is alive; the value was submitted, so it will be signalled.
        unsafe { self.device().raw().wait_semaphores(&info, nanoseconds) }
    }
}

impl fork::Working for Lane {
    fn wait_at_end(&self, timeout: Duration) {
        let last = self.state.lock().last;
        if last > self.known_reached() && !self.device().is_lost() {
            // Nobody is left to be told of a loss, or that the time ran out.
            let _ = self.wait_in_driver(last, timeout_nanoseconds(Some(timeout)));
        }
    }
}

impl Timelines {
    fn add(&mut self) -> Result<()> {
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is alive and has timeline semaphores, which selection demands.
        let semaphore = unsafe { self.device.raw().create_semaphore(&info, None) };
        self.all.push(Timeline {
            last: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            semaphore: self.device.during("vkCreateSemaphore", semaphore)?,
        });
        Ok(())
    }

    /// What the host has seen reached.
    fn seen(&self) -> Values {
        let mut seen = Values::default();
        for (lane, timeline) in self.all.iter().enumerate() {
            seen.raise(lane, timeline.reached.load(Ordering::Acquire));
        }
        seen
    }

    /// What was last seen to have completed, in words.
    #[cold]
    pub(super) fn progress(&self) -> String {
        let used = self.all.iter().enumerate().filter_map(|(lane, timeline)| {
            let last = timeline.last.load(Ordering::Acquire);
            let reached = timeline.reached.load(Ordering::Acquire);
            (last > 0).then(|| format!("{reached} of {last} on lane {lane}"))
        });
        let used: Vec<_> = used.collect();
        if used.is_empty() {
            return "nothing had been submitted".to_owned();
        }
        format!(
            "of what was submitted, these were seen to have completed: {}",
            used.join(", ")
        )
    }
}

impl Drop for Timelines {
    fn drop(&mut self) {
        if !self.device.may_call_driver() {
            return;
        }
        for timeline in &self.all {
            // SAFETY: nothing that was submitted uses it any more (see the top of the file).
            unsafe {
                self.device
                    .raw()
                    .destroy_semaphore(timeline.semaphore, None)
            };
        }
    }
}

/// The command buffers of one submission: what divides it from those before, the recording unless it is
/// empty, which some drivers take as long for as for any other, and its body.
#[derive(Clone, Copy, Default)]
struct BufferList {
    buffers: [vk::CommandBuffer; 3],
    count: usize,
}

impl BufferList {
    fn new(divider: Option<vk::CommandBuffer>, one: &Submission<'_>) -> Self {
        let mut list = Self::default();
        let own = Some(one.commands).filter(|commands| commands.holds_any());
        let own = own.map(Commands::raw);
        for buffer in [divider, own, one.body.map(Commands::raw)]
            .into_iter()
            .flatten()
        {
            list.buffers[list.count] = buffer;
            list.count += 1;
        }
        list
    }

    fn all(&self) -> &[vk::CommandBuffer] {
        &self.buffers[..self.count]
    }
}

/// The waits of one submission.
#[derive(Clone, Copy, Default)]
struct WaitList {
    semaphores: [vk::Semaphore; LANES_MAX],
    values: [u64; LANES_MAX],
    count: usize,
}

impl WaitList {
    fn new(values: &Values, timelines: &Timelines) -> Self {
        let mut list = Self::default();
        for (lane, value) in values.iter() {
            list.semaphores[list.count] = timelines.all[lane].semaphore;
            list.values[list.count] = value;
            list.count += 1;
        }
        list
    }

    fn semaphores(&self) -> &[vk::Semaphore] {
        &self.semaphores[..self.count]
    }

    fn values(&self) -> &[u64] {
        &self.values[..self.count]
    }

    /// Nothing of the submission starts before.
    fn stages(&self) -> &'static [vk::PipelineStageFlags] {
        const ALL: [vk::PipelineStageFlags; LANES_MAX] =
            [vk::PipelineStageFlags::ALL_COMMANDS; LANES_MAX];
        &ALL[..self.count]
    }
}

/// The driver's form of a timeout; the longest where there is none.
fn timeout_nanoseconds(timeout: Option<Duration>) -> u64 {
    timeout.map_or(u64::MAX, |timeout| {
        u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)
    })
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
