//! Replays recorded changes, and checks what no recording shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::{MemoryStats, Pool, PoolStat, Stat};

fn pools<'a>(stats: &'a mut MemoryStats, family: &str) -> &'a mut PoolStat {
    match family {
        "active" => &mut stats.active,
        "active_bytes" => &mut stats.active_bytes,
        "allocated_bytes" => &mut stats.allocated_bytes,
        "allocation" => &mut stats.allocated,
        "inactive_split" => &mut stats.inactive_split,
        "inactive_split_bytes" => &mut stats.inactive_split_bytes,
        "requested_bytes" => &mut stats.requested_bytes,
        "reserved_bytes" => &mut stats.reserved_bytes,
        "segment" => &mut stats.segment,
        other => panic!("no family {other}"),
    }
}

fn single<'a>(stats: &'a mut MemoryStats, family: &str) -> &'a mut Stat {
    match family {
        "oversize_allocations" => &mut stats.oversize_allocations,
        "oversize_segments" => &mut stats.oversize_segments,
        other => panic!("no family {other}"),
    }
}

fn counter<'a>(stats: &'a mut MemoryStats, name: &str) -> &'a mut u64 {
    match name {
        "num_alloc_retries" => &mut stats.num_alloc_retries,
        "num_device_alloc" => &mut stats.num_device_alloc,
        "num_device_free" => &mut stats.num_device_free,
        "num_ooms" => &mut stats.num_ooms,
        "num_sync_all_streams" => &mut stats.num_sync_all_streams,
        other => panic!("no counter {other}"),
    }
}

/// Makes the change of a line of a recording; false if the line says what is expected.
fn change(stats: &mut MemoryStats, line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        [sign @ ("+" | "-"), family, "-", by] => {
            let (stat, by) = (single(stats, family), by.parse().unwrap());
            match *sign {
                "+" => stat.increase(by),
                _ => stat.decrease(by),
            }
        }
        [sign @ ("+" | "-"), family, pool, by] => {
            let pool = match *pool {
                "large_pool" => Pool::LargePool,
                _ => Pool::SmallPool,
            };
            let (stat, by) = (pools(stats, family), by.parse().unwrap());
            match *sign {
                "+" => stat.increase(pool, by),
                _ => stat.decrease(pool, by),
            }
        }
        ["!", name, by] => *counter(stats, name) += by.parse::<u64>().unwrap(),
        ["set", "max_split_size", value] => stats.max_split_size = Some(value.parse().unwrap()),
        ["reset", "peak"] => stats.reset_peak(),
        ["reset", "accumulated"] => stats.reset_accumulated(),
        _ => return false,
    }
    true
}

/// Runs a recording, comparing everything after each step. Returns the number of steps.
fn replay(name: &str) -> usize {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/stats");
    let text = fs::read_to_string(folder.join(name).with_extension("txt")).unwrap();
    let mut stats = MemoryStats::new();
    let mut expected = stats.to_map();
    let mut steps = 0;
    for step in text.split("# ").skip(1) {
        for line in step.lines().skip(1) {
            if !change(&mut stats, line) {
                let (key, value) = line[2..].split_once(' ').unwrap();
                let value: i64 = value.parse().unwrap();
                // The recording's own spelling is one that look-ups accept.
                assert_eq!(stats.get(key), Some(value), "{name}: {step}");
                let key = key.replacen("allocation.", "allocated.", 1);
                *expected.get_mut(&*key).unwrap() = value;
            }
        }
        assert_eq!(stats.to_map(), expected, "{name}: {step}");
        steps += 1;
    }
    steps
}

#[test]
#[cfg_attr(not(test_data), ignore = "the package has no tests/data")]
fn recorded_steps_give_the_recorded_statistics() {
    for name in ["resets", "oom_retry", "conf_max_split"] {
        assert!(replay(name) > 20, "{name} is cut off");
    }
}

#[test]
fn keys_are_sorted_and_each_is_there_once() {
    // 122 that PyTorch's accelerator module gives, and one more of its CUDA module.
    assert!(MemoryStats::KEYS.len() >= 123);
    let in_order = MemoryStats::KEYS.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(in_order);
}

#[test]
fn without_an_allocator_there_is_nothing_to_look_up() {
    let stats = MemoryStats::default();
    assert!(stats.is_empty());
    assert_eq!(stats.iter().count(), 0);
    assert_eq!(stats.to_map(), BTreeMap::new());
    assert_eq!(stats.get("num_ooms"), None);
    assert_eq!(stats.num_ooms, 0);
    assert_eq!(
        stats.to_string(),
        "no statistics: the device has no allocator yet"
    );
}

