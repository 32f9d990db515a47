//! A new start in a forked child.
//!
//! # Safety
//!
//! Nothing here touches a driver: it is the promise about drivers that is unsafe, and the caller's.
#![allow(unsafe_code)]

use super::Runtime;
use crate::base::fork;
use crate::error::Result;

impl Runtime {
    /// Starts anew in a forked child whose parent had opened a device. Experimental.
    ///
    /// Such a child gets errors of kind [`ForkedChild`](crate::ErrorKind::ForkedChild), since drivers
    /// do not survive a fork; the crate docs say [who may do what](crate#forks). From this call on it may use devices again, from the beginning: the
    /// process's own runtime is made anew, without the settings and seeds of the parent's, and so are
    /// instances and devices. Whatever the child has of its parent's stays as inert as it was: calls
    /// that use it still fail with `ForkedChild`, drops touch nothing, and runtimes that were entered
    /// before the fork are no longer current. A fork of this child is like any other.
    ///
    /// Does nothing in a process that is no such child, so that one need not know whether its parent
    /// had opened a device. The parent itself never notices.
    ///
    /// What has been seen: lavapipe works, whatever the parent had open, but the child then has to end
    /// with `_exit`, as Mesa's exit handler may wait for ever for the parent's threads. SwiftShader works
    /// where the parent had shut down, and dropped, all that used it; else the first launch waits for
    /// ever. Under the validation layer, nothing was tried.
    ///
    /// # Errors
    ///
    /// [`ForkedChild`](crate::ErrorKind::ForkedChild) if the fork came from inside of the loader, or
    /// another thread was there for longer than the ten seconds that a fork waits: what is locked in
    /// there then stays locked for ever.
    ///
    /// # Safety
    ///
    /// Loader, layers and driver bear it to be used from the beginning in a copy of a process that used
    /// them: with all that they had there as it was, and without the threads, their own ones included.
    /// No specification promises that of any. No thread of the parent's was inside of a driver's call
    /// when it forked, but for those that this crate makes to open and close instances and devices, which
    /// a fork waits for. No code in this process uses Vulkan objects of the parent's.
    ///
    /// # Example
    ///
    /// ```no_run
    /// // In a child that was just forked:
    /// // SAFETY: the driver is known to stand it, and this thread is the only one.
    /// unsafe { vkaccel::Runtime::reinit_after_fork()? };
    /// let buffer = vkaccel::Buffer::from_slice(&[1u32, 2, 3])?;
    /// assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub unsafe fn reinit_after_fork() -> Result<()> {
        fork::start_anew()
    }
}
