//! What may not be called while streams are captured.

use core::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use super::capture::{Capture, Strictness};
use super::device::ExecDevice;
use super::stream::StreamCore;
use crate::base::sync::Mutex;
use crate::error::{Details, Error, ErrorKind, Result};

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
    /// The check that opens what a capture may forbid: waits of the host, and memory from the driver that is
    /// not of the capture's pool.
    ///
    /// # Errors
    ///
    /// `NotPermitted`. A capture of the calling thread has failed by that.
    #[track_caller]
    pub(crate) fn permit(&self, call: &str) -> Result<()> {
        self.permit_at(call, Location::caller())
    }

    /// The same for a call that was made elsewhere.
    pub(crate) fn permit_at(&self, call: &str, site: &'static Location<'static>) -> Result<()> {
        if self.captures.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.refuse(call, site)
    }

    #[cold]
    fn refuse(&self, call: &str, site: &'static Location<'static>) -> Result<()> {
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
                true => "call it before or behind the capture",
                false => {
                    "wait for the capture's end, or begin it with `CaptureErrorMode::ThreadLocal`"
                }
            };
            let error = refusal(call, site, &capture, way);
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
    #[track_caller]
    pub(crate) fn permit(&self, call: &str) -> Result<()> {
        self.exec.permit(call)
    }

    /// The check that opens what makes no sense on a stream that is captured.
    ///
    /// # Errors
    ///
    /// `NotPermitted`. The capture has failed by that.
    #[track_caller]
    pub(crate) fn permit_on_captured(&self, call: &str) -> Result<()> {
        if !self.is_captured() {
            return Ok(());
        }
        self.device().check_life()?;
        let Some(capture) = self.capture() else {
            return Ok(());
        };
        let way = "what is captured runs when its graph is replayed; call it behind the replay";
        let error = refusal(call, Location::caller(), &capture, way);
        capture.fail(&error);
        Err(error)
    }
}

#[cold]
fn refusal(call: &str, site: &Location<'_>, capture: &Capture, way: &str) -> Error {
    Error::new(
        ErrorKind::NotPermitted,
        format!(
            "{call}, called at {site}, is not permitted during the graph capture {}; {way}",
            capture.place()
        ),
    )
    .with_details(Details::Capture {
        call: call.to_owned(),
        call_site: site.to_string(),
        capture_site: capture.site.to_string(),
    })
}
