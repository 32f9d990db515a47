//! Physical devices for tests, as drivers report them.

use std::collections::BTreeSet;

use super::extension::Extension;
use super::feature::{Feature, FeatureSet};
use super::info::{
    DeviceType, Driver, MemoryFlags, MemoryHeap, MemoryType, PciAddress, PhysicalInfo, QueueFamily,
    QueueFlags, Version,
};
use super::limits::DeviceLimits;

pub(crate) const LOCAL: MemoryFlags = MemoryFlags::DEVICE_LOCAL;
pub(crate) const VISIBLE: MemoryFlags = MemoryFlags::HOST_VISIBLE;
pub(crate) const COHERENT: MemoryFlags = MemoryFlags::HOST_COHERENT;
pub(crate) const CACHED: MemoryFlags = MemoryFlags::HOST_CACHED;

const NOTHING: MemoryFlags = MemoryFlags(0);
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A heap: its size in bytes and whether it is local.
const fn heap(size: u64, device_local: bool) -> MemoryHeap {
    MemoryHeap { size, device_local }
}

fn types(types: &[(MemoryFlags, u32)]) -> Vec<MemoryType> {
    types
        .iter()
        .map(|&(flags, heap)| MemoryType { flags, heap })
        .collect()
}

/// A family: Vulkan's bits, and how many queues.
const fn family(flags: u32, count: u32) -> QueueFamily {
    QueueFamily {
        flags: QueueFlags(flags),
        count,
        timestamp_valid_bits: 64,
    }
}

fn all_but(missing: &[Feature]) -> FeatureSet {
    Feature::ALL
        .iter()
        .copied()
        .filter(|feature| !missing.contains(feature))
        .collect()
}

fn extensions(extensions: &[Extension]) -> BTreeSet<String> {
    extensions.iter().map(|e| e.name().to_owned()).collect()
}

fn driver(id: i32, name: &str, info: &str) -> Driver {
    Driver {
        id,
        name: name.to_owned(),
        info: info.to_owned(),
        version: 1 << 22,
        conformance: [1, 3, 0, 0],
        uuid: uuid(name.as_bytes()),
    }
}

/// An identity that begins with these bytes.
pub(crate) fn uuid(start: &[u8]) -> [u8; 16] {
    let mut uuid = [0; 16];
    for (byte, &given) in uuid.iter_mut().zip(start) {
        *byte = given;
    }
    uuid
}

const fn version(minor: u32, patch: u32) -> Version {
    Version {
        major: 1,
        minor,
        patch,
    }
}

fn limits() -> DeviceLimits {
    DeviceLimits {
        max_storage_buffer_range: u32::MAX.into(),
        max_uniform_buffer_range: 65536,
        max_buffer_size: 4 * GIB,
        max_memory_allocation_size: 4 * GIB,
        max_memory_allocation_count: 4096,
        max_compute_work_group_count: [65535; 3],
        max_compute_work_group_size: [1024, 1024, 64],
        max_compute_work_group_invocations: 1024,
        max_compute_shared_memory_size: 49152,
        max_push_constants_size: 256,
        max_bound_descriptor_sets: 32,
        max_per_stage_resources: u32::MAX,
        max_per_stage_descriptor_storage_buffers: 1 << 20,
        max_per_stage_descriptor_uniform_buffers: 1 << 20,
        min_storage_buffer_offset_alignment: 16,
        min_uniform_buffer_offset_alignment: 64,
        non_coherent_atom_size: 64,
        optimal_buffer_copy_offset_alignment: 1,
        timestamp_period: 1.0,
        subgroup_size: 32,
        min_subgroup_size: 32,
        max_subgroup_size: 32,
        max_compute_workgroup_subgroups: 1 << 20,
    }
}

