//! Whether this process may use a driver: not in a forked child of a process that had opened a
//! device, and not once the process is ending.
//!
//! # Safety
//!
//! The two C handlers registered here only store to an atomic (in the child) or also sleep within
//! a bound (at exit), which is allowed where they run.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Once;

use crate::error::{Error, ErrorKind, Result};

const OPEN: u8 = 0;
const FORKED: u8 = 1;
const ENDING: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OPEN);
/// How many threads of our own are inside driver calls; the end of the process waits for them.
static BACKGROUND: AtomicUsize = AtomicUsize::new(0);

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

/// Registers the handlers, once per process; called before the first device is opened.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(register_handlers);
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
fn register_handlers() {
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> core::ffi::c_int;
        fn atexit(handler: extern "C" fn()) -> core::ffi::c_int;
    }
    // SAFETY: both functions are libc's, declared as POSIX gives them; the handlers are functions
    // of this crate that never unwind. A refusal (no memory) leaves the process without the mark,
    // which is no memory fault.
    unsafe { pthread_atfork(None, None, Some(mark_forked)) };
    // SAFETY: as above.
    unsafe { atexit(mark_ending) };
}

#[cfg(not(unix))]
fn register_handlers() {}

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
    // A background thread that is inside a driver call ends it first; the wait is bounded, so that
    // a hanging driver does not hang the exit.
    for _ in 0..200 {
        if BACKGROUND.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
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
