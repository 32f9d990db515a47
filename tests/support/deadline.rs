//! Deadlines for tests that would hang if what they promise were wrong.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the process, with the name of what hangs, unless it is dropped in time.
pub struct Deadline(Sender<()>);

impl Deadline {
    pub fn new(name: &str, seconds: u64) -> Self {
        let (alive, watch) = channel::<()>();
        let name = name.to_owned();
        std::thread::spawn(move || {
            let waited = watch.recv_timeout(Duration::from_secs(seconds));
            if waited == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name} hangs: it has not ended in {seconds} seconds");
                std::process::abort();
            }
        });
        Self(alive)
    }
}
