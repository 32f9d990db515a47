//! What the crate has the driver do, written down between the two, and whether all of it is ordered.
//!
//! A [`Log`] stands at a test's [`Entry`]. It writes down what is recorded, submitted and waited for,
//! and what each command touches: from the buffers and descriptors that are bound, from the words of
//! the shader ([`shader`]) and, for addresses, from the push constants ([`reach`]). Nothing of that comes
//! from the crate's own plan. [`check`] finds what nothing orders.
//!
//! ```ignore
//! mod support;
//! #[path = "support/race/mod.rs"]
//! mod race;
//!
//! let entry = Entry::new().unwrap();
//! let log = Log::install(&entry);
//! let runtime = test.another(entry.builder());
//! // ... a program ...
//! log.check();
//! ```
//!
//! The log has to be there before the runtime is first used. What the host does to memory is seen where
//! it flushes and invalidates, that is, where its memory is not coherent: the ICD shim shows such.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod check;
pub mod history;
mod hooks;
mod objects;
mod promises;
pub mod reach;
mod scopes;
pub mod shader;

use std::sync::{Arc, Mutex, PoisonError};

use crate::support::entry::Entry;
use history::{Command, History};
use objects::Objects;

/// What was done through an entry.
#[derive(Clone)]
pub struct Log {
    objects: Arc<Mutex<Objects>>,
    entry: Entry,
    /// How many submissions the entry had counted when the log began.
    submitted_before: u64,
}

impl Log {
    /// A log of all that is done through the entry from now on.
    pub fn install(entry: &Entry) -> Self {
        let log = Self {
            objects: Arc::default(),
            entry: entry.clone(),
            submitted_before: entry.calls("vkQueueSubmit"),
        };
        hooks::install(entry, &log.objects);
        log
    }

    fn with<R>(&self, f: impl FnOnce(&mut Objects) -> R) -> R {
        f(&mut self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says how long the memory at an address is, for kernels that are handed addresses and of which
    /// the log knows no more: they are taken to reach to its end.
    pub fn know_memory(&self, address: u64, bytes: u64) {
        self.with(|objects| objects.know_memory(address, bytes));
    }

    /// Labels the command buffers that are begun from now on, for tests that look at some of them alone.
    pub fn label(&self, label: usize) {
        self.with(|objects| objects.label = label);
    }

    /// What has been done so far, by device.
    ///
    /// # Panics
    ///
    /// Where something was done that can't be told from outside.
    #[track_caller]
    pub fn histories(&self) -> Vec<History> {
        let calls = self.entry.calls("vkQueueSubmit") - self.submitted_before;
        self.with(|objects| {
            assert_eq!(
                objects.submit_calls, calls,
                "the log's rules were forgotten"
            );
            assert!(objects.unknown.is_empty(), "{:#?}", objects.unknown);
            objects.histories()
        })
    }

    /// What was recorded so far and where, whenever it is submitted; dividers are not among it.
    pub fn recorded(&self) -> Vec<Command> {
        self.with(|objects| objects.recorded())
    }

    /// What the one device has done so far.
    #[track_caller]
    pub fn history(&self) -> History {
        let mut histories = self.histories();
        assert_eq!(histories.len(), 1, "one device");
        histories.remove(0)
    }

    /// Panics unless something was done, and all of it is ordered.
    #[track_caller]
    pub fn check(&self) {
        let histories = self.histories();
        assert!(
            histories.iter().any(|one| one.submissions().count() > 0),
            "nothing was submitted"
        );
        for history in histories {
            let faults = check::faults(&history);
            let text: Vec<_> = faults.iter().take(20).map(ToString::to_string).collect();
            assert!(faults.is_empty(), "{} faults: {text:#?}", faults.len());
        }
    }
}