/// A card without a resizable window: 246 MiB of its memory can be mapped, in a heap of its own.
pub(crate) fn nvidia_card() -> PhysicalInfo {
    PhysicalInfo {
        name: "NVIDIA GeForce RTX 3080".to_owned(),
        vendor_id: 0x10de,
        device_id: 0x2206,
        device_type: DeviceType::Discrete,
        api_version: version(3, 242),
        usable_version: Version::V1_3,
        driver: driver(4, "NVIDIA", "535.154.05"),
        uuid: uuid(&[0x89, 0x32, 0xf9, 0x37, 0xd7, 0x2a]),
        luid: None,
        pci: Some(PciAddress {
            bus: 1,
            ..PciAddress::default()
        }),
        queue_families: vec![family(0xf, 16), family(0xc, 2), family(0xe, 8)],
        memory_heaps: vec![
            heap(10 * GIB, true),
            heap(24 * GIB, false),
            heap(246 * MIB, true),
        ],
        memory_types: types(&[
            (NOTHING, 1),
            (LOCAL, 0),
            (VISIBLE | COHERENT, 1),
            (VISIBLE | COHERENT | CACHED, 1),
            (LOCAL | VISIBLE | COHERENT, 2),
        ]),
        limits: DeviceLimits {
            max_buffer_size: 1 << 50,
            max_memory_allocation_size: 4 * GIB - 2 * MIB,
            ..limits()
        },
        features: all_but(&[]),
        extensions: extensions(&[
            Extension::MemoryBudget,
            Extension::ShaderAtomicFloat,
            Extension::PciBusInfo,
            Extension::Maintenance4,
        ]),
    }
}

/// A card all of whose memory can be mapped, with types that trade speed for coherence.
pub(crate) fn radv_card() -> PhysicalInfo {
    let odd = MemoryFlags::DEVICE_COHERENT_AMD | MemoryFlags::DEVICE_UNCACHED_AMD;
    PhysicalInfo {
        name: "AMD Radeon RX 6800 (RADV NAVI21)".to_owned(),
        vendor_id: 0x1002,
        device_id: 0x73bf,
        driver: driver(3, "radv", "Mesa 23.1.0"),
        uuid: uuid(&[0, 0, 0, 0, 3]),
        pci: Some(PciAddress {
            bus: 3,
            ..PciAddress::default()
        }),
        queue_families: vec![family(0xf, 1), family(0xe, 4)],
        memory_heaps: vec![heap(16 * GIB, false), heap(16 * GIB, true)],
        memory_types: types(&[
            (LOCAL | odd, 1),
            (LOCAL, 1),
            (VISIBLE | COHERENT, 0),
            (LOCAL | VISIBLE | COHERENT, 1),
            (VISIBLE | COHERENT | CACHED, 0),
            (LOCAL | VISIBLE | COHERENT | odd, 1),
            (VISIBLE | COHERENT | CACHED | odd, 0),
        ]),
        limits: DeviceLimits {
            subgroup_size: 64,
            max_subgroup_size: 64,
            ..limits()
        },
        ..nvidia_card()
    }
}

/// A processor's own graphics: one heap, and three ways to see it.
pub(crate) fn intel_integrated() -> PhysicalInfo {
    PhysicalInfo {
        name: "Intel(R) UHD Graphics 770 (ADL-S GT1)".to_owned(),
        vendor_id: 0x8086,
        device_id: 0x4680,
        device_type: DeviceType::Integrated,
        driver: driver(6, "Intel open-source Mesa driver", "Mesa 22.3.6"),
        uuid: uuid(&[0x86, 0x80, 0x80, 0x46]),
        pci: Some(PciAddress {
            device: 2,
            ..PciAddress::default()
        }),
        queue_families: vec![family(0x7, 1)],
        memory_heaps: vec![heap(23 * GIB, true)],
        memory_types: types(&[
            (LOCAL, 0),
            (LOCAL | VISIBLE | COHERENT, 0),
            (LOCAL | VISIBLE | COHERENT | CACHED, 0),
        ]),
        features: all_but(&[Feature::ShaderFloat64]),
        ..nvidia_card()
    }
}

