//! Owns the statistics of a device's memory, plain numbers that the allocator keeps. Declared in
//! `spec/memory_stats.yaml`.
//!
//! To count: `stats.allocated.increase(pool, 1)`, `stats.oversize_segments.decrease(1)`,
//! `stats.num_ooms += 1`. Each keeps the sums, the peaks and the total of the pools.

#[cfg(test)]
mod tests;

include!(concat!(env!("OUT_DIR"), "/memory_stats.rs"));
