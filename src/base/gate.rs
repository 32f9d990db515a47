//! The gate that every fork goes through, so that no child finds a lock taken by a thread that it
//! does not have.
//!
//! A thread is inside while it holds one of our locks or is in a call of the loader. A fork waits until
//! all are out, and lets nobody in until it is done. Once a device is open, children may use nothing of
//! their parent's, so that ordinary locks no longer go through the gate; what all runtimes of a process
//! share still does, as a child that starts anew meets it.
//!
//! There is no lock in here, since that would be one more to find taken.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::time::Instant;

use super::fork;

/// How many threads are inside.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// How many forks wait or are under way.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Whether ordinary locks go past the gate.
static PASSED: AtomicBool = AtomicBool::new(false);
/// The longest that a fork waits, for a loader or driver that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_micros(50);

thread_local! {
    /// How often this thread is inside.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// How many forks of this thread are under way; more than one only by name, as handlers can be
    /// registered twice.
    static FORKING: Cell<usize> = const { Cell::new(0) };
    /// Whether all others were out when the last one was made.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Keeps forks waiting until it is dropped, on the thread that made it.
#[derive(Debug)]
pub(crate) struct Inside(PhantomData<*const ()>);

/// Goes inside; waits for a fork that is under way.
pub(crate) fn enter() -> Inside {
    fork::register();
    let depth = DEPTH.get();
    if depth == 0 {
        loop {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            // Other handlers of a fork run on its thread, and may call us.
            if FORKS.load(Ordering::SeqCst) == 0 || FORKING.get() > 0 {
                break;
            }
            INSIDE.fetch_sub(1, Ordering::SeqCst);
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    DEPTH.set(depth + 1);
    Inside(PhantomData)
}

/// The same for an ordinary lock, as long as these go through the gate.
#[inline]
pub(super) fn enter_for_lock() -> Option<Inside> {
    (!PASSED.load(Ordering::Relaxed)).then(enter)
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// From now on ordinary locks go past the gate, and children may touch none.
pub(super) fn open_for_locks() {
    PASSED.store(true, Ordering::SeqCst);
}

pub(super) fn is_open_for_locks() -> bool {
    PASSED.load(Ordering::SeqCst)
}

/// Ordinary locks go through the gate again, in a child that starts anew.
pub(super) fn close_for_locks() {
    PASSED.store(false, Ordering::SeqCst);
}

/// Before a fork: waits until all threads are out.
pub(super) fn before_fork() {
    // A loader or driver that forks in the midst of our call can't be waited for.
    let from_inside = DEPTH.get() > 0;
    ALONE.set(!from_inside);
    if from_inside {
        return;
    }
    FORKING.set(FORKING.get() + 1);
    FORKS.fetch_add(1, Ordering::SeqCst);
    let started = Instant::now();
    while INSIDE.load(Ordering::SeqCst) > 0 {
        if started.elapsed() > PATIENCE {
            ALONE.set(false);
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Behind a fork, in the parent.
pub(super) fn after_fork() {
    if let Some(left) = FORKING.get().checked_sub(1) {
        FORKING.set(left);
        FORKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Behind a fork, in the child; whether it finds nothing taken.
pub(super) fn after_fork_in_child() -> bool {
    FORKING.set(0);
    FORKS.store(0, Ordering::SeqCst);
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    ALONE.get()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_fork_waits_for_whoever_is_inside_and_keeps_others_out_until_it_is_done() {
        let soon = Duration::from_millis(50);
        let (told, news) = channel();
        let inside = enter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                before_fork();
                // The thread that forks may come here, as another handler may use the crate.
                drop(enter());
                told.send("alone").expect("somebody listens");
                std::thread::sleep(soon);
                told.send("done").expect("somebody listens");
                after_fork();
            });
            assert!(news.recv_timeout(soon).is_err(), "it did not wait");
            // Whoever is inside may go further.
            drop(enter());
            drop(inside);
            assert_eq!(news.recv(), Ok("alone"));
            drop(enter());
            assert_eq!(news.try_recv(), Ok("done"));
        });
    }
}
