//! Owns what every level leans on: the one lock type, the fork flag, what is counted.

pub(crate) mod counters;
pub(crate) mod fork;
pub(crate) mod sync;
