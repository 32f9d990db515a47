//! How a device will be opened and used: decided from plain data, before there is a device.

use super::extension::Extension;
use super::feature::{Feature, FeatureSet};
use super::info::{PhysicalInfo, QueueFlags, Version};
use super::limits::DeviceLimits;
use super::memory_plan::MemoryPlan;
pub(crate) use super::memory_plan::MemoryRole;
use crate::error::{Details, Error, ErrorKind, Result};

/// What the runtime itself is built on; leaving it out leaves nothing.
const FOUNDATION: [Feature; 2] = [Feature::TimelineSemaphore, Feature::BufferDeviceAddress];

/// Features that may only be enabled, or only make sense, together with another one.
const LEANS_ON: [(Feature, Feature); 3] = [
    (
        Feature::VariablePointers,
        Feature::VariablePointersStorageBuffer,
    ),
    (
        Feature::VulkanMemoryModelDeviceScope,
        Feature::VulkanMemoryModel,
    ),
    (Feature::ComputeFullSubgroups, Feature::SubgroupSizeControl),
];

/// The most lanes that run kernels: more queues than the hardware has at once gain nothing, and every
/// submission looks at every lane.
pub(crate) const COMPUTE_LANES_MAX: usize = 8;

/// The most lanes of a device, with the one for copies.
pub(crate) const LANES_MAX: usize = COMPUTE_LANES_MAX + 1;

/// A queue that the device is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LanePlan {
    /// The index of the queue's family.
    pub family: u32,
    /// The index of the queue within its family.
    pub queue: u32,
    /// How many bits of its timestamps are meaningful; 0: it writes none.
    pub timestamp_valid_bits: u32,
}

/// How a device will be opened and used.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The queues that run kernels and copies, the one for default streams first; at least one.
    pub lanes: Vec<LanePlan>,
    /// A queue that copies beside the kernels, where the device has one apart.
    ///
    /// It is opened, so that memory can be made for it, but streams are not put on it: a stream
    /// never changes its lane, and a copy elsewhere would cost its stream two waits between lanes,
    /// while copies of other streams overlap with kernels already.
    pub transfer: Option<LanePlan>,
    /// Whether timestamps of different lanes count the same time.
    pub has_device_clock: bool,
    /// The memory types for each role.
    pub memory: MemoryPlan,
    /// The extensions to enable.
    pub extensions: Vec<Extension>,
    /// The features to enable.
    pub features: FeatureSet,
    /// The numbers that bound kernels and memory.
    pub limits: DeviceLimits,
    /// The bytes of the heap that counts as the device's memory, which buffers live in.
    pub device_heap_bytes: u64,
    /// The most bytes of one segment: what buffer, allocation and heap all allow.
    pub max_segment_bytes: u64,
    /// The version of Vulkan to keep to.
    pub version: Version,
}

impl Plan {
    /// Plans for the device, with every feature that it has but those of `without`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if `without` takes away what the runtime is built on;
    /// [`ErrorKind::Unsupported`] for a device that a selection would not have taken.
    pub(crate) fn new(info: &PhysicalInfo, without: FeatureSet) -> Result<Self> {
        let features = features(info, without)?;
        let lanes = compute_lanes(info);
        if lanes.is_empty() {
            return Err(unusable(info, "none of its queues computes"));
        }
        let memory = MemoryPlan::new(info)
            .ok_or_else(|| unusable(info, "it lacks memory types that Vulkan promises"))?;
        let limits = info.limits;
        let device_heap_bytes = memory.best(MemoryRole::Device).heap_bytes;
        Ok(Self {
            lanes,
            transfer: transfer_lane(info),
            has_device_clock: info.offers(Extension::CalibratedTimestamps),
            memory,
            extensions: extensions(info),
            features,
            limits,
            device_heap_bytes,
            max_segment_bytes: device_heap_bytes
                .min(limits.max_buffer_size)
                .min(limits.max_memory_allocation_size),
            version: info.usable_version,
        })
    }

    /// Every queue that the device is opened with, by the numbers of their lanes.
    pub(crate) fn all_lanes(&self) -> impl Iterator<Item = LanePlan> {
        self.lanes.iter().copied().chain(self.transfer)
    }

    /// The families of these queues, each once.
    pub(crate) fn families(&self) -> Vec<u32> {
        let mut families: Vec<u32> = self.all_lanes().map(|lane| lane.family).collect();
        families.sort_unstable();
        families.dedup();
        families
    }

    /// Whether what the extension brings can be used on the device once it is opened.
    pub(crate) fn has(&self, extension: Extension) -> bool {
        extension.is_core_in(self.version) || self.extensions.contains(&extension)
    }
}

fn features(info: &PhysicalInfo, without: FeatureSet) -> Result<FeatureSet> {
    for feature in FOUNDATION {
        if without.contains(feature) {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "the runtime is built on the feature {} and can't be opened without it; take \
                     it out of without_features",
                    feature.name()
                ),
            ));
        }
        if !info.features.contains(feature) {
            let missing = vec![feature.name().to_owned()];
            return Err(unusable(info, &format!("it lacks {}", feature.name()))
                .with_details(Details::Features { missing }));
        }
    }
    let mut features: FeatureSet = info
        .features
        .iter()
        .filter(|&feature| !without.contains(feature))
        .collect();
    for (feature, base) in LEANS_ON {
        if !features.contains(base) {
            features.remove(feature);
        }
    }
    Ok(features)
}

/// Every extension of ours that the device offers and that its version has not taken in.
fn extensions(info: &PhysicalInfo) -> Vec<Extension> {
    Extension::ALL
        .iter()
        .copied()
        .filter(|extension| extension.is_enabled_at_device())
        .filter(|extension| !extension.is_core_in(info.usable_version))
        .filter(|&extension| info.offers(extension))
        .collect()
}

/// The queues for kernels: first of families that write timestamps, then of those without graphics
/// (the desktop draws elsewhere), then as the device lists them.
fn compute_lanes(info: &PhysicalInfo) -> Vec<LanePlan> {
    let mut families: Vec<_> = (0u32..)
        .zip(&info.queue_families)
        .filter(|(_, family)| family.flags.contains(QueueFlags::COMPUTE))
        .collect();
    families.sort_by_key(|(_, family)| {
        (
            family.timestamp_valid_bits == 0,
            family.flags.contains(QueueFlags::GRAPHICS),
        )
    });
    let queues = families.into_iter().flat_map(|(index, family)| {
        (0..family.count).map(move |queue| LanePlan {
            family: index,
            queue,
            timestamp_valid_bits: family.timestamp_valid_bits,
        })
    });
    queues.take(COMPUTE_LANES_MAX).collect()
}

/// A queue of a family that does nothing but copy.
fn transfer_lane(info: &PhysicalInfo) -> Option<LanePlan> {
    // Families for videos copy too.
    let harmless = QueueFlags::TRANSFER | QueueFlags::SPARSE_BINDING | QueueFlags::PROTECTED;
    (0u32..)
        .zip(&info.queue_families)
        .find(|(_, family)| {
            let flags = family.flags;
            family.count > 0 && flags.contains(QueueFlags::TRANSFER) && harmless.contains(flags)
        })
        .map(|(index, family)| LanePlan {
            family: index,
            queue: 0,
            timestamp_valid_bits: family.timestamp_valid_bits,
        })
}

#[cold]
fn unusable(info: &PhysicalInfo, what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{} can't be used: {what}", info.name),
    )
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
