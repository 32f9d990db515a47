//! How large a block of host memory is for a request, and which cached one may serve it.

/// The smallest block: a page.
const SMALLEST: u64 = 4 << 10;
/// Blocks up to this are powers of two, so that they fit again; larger ones are multiples of it.
const STEP: u64 = 64 << 10;
/// A cached block is handed out for a request if at most this part of the request is wasted by it.
const WASTE_PART: u64 = 8;

/// The settings of the host cache, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostConf {
    /// Requests up to this are rounded up to a power of two: `pinned_max_round_threshold_mb`.
    /// PyTorch rounds all of them where it is not set; here only the small ones are.
    pub(crate) max_round_threshold: Option<u64>,
    /// Larger blocks are not kept for later: `pinned_max_cached_size_mb`.
    pub(crate) max_cached_size: Option<u64>,
}

impl HostConf {
    /// The bytes of a new block for a request; nothing for one that no host could have.
    pub(super) fn block_size(&self, bytes: u64) -> Option<u64> {
        let threshold = self.max_round_threshold.unwrap_or(0).max(STEP);
        if bytes <= threshold {
            Some(bytes.checked_next_power_of_two()?.max(SMALLEST))
        } else {
            bytes.checked_next_multiple_of(STEP)
        }
    }

    /// The largest cached block that may serve a request whose own block would be `size`.
    pub(super) fn largest_fit(size: u64) -> u64 {
        size.saturating_add(size / WASTE_PART)
    }

    /// Whether a block is kept for later once it is given back.
    pub(super) fn is_kept(&self, size: u64) -> bool {
        self.max_cached_size.is_none_or(|most| size <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_are_powers_of_two_and_large_ones_multiples_of_64_kib() {
        let conf = HostConf::default();
        for (bytes, size) in [
            (1, 4096),
            (4096, 4096),
            (10_240, 16 << 10),
            (STEP, STEP),
            (STEP + 1, 2 * STEP),
            ((32 << 20) + 4096, 33_619_968),
            (u64::MAX - STEP, (u64::MAX - STEP + 1)),
        ] {
            assert_eq!(conf.block_size(bytes), Some(size), "{bytes}");
        }
        assert_eq!(conf.block_size(u64::MAX), None);
    }

    #[test]
    fn a_threshold_rounds_to_powers_of_two_up_to_it() {
        let conf = HostConf {
            max_round_threshold: Some(8 << 20),
            ..HostConf::default()
        };
        assert_eq!(conf.block_size((5 << 20) + 1), Some(8 << 20));
        assert_eq!(conf.block_size((8 << 20) + 1), Some((8 << 20) + STEP));
    }

    #[test]
    fn no_fit_wastes_more_than_an_eighth() {
        assert_eq!(HostConf::largest_fit(800), 900);
        assert_eq!(HostConf::largest_fit(u64::MAX), u64::MAX);
        // Between powers of two there is no other fit than the size itself.
        assert!(HostConf::largest_fit(4096) < 8192);
    }
}
