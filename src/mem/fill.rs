//! Fills of any byte range with a pattern of any width, planned over commands that take words.
//!
//! `vkCmdFillBuffer` writes one 32-bit word at offsets and sizes that are multiples of 4;
//! `vkCmdCopyBuffer` takes any byte. So the whole words of a range are filled, where the pattern
//! repeats every 1, 2 or 4 bytes, and the rest is copied from a staged block that holds the
//! pattern. The copies read the block alone, never bytes that the same fill wrote, and no two
//! steps of a plan write the same byte: the whole plan is one command to the hazard planner.

/// A range up to this long is copied at once where it would take a fill and a copy.
const COPY_WHOLE_MAX: u64 = 64;
/// The bounds of a staged block that is copied more than once.
const BLOCK_MIN: u64 = 64 << 10;
const BLOCK_MAX: u64 = 1 << 20;
/// How many copies of a block a large fill aims at.
const COPIES: u64 = 1024;

/// What a fill does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FillPlan {
    /// The words to fill.
    pub(crate) words: Option<WordFill>,
    /// The bytes to stage for `copies`.
    pub(crate) block: Vec<u8>,
    /// The copies from the staged block.
    pub(crate) copies: Vec<BlockCopy>,
}

/// One `vkCmdFillBuffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordFill {
    /// The first byte in the destination, a multiple of 4.
    pub(crate) offset: u64,
    /// The bytes to fill, a multiple of 4.
    pub(crate) len: u64,
    /// The word, as the host holds it.
    pub(crate) word: u32,
}

/// One region of a `vkCmdCopyBuffer` from the staged block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockCopy {
    /// The first byte in the block.
    pub(crate) block_offset: u64,
    /// The first byte in the destination.
    pub(crate) offset: u64,
    /// The bytes to copy.
    pub(crate) len: u64,
}

/// Plans a fill of `len` bytes from `offset` on with `pattern`, which starts at `offset` and is
/// cut off at the end. Offsets count from the start of the destination `VkBuffer`. An empty range or
/// pattern gives an empty plan.
pub(crate) fn plan(offset: u64, len: u64, pattern: &[u8]) -> FillPlan {
    plan_within(offset, len, pattern, u64::MAX)
}

/// The same with a staged block of at most `room` bytes, which hold a pattern.
pub(crate) fn plan_within(offset: u64, len: u64, pattern: &[u8], room: u64) -> FillPlan {
    if len == 0 || pattern.is_empty() {
        return FillPlan::default();
    }
    match word_period(pattern) {
        Some(period) => plan_words(offset, len, &pattern[..period]),
        None => plan_copies(offset, len, pattern, room),
    }
}

/// The number of bytes after which the pattern repeats, where a word holds it.
fn word_period(pattern: &[u8]) -> Option<usize> {
    [1, 2, 4].into_iter().find(|&period| {
        pattern.len().is_multiple_of(period)
            && pattern
                .chunks_exact(period)
                .all(|chunk| chunk == &pattern[..period])
    })
}

fn plan_words(offset: u64, len: u64, pattern: &[u8]) -> FillPlan {
    let end = offset + len;
    let first = offset.next_multiple_of(4);
    let last = end - end % 4;
    let aligned = first == offset && last == end;
    if last <= first || (len <= COPY_WHOLE_MAX && !aligned) {
        return plan_copies(offset, len, pattern, u64::MAX);
    }
    // The pattern divides a word, so its phase at any whole word is that of the first one.
    let phase = first - offset;
    let word = u32::from_ne_bytes([0, 1, 2, 3].map(|byte| at(pattern, phase + byte)));
    let mut plan = FillPlan {
        words: Some(WordFill {
            offset: first,
            len: last - first,
            word,
        }),
        ..FillPlan::default()
    };
    for (lo, hi) in [(offset, first), (last, end)] {
        if lo < hi {
            plan.copies.push(BlockCopy {
                block_offset: plan.block.len() as u64,
                offset: lo,
                len: hi - lo,
            });
            let bytes = (lo..hi).map(|byte| at(pattern, byte - offset));
            plan.block.extend(bytes);
        }
    }
    plan
}

fn plan_copies(offset: u64, len: u64, pattern: &[u8], room: u64) -> FillPlan {
    let block_len = block_len(len, pattern.len() as u64, room);
    // The length is bounded by a constant or by the pattern's own, so it fits.
    let staged = usize::try_from(block_len).unwrap_or(usize::MAX);
    let block = pattern.iter().copied().cycle().take(staged).collect();
    let copies = (0..len.div_ceil(block_len))
        .map(|index| index * block_len)
        .map(|done| BlockCopy {
            block_offset: 0,
            offset: offset + done,
            len: block_len.min(len - done),
        })
        .collect();
    FillPlan {
        words: None,
        block,
        copies,
    }
}

/// The bytes to stage: the whole range where it is small, else whole patterns, so that every copy
/// starts with one.
fn block_len(len: u64, width: u64, room: u64) -> u64 {
    let goal = (len / COPIES).clamp(BLOCK_MIN, BLOCK_MAX).min(room);
    if len <= goal {
        return len;
    }
    (goal - goal % width).max(width).min(len)
}

/// The byte of the endlessly repeated pattern.
fn at(pattern: &[u8], index: u64) -> u8 {
    let index = index % pattern.len() as u64;
    pattern[usize::try_from(index).unwrap_or_default()]
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the tests use small numbers"
)]
mod tests {
    use super::*;

    const OUTSIDE: u8 = 0xEE;

