//! Owns device memory as the user's calls need it: fills and copies of any byte count.

pub(crate) mod fill;
pub(crate) mod overlap;
