//! How real devices would be opened, where it matters most; the golden copy has the rest.

use super::super::extension::Extension;
use super::super::feature::{Feature, FeatureSet};
use super::super::info::MemoryFlags;
use super::super::plan::{MemoryRole, Plan};
use super::{device, names};

fn plan(name: &str) -> Plan {
    Plan::new(&device(name), FeatureSet::EMPTY).unwrap()
}

/// The indexes of the memory types for buffers, uploads and readbacks.
fn memory_types(name: &str) -> [u32; 3] {
    let memory = plan(name).memory;
    [MemoryRole::Device, MemoryRole::Upload, MemoryRole::Readback]
        .map(|role| memory.best(role).type_index)
}

#[test]
fn buffers_stay_out_of_the_window_whether_it_is_small_or_all() {
    // A window of 214 or 256 MiB in a heap of its own, and all of the memory.
    assert_eq!(memory_types("nvidia-gtx-1650"), [1, 2, 3]);
    assert_eq!(memory_types("nvidia-rtx-3060-ti-rebar"), [1, 3, 4]);
    // Before them are seven types for images.
    assert_eq!(memory_types("nvidia-gtx-1080-linux"), [7, 8, 9]);
    for name in ["amd-rx-6600-windows", "amd-rx-6650-xt-windows"] {
        assert_eq!(memory_types(name), [0, 1, 3], "{name}");
    }
    for name in ["amd-rx-470-radv", "amd-rx-6600-radv"] {
        assert_eq!(memory_types(name), [0, 2, 5], "{name}");
    }
    let rebar = device("nvidia-rtx-3060-ti-rebar");
    let all = rebar.memory_types[5];
    assert!(all.flags.contains(MemoryFlags::HOST_VISIBLE) && all.heap == 0);
    // The host's memory has cached types only.
    assert_eq!(memory_types("intel-arc-a770-anv"), [0, 1, 1]);
}

#[test]
fn shared_memory_is_uploaded_uncached_and_read_cached() {
    assert_eq!(memory_types("intel-uhd-630-windows"), [1, 0, 1]);
    assert_eq!(memory_types("intel-iris-xe-anv"), [2, 1, 2]);
    // Where there is one type, it serves all.
    for name in ["intel-hd-5500-anv", "apple-m5-kosmickrisp", "llvmpipe"] {
        assert_eq!(memory_types(name), [0, 0, 0], "{name}");
    }
    for name in ["apple-m5-moltenvk", "apple-m1-pro-moltenvk"] {
        assert_eq!(memory_types(name), [1, 1, 1], "{name}");
    }
    // Mesa parts the memory of AMD's processors; both parts are the host's.
    assert_eq!(memory_types("amd-renoir-radv"), [3, 3, 5]);
}

#[test]
fn buffers_live_in_the_heap_that_counts_as_the_devices_memory() {
    for name in names() {
        let info = device(&name);
        let Ok(plan) = Plan::new(&info, FeatureSet::EMPTY) else {
            continue;
        };
        let buffers = plan.memory.best(MemoryRole::Device);
        assert_eq!(Some(buffers.heap), info.device_heap(), "{name}");
        assert_eq!(plan.device_heap_bytes, info.device_memory(), "{name}");
    }
    // A processor with two heaps of one size: the host can map the second only.
    let [first, second] = [0, 2].map(|at| device("amd-processor-windows").memory_heaps[at]);
    assert_eq!(first, second);
    assert_eq!(memory_types("amd-processor-windows"), [0, 1, 3]);
}

#[test]
fn readbacks_are_invalidated_only_where_no_cached_type_is_coherent() {
    for name in names() {
        let info = device(&name);
        let Ok(plan) = Plan::new(&info, FeatureSet::EMPTY) else {
            continue;
        };
        let readback = plan.memory.best(MemoryRole::Readback);
        assert!(readback.is_cached(), "{name}");
        let coherent = MemoryFlags::HOST_CACHED | MemoryFlags::HOST_COHERENT;
        let there_is_one = info
            .memory_types
            .iter()
            .any(|kind| kind.flags.contains(coherent));
        assert_eq!(readback.is_coherent(), there_is_one, "{name}");
    }
    assert_eq!(memory_types("mali-g615"), [0, 0, 1]);
    assert!(
        !plan("mali-g615")
            .memory
            .best(MemoryRole::Readback)
            .is_coherent()
    );
    // It has such a type, too, but also a coherent one.
    assert_eq!(memory_types("adreno-740-turnip"), [1, 0, 1]);
}

