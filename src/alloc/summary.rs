//! What people read of a device's memory: a table of its statistics, and what its segments hold.

use std::fmt::Write as _;

use super::snapshot::{BlockState, MemorySnapshot};
use super::stats::{MemoryStats, Stat};

/// What the memory that is held from the driver is used for, in bytes. The parts add up to `reserved`.
///
/// # Example
///
/// ```
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let buffer = vkaccel::Buffer::<u8>::zeroed(1000)?;
/// let used = vkaccel::memory::memory_snapshot(None)?.memory_use();
/// assert_eq!((used.requested, used.rounding), (1000, 24));
/// println!("{} of {} bytes are free, in pieces of up to {}", used.free(), used.reserved, used.largest_free);
/// # drop(buffer);
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// What is held from the driver.
    pub reserved: u64,
    /// What callers asked for, of the blocks that are handed out.
    pub requested: u64,
    /// What is lost to rounding in those blocks.
    pub rounding: u64,
    /// Blocks that were given back while commands that use them are unfinished.
    pub pending: u64,
    /// Segments without a block in use, which can go back to the driver.
    pub whole: u64,
    /// Free blocks in segments that are partly used, which can't.
    pub split: u64,
    /// Free blocks of private pools, which serve requests of their pool alone.
    pub private: u64,
    /// The largest free block. It is a part of `whole`, `split` or `private`.
    pub largest_free: u64,
}

impl MemoryUse {
    /// All that is free.
    pub const fn free(&self) -> u64 {
        self.whole + self.split + self.private
    }

    /// How little of what is free a single request could get: 0 where it is one block, towards 1
    /// where it is many small ones.
    pub fn fragmentation(&self) -> f64 {
        match self.free() {
            0 => 0.0,
            free => 1.0 - share(self.largest_free, free),
        }
    }
}

impl MemorySnapshot {
    /// What the memory is used for.
    ///
    /// # Example
    ///
    /// ```
    /// let empty = vkaccel::alloc::MemorySnapshot::default();
    /// assert_eq!(empty.memory_use().reserved, 0);
    /// ```
    pub fn memory_use(&self) -> MemoryUse {
        let mut sums = MemoryUse::default();
        for segment in &self.segments {
            sums.reserved += segment.total_size;
            for block in &segment.blocks {
                match block.state {
                    BlockState::ActiveAllocated => {
                        sums.requested += block.requested_size;
                        sums.rounding += block.size.saturating_sub(block.requested_size);
                    }
                    BlockState::ActivePendingFree => sums.pending += block.size,
                    BlockState::Inactive => {
                        sums.largest_free = sums.largest_free.max(block.size);
                        if segment.pool != (0, 0) {
                            sums.private += block.size;
                        } else if block.size == segment.total_size {
                            sums.whole += block.size;
                        } else {
                            sums.split += block.size;
                        }
                    }
                }
            }
        }
        sums
    }
}

/// The table that `memory_summary` returns: the settings in force, every statistic in units that
/// people read, and what the reserved memory is used for.
///
/// `device` is what the device is called. The abbreviated one leaves out the pools.
pub fn memory_summary(
    device: &str,
    stats: &MemoryStats,
    snapshot: &MemorySnapshot,
    abbreviated: bool,
) -> String {
    let mut out = String::new();
    head(&mut out, device, snapshot);
    if stats.is_empty() {
        line(&mut out, "nothing was allocated on it yet");
        return out;
    }
    line(&mut out, "");
    table(&mut out, stats, abbreviated);
    line(&mut out, "");
    uses(&mut out, &snapshot.memory_use());
    if !snapshot.history.is_empty() {
        let (kept, dropped) = (snapshot.history.len(), snapshot.history_dropped);
        line(&mut out, "");
        line(
            &mut out,
            format!("history: {kept} entries, {dropped} older ones dropped"),
        );
    }
    out
}

