//! What may not be called while streams are captured.

use core::fmt;
use core::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use super::capture::{Capture, Strictness};
use super::device::ExecDevice;
use super::stream::StreamCore;
use crate::base::sync::Mutex;
use crate::error::{Details, Error, ErrorKind, Result};

/// A call of the program's, for the errors that name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    name: &'static str,
    pub(super) site: &'static Location<'static>,
}

impl Call {
    /// One that is being made.
    #[track_caller]
    pub(crate) fn new(name: &'static str) -> Self {
        Self::at(name, Location::caller())
    }

    /// One that was made elsewhere.
    pub(crate) fn at(name: &'static str, site: &'static Location<'static>) -> Self {
        Self { name, site }
    }

    /// The figures of an error, for a call that a capture is in the way of.
    pub(super) fn against(self, capture: &Capture) -> Details {
        Details::Capture {
            call: self.name.to_owned(),
            call_site: self.site.to_string(),
            capture_site: capture.site.to_string(),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, called at {}", self.name, self.site)
    }
}

/// The captures of a device that are under way.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// How many there are, for those who need no lock to find none.
    count: AtomicUsize,
    all: Mutex<Vec<Weak<Capture>>>,
}

impl Captures {
    pub(super) fn add(&self, capture: &Arc<Capture>) {
        let mut all = self.all.lock();
        all.push(Arc::downgrade(capture));
        self.count.store(all.len(), Ordering::Release);
    }

    pub(super) fn remove(&self, capture: &Capture) {
        let mut all = self.all.lock();
        all.retain(|one| !core::ptr::eq(one.as_ptr(), capture) && one.strong_count() > 0);
        self.count.store(all.len(), Ordering::Release);
    }

    fn alive(&self) -> Vec<Arc<Capture>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl ExecDevice {
    /// The check that opens what a capture may forbid: waits of the host.
    ///
    /// # Errors
    ///
    /// `NotPermitted`. A capture of the calling thread has failed by that.
    pub(crate) fn permit(&self, call: Call) -> Result<()> {
        self.permit_or(call, "call it before or after the capture")
    }

    /// The same for memory from the driver that is not of the capture's pool.
    pub(crate) fn permit_memory(&self, site: &'static Location<'static>) -> Result<()> {
        let call = Call::at("taking device memory from the driver", site);
        self.permit_or(
            call,
            "make the buffer before the capture, or on a captured stream",
        )
    }

    fn permit_or(&self, call: Call, way: &str) -> Result<()> {
        if self.captures.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.refuse(call, way)
    }

    #[cold]
    fn refuse(&self, call: Call, own_way: &str) -> Result<()> {
        // Before any lock, which a thread that a forked child does not have may hold.
        self.device().check_life()?;
        let mut result = Ok(());
        for capture in self.captures.alive() {
            let is_own = capture.thread == thread::current().id();
            let forbids = match capture.strictness {
                Strictness::Global => true,
                Strictness::ThreadLocal => is_own,
                Strictness::Relaxed => false,
            };
            if !forbids {
                continue;
            }
            let way = match is_own {
                true => own_way,
                false => {
                    "wait for the capture's end, or begin it with `CaptureErrorMode::ThreadLocal`"
                }
            };
            let error = refusal(call, &capture, way);
            if is_own {
                capture.fail(&error);
            }
            result = Err(error);
        }
        result
    }
}

impl StreamCore {
    /// As [`ExecDevice::permit`].
    pub(crate) fn permit(&self, call: Call) -> Result<()> {
        self.exec.permit(call)
    }

    /// The check that opens what makes no sense on a stream that is captured.
    ///
    /// # Errors
    ///
    /// `NotPermitted`. The capture has failed by that.
    pub(crate) fn permit_on_captured(&self, call: Call) -> Result<()> {
        if !self.is_captured() {
            return Ok(());
        }
        self.device().check_life()?;
        let Some(capture) = self.capture() else {
            return Ok(());
        };
        let way = "what is captured runs when its graph is replayed; call it after the replay";
        let error = refusal(call, &capture, way);
        capture.fail(&error);
        Err(error)
    }
}

#[cold]
fn refusal(call: Call, capture: &Capture, way: &str) -> Error {
    Error::new(
        ErrorKind::NotPermitted,
        format!(
            "{call}, is not permitted during the graph capture {}; {way}",
            capture.place()
        ),
    )
    .with_details(call.against(capture))
}