/// Vulkan as a layer over another API: portability, Vulkan 1.2, memory that is flushed by hand.
pub(crate) fn moltenvk() -> PhysicalInfo {
    PhysicalInfo {
        name: "Apple M1".to_owned(),
        vendor_id: 0x106b,
        device_id: 0xc0503ef,
        device_type: DeviceType::Integrated,
        api_version: version(2, 283),
        usable_version: version(2, 283),
        driver: driver(14, "MoltenVK", "1.2.9"),
        uuid: uuid(&[0, 0, 0x10, 0x6b, 0x0c, 0x05]),
        pci: None,
        queue_families: vec![family(0x7, 1); 4],
        memory_heaps: vec![heap(11 * GIB, true)],
        memory_types: types(&[
            (LOCAL, 0),
            (LOCAL | VISIBLE | COHERENT | CACHED, 0),
            (LOCAL | MemoryFlags::LAZILY_ALLOCATED, 0),
        ]),
        limits: DeviceLimits {
            max_buffer_size: 8 * GIB,
            max_memory_allocation_size: 8 * GIB,
            ..limits()
        },
        features: all_but(&[
            Feature::ShaderFloat64,
            Feature::VulkanMemoryModel,
            Feature::VulkanMemoryModelDeviceScope,
            Feature::ShaderBufferInt64Atomics,
            Feature::ShaderSharedInt64Atomics,
            Feature::Maintenance4,
        ]),
        extensions: extensions(&[
            Extension::PortabilitySubset,
            Extension::MemoryBudget,
            Extension::SubgroupSizeControl,
            Extension::ShaderIntegerDotProduct,
            Extension::ShaderAtomicFloat,
        ]),
        ..nvidia_card()
    }
}

/// Mesa's software driver, as it answers here.
pub(crate) fn lavapipe() -> PhysicalInfo {
    PhysicalInfo {
        name: "llvmpipe (LLVM 15.0.6, 256 bits)".to_owned(),
        vendor_id: 0x10005,
        device_id: 0,
        device_type: DeviceType::Cpu,
        api_version: version(3, 230),
        driver: driver(13, "llvmpipe", "Mesa 22.3.6 (LLVM 15.0.6)"),
        uuid: uuid(b"mesa22.3.6"),
        pci: None,
        queue_families: vec![family(0x7, 1)],
        memory_heaps: vec![heap(2 * GIB, true)],
        memory_types: types(&[(LOCAL | VISIBLE | COHERENT | CACHED, 0)]),
        limits: DeviceLimits {
            max_storage_buffer_range: 128 * MIB,
            max_buffer_size: u32::MAX.into(),
            max_memory_allocation_size: 2 * GIB,
            max_memory_allocation_count: u32::MAX,
            max_push_constants_size: 128,
            subgroup_size: 8,
            min_subgroup_size: 8,
            max_subgroup_size: 8,
            ..limits()
        },
        features: all_but(&[]),
        extensions: extensions(&[
            Extension::ShaderAtomicFloat,
            Extension::Maintenance4,
            Extension::SubgroupSizeControl,
        ]),
        ..nvidia_card()
    }
}

/// Google's software driver, as it answers here.
pub(crate) fn swiftshader() -> PhysicalInfo {
    PhysicalInfo {
        name: "SwiftShader Device (Subzero)".to_owned(),
        vendor_id: 0x1ae0,
        device_id: 0xc0de,
        api_version: version(3, 0),
        driver: driver(10, "SwiftShader driver", ""),
        uuid: uuid(b"SwiftShaderUUID"),
        limits: DeviceLimits {
            max_storage_buffer_range: GIB,
            max_buffer_size: GIB,
            max_memory_allocation_size: GIB,
            max_compute_work_group_size: [256, 256, 64],
            max_compute_work_group_invocations: 256,
            max_push_constants_size: 128,
            subgroup_size: 4,
            min_subgroup_size: 4,
            max_subgroup_size: 4,
            ..limits()
        },
        features: [
            Feature::RobustBufferAccess,
            Feature::ShaderStorageBufferArrayDynamicIndexing,
            Feature::ShaderUniformBufferArrayDynamicIndexing,
            Feature::UniformBufferStandardLayout,
            Feature::ScalarBlockLayout,
            Feature::ShaderSubgroupExtendedTypes,
            Feature::TimelineSemaphore,
            Feature::BufferDeviceAddress,
            Feature::VulkanMemoryModel,
            Feature::VulkanMemoryModelDeviceScope,
            Feature::ShaderIntegerDotProduct,
            Feature::SubgroupSizeControl,
            Feature::ComputeFullSubgroups,
            Feature::Maintenance4,
        ]
        .into_iter()
        .collect(),
        extensions: BTreeSet::new(),
        ..lavapipe()
    }
}