fn head(out: &mut String, device: &str, snapshot: &MemorySnapshot) {
    let total = match snapshot.total_bytes {
        0 => String::new(),
        total => format!(", {} in all", size(total)),
    };
    line(out, format!("memory of {device}{total}"));
    let settings = &snapshot.settings;
    let conf = match settings.conf.to_string() {
        conf if conf.is_empty() => "the defaults".to_owned(),
        conf => conf,
    };
    line(out, format!("settings: {conf}"));
    if let Some(fraction) = settings.memory_fraction {
        let bytes = match snapshot.total_bytes {
            0 => String::new(),
            // The share of a number of bytes is one, too; what is behind its point is no byte.
            #[expect(clippy::cast_possible_truncation, reason = "a share is no larger")]
            #[expect(clippy::cast_sign_loss, reason = "a share is not below 0")]
            #[expect(clippy::cast_precision_loss, reason = "it is shown to three digits")]
            total => format!(", {}", size((total as f64 * fraction) as u64)),
        };
        line(out, format!("memory fraction: {fraction}{bytes}"));
    }
    if let Some(limit) = settings.limit_bytes {
        line(out, format!("limit: {}", size(limit)));
    }
}

/// A line for each family, and with its pools below it one for each of them.
fn table(out: &mut String, stats: &MemoryStats, abbreviated: bool) {
    let mut heads = format!("{:<24}", "");
    for head in ["current", "peak", "allocated", "freed"] {
        let _ = write!(heads, "{head:>14}");
    }
    line(out, heads);
    for (name, unit, stat) in stats.rows() {
        let name = match name.split_once('.') {
            Some((family, "all")) => family.to_owned(),
            Some(_) if abbreviated => continue,
            Some((_, pool)) => format!("  {pool}"),
            None => name.to_owned(),
        };
        let numbers = row(unit, &stat);
        line(out, format!("{name:<24}{numbers}"));
    }
    for (name, number) in stats.singles() {
        // The one that is no count of events is a setting, which is told above.
        if let Some(number) = number.filter(|_| name.starts_with("num_")) {
            line(out, format!("{name:<24}{:>14}", count(number)));
        }
    }
}

fn row(unit: &str, stat: &Stat) -> String {
    let number = |number| match unit {
        "bytes" => size(number),
        _ => count(number),
    };
    let mut text = String::new();
    for value in [stat.current, stat.peak, stat.allocated, stat.freed] {
        let _ = write!(text, "{:>14}", number(value));
    }
    text
}

/// What the reserved memory is used for.
fn uses(out: &mut String, sums: &MemoryUse) {
    line(out, format!("of {} reserved:", size(sums.reserved)));
    for (what, bytes, note) in [
        ("asked for", sums.requested, "handed out"),
        ("lost to rounding", sums.rounding, "handed out with it"),
        (
            "pending",
            sums.pending,
            "given back, still used by queued commands",
        ),
        (
            "free whole segments",
            sums.whole,
            "`empty_cache` returns them to the driver",
        ),
        (
            "free pieces",
            sums.split,
            "in segments that are partly used",
        ),
        (
            "free in private pools",
            sums.private,
            "for requests of their pool",
        ),
    ] {
        let percent = 100.0 * share(bytes, sums.reserved);
        line(
            out,
            format!("  {what:<22}{:>14}{percent:>7.1} %  {note}", size(bytes)),
        );
    }
    let percent = 100.0 * sums.fragmentation();
    line(
        out,
        format!(
            "the largest free block has {}: fragmentation {percent:.1} %",
            size(sums.largest_free)
        ),
    );
}

#[expect(clippy::cast_precision_loss, reason = "it is shown to three digits")]
fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// Bytes in the largest binary unit that keeps them at 1 or more; rounded down.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let fits = |&unit: &usize| bytes >> (10 * (unit + 1)) > 0;
    let Some(unit) = (0..UNITS.len()).rev().find(fits) else {
        return format!("{bytes} B  ");
    };
    let hundredths = (u128::from(bytes) * 100) >> (10 * (unit + 1));
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    format!("{whole}.{rest:02} {}", UNITS[unit])
}

