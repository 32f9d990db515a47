//! The opened logical device: its functions, its memory, whether it is lost.
//!
//! # Safety
//!
//! The device is made from a physical device of the instance that it keeps alive, with features,
//! extensions and queues that the plan took from what that physical device reports. It is destroyed
//! when the last `Arc` goes, and every object made from it holds one.
#![allow(unsafe_code)]

use core::ffi::c_char;
use core::mem::ManuallyDrop;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, Allocator, AllocatorCreateDesc};

use super::features::EnableChain;
use super::instance::Instance;
use super::lane::Timelines;
use super::query;
use super::result::{self, During};
use super::segment::allocation_error;
use crate::base::{counters::Counts, fork::Life, gate, sync::Mutex};
use crate::device::MemoryInfo;
use crate::device::extension::Extension;
use crate::device::info::PhysicalInfo;
use crate::device::memory_plan::MemoryChoice;
use crate::device::plan::{LANES_MAX, MemoryRole, Plan};
use crate::error::{Error, ErrorKind, OutOfMemory, OutOfMemoryReason, Result};

/// An opened device.
pub(crate) struct Device {
    raw: ash::Device,
    plan: Plan,
    name: String,
    lost: AtomicBool,
    /// What it belongs to, as all objects that are made from it.
    life: Life,
    counts: Counts,
    /// The timelines of its lanes, for the message of a loss.
    timelines: OnceLock<Weak<Timelines>>,
    /// The bytes of the allocations in each heap.
    held_bytes: [AtomicU64; vk::MAX_MEMORY_HEAPS],
    held_count: AtomicU32,
    allocator: ManuallyDrop<Mutex<Allocator>>,
    physical: vk::PhysicalDevice,
    instance: Arc<Instance>,
}

impl core::fmt::Debug for Device {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A device that is destroyed unless the rest of the opening succeeds.
struct Bare(ash::Device);

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: just made; nothing was made from it.
        unsafe { self.0.destroy_device(None) };
    }
}

