//! Owns pinned host memory as a cache: which block serves a request, when one that was given back
//! may serve again, what is counted. No driver and no lock: `mem::host` has them.

mod cache;
#[cfg(test)]
mod cache_tests;
#[cfg(test)]
mod model_tests;
mod size;
mod stats;

pub(crate) use cache::{HostBlock, HostCache, HostRequest, HostStep};
pub(crate) use size::HostConf;
pub use stats::{DurationStat, HostMemoryStats};
