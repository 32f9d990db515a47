//! How much may be asked of the driver.

use super::Core;

/// What the device can do at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The device's memory in bytes; the memory fraction is a part of it.
    pub(crate) total: u64,
    /// The largest segment in bytes.
    pub(crate) largest_segment: u64,
    /// The allocations that the driver can hold at once.
    pub(crate) most_allocations: u64,
}

/// The limits of the device and those that the program set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub(super) limits: Limits,
    /// The memory fraction, and the bytes it makes.
    pub(super) fraction: Option<(f64, u64)>,
    /// The most bytes of all segments together.
    pub(super) cap: Option<u64>,
}

/// A limit of the program's that stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Fraction,
    Cap,
}

impl Allowed {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            fraction: None,
            cap: None,
        }
    }

    /// What stands in the way of reserving more.
    pub(super) fn over(&self, reserved: u64, more: u64) -> Option<Over> {
        let is_over = |limit: u64| more > limit.saturating_sub(reserved);
        if self.cap.is_some_and(is_over) {
            return Some(Over::Cap);
        }
        let fraction = self.fraction.map(|(_, bytes)| bytes);
        fraction.is_some_and(is_over).then_some(Over::Fraction)
    }

    /// The most that the program lets be reserved.
    pub(super) fn limit(&self) -> Option<u64> {
        let fraction = self.fraction.map(|(_, bytes)| bytes);
        self.cap.into_iter().chain(fraction).min()
    }
}

impl<S, T> Core<S, T> {
    /// Limits what is reserved to a part of the device's memory, from 0 to 1.
    pub(crate) fn set_fraction(&mut self, fraction: f64) {
        let bytes = part(fraction, self.allowed.limits.total);
        self.allowed.fraction = Some((fraction, bytes));
    }

    /// The memory fraction in force.
    pub(crate) fn fraction(&self) -> f64 {
        self.allowed.fraction.map_or(1.0, |(fraction, _)| fraction)
    }

    /// The bytes of the memory fraction in force, where one is set.
    pub(crate) fn fraction_bytes(&self) -> Option<u64> {
        self.allowed.fraction.map(|(_, bytes)| bytes)
    }

    /// Limits what is reserved to a number of bytes, or no longer.
    pub(crate) fn set_cap(&mut self, bytes: Option<u64>) {
        self.allowed.cap = bytes;
    }
}

/// A part of a number of bytes, rounded down; all of it for 1.
pub(super) fn part(fraction: f64, bytes: u64) -> u64 {
    if fraction >= 1.0 {
        return bytes;
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounding down is meant")]
    #[expect(clippy::cast_sign_loss, reason = "a fraction is not negative")]
    #[expect(clippy::cast_precision_loss, reason = "PyTorch's own arithmetic")]
    let part = (fraction * bytes as f64) as u64;
    part
}