impl Device {
    /// Opens `physical`, a device of `instance`, as `plan` says; `name` is for messages.
    pub(crate) fn open(
        instance: &Arc<Instance>,
        physical: vk::PhysicalDevice,
        plan: Plan,
        name: String,
    ) -> Result<Arc<Self>> {
        let priorities = [1.0f32; LANES_MAX];
        let families = plan.families();
        let queues: Vec<_> = families
            .iter()
            .map(|&family| {
                let count = plan
                    .all_lanes()
                    .filter(|lane| lane.family == family)
                    .count();
                vk::DeviceQueueCreateInfo::default()
                    .queue_family_index(family)
                    .queue_priorities(&priorities[..count])
            })
            .collect();
        let extensions: Vec<CString> = plan
            .extensions
            .iter()
            .filter_map(|ext| CString::new(ext.name()).ok())
            .collect();
        let extension_names: Vec<*const c_char> =
            extensions.iter().map(|name| name.as_ptr()).collect();
        let mut features = EnableChain::new(&plan);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extension_names);
        let info = features.attach(info);
        // SAFETY: see the top of the file; all that `info` points to lives through the call.
        let raw = unsafe { instance.raw().create_device(physical, &info, None) }
            .during("vkCreateDevice")
            .map_err(|error| error.context(format!("opening {name}")))?;
        let bare = Bare(raw);
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: instance.raw().clone(),
            device: bare.0.clone(),
            physical_device: physical,
            debug_settings: Default::default(),
            buffer_device_address: true,
            allocation_sizes: Default::default(),
        })
        .map_err(|cause| allocation_error(&cause, 0).context(format!("opening {name}")))?;
        let raw = bare.0.clone();
        let _owned = ManuallyDrop::new(bare);
        Ok(Arc::new(Self {
            raw,
            plan,
            name,
            lost: AtomicBool::new(false),
            life: instance.life(),
            counts: Counts::default(),
            timelines: OnceLock::new(),
            held_bytes: Default::default(),
            held_count: AtomicU32::new(0),
            allocator: ManuallyDrop::new(Mutex::new(allocator)),
            physical,
            instance: Arc::clone(instance),
        }))
    }

    /// The functions of the device.
    pub(crate) fn raw(&self) -> &ash::Device {
        &self.raw
    }

    /// What was decided about it before it was opened.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is counted of its work.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Its name for messages, as `vulkan:0`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Free and total memory, where the device reported `info` and we hold `held` bytes.
    pub(crate) fn memory_info(&self, info: &PhysicalInfo, held: u64) -> MemoryInfo {
        self.instance.memory_info(self.physical, info, held)
    }

    /// The check that opens every use of the device.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_life()?;
        if self.lost.load(Ordering::Relaxed) {
            return Err(self.lost_error());
        }
        Ok(())
    }

    /// The check that the device is this process's own, and that it is not ending.
    pub(crate) fn check_life(&self) -> Result<()> {
        self.life.check()
    }

    /// Whether drops may call the driver, and take locks: not in a forked child, nor at the end.
    #[inline]
    pub(crate) fn may_call_driver(&self) -> bool {
        self.life.may_call_driver()
    }

    /// From now on every use of the device fails.
    pub(crate) fn mark_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Has messages of a loss say how far the lanes were.
    pub(super) fn watch(&self, timelines: &Arc<Timelines>) {
        // A device has one set of lanes.
        let _ = self.timelines.set(Arc::downgrade(timelines));
    }

    /// What was last seen to have completed, in words.
    fn progress(&self) -> String {
        let timelines = self.timelines.get().and_then(Weak::upgrade);
        timelines.map_or_else(
            || "nothing had been submitted".to_owned(),
            |timelines| timelines.progress(),
        )
    }

    #[cold]
    fn lost_error(&self) -> Error {
        Error::new(
            ErrorKind::DeviceLost,
            format!(
                "{} was lost earlier; {}; what it held is gone; drop its objects and make a new \
                 runtime",
                self.name,
                self.progress()
            ),
        )
        .with_raw(vk::Result::ERROR_DEVICE_LOST.as_raw())
    }

    /// The value, or the error of the function `call`; remembers a loss.
    pub(crate) fn during<T>(&self, call: &str, answer: Result<T, vk::Result>) -> Result<T> {
        answer.map_err(|code| {
            let error = result::error(call, code);
            if code != vk::Result::ERROR_DEVICE_LOST {
                return error.context(&self.name);
            }
            self.mark_lost();
            error.context(format!("{} ({})", self.name, self.progress()))
        })
    }

    /// Memory of the chosen type from gpu-allocator for a request of `size_bytes`.
    ///
    /// What the device can't have is refused before the driver is asked: going past the number of
    /// allocations is undefined, and some drivers go past their heap until the system ends the process.
    pub(crate) fn allocate(
        &self,
        description: &AllocationCreateDesc<'_>,
        size_bytes: u64,
        choice: MemoryChoice,
    ) -> Result<Allocation> {
        let taken = self.take_room(description.requirements.size, choice);
        taken.map_err(|reason| self.no_room(reason, size_bytes, choice))?;
        let allocation = self.allocator.lock().allocate(description);
        let allocation = allocation.map_err(|cause| {
            self.give_room(description.requirements.size, choice.heap);
            allocation_error(&cause, size_bytes).context(&self.name)
        })?;
        self.counts.driver_allocations.add(1);
        Ok(allocation)
    }

    /// Counts an allocation before it is made.
    fn take_room(&self, size_bytes: u64, choice: MemoryChoice) -> Result<(), OutOfMemoryReason> {
        self.take_count()?;
        let held =
            self.held(choice.heap)
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                    let held = held.checked_add(size_bytes)?;
                    (held <= choice.heap_bytes).then_some(held)
                });
        held.map(drop).map_err(|_| {
            self.held_count.fetch_sub(1, Ordering::Relaxed);
            OutOfMemoryReason::FullNow
        })
    }

    fn take_count(&self) -> Result<(), OutOfMemoryReason> {
        let most = self.plan.limits.max_memory_allocation_count;
        let counted = self
            .held_count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                count.checked_add(1).filter(|&count| count <= most)
            });
        counted
            .map(drop)
            .map_err(|_| OutOfMemoryReason::TooManyAllocations)
    }

    /// Takes an allocation out of the count.
    fn give_room(&self, size_bytes: u64, heap: u32) {
        self.held_count.fetch_sub(1, Ordering::Relaxed);
        self.held(heap).fetch_sub(size_bytes, Ordering::Relaxed);
    }

    fn held(&self, heap: u32) -> &AtomicU64 {
        // Vulkan has no more heaps than the array has places.
        &self.held_bytes[heap as usize % vk::MAX_MEMORY_HEAPS]
    }

    /// Counts imported memory, which takes none of a heap, before it is imported.
    pub(super) fn take_import(&self, size_bytes: u64) -> Result<()> {
        let choice = self.plan.memory.best(MemoryRole::Upload);
        self.take_count()
            .map_err(|reason| self.no_room(reason, size_bytes, choice))
    }

    /// Takes imported memory out of the count.
    pub(super) fn give_import(&self) {
        self.held_count.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    fn no_room(&self, reason: OutOfMemoryReason, size_bytes: u64, choice: MemoryChoice) -> Error {
        let text = match reason {
            OutOfMemoryReason::TooManyAllocations => format!(
                "{} holds {} allocations, which is its limit",
                self.name, self.plan.limits.max_memory_allocation_count
            ),
            _ => format!(
                "{} has {} bytes of memory{}, of which this process holds {}",
                self.name,
                choice.heap_bytes,
                match choice.heap == self.device_heap() {
                    true => "",
                    false => " that the host reaches",
                },
                self.held(choice.heap).load(Ordering::Relaxed)
            ),
        };
        Error::new(ErrorKind::OutOfMemory, text)
            .with_out_of_memory(OutOfMemory::new(reason, size_bytes))
    }

    /// The heap that counts as the device's memory.
    pub(crate) fn device_heap(&self) -> u32 {
        self.plan.memory.best(MemoryRole::Device).heap
    }

    /// The bytes of the allocations in the heap that counts as the device's memory.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held(self.device_heap()).load(Ordering::Relaxed)
    }

    /// What the driver leaves this process of a heap, where it says so.
    pub(crate) fn budget_left(&self, heap: u32) -> Option<u64> {
        if !self.plan.has(Extension::MemoryBudget) {
            return None;
        }
        let budget = query::budget_of(self.instance.raw(), self.physical, heap)?;
        // No heap has a budget of 0; a driver that says so says nothing.
        (budget.budget > 0).then(|| budget.budget.saturating_sub(budget.usage))
    }

    /// How many allocations the driver holds for us, and the bytes of those in the device's heap: less of
    /// either is room.
    pub(crate) fn count_and_bytes(&self) -> (u32, u64) {
        (self.held_count(), self.held_bytes())
    }

    /// Whether the driver holds as many allocations for us as it can.
    pub(crate) fn is_count_full(&self) -> bool {
        self.held_count() >= self.plan.limits.max_memory_allocation_count
    }

    /// How many allocations the driver holds for us.
    pub(crate) fn held_count(&self) -> u32 {
        self.held_count.load(Ordering::Relaxed)
    }

    /// Gives an allocation of `heap` back to the driver.
    pub(crate) fn release(&self, allocation: Allocation, heap: u32) {
        let size_bytes = allocation.size();
        // gpu-allocator fails here only for an allocation that is not its own.
        let released = self.allocator.lock().free(allocation);
        debug_assert!(released.is_ok(), "{released:?}");
        self.counts.driver_frees.add(1);
        self.give_room(size_bytes, heap);
    }

    /// The functions of the instance that it was opened from.
    pub(super) fn instance(&self) -> &ash::Instance {
        self.instance.raw()
    }

    pub(super) fn physical(&self) -> vk::PhysicalDevice {
        self.physical
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if !self.may_call_driver() {
            return;
        }
        let _inside = gate::enter();
        // SAFETY: dropped once, here, and before the device whose memory it holds.
        unsafe { ManuallyDrop::drop(&mut self.allocator) };
        // SAFETY: every object of the device held an `Arc` of it, so none is left.
        unsafe { self.raw.destroy_device(None) };
    }
}