#[test]
fn every_key_is_looked_up_by_its_name_and_other_spellings() {
    let mut stats = MemoryStats::new();
    assert!(!stats.is_empty());
    stats.allocated.increase(Pool::LargePool, 7);
    stats.max_split_size = Some(u64::MAX);
    for (key, value) in stats.iter() {
        assert_eq!(stats.get(key), Some(value), "{key}");
    }
    assert_eq!(stats.get("allocation.large_pool.peak"), Some(7));
    assert!(!MemoryStats::KEYS.contains(&"allocation.large_pool.peak"));
    // What no i64 holds is told as the largest.
    assert_eq!(stats.get("max_split_size"), Some(i64::MAX));
    for wrong in [
        "",
        "allocated",
        "allocation",
        "allocated.all",
        "oversize_segments.all.peak",
        "Allocated.all.peak",
        "allocated.all.peak ",
    ] {
        assert_eq!(stats.get(wrong), None, "{wrong}");
    }
}

#[test]
fn a_setting_that_is_not_set_is_minus_one_in_flat_forms() {
    assert_eq!(MemoryStats::new().max_split_size, None);
    assert_eq!(MemoryStats::new().get("max_split_size"), Some(-1));
}

#[test]
fn resets_touch_what_they_are_for_and_nothing_else() {
    let mut stats = MemoryStats::new();
    stats.active.increase(Pool::SmallPool, 5);
    stats.active.decrease(Pool::SmallPool, 3);
    stats.num_oom_rejections += 1;
    stats.max_split_size = Some(9);

    let mut peak = stats;
    peak.reset_peak();
    assert_eq!(peak.active.all.peak, 2);
    assert_eq!(peak.active.small_pool.peak, 2);
    assert_eq!(peak.active.all.allocated, 5);
    assert_eq!(peak.num_oom_rejections, 1);

    let mut sums = stats;
    sums.reset_accumulated();
    assert_eq!(sums.active.all.allocated, 0);
    assert_eq!(sums.active.small_pool.freed, 0);
    assert_eq!(sums.num_oom_rejections, 0);
    assert_eq!(sums.active.all.peak, 5);
    assert_eq!(sums.active.all.current, 2);
    assert_eq!(sums.max_split_size, Some(9));
}

#[test]
fn since_tells_what_happened_in_between() {
    let mut stats = MemoryStats::new();
    stats.segment.increase(Pool::LargePool, 4);
    stats.num_device_alloc += 4;
    let earlier = stats;
    stats.segment.decrease(Pool::LargePool, 3);
    stats.segment.increase(Pool::SmallPool, 1);
    stats.oversize_segments.increase(2);
    stats.num_device_alloc += 1;

    let since = stats.since(&earlier);
    assert_eq!(since.segment.large_pool.current, -3);
    assert_eq!(since.segment.large_pool.freed, 3);
    assert_eq!(since.segment.small_pool.current, 1);
    assert_eq!(since.segment.all.current, -2);
    assert_eq!(since.segment.all.allocated, 1);
    assert_eq!(since.oversize_segments.allocated, 2);
    assert_eq!(since.num_device_alloc, 1);

    // After a reset, a sum is what came since then.
    stats.reset_accumulated();
    stats.num_device_alloc += 2;
    assert_eq!(stats.since(&earlier).num_device_alloc, 2);
    assert_eq!(stats.since(&stats), super::MemoryStatsDelta::default());
}

#[test]
fn the_table_has_a_line_for_each_family_and_pool() {
    let mut stats = MemoryStats::new();
    stats.reserved_bytes.increase(Pool::LargePool, 20_971_520);
    let table = stats.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + stats.rows().len() + stats.singles().len());
    let heads: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heads, ["current", "peak", "allocated", "freed"]);
    let line = |name: &str| {
        let found = lines.iter().find(|line| line.starts_with(name));
        found.unwrap().split_whitespace().collect::<Vec<_>>()
    };
    let reserved = ["20971520", "20971520", "20971520", "0", "bytes"];
    assert_eq!(line("reserved_bytes.all ")[1..], reserved);
    assert_eq!(
        line("reserved_bytes.small_pool ")[1..],
        ["0", "0", "0", "0", "bytes"]
    );
    assert_eq!(line("num_ooms "), ["num_ooms", "0"]);
    assert_eq!(line("max_split_size "), ["max_split_size", "-"]);
    // Columns line up, so that figures can be compared by eye.
    let ends: Vec<usize> = lines[1..].iter().map(|line| line.len()).collect();
    assert!(ends.iter().all(|end| *end >= 31 + 15), "{table}");
}

#[test]
fn statistics_are_plain_and_small() {
    fn plain<T: Copy + Default + Eq + Send + Sync + 'static>() {}
    plain::<MemoryStats>();
    // As large as a small array of numbers: taking and passing them on costs next to nothing.
    assert!(size_of::<MemoryStats>() <= 2048);
}

#[cfg(feature = "serde")]
#[test]
fn serialized_statistics_are_the_flat_map_in_key_order() {
    let mut stats = MemoryStats::new();
    stats.num_ooms = 3;
    let yaml = serde_yaml::to_string(&stats).unwrap();
    let keys: Vec<&str> = yaml
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(keys, MemoryStats::KEYS);
    assert!(yaml.contains("num_ooms: 3\n") && yaml.contains("max_split_size: -1\n"));
    assert_eq!(
        serde_yaml::to_string(&MemoryStats::default()).unwrap(),
        "{}\n"
    );
}
