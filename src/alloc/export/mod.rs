//! Owns the files that a snapshot is written to: JSON lines, a page for browsers, PyTorch's pickle.

mod html;
mod json;
mod lines;
#[cfg(feature = "pickle")]
mod pickle;

use std::collections::HashMap;
use std::sync::Arc;

use super::snapshot::Frame;

/// Numbers for stacks, so that each is written once. No stack is 0.
#[derive(Debug, Default)]
struct Stacks {
    /// By where the frames lie, which is what entries of one call share.
    known: HashMap<(usize, usize), u64>,
}

impl Stacks {
    /// The number of a stack, and whether it is a new one.
    fn number(&mut self, frames: &Arc<[Frame]>) -> (u64, bool) {
        if frames.is_empty() {
            return (0, false);
        }
        let next = self.known.len() as u64 + 1;
        let key = (frames.as_ptr().addr(), frames.len());
        let number = *self.known.entry(key).or_insert(next);
        (number, number == next)
    }
}
