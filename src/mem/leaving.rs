//! Segments on their way back to the driver: a request that fails in the meantime fails for want of
//! them, and is tried again once they are gone.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use crate::base::sync::{Condvar, Mutex};
use crate::vk::Segment;

/// The longest that another thread takes to let go of finished work, and how often one looks.
const LET_GO: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_micros(50);

#[derive(Debug, Default)]
pub(super) struct Leaving {
    state: Mutex<State>,
    /// How often segments were gone; written under the lock, and looked at by every request.
    ended: AtomicU64,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How often segments began to go.
    begun: u64,
    /// Those that were given up while queued work kept them.
    kept: Vec<Weak<Segment>>,
}

/// Segments that are about to go; they are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Going<'a>(&'a Leaving);

impl Drop for Going<'_> {
    fn drop(&mut self) {
        let state = self.0.state.lock();
        self.0.ended.fetch_add(1, Ordering::Release);
        drop(state);
        self.0.gone.notify_all();
    }
}

impl Leaving {
    /// Says that segments are about to go; called under the lock of the allocator that gave them up,
    /// so that whoever asks it next knows.
    pub(super) fn begin(&self) -> Going<'_> {
        self.state.lock().begun += 1;
        Going(self)
    }

    /// How often segments have gone.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits until all that are about to go are gone; how often segments have gone by then.
    pub(super) fn wait(&self) -> u64 {
        let mut state = self.state.lock();
        while self.ended() < state.begun {
            state = self.gone.wait(state);
        }
        self.ended()
    }

    /// Lets go of segments without waiting for the work that still keeps some.
    pub(super) fn let_go(&self, segments: Vec<Arc<Segment>>) {
        let kept = segments.iter().filter(|segment| is_in_use(segment));
        let kept: Vec<_> = kept.map(Arc::downgrade).collect();
        drop(segments);
        if !kept.is_empty() {
            self.state.lock().kept.extend(kept);
        }
    }

    /// Takes the segments that were let go of and that queued work still keeps.
    pub(super) fn take_kept(&self) -> Vec<Weak<Segment>> {
        let mut kept = core::mem::take(&mut self.state.lock().kept);
        kept.retain(|segment| segment.strong_count() > 0);
        kept
    }
}

/// Waits until nothing holds segments but `ours` owners each. The work that used them has finished; another
/// thread may be about to let go of what that kept.
pub(super) fn wait_until_let_go(ours: usize, holders: impl Fn() -> usize) {
    let started = Instant::now();
    while holders() > ours && started.elapsed() < LET_GO {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether queued work keeps a segment that its allocator has given up.
pub(super) fn is_in_use(segment: &Arc<Segment>) -> bool {
    Arc::strong_count(segment) > 1
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn whoever_asks_while_segments_go_waits_until_they_are_gone() {
        let leaving = Leaving::default();
        assert_eq!(leaving.wait(), 0);
        let gone = AtomicBool::new(false);
        let going = leaving.begin();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let ended = leaving.wait();
                (ended, gone.load(Ordering::SeqCst))
            });
            std::thread::sleep(Duration::from_millis(20));
            gone.store(true, Ordering::SeqCst);
            drop(going);
            assert_eq!(waiter.join().expect("it does not panic"), (1, true));
        });
        assert_eq!(leaving.ended(), 1);
        assert!(leaving.take_kept().is_empty());
    }
}
