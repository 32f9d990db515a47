//! The sizes of blocks and segments, as PyTorch's allocator has them.

use super::conf::AllocConf;
use super::stats::Pool;

pub(super) const MIB: u64 = 1 << 20;

/// Blocks are multiples of this, the last block of a segment aside.
pub(crate) const UNIT: u64 = 512;

/// The largest size of the small pool; also what a large block must leave more of to be split.
const SMALL: u64 = MIB;

/// The segments of the small pool.
const SMALL_SEGMENT: u64 = 2 * MIB;

/// From this size on, a request has a segment of its own size.
const OWN_SEGMENT: u64 = 10 * MIB;

/// Segments are multiples of this.
const SEGMENT_UNIT: u64 = 2 * MIB;

/// Requests of this size or more are refused before anything is counted.
pub(super) const ABSURD: u64 = 1 << 60;

/// The size of the block for a request below [`ABSURD`], on a device without limits.
pub(super) fn rounded(conf: &AllocConf, bytes: u64) -> u64 {
    let divisions = conf.roundup_power2_divisions(bytes);
    if divisions <= 1 || bytes <= UNIT.saturating_mul(divisions) {
        return bytes.max(1).next_multiple_of(UNIT);
    }
    if bytes.is_power_of_two() {
        return bytes;
    }
    // At least 512, since there are more units in `bytes` than divisions.
    let step = (1 << bytes.ilog2()) / divisions;
    bytes.next_multiple_of(step)
}

/// The pool of a block, by its size.
pub(super) fn pool(rounded: u64) -> Pool {
    if rounded <= SMALL {
        Pool::SmallPool
    } else {
        Pool::LargePool
    }
}

/// The segment that is made for a block, on a device without limits.
pub(super) fn segment(conf: &AllocConf, rounded: u64) -> u64 {
    if rounded <= SMALL {
        SMALL_SEGMENT
    } else if rounded < OWN_SEGMENT {
        conf.large_segment_size()
    } else {
        rounded.next_multiple_of(SEGMENT_UNIT)
    }
}

/// Whether a block is split for a request that leaves `rest` bytes of it.
pub(super) fn splits(pool: Pool, rounded: u64, rest: u64, max_split: u64) -> bool {
    match pool {
        Pool::SmallPool => rest >= UNIT,
        Pool::LargePool => rounded < max_split && rest > SMALL,
    }
}
