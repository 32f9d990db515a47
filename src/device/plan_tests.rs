use super::super::info::{DeviceType, MemoryFlags, MemoryHeap, MemoryType, QueueFamily};
use super::super::samples::{
    CACHED, COHERENT, LOCAL, VISIBLE, intel_integrated, lavapipe, moltenvk, nvidia_card, radv_card,
    swiftshader,
};
use super::*;

fn plan(info: &PhysicalInfo) -> Plan {
    Plan::new(info, FeatureSet::EMPTY).unwrap()
}

/// The indexes of the memory types for buffers, uploads and readbacks.
fn memory_types(info: &PhysicalInfo) -> [u32; 3] {
    let memory = plan(info).memory;
    [MemoryRole::Device, MemoryRole::Upload, MemoryRole::Readback]
        .map(|role| memory.best(role).type_index)
}

#[test]
fn a_card_keeps_buffers_out_of_the_host_window() {
    assert_eq!(memory_types(&nvidia_card()), [1, 2, 3]);
    assert_eq!(memory_types(&radv_card()), [1, 2, 4]);
    let memory = plan(&nvidia_card()).memory;
    assert!(!memory.best(MemoryRole::Device).is_mappable());
    let readback = memory.best(MemoryRole::Readback);
    assert!(readback.is_cached() && readback.is_coherent());
}

#[test]
fn shared_memory_is_mapped_in_place() {
    assert_eq!(memory_types(&intel_integrated()), [2, 1, 2]);
    assert_eq!(memory_types(&moltenvk()), [1, 1, 1]);
    assert_eq!(memory_types(&lavapipe()), [0, 0, 0]);
    assert_eq!(memory_types(&swiftshader()), [0, 0, 0]);
}

#[test]
fn cached_memory_without_coherence_is_read_rather_than_uncached_memory() {
    let mut mali = intel_integrated();
    let flags = [
        LOCAL | VISIBLE | COHERENT,
        LOCAL | VISIBLE | CACHED,
        LOCAL | MemoryFlags::LAZILY_ALLOCATED,
        LOCAL | MemoryFlags::PROTECTED,
    ];
    mali.memory_types = flags.map(|flags| MemoryType { flags, heap: 0 }).to_vec();
    assert_eq!(memory_types(&mali), [0, 0, 1]);
    assert!(!plan(&mali).memory.best(MemoryRole::Readback).is_coherent());
    // And without cached memory, what there is.
    mali.memory_types.truncate(1);
    assert_eq!(memory_types(&mali), [0, 0, 0]);
}

#[test]
fn a_buffer_that_refuses_the_best_type_gets_the_next_one() {
    let memory = plan(&nvidia_card()).memory;
    let pick = |bits| {
        memory
            .pick(MemoryRole::Device, bits)
            .map(|choice| choice.type_index)
    };
    assert_eq!(pick(0b11111), Some(1));
    assert_eq!(pick(0b11101), Some(4));
    assert_eq!(pick(0b01101), None);
}

#[test]
fn odd_memory_is_never_taken() {
    let memory = plan(&radv_card()).memory;
    for role in [MemoryRole::Device, MemoryRole::Upload, MemoryRole::Readback] {
        for odd in [0, 5, 6] {
            assert_eq!(memory.pick(role, 1 << odd), None, "{}", role.name());
        }
    }
}

#[test]
fn a_device_without_the_memory_that_vulkan_promises_is_refused() {
    let mut broken = lavapipe();
    broken.memory_types[0].flags = LOCAL;
    let error = Plan::new(&broken, FeatureSet::EMPTY).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    // A type whose heap does not exist is passed over.
    broken.memory_types[0] = MemoryType {
        flags: LOCAL | VISIBLE | COHERENT,
        heap: 7,
    };
    assert!(Plan::new(&broken, FeatureSet::EMPTY).is_err());
}

#[test]
fn the_largest_segment_fits_buffer_allocation_and_heap() {
    const MIB: u64 = 1 << 20;
    assert_eq!(plan(&nvidia_card()).max_segment_bytes, 4094 * MIB);
    assert_eq!(plan(&lavapipe()).max_segment_bytes, 2048 * MIB);
    assert_eq!(plan(&swiftshader()).max_segment_bytes, 1024 * MIB);
    let mut small = swiftshader();
    small.memory_heaps = vec![MemoryHeap {
        size: 512 * MIB,
        device_local: true,
    }];
    let plan = plan(&small);
    assert_eq!(plan.max_segment_bytes, 512 * MIB);
    assert_eq!(plan.device_heap_bytes, 512 * MIB);
}

#[test]
fn kernels_run_beside_graphics_where_a_family_is_free_of_it() {
    assert_eq!(plan(&nvidia_card()).lanes[0].family, 2);
    assert_eq!(plan(&radv_card()).lanes[0].family, 1);
    assert_eq!(plan(&intel_integrated()).lanes[0].family, 0);
}

