//! Owns what every level leans on: the one lock type, what a fork means, what is counted.

pub(crate) mod counters;
pub(crate) mod fork;
pub(crate) mod gate;
pub(crate) mod sync;
