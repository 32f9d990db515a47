//! Reads settings from text.

use super::AllocConf;
use crate::alloc::size::MIB;
use crate::error::{Error, ErrorKind, Result};

/// The keys that set something.
const KEYS: &[&str] = &[
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "per_process_memory_fraction",
    "pinned_max_round_threshold_mb",
    "pinned_max_cached_size_mb",
    "segment_per_allocation",
    "cross_stream_reuse",
];

/// Keys of PyTorch's that can have no other value here than their default, and why.
const FIXED: &[(&str, &str, &str)] = &[
    (
        "expandable_segments",
        "False",
        "a segment is one buffer, and growing it needs sparse binding, which drivers do not support reliably",
    ),
    (
        "backend",
        "native",
        "there is one allocator, this crate's own",
    ),
    (
        "release_lock_on_cudamalloc",
        "False",
        "the allocator keeps its lock while the driver makes a segment",
    ),
    (
        "release_lock_on_hipmalloc",
        "False",
        "the allocator keeps its lock while the driver makes a segment",
    ),
    (
        "throw_on_cudamalloc_oom",
        "False",
        "memory is an error only when the cache was given back and the driver asked again",
    ),
    (
        "graph_capture_record_stream_reuse",
        "False",
        "memory of a captured graph stays with the graph",
    ),
    (
        "pinned_use_background_threads",
        "False",
        "uses of pinned memory are seen to finish without threads",
    ),
    (
        "pinned_use_cuda_host_register",
        "False",
        "the driver allocates pinned memory itself",
    ),
    (
        "pinned_use_hip_host_register",
        "False",
        "the driver allocates pinned memory itself",
    ),
    (
        "pinned_num_register_threads",
        "1",
        "the driver allocates pinned memory itself",
    ),
    (
        "pinned_reserve_segment_size_mb",
        "0",
        "pinned memory is allocated when it is asked for",
    ),
    (
        "pinned_free_catch_all",
        "False",
        "pinned memory always comes from one allocator",
    ),
];

pub(super) fn parse(text: &str) -> Result<AllocConf> {
    let mut conf = AllocConf::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = end_of_pair(rest);
        let pair = rest[..end].trim();
        rest = rest[end..].trim_start_matches(',').trim();
        let Some((key, value)) = pair.split_once(':') else {
            return Err(fault(format!(
                "`{pair}` is no setting: settings are `key:value`, with commas between them"
            )));
        };
        set(&mut conf, key.trim(), value.trim())?;
    }
    if let Some(bytes) = conf.max_split.filter(|bytes| *bytes < conf.large_segment) {
        return Err(fault(format!(
            "max_split_size_mb:{} is too small: it must be at least large_segment_size_mb, {}",
            bytes / MIB,
            conf.large_segment / MIB
        )));
    }
    Ok(conf)
}

/// Where the first pair ends: at a comma outside of brackets, or at the end.
fn end_of_pair(text: &str) -> usize {
    let mut inside = false;
    for (place, character) in text.char_indices() {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            ',' if !inside => return place,
            _ => {}
        }
    }
    text.len()
}

fn set(conf: &mut AllocConf, key: &str, value: &str) -> Result<()> {
    match key {
        "max_split_size_mb" => conf.max_split = Some(mib(key, value, 0)?),
        "max_non_split_rounding_mb" => conf.max_non_split_rounding = mib(key, value, 20)?,
        "large_segment_size_mb" => conf.large_segment = mib(key, value, 11)?,
        "garbage_collection_threshold" => {
            let share = share(key, value)?;
            if share <= 0.0 || share >= 1.0 {
                return Err(wrong(key, value, "a number between 0 and 1, both excluded"));
            }
            conf.collect_above = Some(share);
        }
        "roundup_power2_divisions" => conf.divisions = divisions(key, value)?,
        "per_process_memory_fraction" => conf.fraction = share(key, value)?,
        "pinned_max_round_threshold_mb" => conf.pinned_max_round = Some(mib(key, value, 1)?),
        "pinned_max_cached_size_mb" => conf.pinned_max_cached = Some(mib(key, value, 1)?),
        "segment_per_allocation" => conf.segment_per_allocation = flag(key, value)?,
        "cross_stream_reuse" => conf.cross_stream_reuse = flag(key, value)?,
        _ => return fixed(key, value),
    }
    Ok(())
}

fn fixed(key: &str, value: &str) -> Result<()> {
    let Some((_, default, why)) = FIXED.iter().find(|(name, ..)| *name == key) else {
        return Err(fault(format!(
            "no allocator setting is called `{key}`; there are {}",
            KEYS.join(", ")
        )));
    };
    if value == *default {
        return Ok(());
    }
    Err(fault(format!(
        "{key}:{value} is not supported: {why}; leave it out, or at {default}"
    )))
}

/// Bytes, from a whole number of MiB. More than 2^64 bytes are as good as no limit.
fn mib(key: &str, value: &str, least: u64) -> Result<u64> {
    let number = value.parse::<u64>().ok().filter(|number| *number >= least);
    let Some(number) = number else {
        let wanted = match least {
            0 => "a whole number of MiB".to_owned(),
            _ => format!("a whole number of MiB, at least {least}"),
        };
        return Err(wrong(key, value, &wanted));
    };
    Ok(number.min(u64::MAX / MIB) * MIB)
}

fn share(key: &str, value: &str) -> Result<f64> {
    let number = value.parse::<f64>().ok();
    // This leaves out what is no number, too.
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| wrong(key, value, "a number from 0 to 1"))
}

fn flag(key: &str, value: &str) -> Result<bool> {
    match value {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(wrong(key, value, "True or False")),
    }
}

fn divisions(key: &str, value: &str) -> Result<[u64; super::CLASSES]> {
    let steps = |text: &str| {
        let number = text.trim().parse::<u64>().ok();
        let number = number.filter(|number| *number == 0 || number.is_power_of_two());
        number.ok_or_else(|| wrong(key, value, "powers of two, or 0 for none"))
    };
    let Some(list) = value.strip_prefix('[') else {
        return Ok([steps(value)?; super::CLASSES]);
    };
    let Some(list) = list.strip_suffix(']') else {
        return Err(wrong(key, value, "a list that ends with `]`"));
    };
    let mut divisions = [0; super::CLASSES];
    let mut last = None;
    for pair in list.split(',').filter(|pair| !pair.trim().is_empty()) {
        let Some((size, number)) = pair.split_once(':') else {
            return Err(wrong(key, value, "pairs as `256:4`, with commas between"));
        };
        let number = steps(number)?;
        if size.trim() == ">" {
            let above = last.map_or(0, |class| class + 1);
            divisions[above..].fill(number);
            continue;
        }
        let size = size.trim().parse::<u64>().ok();
        let Some(size) = size.filter(|size| size.is_power_of_two()) else {
            return Err(wrong(key, value, "sizes in MiB that are powers of two"));
        };
        let class = usize::try_from(size.ilog2()).unwrap_or(super::CLASSES);
        let class = class.min(super::CLASSES - 1);
        if last.is_none() {
            divisions[..class].fill(number);
        }
        divisions[class] = number;
        last = Some(class);
    }
    Ok(divisions)
}

#[cold]
fn wrong(key: &str, value: &str, wanted: &str) -> Error {
    fault(format!("{key} must be {wanted}, not `{value}`"))
}

#[cold]
fn fault(text: String) -> Error {
    Error::new(ErrorKind::Config, text)
}