#[test]
fn no_role_ever_takes_protected_lazy_or_uncached_device_memory() {
    let odd = MemoryFlags::PROTECTED
        | MemoryFlags::LAZILY_ALLOCATED
        | MemoryFlags::DEVICE_COHERENT_AMD
        | MemoryFlags::DEVICE_UNCACHED_AMD;
    let mut seen = 0;
    for name in names() {
        let info = device(&name);
        let Ok(plan) = Plan::new(&info, FeatureSet::EMPTY) else {
            continue;
        };
        for (index, kind) in info.memory_types.iter().enumerate() {
            if !kind.flags.intersects(odd) {
                continue;
            }
            seen += 1;
            for role in [MemoryRole::Device, MemoryRole::Upload, MemoryRole::Readback] {
                assert_eq!(
                    plan.memory.pick(role, 1 << index),
                    None,
                    "{name}: type {index}"
                );
            }
        }
    }
    assert!(seen >= 15, "{seen}");
}

#[test]
fn kernels_run_beside_graphics_where_a_family_is_free_of_it() {
    for (name, family, bits) in [
        ("nvidia-gtx-1650", 2, 64),
        ("nvidia-rtx-3060-ti-rebar", 2, 64),
        ("amd-rx-6600-radv", 1, 64),
        // Among its families is one that can do nothing, and one for videos.
        ("amd-rx-6650-xt-windows", 1, 64),
        ("intel-uhd-630-windows", 0, 36),
        ("apple-m5-moltenvk", 0, 64),
        // It writes no timestamps; there is no other.
        ("apple-m5-kosmickrisp", 0, 0),
    ] {
        let lane = plan(name).lanes[0];
        assert_eq!(
            (lane.family, lane.timestamp_valid_bits),
            (family, bits),
            "{name}"
        );
    }
}

#[test]
fn the_largest_segment_is_the_least_of_three_limits() {
    const MIB: u64 = 1 << 20;
    for (name, bytes) in [
        // The heap: its driver gives as much at once.
        ("intel-uhd-630-windows", 8_649_359_360),
        // The heap, less than one allocation.
        ("nvidia-gtx-1650", 4_154_458_112),
        // One allocation; buffers may be larger.
        ("nvidia-rtx-3060-ti-rebar", 4094 * MIB),
        ("llvmpipe", 2048 * MIB),
        // A buffer; allocations may be larger.
        ("intel-arc-a770-anv", 4096 * MIB),
        // Both alike, and no multiple of anything.
        ("amd-rx-6600-radv", 4096 * MIB - 4),
    ] {
        assert_eq!(plan(name).max_segment_bytes, bytes, "{name}");
    }
}

#[test]
fn a_device_that_leaves_parts_out_is_opened_with_the_extension_that_says_so() {
    for name in names() {
        let info = device(&name);
        let Ok(plan) = Plan::new(&info, FeatureSet::EMPTY) else {
            continue;
        };
        let portability = plan.extensions.contains(&Extension::PortabilitySubset);
        assert_eq!(portability, name.ends_with("moltenvk"), "{name}");
        for extension in &plan.extensions {
            assert!(info.extensions.contains(extension.name()), "{name}");
            assert!(!extension.is_core_in(plan.version), "{name}");
        }
    }
}

#[test]
fn features_are_all_that_a_device_has_and_never_without_what_they_lean_on() {
    for name in names() {
        let info = device(&name);
        if let Ok(plan) = Plan::new(&info, FeatureSet::EMPTY) {
            assert_eq!(plan.features, info.features, "{name}");
        }
    }
    // Word-wise types are what is left of 8- and 16-bit ones on some phones.
    assert!(!plan("mali-g615").features.contains(Feature::ShaderInt64));
    assert!(
        !plan("adreno-740-turnip")
            .features
            .contains(Feature::StorageBuffer8BitAccess)
    );
    assert!(
        !plan("intel-iris-xe-anv")
            .features
            .contains(Feature::ShaderFloat64)
    );
}
