//! The statistics of pinned host memory, with the names of `torch.cuda.host_memory_stats`.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

use crate::alloc::stats::Stat;

/// How often something was done, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurationStat {
    /// All of them together, since the start or the last reset of the sums.
    pub total: Duration,
    /// The longest, since the start or the last reset of the peaks.
    pub max: Duration,
    /// The shortest, since the start or the last reset of the peaks.
    pub min: Duration,
    /// How many there were, since the start or the last reset of the sums.
    pub count: u64,
}

impl DurationStat {
    /// The mean; 0 where there was none.
    pub fn avg(&self) -> Duration {
        match u32::try_from(self.count) {
            Ok(0) => Duration::ZERO,
            Ok(count) => self.total / count,
            Err(_) => Duration::from_secs_f64(self.total.as_secs_f64() / self.count as f64),
        }
    }

    /// Notes one that took so long.
    pub(super) fn add(&mut self, time: Duration) {
        self.min = if self.min.is_zero() {
            time
        } else {
            self.min.min(time)
        };
        self.max = self.max.max(time);
        self.total = self.total.saturating_add(time);
        self.count += 1;
    }
}

/// What the cache of pinned host memory has done so far, over all devices of a runtime.
///
/// A plain value that follows nothing. As a flat table it has the keys of PyTorch's
/// `torch.cuda.host_memory_stats`, where times are whole microseconds. The memory that the runtime
/// itself copies through is not in it, and neither is imported memory.
///
/// # Example
///
/// ```
/// let stats = vkaccel::host_memory_stats()?;
/// assert!(stats.active_bytes.current <= stats.allocated_bytes.current);
/// assert_eq!(stats.get("num_host_alloc"), i64::try_from(stats.num_host_alloc).ok());
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMemoryStats {
    /// Blocks held from the driver, whether handed out or cached.
    pub allocations: Stat,
    /// The bytes of those blocks, rounding included.
    pub allocated_bytes: Stat,
    /// Blocks handed out, or given back while queued copies use them.
    pub active_requests: Stat,
    /// The bytes of the active blocks, rounding included.
    pub active_bytes: Stat,
    /// The driver's time for new blocks.
    pub host_alloc_time: DurationStat,
    /// The driver's time for blocks that went back to it.
    pub host_free_time: DurationStat,
    /// Blocks that were asked of the driver, and given.
    pub num_host_alloc: u64,
    /// Blocks that went back to the driver.
    pub num_host_free: u64,
}

/// The names of the levels, sorted.
const LEVELS: [&str; 4] = [
    "active_bytes",
    "active_requests",
    "allocated_bytes",
    "allocations",
];

impl HostMemoryStats {
    /// The keys of the flat table, sorted.
    pub const KEYS: &'static [&'static str] = &[
        "active_bytes.allocated",
        "active_bytes.current",
        "active_bytes.freed",
        "active_bytes.peak",
        "active_requests.allocated",
        "active_requests.current",
        "active_requests.freed",
        "active_requests.peak",
        "allocated_bytes.allocated",
        "allocated_bytes.current",
        "allocated_bytes.freed",
        "allocated_bytes.peak",
        "allocations.allocated",
        "allocations.current",
        "allocations.freed",
        "allocations.peak",
        "host_alloc_time.avg",
        "host_alloc_time.count",
        "host_alloc_time.max",
        "host_alloc_time.min",
        "host_alloc_time.total",
        "host_free_time.avg",
        "host_free_time.count",
        "host_free_time.max",
        "host_free_time.min",
        "host_free_time.total",
        "num_host_alloc",
        "num_host_free",
    ];

    /// The value of a key, as in [`KEYS`](Self::KEYS); `None` for an unknown one.
    ///
    /// PyTorch's older names are known too: `segment` is `allocations`, and `reserved_bytes` is
    /// `allocated_bytes`.
    pub fn get(&self, key: &str) -> Option<i64> {
        let older = [
            ("segment.", "allocations."),
            ("reserved_bytes.", "allocated_bytes."),
        ];
        let renamed = older.iter().find_map(|(old, new)| {
            let end = key.strip_prefix(old)?;
            Some(format!("{new}{end}"))
        });
        let key = renamed.as_deref().unwrap_or(key);
        let found = Self::KEYS.binary_search(&key).ok()?;
        self.values().get(found).copied()
    }

    /// Every key with its value, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + use<> {
        Self::KEYS.iter().copied().zip(self.values())
    }

    /// [`iter`](Self::iter) as a map.
    pub fn to_map(&self) -> BTreeMap<&'static str, i64> {
        self.iter().collect()
    }

    /// Sets the peaks to what is now; shortest and longest times start anew.
    pub(super) fn reset_peak(&mut self) {
        for stat in self.levels_mut() {
            stat.peak = stat.current;
        }
        for time in [&mut self.host_alloc_time, &mut self.host_free_time] {
            time.max = Duration::ZERO;
            time.min = Duration::ZERO;
        }
    }

    /// Sets the sums and the counters to 0.
    pub(super) fn reset_accumulated(&mut self) {
        for stat in self.levels_mut() {
            stat.allocated = 0;
            stat.freed = 0;
        }
        for time in [&mut self.host_alloc_time, &mut self.host_free_time] {
            time.total = Duration::ZERO;
            time.count = 0;
        }
        self.num_host_alloc = 0;
        self.num_host_free = 0;
    }

    /// In the order of [`LEVELS`].
    fn levels(&self) -> [Stat; 4] {
        [
            self.active_bytes,
            self.active_requests,
            self.allocated_bytes,
            self.allocations,
        ]
    }

    fn levels_mut(&mut self) -> [&mut Stat; 4] {
        [
            &mut self.active_bytes,
            &mut self.active_requests,
            &mut self.allocated_bytes,
            &mut self.allocations,
        ]
    }

    /// The values of the keys, in their order.
    fn values(&self) -> Vec<i64> {
        let levels = self.levels().into_iter();
        let mut values: Vec<i64> = levels
            .flat_map(|stat| [stat.allocated, stat.current, stat.freed, stat.peak])
            .map(signed)
            .collect();
        for time in [self.host_alloc_time, self.host_free_time] {
            values.push(micros(time.avg()));
            values.push(signed(time.count));
            values.extend([time.max, time.min, time.total].map(micros));
        }
        values.extend([self.num_host_alloc, self.num_host_free].map(signed));
        values
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A table to be read: a line for each level, then times and counters.
impl fmt::Display for HostMemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:15}", "")?;
        for metric in ["current", "peak", "allocated", "freed"] {
            write!(f, " {metric:>14}")?;
        }
        for (name, stat) in LEVELS.iter().zip(self.levels()) {
            write!(f, "\n{name:15}")?;
            for number in [stat.current, stat.peak, stat.allocated, stat.freed] {
                write!(f, " {number:>14}")?;
            }
        }
        for (name, time) in [
            ("host_alloc_time", self.host_alloc_time),
            ("host_free_time", self.host_free_time),
        ] {
            write!(
                f,
                "\n{name:15} {:?} in {} calls, {:?} to {:?}",
                time.total, time.count, time.min, time.max
            )?;
        }
        Ok(())
    }
}

