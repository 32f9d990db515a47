//! Forks, whose children have a deadline.
//!
//! # Safety
//!
//! The C functions are declared as POSIX gives them. A forked child of a test runs with one thread
//! and calls this crate and the allocator, which the C library keeps usable in children.
#![cfg(unix)]
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::time::{Duration, Instant};

use super::TestRuntime;
use super::kernels::kernel;
use vkaccel::{Buffer, Grid};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// How long a child may take: far more than any needs, also on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(20);

const WNOHANG: c_int = 1;
const SIGKILL: c_int = 9;

/// A forked child that is at work.
#[must_use = "somebody has to see how it ends"]
pub struct Forked(c_int);

/// Runs `f` in a forked child, which must end well, and in time.
#[track_caller]
pub fn in_fork(f: impl FnOnce()) {
    start(f).succeed();
}

/// Starts `f` in a forked child.
pub fn start(f: impl FnOnce()) -> Forked {
    fork_to(f, std::process::exit)
}

/// Starts `f` in a forked child that runs no exit handlers, also none of drivers.
pub fn start_without_handlers(f: impl FnOnce()) -> Forked {
    // SAFETY: the process may end at any moment.
    fork_to(f, |status| unsafe { _exit(status) })
}

/// Forks, and goes on in both: in the parent with the child, which does not end here.
pub fn go_on_in_both() -> Option<Forked> {
    // SAFETY: see the top of the file.
    let process = unsafe { fork() };
    assert!(process >= 0, "fork failed");
    (process > 0).then_some(Forked(process))
}

fn fork_to(f: impl FnOnce(), end: fn(c_int) -> !) -> Forked {
    // SAFETY: see the top of the file.
    let process = unsafe { fork() };
    assert!(process >= 0, "fork failed");
    if process == 0 {
        // A panic must not unwind into what the parent's part of the test does.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        end(c_int::from(result.is_err()));
    }
    Forked(process)
}

impl Forked {
    /// Waits until it has ended, as it must: well and in time.
    #[track_caller]
    pub fn succeed(self) {
        let status = wait_for(self.0);
        assert_eq!(status, Some(0), "how the child ended; nothing: it hangs");
    }
}

/// How a child ended; nothing if it did not in time.
fn wait_for(process: c_int) -> Option<c_int> {
    let started = Instant::now();
    let mut status = -1;
    loop {
        // SAFETY: the pointer leads to an integer of this function.
        let waited = unsafe { waitpid(process, &raw mut status, WNOHANG) };
        if waited == process {
            return Some(status);
        }
        assert_eq!(waited, 0, "waitpid failed");
        if started.elapsed() > DEADLINE {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: it is a child that nobody has waited for yet.
    unsafe { kill(process, SIGKILL) };
    // SAFETY: as above.
    unsafe { waitpid(process, &raw mut status, 0) };
    None
}

/// Runs the role `child` of a test that forks.
///
/// Without a validation layer, whose end in a forked child waits for threads that are not there.
pub fn in_own_process(test: &TestRuntime, name: &str) {
    let child = test.child(name, "child").without_validation();
    child.within(300).succeed();
}

/// The work of parent and child, in runtimes of their own: every word times eleven.
pub fn compute() {
    let source = Buffer::from_slice(&[1u32, 2, 3]).unwrap();
    let target = Buffer::<u32>::zeroed(3).unwrap();
    let map = kernel("affine_map");
    map.launch(Grid::elements(3), (&source, &target, 11, 0, 3))
        .unwrap();
    assert_eq!(target.to_vec().unwrap(), [11, 22, 33]);
}