    /// Carries a plan out, under Vulkan's rules, on `size` bytes.
    fn carry_out(plan: &FillPlan, size: usize) -> Vec<u8> {
        let mut memory = vec![OUTSIDE; size];
        let mut written = vec![false; size];
        let mut write = |lo: u64, bytes: &[u8]| {
            let range = lo as usize..lo as usize + bytes.len();
            assert!(!bytes.is_empty(), "an empty command is not allowed");
            assert!(
                written[range.clone()].iter().all(|&done| !done),
                "a byte is written twice"
            );
            written[range.clone()].fill(true);
            memory[range].copy_from_slice(bytes);
        };
        if let Some(fill) = &plan.words {
            assert!(fill.offset % 4 == 0 && fill.len % 4 == 0, "{fill:?}");
            let bytes = fill.word.to_ne_bytes().repeat(fill.len as usize / 4);
            write(fill.offset, &bytes);
        }
        for copy in &plan.copies {
            let lo = copy.block_offset as usize;
            write(copy.offset, &plan.block[lo..lo + copy.len as usize]);
        }
        memory
    }

    fn expected(offset: u64, len: u64, pattern: &[u8], size: usize) -> Vec<u8> {
        let mut memory = vec![OUTSIDE; size];
        for index in 0..len as usize {
            memory[offset as usize + index] = pattern[index % pattern.len()];
        }
        memory
    }

    fn check(offset: u64, len: u64, pattern: &[u8]) -> FillPlan {
        let size = (offset + len) as usize + 8;
        let plan = plan(offset, len, pattern);
        assert!(
            carry_out(&plan, size) == expected(offset, len, pattern, size),
            "offset {offset}, {len} bytes, a pattern of {} bytes",
            pattern.len()
        );
        plan
    }

    fn counting(width: usize) -> Vec<u8> {
        (0..width).map(|byte| (byte * 37 + 1) as u8).collect()
    }

    #[test]
    fn every_small_range_and_width_is_filled_exactly() {
        for width in (1..=17).chain([24, 32, 64, 100]) {
            let pattern = counting(width);
            for offset in 0..9 {
                for len in 0..=140 {
                    check(offset, len, &pattern);
                }
            }
        }
    }

    #[test]
    fn five_bytes_stay_five() {
        let mut memory = [OUTSIDE; 16];
        for (offset, len, byte) in [(0, 5, 0xAB), (6, 1, 0x01)] {
            let filled = carry_out(&plan(offset, len, &[byte]), 16);
            for (to, from) in memory.iter_mut().zip(filled) {
                if from != OUTSIDE {
                    *to = from;
                }
            }
        }
        let mut right = [OUTSIDE; 16];
        right[..5].fill(0xAB);
        right[6] = 0x01;
        assert_eq!(memory, right);
        let whole = carry_out(&plan(0, 5, &[0x7F]), 5);
        assert_eq!(whole, [0x7F; 5]);
    }

    #[test]
    fn whole_words_take_one_fill_and_no_staging() {
        for pattern in [&[7][..], &[1, 2], &[1, 2, 3, 4]] {
            let plan = check(4, 4096, pattern);
            assert!(plan.words.is_some() && plan.block.is_empty() && plan.copies.is_empty());
        }
    }

    #[test]
    fn heads_and_tails_are_copied_and_the_words_between_them_filled() {
        let plan = check(3, 4096, &[1, 2, 3, 4]);
        let words = plan.words.unwrap();
        assert_eq!((words.offset, words.len), (4, 4092));
        assert_eq!(words.word.to_ne_bytes(), [2, 3, 4, 1]);
        assert_eq!(plan.block, [1, 2, 3, 4]);
        assert_eq!(plan.copies.len(), 2);
    }

    #[test]
    fn a_wide_pattern_that_repeats_a_word_takes_words() {
        for pattern in [vec![0; 8], 5u64.to_ne_bytes()[..4].repeat(4), vec![9; 3]] {
            let plan = check(0, 1 << 16, &pattern);
            assert!(plan.words.is_some() && plan.copies.is_empty());
        }
    }

    #[test]
    fn a_short_uneven_range_is_one_copy() {
        let plan = check(1, 60, &[1]);
        assert_eq!((plan.words, plan.copies.len()), (None, 1));
    }

    #[test]
    fn wide_patterns_stage_a_bounded_block_of_whole_patterns() {
        for (len, width) in [
            (100_000, 8),
            (1 << 20, 12),
            (3_000_001, 4096),
            ((1 << 20) + 3, 24),
            (200_000, 150_000),
        ] {
            let narrow = plan_within(5, len, &counting(width), 150_000);
            assert!(narrow.block.len() <= 150_000 && narrow.block.len().is_multiple_of(width));
            let plan = check(5, len, &counting(width));
            let block = plan.block.len();
            assert!(block.is_multiple_of(width) && block as u64 <= BLOCK_MAX.max(width as u64));
            assert_eq!(plan.copies.len() as u64, len.div_ceil(block as u64));
        }
    }

    #[test]
    fn the_largest_fills_take_a_few_thousand_copies() {
        let gib = 1 << 30;
        for len in [gib, 4 * gib, 16 * gib] {
            let block = block_len(len, 8, u64::MAX);
            assert_eq!(block, BLOCK_MAX);
            assert!(len / block <= 16 << 10);
        }
    }

    #[test]
    fn nothing_to_fill_is_nothing_to_do() {
        assert_eq!(plan(3, 0, &[1]), FillPlan::default());
        assert_eq!(plan(3, 8, &[]), FillPlan::default());
    }
}
