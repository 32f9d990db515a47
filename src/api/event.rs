//! The bodies of `Event`'s documented methods.

use core::time::Duration;

use super::surface::EventBodies;
use crate::error::Result;
use crate::exec::Call;
use crate::runtime::Event;

impl EventBodies for Event {
    fn query(&self) -> Result<bool> {
        self.has_finished()
    }

    fn synchronize(&self) -> Result<()> {
        self.wait_on_host(None, Call::new("Event::synchronize"))
            .map(drop)
    }

    fn synchronize_timeout(&self, timeout: Duration) -> Result<bool> {
        self.wait_on_host(Some(timeout), Call::new("Event::synchronize_timeout"))
    }

    fn elapsed_time(&self, end: &Self) -> Result<f64> {
        self.milliseconds_to(end)
    }
}
