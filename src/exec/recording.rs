//! Recordings: commands of one stream that are sealed and submitted together.

use core::any::Any;
use std::sync::Arc;

use crate::vk::Commands;

/// Something that commands use, kept alive until they have finished.
pub(crate) type Retained = Arc<dyn Any + Send + Sync>;

/// Commands, with all that they use.
pub(crate) struct Recording {
    pub(crate) commands: Commands,
    retained: Vec<Retained>,
    /// How many commands it holds.
    pub(crate) count: u32,
}

impl core::fmt::Debug for Recording {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recording")
            .field("count", &self.count)
            .field("retained", &self.retained.len())
            .finish_non_exhaustive()
    }
}

impl Recording {
    pub(crate) fn new(commands: Commands, retained: Vec<Retained>) -> Self {
        Self {
            commands,
            retained,
            count: 0,
        }
    }

    /// Keeps a thing alive until the recording has finished; the one kept last is not kept twice.
    pub(crate) fn retain<T: Any + Send + Sync>(&mut self, thing: &Arc<T>) {
        let is_same = |kept: &Retained| core::ptr::addr_eq(Arc::as_ptr(kept), Arc::as_ptr(thing));
        let newest = self.retained.len().saturating_sub(RECENT);
        if !self.retained[newest..].iter().any(is_same) {
            self.retained.push(Arc::clone(thing) as Retained);
        }
    }

    /// Takes it apart, for both parts to be used again once the things kept are let go.
    pub(crate) fn into_parts(self) -> (Commands, Vec<Retained>) {
        (self.commands, self.retained)
    }
}

/// How many of the newest things are looked at before another is kept.
const RECENT: usize = 8;
