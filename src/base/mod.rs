//! Owns what every level leans on: the one lock type and the fork flag.

pub(crate) mod fork;
pub(crate) mod sync;
