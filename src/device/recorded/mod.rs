//! Owns what real devices report, as published by their owners, and tests what becomes of them here.
//!
//! The facts lie in `tests/data/devices`; its README says how to add a device.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::feature::Feature;
use super::info::{
    DeviceType, Driver, MemoryFlags, MemoryHeap, MemoryType, PciAddress, PhysicalInfo, QueueFamily,
    QueueFlags, Version,
};
use super::limits::DeviceLimits;

mod golden;
mod plans;
mod selection;

/// A device's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// Where each fact was published; never empty.
    sources: Vec<String>,
    /// What no source says, and what is taken instead.
    assumed: Vec<String>,
    name: String,
    vendor_id: u32,
    device_id: u32,
    r#type: String,
    api_version: String,
    driver: DriverRecord,
    uuid: String,
    luid: Option<String>,
    pci: Option<[u32; 4]>,
    queue_families: Vec<FamilyRecord>,
    memory_heaps: Vec<HeapRecord>,
    memory_types: Vec<TypeRecord>,
    limits: LimitsRecord,
    features: Vec<String>,
    extensions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DriverRecord {
    id: i32,
    name: String,
    info: String,
    version: u32,
    conformance: [u8; 4],
    uuid: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyRecord {
    flags: u32,
    count: u32,
    timestamp_valid_bits: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeapRecord {
    size: u64,
    device_local: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeRecord {
    flags: u32,
    heap: u32,
}

macro_rules! limits_record {
    ($($name:ident: $kind:ty,)*) => {
        /// The limits under their names here; one that was not reported is left out.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct LimitsRecord {
            $(#[serde(default)] $name: $kind,)*
        }

        impl LimitsRecord {
            fn limits(self) -> DeviceLimits {
                DeviceLimits { $($name: self.$name,)* }.with_gaps_filled()
            }
        }
    };
}

limits_record! {
    max_storage_buffer_range: u64,
    max_uniform_buffer_range: u64,
    max_buffer_size: u64,
    max_memory_allocation_size: u64,
    max_memory_allocation_count: u32,
    max_compute_work_group_count: [u32; 3],
    max_compute_work_group_size: [u32; 3],
    max_compute_work_group_invocations: u32,
    max_compute_shared_memory_size: u32,
    max_push_constants_size: u32,
    max_bound_descriptor_sets: u32,
    max_per_stage_resources: u32,
    max_per_stage_descriptor_storage_buffers: u32,
    max_per_stage_descriptor_uniform_buffers: u32,
    min_storage_buffer_offset_alignment: u64,
    min_uniform_buffer_offset_alignment: u64,
    non_coherent_atom_size: u64,
    optimal_buffer_copy_offset_alignment: u64,
    timestamp_period: f32,
    subgroup_size: u32,
    min_subgroup_size: u32,
    max_subgroup_size: u32,
    max_compute_workgroup_subgroups: u32,
}

impl Record {
    fn info(self) -> PhysicalInfo {
        let api_version = version(&self.api_version);
        PhysicalInfo {
            name: self.name,
            vendor_id: self.vendor_id,
            device_id: self.device_id,
            device_type: match self.r#type.as_str() {
                "discrete" => DeviceType::Discrete,
                "integrated" => DeviceType::Integrated,
                "virtual" => DeviceType::Virtual,
                "cpu" => DeviceType::Cpu,
                other => panic!("{other} is no device type"),
            },
            api_version,
            // No instance is made for a newer version.
            usable_version: api_version.min(Version::V1_3),
            driver: Driver {
                id: self.driver.id,
                name: self.driver.name,
                info: self.driver.info,
                version: self.driver.version,
                conformance: self.driver.conformance,
                uuid: bytes(&self.driver.uuid),
            },
            uuid: bytes(&self.uuid),
            luid: self.luid.as_deref().map(bytes),
            pci: self.pci.map(|[domain, bus, device, function]| PciAddress {
                domain,
                bus,
                device,
                function,
            }),
            queue_families: self
                .queue_families
                .iter()
                .map(|family| QueueFamily {
                    flags: QueueFlags(family.flags),
                    count: family.count,
                    timestamp_valid_bits: family.timestamp_valid_bits,
                })
                .collect(),
            memory_heaps: self
                .memory_heaps
                .iter()
                .map(|heap| MemoryHeap {
                    size: heap.size,
                    device_local: heap.device_local,
                })
                .collect(),
            memory_types: self
                .memory_types
                .iter()
                .map(|kind| MemoryType {
                    flags: MemoryFlags(kind.flags),
                    heap: kind.heap,
                })
                .collect(),
            limits: self.limits.limits(),
            features: self.features.iter().map(|name| feature(name)).collect(),
            extensions: self.extensions.into_iter().collect(),
        }
    }
}

fn version(text: &str) -> Version {
    let parts: Vec<u32> = text.split('.').map(|part| part.parse().unwrap()).collect();
    let [major, minor, patch] = parts.try_into().unwrap();
    Version {
        major,
        minor,
        patch,
    }
}

fn bytes<const N: usize>(digits: &str) -> [u8; N] {
    assert_eq!(digits.len(), 2 * N, "{digits}");
    core::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

fn feature(name: &str) -> Feature {
    let found = Feature::ALL.iter().find(|feature| feature.name() == name);
    *found.unwrap_or_else(|| panic!("{name} is no feature that the crate knows"))
}

/// A file of the tests.
fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn record(name: &str) -> Record {
    let path = path("tests/data/devices").join(name).with_extension("yaml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The device of that file.
fn device(name: &str) -> PhysicalInfo {
    record(name).info()
}

/// The names of all files, in order.
fn names() -> Vec<String> {
    let folder = path("tests/data/devices");
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_record_says_where_it_is_from_and_leaves_no_limit_out() {
    assert!(names().len() >= 8);
    for name in names() {
        let record = record(&name);
        assert!(!record.sources.is_empty(), "{name}");
        for text in record.sources.iter().chain(&record.assumed) {
            assert!(
                text.contains(": ") && !text.contains("://"),
                "{name}: {text}"
            );
        }
        let info = record.info();
        let limits = format!("{:?}", info.limits);
        for zero in [": 0,", ": 0.0", "[0,", " 0, ", " 0]", ": 0 "] {
            assert!(!limits.contains(zero), "{name}: {limits}");
        }
        let heaps = info.memory_heaps.len();
        assert!(
            info.memory_types
                .iter()
                .all(|kind| (kind.heap as usize) < heaps)
        );
    }
}
