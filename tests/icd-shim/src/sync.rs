//! Locks that a panic elsewhere does not poison, and the lists of what is alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ash::vk::Handle;

/// Locks, whatever happened to the thread that held the lock before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of objects, by their handles.
#[derive(Debug)]
pub(crate) struct Registry<T>(RwLock<BTreeMap<u64, Arc<T>>>);

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    pub(crate) fn get(&self, handle: impl Handle) -> Option<Arc<T>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&handle.as_raw()).cloned()
    }

    pub(crate) fn insert(&self, handle: impl Handle, thing: Arc<T>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(handle.as_raw(), thing);
    }

    pub(crate) fn remove(&self, handle: impl Handle) -> Option<Arc<T>> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.remove(&handle.as_raw())
    }

    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, thing| keep(thing));
    }
}
