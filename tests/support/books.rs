//! The books of device memory: what a count of segments and blocks gives, beside the statistics.

use vkaccel::alloc::BlockState;
use vkaccel::memory::{memory_snapshot, memory_stats};
use vkaccel::{MemoryStats, PoolStat};

/// What a count gives for a family, of the large and of the small pool.
type Count = [u64; 2];

/// Panics unless the blocks of each segment fill it, no two free ones are neighbours, and every level
/// is what a count of them gives. Gives the blocks that are handed out, as address and size asked for.
#[track_caller]
pub fn check_books() -> Vec<(u64, u64)> {
    let (stats, snapshot) = (memory_stats(None).unwrap(), memory_snapshot(None).unwrap());
    let mut counts = [Count::default(); 9];
    let mut handed_out = Vec::new();
    for segment in &snapshot.segments {
        let mut add = |family: usize, by: u64| counts[family][usize::from(!segment.is_large)] += by;
        add(2, 1);
        add(3, segment.total_size);
        let mut end = segment.address;
        let mut was_free = false;
        for block in &segment.blocks {
            assert_eq!(block.address, end, "blocks overlap or leave a gap");
            assert_eq!((block.address - segment.address) % 512, 0);
            let is_free = block.state == BlockState::Inactive;
            assert!(!(is_free && was_free), "two free neighbours");
            (end, was_free) = (end + block.size, is_free);
            if block.state == BlockState::ActiveAllocated {
                add(0, 1);
                add(1, block.size);
                handed_out.push((block.address, block.requested_size));
            }
            if !is_free {
                add(4, 1);
                add(5, block.size);
                add(8, block.requested_size);
            } else if segment.blocks.len() > 1 {
                add(6, 1);
                add(7, block.size);
            }
        }
        assert_eq!(end, segment.address + segment.total_size);
    }
    for (place, (found, count)) in families(&stats).iter().zip(counts).enumerate() {
        let levels = [found.large_pool.current, found.small_pool.current];
        assert_eq!(levels, count, "family {place}");
        assert_eq!(found.all.current, count[0] + count[1], "family {place}");
    }
    let asked = stats.num_device_alloc - stats.num_device_free;
    assert_eq!(asked, stats.segment.all.current);
    handed_out
}

/// The families that are kept for both pools.
pub fn families(stats: &MemoryStats) -> [PoolStat; 9] {
    [
        stats.allocated,
        stats.allocated_bytes,
        stats.segment,
        stats.reserved_bytes,
        stats.active,
        stats.active_bytes,
        stats.inactive_split,
        stats.inactive_split_bytes,
        stats.requested_bytes,
    ]
}
