//! Work that seems unfinished until the test lets it be seen.
//!
//! # Safety
//!
//! The hooks read what Vulkan was called with, as long as the call lasts, and write where the driver
//! has just written.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;

use super::{Entry, args};

/// A value of a queue's semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    semaphore: vk::Semaphore,
    value: u64,
}

/// Holds back what counters say, until it is let go or waited for without a limit.
#[derive(Clone, Default)]
pub struct Hold(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The highest value of each semaphore that may be seen.
    seen: BTreeMap<vk::Semaphore, u64>,
    newest: Option<Submitted>,
}

impl Hold {
    /// Holds back all that is submitted from now on.
    pub fn new(entry: &Entry) -> Self {
        let hold = Self::default();
        let state = hold.clone();
        entry.answer("vkQueueSubmit", move |args: &mut args::QueueSubmit| {
            // SAFETY: what `vkQueueSubmit` was called with.
            unsafe { state.note_submits(args) };
        });
        let state = hold.clone();
        entry.answer(
            "vkGetSemaphoreCounterValue",
            move |args: &mut args::GetSemaphoreCounterValue| {
                let most = state.with(|state| state.seen.get(&args.1).copied().unwrap_or(0));
                // SAFETY: the driver has just written its answer there.
                let value = unsafe { &mut *args.2 };
                *value = most.min(*value);
            },
        );
        let state = hold.clone();
        entry.alter(
            "vkWaitSemaphores",
            move |args: &mut args::WaitSemaphores| {
                // Who waits with a limit only has a look.
                if args.2 == u64::MAX {
                    // SAFETY: what `vkWaitSemaphores` was called with.
                    unsafe { state.note_wait(args) };
                }
            },
        );
        hold
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was submitted last, on any queue.
    pub fn newest(&self) -> Option<Submitted> {
        self.with(|state| state.newest)
    }

    /// Lets it be seen that this has finished, and with it all before it on its queue.
    pub fn let_go(&self, submitted: Submitted) {
        self.with(|state| state.see(submitted.semaphore, submitted.value));
    }

    /// # Safety
    ///
    /// The arguments of a call that has not returned.
    unsafe fn note_submits(&self, args: &args::QueueSubmit) {
        for place in 0..args.1 as usize {
            let info = args.2.wrapping_add(place);
            // SAFETY: there are so many, as Vulkan was called.
            let info = unsafe { &*info };
            let mut next = info.p_next.cast::<vk::BaseInStructure<'_>>();
            while !next.is_null() {
                // SAFETY: a chain of structures that all start so.
                let base = unsafe { &*next };
                if base.s_type == vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO {
                    // SAFETY: its type says what it is.
                    let timeline = unsafe { &*next.cast::<vk::TimelineSemaphoreSubmitInfo<'_>>() };
                    // SAFETY: every queue of the crate signals one semaphore.
                    let semaphore = unsafe { *info.p_signal_semaphores };
                    // SAFETY: as above, with a value.
                    let value = unsafe { *timeline.p_signal_semaphore_values };
                    self.with(|state| state.newest = Some(Submitted { semaphore, value }));
                }
                next = base.p_next;
            }
        }
    }

    /// # Safety
    ///
    /// The arguments of a call that has not returned.
    unsafe fn note_wait(&self, args: &args::WaitSemaphores) {
        // SAFETY: as Vulkan was called.
        let info = unsafe { &*args.1 };
        for place in 0..info.semaphore_count as usize {
            let semaphore = info.p_semaphores.wrapping_add(place);
            // SAFETY: there are so many, as Vulkan was called.
            let semaphore = unsafe { *semaphore };
            let value = info.p_values.wrapping_add(place);
            // SAFETY: as above.
            let value = unsafe { *value };
            self.with(|state| state.see(semaphore, value));
        }
    }
}

impl State {
    fn see(&mut self, semaphore: vk::Semaphore, value: u64) {
        let seen = self.seen.entry(semaphore).or_default();
        *seen = (*seen).max(value);
    }
}
