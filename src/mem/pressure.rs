//! Pressure callbacks: what a program does about exhausted memory before it is an error.

use core::cell::Cell;
use core::fmt;
use std::sync::{Arc, Weak};

use crate::base::{fork::Life, sync::Mutex};
use crate::error::OutOfMemory;

/// What a pressure callback wants done about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pressure {
    /// Memory may have become free: the request is tried once more.
    TryAgain,
    /// The request fails.
    GiveUp,
}

type Callback = Arc<dyn Fn(&OutOfMemory) -> Pressure + Send + Sync>;

/// The callbacks of a device, in the order in which they were added.
#[derive(Default)]
pub(crate) struct Callbacks(Mutex<List>);

#[derive(Default)]
struct List {
    entries: Vec<(u64, Callback)>,
    next: u64,
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().entries.len();
        f.debug_struct("Callbacks").field("count", &count).finish()
    }
}

thread_local! {
    /// Whether the thread is inside a callback.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is inside a callback, where a request fails at once.
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

impl Callbacks {
    pub(crate) fn add(
        self: &Arc<Self>,
        callback: impl Fn(&OutOfMemory) -> Pressure + Send + Sync + 'static,
    ) -> PressureHandle {
        let mut list = self.0.lock();
        let id = list.next;
        list.next += 1;
        list.entries.push((id, Arc::new(callback)));
        PressureHandle {
            callbacks: Arc::downgrade(self),
            id,
            life: Life::now(),
        }
    }

    /// Calls every callback; whether one wants the request tried again.
    ///
    /// Called with no lock held, since callbacks drop buffers.
    pub(crate) fn ask(&self, figures: &OutOfMemory) -> bool {
        struct Inside;
        impl Drop for Inside {
            fn drop(&mut self) {
                let _ = INSIDE.try_with(|inside| inside.set(false));
            }
        }
        let entries: Vec<Callback> = {
            let list = self.0.lock();
            list.entries
                .iter()
                .map(|(_, call)| Arc::clone(call))
                .collect()
        };
        if entries.is_empty() || INSIDE.try_with(|inside| inside.replace(true)).is_err() {
            return false;
        }
        let _inside = Inside;
        // Every one is called: each may have memory to give.
        entries
            .iter()
            .map(|call| call(figures))
            .fold(false, |again, wish| again | (wish == Pressure::TryAgain))
    }
}

/// Keeps a pressure callback in place; dropping it takes the callback away.
#[must_use = "the callback is taken away as soon as this is dropped; bind it to a name"]
pub struct PressureHandle {
    callbacks: Weak<Callbacks>,
    id: u64,
    life: Life,
}

impl fmt::Debug for PressureHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PressureHandle").finish_non_exhaustive()
    }
}

impl Drop for PressureHandle {
    fn drop(&mut self) {
        // In a forked child, a thread that is not there any more may hold the lock for ever.
        if !self.life.may_call_driver() {
            return;
        }
        let Some(callbacks) = self.callbacks.upgrade() else {
            return;
        };
        let taken = {
            let mut list = callbacks.0.lock();
            let place = list.entries.iter().position(|(id, _)| *id == self.id);
            place.map(|place| list.entries.remove(place))
        };
        // What the callback captured goes behind the lock: it may be a buffer.
        drop(taken);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::error::OutOfMemoryReason;

    fn figures() -> OutOfMemory {
        OutOfMemory::new(OutOfMemoryReason::FullNow, 1)
    }

    #[test]
    fn each_callback_is_asked_once_until_its_handle_goes() {
        let callbacks = Arc::new(Callbacks::default());
        let calls = Arc::new(AtomicU32::new(0));
        let counted = |wish| {
            let calls = Arc::clone(&calls);
            callbacks.add(move |_| {
                assert!(is_inside());
                calls.fetch_add(1, Ordering::Relaxed);
                wish
            })
        };
        assert!(!callbacks.ask(&figures()));
        let first = counted(Pressure::TryAgain);
        let second = counted(Pressure::GiveUp);
        assert!(callbacks.ask(&figures()));
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        drop(first);
        assert!(!callbacks.ask(&figures()));
        drop(second);
        assert!(!callbacks.ask(&figures()));
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert!(!is_inside());
    }

    #[test]
    fn a_callback_that_panics_leaves_the_thread_able_to_allocate() {
        let callbacks = Arc::new(Callbacks::default());
        let _handle = callbacks.add(|_| panic!("on purpose"));
        let asked =
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| callbacks.ask(&figures())));
        assert!(asked.is_err());
        assert!(!is_inside());
    }
}
