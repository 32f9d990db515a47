//! Whether this process may use a driver: not in a forked child of a process that had opened a
//! device, unless that starts anew, and not once the process is ending.
//!
//! # Safety
//!
//! The C handlers registered here run where locks may be waited for (before a fork), only store to
//! atomics (behind one), or wait within a bound (at exit), which is allowed where they run.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Weak;
use std::time::Instant;

use super::{gate, sync::Mutex};
use crate::error::{Error, ErrorKind, Result};

const OPEN: u32 = 0;
const FORKED: u32 = 1;
const ENDING: u32 = 2;
/// The lower bits of [`STATE`], which are one of these; the others count lives.
const KIND: u32 = 3;

/// In which of its lives the process is, and what it may do.
static STATE: AtomicU32 = AtomicU32::new(OPEN);
/// Whether a fork found threads in the loader, whose locks stay taken in this child for ever.
static STUCK: AtomicBool = AtomicBool::new(false);
/// How many threads of our own are inside driver calls; the end of the process waits for them.
static BACKGROUND: AtomicUsize = AtomicUsize::new(0);
/// What the end of the process waits for.
static WORKING: Mutex<Vec<Weak<dyn Working>>> = Mutex::new(Vec::new());
/// The longest that the end of the process waits, so that a hanging driver does not hang it: longer than
/// work takes on a busy machine, since software drivers crash where they are torn down at work.
const END_WAIT: Duration = Duration::from_secs(10);

/// Something with work that runs on threads of a driver's own.
pub(crate) trait Working: Send + Sync {
    /// Waits for all work that was submitted, or until the time has run out.
    fn wait_at_end(&self, timeout: Duration);
}

/// The life of the process that something belongs to.
///
/// It ends with a fork, in the child, once a device was opened; a child that starts anew has another.
/// What belongs to an earlier one stays inert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life(u32);

impl Default for Life {
    fn default() -> Self {
        Self::now()
    }
}

impl Life {
    /// The life that the process is in, or was before it forked or began to end.
    pub(crate) fn now() -> Self {
        Self(STATE.load(Ordering::Relaxed) & !KIND)
    }

    /// The check that opens every call that needs the runtime; it takes no lock.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ForkedChild`] in a forked child, [`ErrorKind::ShutDown`] once the process is
    /// ending.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        if self.may_call_driver() {
            return Ok(());
        }
        Err(self.refused())
    }

    /// Whether drops may call the driver, and take locks.
    #[inline]
    pub(crate) fn may_call_driver(self) -> bool {
        STATE.load(Ordering::Relaxed) == self.0
    }

    /// Whether it ended with a fork, and this process is the child.
    pub(crate) fn ended_by_fork(self) -> bool {
        let state = STATE.load(Ordering::Relaxed);
        self.is_past() || state & KIND == FORKED
    }

    /// Whether the process is in a later one.
    pub(crate) fn is_past(self) -> bool {
        STATE.load(Ordering::Relaxed) & !KIND != self.0
    }

    #[cold]
    fn refused(self) -> Error {
        if self.ended_by_fork() {
            Error::new(
                ErrorKind::ForkedChild,
                "this process was forked from one that had already opened a Vulkan device, and \
                 drivers do not survive a fork; open devices only in the child, start a new process instead \
                 of forking, or start anew with the unsafe `Runtime::reinit_after_fork`",
            )
        } else {
            Error::new(
                ErrorKind::ShutDown,
                "the process is ending; the runtime takes no more calls",
            )
        }
    }
}

/// Registers the handlers of forks; called before anything that a fork must not meet.
#[inline]
pub(super) fn register() {
    // Threads that come here at once may register them twice, which does no harm; a lock, or a `Once`,
    // could be found taken by a child.
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.load(Ordering::Acquire) {
        handle_forks();
        REGISTERED.store(true, Ordering::Release);
    }
}

/// Says that a device is about to be opened: from now on, the life of the process ends with a fork.
pub(crate) fn begin_opening() {
    register();
    gate::open_for_locks();
}

