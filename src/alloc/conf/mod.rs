//! Owns the settings of the allocators, and their spelling.

mod parse;
#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;

use super::size::MIB;
use crate::error::{Error, Result};

/// Size classes of `roundup_power2_divisions`: 1 MiB, 2 MiB, … 32 GiB, each up to the next.
const CLASSES: usize = 16;

/// Settings of the memory allocators, in the spelling of `PYTORCH_ALLOC_CONF`.
///
/// Parsed from `key:value` pairs with commas between them; what is not named keeps its default.
/// A key that PyTorch has and that can mean nothing here is accepted with its default value and
/// refused with any other. Prints as text that parses to the same settings.
///
/// | key | value | meaning |
/// | --- | --- | --- |
/// | `max_split_size_mb` | MiB, at least `large_segment_size_mb` | blocks of this size or more are not split; unlimited unless set |
/// | `max_non_split_rounding_mb` | MiB, at least 20; 20 | by how much a block that is not split may exceed its request |
/// | `large_segment_size_mb` | MiB, more than 10; 20 | the segments of requests between 1 MiB and 10 MiB |
/// | `garbage_collection_threshold` | between 0 and 1 | the share of the memory fraction above which long unused segments go back to the driver; never unless set |
/// | `roundup_power2_divisions` | a power of two, or `[256:1,512:2,>:4]` in MiB | sizes are rounded up to this part of a power of two |
/// | `per_process_memory_fraction` | 0 to 1; 1 | the memory fraction in force from the start |
/// | `pinned_max_round_threshold_mb` | MiB | pinned host memory above this size is not rounded up to a power of two; 64 KiB unless set |
/// | `pinned_max_cached_size_mb` | MiB | pinned host memory above this size is not cached |
/// | `segment_per_allocation` | `True` or `False` | every allocation has a segment of its own, which goes back to the driver when it is freed: slow, for finding faults; not of PyTorch |
/// | `cross_stream_reuse` | `True` or `False` | memory that commands of another stream still use may be handed out at once, after a wait on the device; not of PyTorch, whose numbers it changes |
///
/// # Example
///
/// ```
/// use vkaccel::alloc::AllocConf;
///
/// let conf: AllocConf = "max_split_size_mb:64, garbage_collection_threshold:0.8".parse()?;
/// assert_eq!(conf.max_split_size(), Some(64 << 20));
/// assert_eq!(conf.to_string(), "max_split_size_mb:64,garbage_collection_threshold:0.8");
///
/// let error = "max_split_size:64".parse::<AllocConf>().unwrap_err();
/// assert!(error.to_string().contains("max_split_size_mb"));
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AllocConf {
    max_split: Option<u64>,
    max_non_split_rounding: u64,
    large_segment: u64,
    collect_above: Option<f64>,
    divisions: [u64; CLASSES],
    fraction: f64,
    pinned_max_round: Option<u64>,
    pinned_max_cached: Option<u64>,
    segment_per_allocation: bool,
    cross_stream_reuse: bool,
}

impl Default for AllocConf {
    fn default() -> Self {
        Self {
            max_split: None,
            max_non_split_rounding: 20 * MIB,
            large_segment: 20 * MIB,
            collect_above: None,
            divisions: [0; CLASSES],
            fraction: 1.0,
            pinned_max_round: None,
            pinned_max_cached: None,
            segment_per_allocation: false,
            cross_stream_reuse: false,
        }
    }
}

impl AllocConf {
    /// The size in bytes from which a block is not split any more; `None`: every block may be.
    pub fn max_split_size(&self) -> Option<u64> {
        self.max_split
    }

    /// By how many bytes a block that is not split may exceed its request.
    pub fn max_non_split_rounding(&self) -> u64 {
        self.max_non_split_rounding
    }

    /// The bytes of a segment for requests between 1 MiB and 10 MiB.
    pub fn large_segment_size(&self) -> u64 {
        self.large_segment
    }

    /// The share of the memory fraction above which unused segments go back to the driver; `None`:
    /// they are kept.
    pub fn garbage_collection_threshold(&self) -> Option<f64> {
        self.collect_above
    }

    /// Into how many steps the sizes from the power of two below `bytes` to the one above it are
    /// divided; 0 or 1: they are rounded to 512 bytes alone.
    pub fn roundup_power2_divisions(&self, bytes: u64) -> u64 {
        let class = (bytes / MIB).checked_ilog2().unwrap_or(0);
        let last = CLASSES - 1;
        self.divisions[usize::try_from(class).map_or(last, |class| class.min(last))]
    }

    /// The memory fraction in force from the start.
    pub fn per_process_memory_fraction(&self) -> f64 {
        self.fraction
    }

    /// The size in bytes above which pinned host memory is not rounded up to a power of two; `None`:
    /// 64 KiB, where PyTorch has no bound.
    pub fn pinned_max_round_threshold(&self) -> Option<u64> {
        self.pinned_max_round
    }

    /// The size in bytes above which pinned host memory is not cached; `None`: it always is.
    pub fn pinned_max_cached_size(&self) -> Option<u64> {
        self.pinned_max_cached
    }

    /// Whether every allocation has a segment of its own.
    pub fn segment_per_allocation(&self) -> bool {
        self.segment_per_allocation
    }

    /// Whether memory that another stream still uses may be handed out behind a wait on the device.
    pub fn cross_stream_reuse(&self) -> bool {
        self.cross_stream_reuse
    }
}

impl FromStr for AllocConf {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse::parse(text)
    }
}

impl fmt::Display for AllocConf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut pairs: Vec<(&str, String)> = Vec::new();
        let mib = |bytes: u64| (bytes / MIB).to_string();
        if let Some(bytes) = self.max_split {
            pairs.push(("max_split_size_mb", mib(bytes)));
        }
        if self.max_non_split_rounding != default.max_non_split_rounding {
            pairs.push((
                "max_non_split_rounding_mb",
                mib(self.max_non_split_rounding),
            ));
        }
        if self.large_segment != default.large_segment {
            pairs.push(("large_segment_size_mb", mib(self.large_segment)));
        }
        if let Some(share) = self.collect_above {
            pairs.push(("garbage_collection_threshold", share.to_string()));
        }
        if self.divisions != default.divisions {
            pairs.push(("roundup_power2_divisions", self.divisions_text()));
        }
        if self.fraction < default.fraction {
            pairs.push(("per_process_memory_fraction", self.fraction.to_string()));
        }
        if let Some(bytes) = self.pinned_max_round {
            pairs.push(("pinned_max_round_threshold_mb", mib(bytes)));
        }
        if let Some(bytes) = self.pinned_max_cached {
            pairs.push(("pinned_max_cached_size_mb", mib(bytes)));
        }
        for (key, set) in [
            ("segment_per_allocation", self.segment_per_allocation),
            ("cross_stream_reuse", self.cross_stream_reuse),
        ] {
            if set {
                pairs.push((key, "True".to_owned()));
            }
        }
        for (place, (key, value)) in pairs.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{key}:{value}")?;
        }
        Ok(())
    }
}

impl AllocConf {
    fn divisions_text(&self) -> String {
        let first = self.divisions[0];
        if self.divisions.iter().all(|divisions| *divisions == first) {
            return first.to_string();
        }
        let classes = self.divisions.iter().enumerate();
        let pairs: Vec<String> = classes
            .map(|(class, divisions)| format!("{}:{divisions}", 1_u64 << class))
            .collect();
        format!("[{}]", pairs.join(","))
    }
}
