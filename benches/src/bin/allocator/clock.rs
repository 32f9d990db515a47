//! How much a thread has used of a processor.
//!
//! # Safety
//!
//! One call of the system's, which fills a value that it is given.
#![allow(unsafe_code)]

use std::time::Duration;

/// The processor time that this thread has used so far.
pub fn of_thread() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is the caller's own and lives through the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "the system has no clock for threads");
    let seconds = u64::try_from(time.tv_sec).expect("time has passed");
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).expect("time has passed"))
}