#[test]
fn a_queue_that_writes_timestamps_is_preferred() {
    let mut card = nvidia_card();
    card.queue_families[2].timestamp_valid_bits = 0;
    let lane = plan(&card).lanes[0];
    assert_eq!((lane.family, lane.timestamp_valid_bits), (0, 64));
    for family in &mut card.queue_families {
        family.timestamp_valid_bits = 0;
    }
    let lane = plan(&card).lanes[0];
    assert_eq!((lane.family, lane.timestamp_valid_bits), (2, 0));
}

/// Family and index of each queue.
fn queues(info: &PhysicalInfo) -> Vec<(u32, u32)> {
    let lanes = plan(info).lanes;
    lanes.iter().map(|lane| (lane.family, lane.queue)).collect()
}

#[test]
fn there_is_a_lane_for_every_queue_that_computes_up_to_a_bound() {
    let card: Vec<_> = (0..8).map(|queue| (2, queue)).collect();
    assert_eq!(queues(&nvidia_card()), card);
    assert_eq!(
        queues(&radv_card()),
        [(1, 0), (1, 1), (1, 2), (1, 3), (0, 0)]
    );
    assert_eq!(queues(&moltenvk()), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(queues(&lavapipe()), [(0, 0)]);
    let mut many = lavapipe();
    many.queue_families[0].count = 100;
    assert_eq!(queues(&many).len(), COMPUTE_LANES_MAX);
}

#[test]
fn a_queue_that_only_copies_is_opened_beside_the_others() {
    let card = plan(&nvidia_card());
    assert_eq!(
        card.transfer.map(|lane| (lane.family, lane.queue)),
        Some((1, 0))
    );
    assert_eq!(card.families(), [1, 2]);
    assert_eq!(card.all_lanes().count(), 9);
    for info in [radv_card(), moltenvk(), lavapipe()] {
        assert_eq!(plan(&info).transfer, None);
    }
    assert_eq!(plan(&moltenvk()).families(), [0, 1, 2, 3]);
}

#[test]
fn timestamps_of_several_lanes_compare_where_the_device_has_a_clock() {
    let mut card = nvidia_card();
    card.extensions.clear();
    assert!(!plan(&card).has_device_clock);
    card.extensions
        .insert("VK_EXT_calibrated_timestamps".to_owned());
    assert!(plan(&card).has_device_clock);
}

#[test]
fn a_family_without_queues_is_passed_over() {
    let mut card = nvidia_card();
    card.queue_families[2].count = 0;
    assert_eq!(plan(&card).lanes[0].family, 0);
    card.queue_families = vec![QueueFamily {
        flags: QueueFlags::TRANSFER,
        count: 1,
        timestamp_valid_bits: 64,
    }];
    let error = Plan::new(&card, FeatureSet::EMPTY).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn extensions_are_enabled_where_they_are_offered_and_not_yet_core() {
    assert_eq!(
        plan(&nvidia_card()).extensions,
        [Extension::MemoryBudget, Extension::ShaderAtomicFloat]
    );
    assert_eq!(
        plan(&moltenvk()).extensions,
        [
            Extension::PortabilitySubset,
            Extension::MemoryBudget,
            Extension::ShaderAtomicFloat,
            Extension::SubgroupSizeControl,
            Extension::ShaderIntegerDotProduct,
        ]
    );
    assert_eq!(plan(&swiftshader()).extensions, []);
    assert!(plan(&swiftshader()).has(Extension::Maintenance4));
    assert!(!plan(&moltenvk()).has(Extension::Maintenance4));
    assert!(plan(&moltenvk()).has(Extension::SubgroupSizeControl));
}

#[test]
fn every_feature_is_enabled_but_those_left_out_and_what_leans_on_them() {
    let info = lavapipe();
    assert_eq!(plan(&info).features, info.features);
    let without: FeatureSet = [
        Feature::ShaderFloat64,
        Feature::VariablePointersStorageBuffer,
    ]
    .into_iter()
    .collect();
    let features = Plan::new(&info, without).unwrap().features;
    let left_out: Vec<Feature> = info
        .features
        .iter()
        .filter(|&feature| !features.contains(feature))
        .collect();
    assert_eq!(
        left_out,
        [
            Feature::ShaderFloat64,
            Feature::VariablePointersStorageBuffer,
            Feature::VariablePointers,
        ]
    );
}

#[test]
fn what_the_runtime_is_built_on_cannot_be_left_out() {
    for feature in FOUNDATION {
        let without = core::iter::once(feature).collect();
        let error = Plan::new(&lavapipe(), without).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(feature.name()), "{error}");

        let mut poor = lavapipe();
        poor.features.remove(feature);
        let error = Plan::new(&poor, FeatureSet::EMPTY).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let missing = vec![feature.name().to_owned()];
        assert_eq!(error.details(), Some(&Details::Features { missing }));
    }
    let robust = core::iter::once(Feature::RobustBufferAccess).collect();
    assert!(Plan::new(&lavapipe(), robust).is_ok());
}

#[test]
fn a_device_of_unknown_type_whose_heaps_are_all_local_shares_memory() {
    let mut other = intel_integrated();
    other.device_type = DeviceType::Other;
    assert_eq!(memory_types(&other)[0], 2);
    assert!(other.is_unified() && !nvidia_card().is_unified());
}
