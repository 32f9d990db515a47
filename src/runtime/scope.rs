//! What scopes restore, in whatever order they end.

/// A stack of what open scopes restore when they end.
///
/// The state lives here, not in the guards: a scope that ends before one inside it hands what it
/// would restore to the next scope above, and changes nothing now.
#[derive(Debug)]
pub(super) struct ScopeStack<T> {
    open: Vec<(u64, T)>,
    next_id: u64,
}

impl<T> Default for ScopeStack<T> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            next_id: 0,
        }
    }
}

impl<T> ScopeStack<T> {
    /// Opens a scope that restores `saved`.
    pub(super) fn open(&mut self, saved: T) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
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
