//! A map from the caller's numbers, which costs little beside what is simulated.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;

/// Values by number.
pub(super) type Table<V> = HashMap<u64, V, BuildHasherDefault<Mix>>;

/// Spreads a number over all bits. Whoever chooses bad numbers slows down a simulation of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The fraction of the golden ratio, in 64 bits.
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
