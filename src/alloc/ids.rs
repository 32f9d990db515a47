//! What streams and pools are called.

use core::fmt;

/// A stream, as the allocator knows it: any number that is the stream's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamKey(pub(crate) u64);

/// The name of a private pool: segments of its own, which serve the requests made for it alone.
///
/// A pair of numbers, as PyTorch's `MempoolId_t` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u64, pub u64);

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.0, self.1)
    }
}