/// Starts a new life in a forked child; does nothing where the process is none, or may do all.
///
/// # Errors
///
/// [`ErrorKind::ForkedChild`] where locks of the loader are taken for ever.
pub(crate) fn start_anew() -> Result<()> {
    let state = STATE.load(Ordering::Relaxed);
    if state & KIND != FORKED {
        return Ok(());
    }
    if STUCK.load(Ordering::Relaxed) {
        return Err(Error::new(
            ErrorKind::ForkedChild,
            "this process was forked while another thread was in the Vulkan loader or a driver, which \
             therefore can't be used in it any more; fork where no thread opens or closes devices",
        ));
    }
    // The threads that were inside, and what the end of the process was to wait for, are the parent's.
    BACKGROUND.store(0, Ordering::SeqCst);
    WORKING.lock().clear();
    gate::close_for_locks();
    let next = (state & !KIND).wrapping_add(KIND + 1) | OPEN;
    // Where two threads do this at once, one of them does it.
    let _ = STATE.compare_exchange(state, next, Ordering::SeqCst, Ordering::SeqCst);
    Ok(())
}

/// Has the end of the process wait for what works on a device that was just opened.
///
/// Software drivers run work on threads of their own, which must not meet what the driver tears
/// down at the end. Handlers run last in, first out, so that one is registered for every device,
/// behind those that its driver registered when it was loaded.
pub(crate) fn end_after(working: Weak<dyn Working>) {
    let inside = gate::enter();
    let mut all = WORKING.lock();
    all.retain(|working| working.strong_count() > 0);
    all.push(working);
    drop((all, inside));
    handle_end();
}

/// Runs `f`, which calls the driver on a thread of our own, unless the process is ending.
pub(crate) fn in_background<R>(f: impl FnOnce() -> R) -> Option<R> {
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            BACKGROUND.fetch_sub(1, Ordering::SeqCst);
        }
    }
    BACKGROUND.fetch_add(1, Ordering::SeqCst);
    let _inside = Inside;
    (STATE.load(Ordering::SeqCst) & KIND == OPEN).then(f)
}

#[cfg(unix)]
fn handle_forks() {
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> core::ffi::c_int;
    }
    // SAFETY: the function is libc's, declared as POSIX gives it; the handlers are functions of this
    // crate that never unwind. A refusal (no memory) leaves the process without the mark, which is
    // no memory fault.
    unsafe { pthread_atfork(Some(before_fork), Some(after_fork), Some(mark_forked)) };
}

#[cfg(unix)]
fn handle_end() {
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> core::ffi::c_int;
    }
    // SAFETY: as above.
    unsafe { atexit(mark_ending) };
}

#[cfg(not(unix))]
fn handle_forks() {}

#[cfg(not(unix))]
fn handle_end() {}

#[cfg(unix)]
extern "C" fn before_fork() {
    gate::before_fork();
}

#[cfg(unix)]
extern "C" fn after_fork() {
    gate::after_fork();
}

#[cfg(unix)]
extern "C" fn mark_forked() {
    let finds_nothing_taken = gate::after_fork_in_child();
    if !finds_nothing_taken {
        STUCK.store(true, Ordering::Relaxed);
    }
    if gate::is_open_for_locks() || !finds_nothing_taken {
        let life = STATE.load(Ordering::Relaxed) & !KIND;
        STATE.store(life | FORKED, Ordering::Relaxed);
    }
}

#[cfg(unix)]
extern "C" fn mark_ending() {
    let life = STATE.load(Ordering::Relaxed) & !KIND;
    if STATE
        .compare_exchange(
            life | OPEN,
            life | ENDING,
            Ordering::AcqRel,
            Ordering::Relaxed,
        )
        .is_err()
    {
        return;
    }
    // Nothing is submitted from now on. What was is waited for, and so is a background thread that
    // is inside of a driver call.
    let until = Instant::now() + END_WAIT;
    let left = || until.saturating_duration_since(Instant::now());
    while BACKGROUND.load(Ordering::SeqCst) > 0 && !left().is_zero() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let inside = gate::enter();
    let working = core::mem::take(&mut *WORKING.lock());
    drop(inside);
    for working in working.iter().filter_map(Weak::upgrade) {
        working.wait_at_end(left());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_process_may_call_the_driver() {
        let life = Life::now();
        assert!(life.check().is_ok() && life.may_call_driver());
        assert!(!life.ended_by_fork() && !life.is_past());
        assert!(start_anew().is_ok() && life.may_call_driver());
    }
}
