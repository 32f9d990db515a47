//! Work that keeps a device busy for a while.

use std::time::{Duration, Instant};

use super::kernels::chosen as kernel;
use vkaccel::{Buffer, Grid, Kernel, Stream};

/// A launch that takes the device at least this long.
const SLOW: Duration = Duration::from_millis(40);

/// How many workgroups it has, of one invocation each.
pub const GROUPS: usize = 4096;

/// Work that keeps the device busy.
pub struct Slow {
    kernel: Kernel,
    pub data: Buffer<u32>,
    pub steps: u32,
    /// How long one launch takes.
    pub took: Duration,
}

impl Slow {
    /// Finds out how much work takes the device [`SLOW`].
    pub fn new(stream: &Stream) -> Self {
        let mut slow = Self {
            kernel: kernel("slow"),
            data: stream.zeroed(GROUPS).unwrap(),
            steps: 64,
            took: Duration::ZERO,
        };
        stream.synchronize().unwrap();
        loop {
            let started = Instant::now();
            slow.launch(stream);
            stream.synchronize().unwrap();
            slow.took = started.elapsed();
            if slow.took > SLOW * 2 {
                return slow;
            }
            assert!(slow.steps < 1 << 30, "the device is too fast for this test");
            slow.steps *= 2;
        }
    }

    pub fn launch(&self, stream: &Stream) {
        let args = (&self.data, self.steps);
        stream
            .launch(&self.kernel, Grid::groups(GROUPS), args)
            .unwrap();
    }
}
