//! What a program did with memory, as a simulated device is told it.

use std::fmt::{self, Display};

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Allocates; the block is called `id` from then on.
    Alloc {
        id: u64,
        size: u64,
        stream: u64,
        /// The private pool; none for the one that the pools begun and ended say.
        pool: Option<(u64, u64)>,
    },
    Free {
        id: u64,
    },
    /// Another stream uses the block.
    Record {
        id: u64,
        stream: u64,
    },
    /// What is queued on the stream has finished.
    Complete {
        stream: u64,
    },
    EmptyCache,
    ResetPeak,
    ResetAccumulated,
    /// The process may reserve at most this share.
    Fraction(f64),
    /// Nothing: the statistics are looked at.
    Stats,
    PoolBegin(u64),
    PoolEnd(u64),
    PoolRelease(u64),
}

impl Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alloc {
                id, size, stream, ..
            } => write!(f, "allocating {size} bytes as {id} on stream {stream}"),
            Self::Free { id } => write!(f, "freeing {id}"),
            Self::Record { id, stream } => write!(f, "recording stream {stream} on {id}"),
            Self::Complete { stream } => write!(f, "completing stream {stream}"),
            Self::EmptyCache => f.write_str("emptying the cache"),
            Self::ResetPeak => f.write_str("resetting the peaks"),
            Self::ResetAccumulated => f.write_str("resetting the sums"),
            Self::Fraction(fraction) => write!(f, "setting the fraction {fraction}"),
            Self::Stats => f.write_str("reading the statistics"),
            Self::PoolBegin(pool) => write!(f, "beginning pool {pool}"),
            Self::PoolEnd(pool) => write!(f, "ending pool {pool}"),
            Self::PoolRelease(pool) => write!(f, "releasing pool {pool}"),
        }
    }
}
