//! Heaps of a size that was asked for, and what is taken from them.

use std::sync::Mutex;

use crate::sync::lock;

/// The heaps of one physical device of one instance.
#[derive(Debug)]
pub(crate) struct Heaps {
    /// The size of each; the driver's own without one.
    size_bytes: Option<u64>,
    /// What others hold of each.
    others_bytes: u64,
    held: Mutex<[u64; ash::vk::MAX_MEMORY_HEAPS]>,
}

impl Heaps {
    pub(crate) fn new(size_bytes: Option<u64>, others_bytes: u64) -> Self {
        Self {
            size_bytes,
            others_bytes,
            held: Mutex::new([0; ash::vk::MAX_MEMORY_HEAPS]),
        }
    }

    /// The size to show for a heap.
    pub(crate) fn size(&self, real: u64) -> u64 {
        self.size_bytes.map_or(real, |size| size.min(real))
    }

    /// Takes memory from a heap; false if there is not so much.
    pub(crate) fn take(&self, heap: usize, bytes: u64) -> bool {
        let mut held = lock(&self.held);
        let Some(all) = held[heap].checked_add(bytes) else {
            return false;
        };
        if self.budget().is_some_and(|budget| all > budget) {
            return false;
        }
        held[heap] = all;
        true
    }

    /// Gives back what was taken.
    pub(crate) fn give(&self, heap: usize, bytes: u64) {
        let mut held = lock(&self.held);
        held[heap] = held[heap].saturating_sub(bytes);
    }

    /// What may be held of each heap at most, if there is a simulated size.
    pub(crate) fn budget(&self) -> Option<u64> {
        Some(self.size_bytes?.saturating_sub(self.others_bytes))
    }

    /// What is held of each heap.
    pub(crate) fn held(&self) -> [u64; ash::vk::MAX_MEMORY_HEAPS] {
        *lock(&self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_gives_its_size_but_for_what_others_hold() {
        let heaps = Heaps::new(Some(1000), 200);
        assert_eq!((heaps.size(5000), heaps.size(10)), (1000, 10));
        assert!(heaps.take(0, 800));
        assert!(!heaps.take(0, 1));
        assert!(heaps.take(1, 1));
        heaps.give(0, 500);
        assert_eq!(heaps.held()[..2], [300, 1]);
        assert!(heaps.take(0, 500));
        assert!(!heaps.take(0, u64::MAX));
    }

    #[test]
    fn without_a_size_the_driver_decides() {
        let heaps = Heaps::new(None, 200);
        assert!(heaps.take(0, 1 << 60));
        assert_eq!(heaps.budget(), None);
    }
}
