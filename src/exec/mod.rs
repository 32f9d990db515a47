//! Owns how commands of a stream are ordered, recorded and submitted.

pub(crate) mod hazard;
