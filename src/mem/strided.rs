//! Rows of bytes that lie a stride apart, and the regions of copies between them. Pure.
//!
//! The *content* of rows is what they hold, laid end to end. Two sides of a copy hold as much content, in rows that
//! may be cut differently: a region is as long as it lies in one row of either. Rows without gaps between them count
//! as one.
//!
//! # Rows that move onto themselves
//!
//! Where rows of the source overlap rows of the target, each byte of which the target lies below its source has to be
//! read before lower ones are written, and the other way round. Both sides are in ascending order, so no byte that
//! moves down is in the way of one that moves up. So those that move down are copied in ascending order, those that
//! move up in descending order, piece by piece through a temporary block; the target ends up with what the source
//! held before.

/// The most regions of one command.
pub(crate) const REGIONS_MAX: usize = 1024;

/// The content of rows, from some byte of it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strided {
    /// Where the first row starts.
    start: u64,
    count: u64,
    /// The bytes of a row.
    len: u64,
    /// From the start of a row to that of the next; as long as a row at least, where there are several.
    stride: u64,
    /// The content before what is meant.
    from: u64,
}

/// One region of a copy: bytes that lie together on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) len: u64,
}

impl Strided {
    /// `count` rows of `len` bytes each, both at least 1, the last of which ends below `u64::MAX`.
    pub(crate) fn new(start: u64, count: u64, len: u64, stride: u64) -> Self {
        Self {
            start,
            count,
            len,
            stride,
            from: 0,
        }
    }

    /// Bytes that lie together.
    pub(crate) fn dense(start: u64, len: u64) -> Self {
        Self::new(start, 1, len, len)
    }

    /// The bytes of the content that are left.
    pub(crate) fn bytes(&self) -> u64 {
        self.count * self.len - self.from
    }

    /// The same but for its first bytes.
    pub(crate) fn skip(self, bytes: u64) -> Self {
        Self {
            from: self.from + bytes,
            ..self
        }
    }

    /// Where the content starts, and its length, if it all lies together.
    pub(crate) fn together(&self) -> Option<(u64, u64)> {
        let (start, len) = self.head();
        (len == self.bytes()).then_some((start, len))
    }

    /// Where the content starts and ends, with the gaps between rows.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.head().0, self.row(self.count - 1) + self.len)
    }

    /// Where the content starts, and how much of it lies together there.
    fn head(&self) -> (u64, u64) {
        if self.count == 1 || self.stride == self.len {
            return (self.start + self.from, self.bytes());
        }
        let (row, column) = (self.from / self.len, self.from % self.len);
        (self.start + row * self.stride + column, self.len - column)
    }

    fn row(&self, row: u64) -> u64 {
        self.start + row * self.stride
    }
}

/// The regions of a copy of the first `bytes`, which both sides have; on both in ascending order.
pub(crate) fn runs(src: Strided, dst: Strided, bytes: u64) -> impl Iterator<Item = Run> {
    let mut done = 0;
    core::iter::from_fn(move || {
        if done == bytes {
            return None;
        }
        let (from, there) = src.skip(done).head();
        let (to, here) = dst.skip(done).head();
        let len = there.min(here).min(bytes - done);
        done += len;
        Some(Run {
            src: from,
            dst: to,
            len,
        })
    })
}

/// Whether a byte of one is a byte of the other; for whole content.
pub(crate) fn overlap(one: &Strided, other: &Strided) -> bool {
    let (mut i, mut j) = (0, 0);
    while i < one.count && j < other.count {
        let (lo, low) = (one.row(i), other.row(j));
        let (hi, high) = (lo + one.len, low + other.len);
        if lo.max(low) < hi.min(high) {
            return true;
        }
        // The one that ends first meets nothing that comes later.
        if hi <= high {
            i += 1;
        } else {
            j += 1;
        }
    }
    false
}

/// The pieces in which rows are moved onto rows that they overlap, in their order; each as far as it is behind the
/// start of the content, with its length.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    /// What is left to move down, from its start on.
    down: (u64, u64),
    /// What is left to move up, from its end on.
    up: (u64, u64),
    piece: u64,
}

/// Plans the move of whole content between as many rows of the same length, through a temporary block.
pub(crate) fn moves(src: &Strided, dst: &Strided) -> Moves {
    let (count, len) = (src.count, src.len);
    let compare = |row: u64| dst.row(row).cmp(&src.row(row));
    // The distance grows or falls from row to row.
    let (down, up) = if dst.stride >= src.stride {
        let down = first(count, |row| compare(row).is_ge());
        ((0, down), (first(count, |row| compare(row).is_gt()), count))
    } else {
        let up = first(count, |row| compare(row).is_le());
        ((first(count, |row| compare(row).is_lt()), count), (0, up))
    };
    Moves {
        down: (down.0 * len, down.1 * len),
        up: (up.0 * len, up.1 * len),
        piece: u64::MAX,
    }
}

/// The first row for which `holds` is true, as it is for all behind it; `count` for none.
fn first(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut lo, mut hi) = (0, count);
    while lo < hi {
        let middle = lo + (hi - lo) / 2;
        if holds(middle) {
            hi = middle;
        } else {
            lo = middle + 1;
        }
    }
    lo
}

impl Moves {
    /// The bytes of the temporary block that the pieces like; 0 if nothing moves.
    pub(crate) fn temp_bytes(&self) -> u64 {
        (self.down.1 - self.down.0).max(self.up.1 - self.up.0)
    }

    /// The same through a temporary block of so many bytes, at least 1.
    pub(crate) fn with_temp(self, bytes: u64) -> Self {
        Self {
            piece: bytes,
            ..self
        }
    }
}

impl Iterator for Moves {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let left = |(lo, hi): (u64, u64)| self.piece.min(hi - lo);
        let (down, up) = (left(self.down), left(self.up));
        if down > 0 {
            self.down.0 += down;
            return Some((self.down.0 - down, down));
        }
        if up > 0 {
            self.up.1 -= up;
            return Some((self.up.1, up));
        }
        None
    }
}

#[cfg(test)]
#[path = "strided_tests.rs"]
mod tests;
