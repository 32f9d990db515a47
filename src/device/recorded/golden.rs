//! What becomes of every recorded device, written out, so that a change shows what it changes.

use core::fmt::Write as _;
use std::{env, fs};

use super::super::feature::{Feature, FeatureSet};
use super::super::info::PhysicalInfo;
use super::super::memory_plan::MemoryPlan;
use super::super::plan::{MemoryRole, Plan};
use super::super::select::select;
use super::{device, names, path};

const GOLDEN: &str = "tests/golden/plans.txt";

/// The memory types of a role, best first: all that a buffer could be refused by.
fn memory(plan: &MemoryPlan, role: MemoryRole, types: usize) -> String {
    let mut left = u32::MAX >> (32 - types);
    let mut text = String::new();
    while let Some(choice) = plan.pick(role, left) {
        left &= !(1 << choice.type_index);
        if !text.is_empty() {
            text.push_str("; else ");
        }
        let heap_mib = choice.heap_bytes >> 20;
        write!(
            text,
            "{} {:?} of {heap_mib} MiB",
            choice.type_index, choice.flags
        )
        .unwrap();
    }
    text
}

fn describe(name: &str, info: &PhysicalInfo) -> String {
    let selection = select(std::slice::from_ref(info), None).unwrap();
    let reason = &selection.candidates[0].reason;
    let mut text = format!("{name}: {}\n", info.name);
    if !selection.candidates[0].accepted {
        return text + &format!("  left out    {reason}\n");
    }
    let plan = Plan::new(info, FeatureSet::EMPTY).unwrap();
    let extensions: Vec<&str> = plan.extensions.iter().map(|e| e.name()).collect();
    let missing: Vec<&str> = Feature::ALL
        .iter()
        .filter(|&&feature| !plan.features.contains(feature))
        // The records have no subgroup operations.
        .filter(|feature| !feature.name().starts_with("VK_SUBGROUP_FEATURE_"))
        .map(|feature| feature.name())
        .collect();
    let types = info.memory_types.len();
    let roles = [
        ("buffers", MemoryRole::Device),
        ("upload", MemoryRole::Upload),
        ("readback", MemoryRole::Readback),
    ];
    writeln!(text, "  {reason}").unwrap();
    for lane in plan.all_lanes() {
        let flags = info.queue_families[lane.family as usize].flags;
        writeln!(
            text,
            "  queue       {} of family {} {flags:?}, {} bits of timestamps",
            lane.queue, lane.family, lane.timestamp_valid_bits
        )
        .unwrap();
    }
    writeln!(text, "  one clock   {}", plan.has_device_clock).unwrap();
    for (title, role) in roles {
        writeln!(text, "  {title:<11} {}", memory(&plan.memory, role, types)).unwrap();
    }
    writeln!(
        text,
        "  segments    of at most {} bytes, {} of them",
        plan.max_segment_bytes, plan.limits.max_memory_allocation_count
    )
    .unwrap();
    writeln!(text, "  extensions  {}", extensions.join(", ")).unwrap();
    writeln!(text, "  without     {}", missing.join(", ")).unwrap();
    text
}

#[test]
fn every_recorded_device_is_opened_as_the_golden_copy_says() {
    let mut text = String::new();
    for name in names() {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &describe(&name, &device(&name));
    }
    let text: String = text
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect();
    let golden = path(GOLDEN);
    if env::var_os("VKACCEL_BLESS").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    let accepted = fs::read_to_string(&golden).unwrap_or_default();
    let differs = text
        .lines()
        .zip(accepted.lines())
        .position(|(new, old)| new != old);
    assert!(
        text == accepted,
        "the plans of recorded devices changed, first in line {} of {GOLDEN}; if that is meant, run \
         `VKACCEL_BLESS=1 cargo test --lib device::recorded` and look at the difference",
        differs.map_or(accepted.lines().count(), |line| line) + 1
    );
}
