//! The one lock type: a mutex that ignores poison, and that no fork finds taken.
//!
//! A panic under a lock can only come from a fault of the crate itself; the data behind our locks
//! is kept valid at every step, so the next user goes on with it instead of failing for ever.

use core::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use super::gate::{self, Inside};

/// A mutex without poison.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

/// Holds the lock of a [`Mutex`].
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    // The lock is let go of first.
    guard: std::sync::MutexGuard<'a, T>,
    inside: Option<Inside>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let inside = gate::enter_for_lock();
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, inside }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inside = gate::enter_for_lock();
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { guard, inside })
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition variable for [`Mutex`], for what happens on opened devices alone: before one is open,
/// a fork would wait for whoever waits.
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { guard, inside } = guard;
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, inside }
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: core::time::Duration,
    ) -> MutexGuard<'a, T> {
        let MutexGuard { guard, inside } = guard;
        let waited = self.0.wait_timeout(guard, timeout);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, inside }
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_under_the_lock_leaves_it_usable() {
        let lock = std::sync::Arc::new(Mutex::new(1));
        let other = std::sync::Arc::clone(&lock);
        let panicked = std::thread::spawn(move || {
            let _guard = other.lock();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert_eq!(*lock.lock(), 1);
    }
}
