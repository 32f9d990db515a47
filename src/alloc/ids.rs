//! What streams and pools are called.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// A stream, as the allocator knows it: any number that is the stream's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamKey(pub(crate) u64);

/// The name of a private pool: segments of its own, which serve the requests made for it alone.
///
/// A pair of numbers, as PyTorch's `MempoolId_t` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u64, pub u64);

impl PoolId {
    /// An id that no other pool of the process has.
    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(0, NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.0, self.1)
    }
}
