//! Owns what a device is before it is opened: its name, its properties as plain data, which devices
//! are visible, and the plan of how one would be opened. Pure.

pub(crate) mod feature;

pub use feature::{Feature, FeatureSet};
