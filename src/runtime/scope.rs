//! What scopes restore, in whatever order they end.

use std::sync::atomic::{AtomicU64, Ordering};

/// A stack of what open scopes restore when they end.
///
/// The state lives here, not in the guards: a scope that ends before one inside it hands what it
/// would restore to the next scope above, and changes nothing now.
#[derive(Debug)]
pub(super) struct ScopeStack<T> {
    open: Vec<(u64, T)>,
}

impl<T> Default for ScopeStack<T> {
    fn default() -> Self {
        Self { open: Vec::new() }
    }
}

impl<T> ScopeStack<T> {
    /// Opens a scope that restores `saved`.
    pub(super) fn open(&mut self, saved: T) -> u64 {
        // No two stacks share an id: a guard may outlive its stack, and must not end another's scope.
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        self.open.push((id, saved));
        id
    }

    /// Ends a scope; gives what must be restored now, if it is the innermost one.
    pub(super) fn close(&mut self, id: u64) -> Option<T> {
        let index = self.open.iter().position(|(open, _)| *open == id)?;
        let (_, saved) = self.open.remove(index);
        match self.open.get_mut(index) {
            Some((_, above)) => {
                *above = saved;
                None
            }
            None => Some(saved),
        }
    }

    /// What the open scopes will restore.
    pub(super) fn saved(&self) -> impl Iterator<Item = &T> {
        self.open.iter().map(|(_, saved)| saved)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_that_end_in_order_restore_what_was_before_each() {
        let mut stack = ScopeStack::default();
        let outer = stack.open("default");
        let inner = stack.open("outer");
        assert_eq!(stack.close(inner), Some("outer"));
        assert_eq!(stack.close(outer), Some("default"));
        assert!(stack.is_empty());
    }

    #[test]
    fn an_outer_scope_that_ends_first_leaves_its_value_to_the_inner_one() {
        let mut stack = ScopeStack::default();
        let outer = stack.open("default");
        let inner = stack.open("outer");
        assert_eq!(stack.close(outer), None);
        assert_eq!(stack.close(inner), Some("default"));
    }

    #[test]
    fn a_scope_ends_once() {
        let mut stack = ScopeStack::default();
        let scope = stack.open(1);
        assert_eq!(stack.close(scope), Some(1));
        assert_eq!(stack.close(scope), None);
    }
}