/// The flat table: a map from keys to integers.
#[cfg(feature = "serde")]
impl serde::Serialize for HostMemoryStats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> HostMemoryStats {
        let mut stats = HostMemoryStats::default();
        stats.allocations.increase(3);
        stats.allocated_bytes.increase(300);
        stats.active_requests.increase(2);
        stats.active_requests.decrease(1);
        stats.active_bytes.increase(200);
        stats.host_alloc_time.add(Duration::from_micros(4));
        stats.host_alloc_time.add(Duration::from_micros(10));
        stats.num_host_alloc = 3;
        stats
    }

    #[test]
    fn keys_are_sorted_and_each_has_its_value() {
        assert!(HostMemoryStats::KEYS.is_sorted());
        let stats = sample();
        assert_eq!(stats.values().len(), HostMemoryStats::KEYS.len());
        for (key, value) in [
            ("active_requests.freed", 1),
            ("active_requests.current", 1),
            ("active_bytes.peak", 200),
            ("allocated_bytes.current", 300),
            ("reserved_bytes.current", 300),
            ("segment.allocated", 3),
            ("host_alloc_time.avg", 7),
            ("host_alloc_time.min", 4),
            ("host_alloc_time.total", 14),
            ("host_free_time.count", 0),
            ("num_host_alloc", 3),
        ] {
            assert_eq!(stats.get(key), Some(value), "{key}");
        }
        assert_eq!(stats.get("allocation.current"), None);
        assert_eq!(stats.to_map().len(), HostMemoryStats::KEYS.len());
    }

    #[test]
    fn a_reset_of_peaks_keeps_sums_and_one_of_sums_keeps_peaks() {
        let mut stats = sample();
        stats.reset_peak();
        assert_eq!(stats.active_requests.peak, 1);
        assert_eq!(stats.active_requests.allocated, 2);
        assert_eq!(stats.host_alloc_time.max, Duration::ZERO);
        assert_eq!(stats.host_alloc_time.count, 2);
        let mut stats = sample();
        stats.reset_accumulated();
        assert_eq!(stats.active_requests.peak, 2);
        assert_eq!(stats.active_requests.current, 1);
        assert_eq!(stats.active_requests.allocated, 0);
        assert_eq!(stats.host_alloc_time.max, Duration::from_micros(10));
        assert_eq!((stats.host_alloc_time.count, stats.num_host_alloc), (0, 0));
    }

    #[test]
    fn the_table_has_every_level_and_time() {
        let text = sample().to_string();
        for name in LEVELS {
            assert!(text.contains(name), "{text}");
        }
        assert!(text.contains("14µs in 2 calls"), "{text}");
    }
}
