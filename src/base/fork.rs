//! Whether this process may use a driver: not in a forked child of a process that had opened a
//! device, and not once the process is ending.
//!
//! # Safety
//!
//! The two C handlers registered here only store to an atomic (in the child) or also wait within
//! a bound (at exit), which is allowed where they run.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Once, Weak};
use std::time::Instant;

use super::sync::Mutex;
use crate::error::{Error, ErrorKind, Result};

const OPEN: u8 = 0;
const FORKED: u8 = 1;
const ENDING: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OPEN);
/// How many threads of our own are inside driver calls; the end of the process waits for them.
static BACKGROUND: AtomicUsize = AtomicUsize::new(0);
/// What the end of the process waits for.
static WORKING: Mutex<Vec<Weak<dyn Working>>> = Mutex::new(Vec::new());
/// The longest that the end of the process waits, so that a hanging driver does not hang it.
const END_WAIT: Duration = Duration::from_secs(1);

/// Something with work that runs on threads of a driver's own.
pub(crate) trait Working: Send + Sync {
    /// Waits for all work that was submitted, or until the time has run out.
    fn wait_at_end(&self, timeout: Duration);
}

/// The check that opens every call that needs the runtime; it takes no lock.
///
/// # Errors
///
/// [`ErrorKind::ForkedChild`] in a forked child, [`ErrorKind::ShutDown`] once the process is ending.
#[inline]
pub(crate) fn check() -> Result<()> {
    match STATE.load(Ordering::Relaxed) {
        OPEN => Ok(()),
        state => Err(refused(state)),
    }
}

/// Whether drops may call the driver.
#[inline]
pub(crate) fn may_call_driver() -> bool {
    STATE.load(Ordering::Relaxed) == OPEN
}

/// Whether this process is a forked child of one that had opened a device.
#[inline]
pub(crate) fn is_child() -> bool {
    STATE.load(Ordering::Relaxed) == FORKED
}

#[cold]
fn refused(state: u8) -> Error {
    if state == FORKED {
        Error::new(
            ErrorKind::ForkedChild,
            "this process was forked from one that had already opened a Vulkan device, and drivers \
             do not survive a fork; open devices only in the child, or start a new process instead \
             of forking",
        )
    } else {
        Error::new(
            ErrorKind::ShutDown,
            "the process is ending; the runtime takes no more calls",
        )
    }
}

/// Registers the handler of forks, once per process; called before the first device is opened.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(handle_forks);
}

/// Has the end of the process wait for what works on a device that was just opened.
///
/// Software drivers run work on threads of their own, which must not meet what the driver tears
/// down at the end. Handlers run last in, first out, so that one is registered for every device,
/// behind those that its driver registered when it was loaded.
pub(crate) fn end_after(working: Weak<dyn Working>) {
    let mut all = WORKING.lock();
    all.retain(|working| working.strong_count() > 0);
    all.push(working);
    drop(all);
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
    (STATE.load(Ordering::SeqCst) == OPEN).then(f)
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
    // SAFETY: the function is libc's, declared as POSIX gives it; the handler is a function of this
    // crate that never unwinds. A refusal (no memory) leaves the process without the mark, which is
    // no memory fault.
    unsafe { pthread_atfork(None, None, Some(mark_forked)) };
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
extern "C" fn mark_forked() {
    STATE.store(FORKED, Ordering::Relaxed);
}

#[cfg(unix)]
extern "C" fn mark_ending() {
    if STATE
        .compare_exchange(OPEN, ENDING, Ordering::AcqRel, Ordering::Relaxed)
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
    let working = core::mem::take(&mut *WORKING.lock());
    for working in working.iter().filter_map(Weak::upgrade) {
        working.wait_at_end(left());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_process_may_call_the_driver() {
        assert!(check().is_ok());
        assert!(may_call_driver() && !is_child());
    }
}
