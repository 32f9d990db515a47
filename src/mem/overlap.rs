//! Copies inside one buffer whose ranges may overlap, with the meaning of `memmove`.
//!
//! The regions of one `vkCmdCopyBuffer` must not overlap. A copy that does is cut into steps, each
//! a command of its own to the hazard planner, so that barriers come between them:
//!
//! - where the ranges lie far apart for their length, into few pieces as long as that distance,
//!   starting at the end that the destination covers, so that no piece overwrites what a later
//!   one reads;
//! - else through a temporary block, in pieces as large as the block, in the same order.
//!
//! Either way the destination ends up with what the source held before the call.

/// How many pieces are copied directly before a temporary block is better.
const DIRECT_MAX: u64 = 8;
/// The largest temporary block, in bytes.
const TEMP_MAX: u64 = 8 << 20;

/// A copy of `len` bytes inside one buffer, in steps that Vulkan allows; an iterator over them.
#[derive(Clone, Debug)]
pub(crate) struct CopySteps {
    src: u64,
    dst: u64,
    len: u64,
    piece: u64,
    done: u64,
    through_temp: bool,
    /// The half-done piece is in the temporary block.
    in_temp: bool,
}

/// One `vkCmdCopyBuffer`, whose ranges do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyStep {
    /// From the buffer to itself.
    Direct {
        /// The first byte to read.
        src: u64,
        /// The first byte to write.
        dst: u64,
        /// The bytes to copy.
        len: u64,
    },
    /// From the buffer to the start of the temporary block.
    Save {
        /// The first byte to read.
        src: u64,
        /// The bytes to copy.
        len: u64,
    },
    /// From the start of the temporary block to the buffer.
    Restore {
        /// The first byte to write.
        dst: u64,
        /// The bytes to copy.
        len: u64,
    },
}

/// Plans a copy of `len` bytes from `src` to `dst` in the same buffer. Nothing to copy, or a range
/// onto itself, gives no steps.
pub(crate) fn plan(src: u64, dst: u64, len: u64) -> CopySteps {
    let distance = src.abs_diff(dst);
    let through_temp = len.div_ceil(distance.max(1)) > DIRECT_MAX;
    CopySteps {
        src,
        dst,
        len: if distance == 0 { 0 } else { len },
        piece: if through_temp {
            len.min(TEMP_MAX)
        } else {
            distance
        },
        done: 0,
        through_temp,
        in_temp: false,
    }
}

impl CopySteps {
    /// The same through a temporary block of so many bytes, at least 1.
    pub(crate) fn with_temp(self, bytes: u64) -> Self {
        Self {
            piece: self.piece.min(bytes),
            ..self
        }
    }

    /// The bytes of the temporary block that the steps like; 0 if they need none.
    pub(crate) fn temp_bytes(&self) -> u64 {
        if self.through_temp && self.len > 0 {
            self.piece
        } else {
            0
        }
    }
}

impl Iterator for CopySteps {
    type Item = CopyStep;

    fn next(&mut self) -> Option<CopyStep> {
        let left = self.len - self.done;
        if left == 0 {
            return None;
        }
        let len = left.min(self.piece);
        // A destination behind the source covers the source's end, so that end goes first.
        let start = if self.dst > self.src {
            left - len
        } else {
            self.done
        };
        let (src, dst) = (self.src + start, self.dst + start);
        if self.through_temp && !self.in_temp {
            self.in_temp = true;
            return Some(CopyStep::Save { src, len });
        }
        self.done += len;
        if self.in_temp {
            self.in_temp = false;
            return Some(CopyStep::Restore { dst, len });
        }
        Some(CopyStep::Direct { src, dst, len })
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the tests use small numbers"
)]
mod tests {
    use super::*;

    /// Carries the steps out, under Vulkan's rules.
    fn carry_out(steps: CopySteps, memory: &mut [u8]) -> usize {
        let mut temp = vec![0; steps.temp_bytes() as usize];
        let mut count = 0;
        for step in steps {
            count += 1;
            match step {
                CopyStep::Direct { src, dst, len } => {
                    assert!(src.abs_diff(dst) >= len && len > 0, "{step:?} overlaps");
                    let (src, dst, len) = (src as usize, dst as usize, len as usize);
                    memory.copy_within(src..src + len, dst);
                }
                CopyStep::Save { src, len } => {
                    let (src, len) = (src as usize, len as usize);
                    temp[..len].copy_from_slice(&memory[src..src + len]);
                }
                CopyStep::Restore { dst, len } => {
                    let (dst, len) = (dst as usize, len as usize);
                    memory[dst..dst + len].copy_from_slice(&temp[..len]);
                }
            }
        }
        count
    }

    #[test]
    fn every_small_copy_has_the_meaning_of_memmove() {
        for (src, dst) in (0..24).flat_map(|src| (0..24).map(move |dst| (src, dst))) {
            for len in 0..40 {
                for piece in [1, 3, 7, u64::MAX] {
                    let mut memory: Vec<u8> = (0..64).collect();
                    let mut right = memory.clone();
                    right.copy_within(src..src + len, dst);
                    let steps = plan(src as u64, dst as u64, len as u64);
                    carry_out(steps.with_temp(piece), &mut memory);
                    assert_eq!(memory, right, "{len} bytes from {src} to {dst}");
                }
            }
        }
    }

    #[test]
    fn eight_bytes_moved_by_four_keep_what_they_were() {
        let mut memory = *b"\xAB\xAB\xAB\xAB\xAB\xEE\x01\xEE\xEE\x01\x02\x03\xEE\xEE\xEE\xEE";
        carry_out(plan(0, 4, 8), &mut memory);
        let right = *b"\xAB\xAB\xAB\xAB\xAB\xAB\xAB\xAB\xAB\xEE\x01\xEE\xEE\xEE\xEE\xEE";
        assert_eq!(memory, right);
    }

    #[test]
    fn ranges_apart_take_one_step() {
        for (src, dst) in [(0, 100), (100, 0), (0, 50), (50, 0)] {
            let steps = plan(src, dst, 50);
            assert_eq!(steps.temp_bytes(), 0);
            assert_eq!(
                steps.collect::<Vec<_>>(),
                [CopyStep::Direct { src, dst, len: 50 }]
            );
        }
    }

    #[test]
    fn a_range_onto_itself_and_an_empty_one_take_none() {
        for steps in [plan(7, 7, 50), plan(7, 9, 0), plan(7, 7, 0)] {
            assert_eq!((steps.temp_bytes(), steps.count()), (0, 0));
        }
    }

    #[test]
    fn far_apart_takes_pieces_and_close_by_a_bounded_block() {
        let far = plan(0, 1 << 20, 8 << 20);
        assert_eq!((far.temp_bytes(), far.count()), (0, 8));
        let close = plan(0, 1, 1000);
        assert_eq!((close.temp_bytes(), close.count()), (1000, 2));
        let large = plan(0, 4, 1 << 30);
        assert_eq!((large.temp_bytes(), large.count()), (TEMP_MAX, 256));
    }
}