/// A number with a space between groups of three digits.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn line(out: &mut String, text: impl AsRef<str>) {
    out.push_str(text.as_ref().trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::{BlockInfo, SegmentInfo, SettingsInfo};
    use super::super::stats::Pool;
    use super::*;

    fn block(state: BlockState, size: u64, requested_size: u64) -> BlockInfo {
        BlockInfo {
            state,
            size,
            requested_size,
            ..BlockInfo::default()
        }
    }

    fn snapshot() -> MemorySnapshot {
        use BlockState::{ActiveAllocated, ActivePendingFree, Inactive};
        let segment = |pool, blocks: Vec<BlockInfo>| SegmentInfo {
            total_size: blocks.iter().map(|block| block.size).sum(),
            pool,
            blocks,
            ..SegmentInfo::default()
        };
        MemorySnapshot {
            total_bytes: 1 << 30,
            segments: vec![
                segment(
                    (0, 0),
                    vec![
                        block(ActiveAllocated, 1 << 20, 1_000_000),
                        block(ActivePendingFree, 1 << 19, 500_000),
                        block(Inactive, 1 << 19, 0),
                    ],
                ),
                segment((0, 0), vec![block(Inactive, 20 << 20, 0)]),
                segment((0, 1), vec![block(Inactive, 2 << 20, 0)]),
            ],
            settings: SettingsInfo {
                conf: "max_split_size_mb:64".parse().unwrap(),
                memory_fraction: Some(0.5),
                limit_bytes: Some(256 << 20),
            },
            ..MemorySnapshot::default()
        }
    }

    #[test]
    fn the_uses_of_memory_add_up_to_what_is_reserved() {
        let sums = snapshot().memory_use();
        assert_eq!(sums.reserved, 24 << 20);
        let parts = sums.requested + sums.rounding + sums.pending + sums.free();
        assert_eq!(parts, sums.reserved);
        assert_eq!((sums.whole, sums.split), (20 << 20, 1 << 19));
        assert_eq!((sums.private, sums.pending), (2 << 20, 1 << 19));
        assert_eq!(sums.largest_free, 20 << 20);
        let expected = 1.0 - 20.0 / 22.5;
        assert!((sums.fragmentation() - expected).abs() < 1e-12);
        assert!(MemoryUse::default().fragmentation().abs() < 1e-12);
    }

    #[test]
    fn the_summary_tells_settings_figures_and_fragmentation_in_columns() {
        let mut stats = MemoryStats::new();
        stats.allocated_bytes.increase(Pool::SmallPool, 1 << 20);
        stats.allocated.increase(Pool::SmallPool, 12_345);
        stats.num_ooms = 2;
        let text = memory_summary("vulkan:0", &stats, &snapshot(), false);
        let has = |line: &str| assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        has("memory of vulkan:0, 1.00 GiB in all");
        has("settings: max_split_size_mb:64");
        has("memory fraction: 0.5, 512.00 MiB");
        has("limit: 256.00 MiB");
        has("                               current          peak     allocated         freed");
        has("allocated_bytes               1.00 MiB      1.00 MiB      1.00 MiB         0 B");
        has("  large_pool                     0 B           0 B           0 B           0 B");
        has("allocated                       12 345        12 345        12 345             0");
        has("num_ooms                             2");
        has("of 24.00 MiB reserved:");
        has("  asked for                 976.56 KiB    4.0 %  handed out");
        has("the largest free block has 20.00 MiB: fragmentation 11.1 %");
    }

    #[test]
    fn the_abbreviated_summary_leaves_out_the_pools() {
        let stats = MemoryStats::new();
        let whole = memory_summary("vulkan:0", &stats, &snapshot(), false);
        let brief = memory_summary("vulkan:0", &stats, &snapshot(), true);
        assert!(whole.contains("small_pool") && !brief.contains("small_pool"));
        assert!(brief.contains("\nreserved_bytes ") && brief.contains("num_ooms"));
    }

    #[test]
    fn without_an_allocator_the_summary_says_so() {
        let stats = MemoryStats::default();
        let text = memory_summary("vulkan:1", &stats, &MemorySnapshot::default(), false);
        assert_eq!(
            text,
            "memory of vulkan:1\nsettings: the defaults\nnothing was allocated on it yet\n"
        );
    }
}
