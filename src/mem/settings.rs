//! What a program sets for the memory of a device.

use crate::alloc::{AllocConf, HistoryOptions};

/// What is set for the memory of a device.
#[derive(Clone, Debug)]
pub(crate) struct MemorySettings {
    pub(crate) conf: AllocConf,
    /// The part of the device's memory that this process may hold; none: all of it.
    pub(crate) fraction: Option<f64>,
    /// The most bytes that this process may hold.
    pub(crate) limit: Option<u64>,
    /// What is recorded of it, if anything.
    pub(crate) history: Option<HistoryOptions>,
}
