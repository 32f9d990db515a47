//! Which physical devices the process sees, in which order, and why the others are left out.

use core::cmp::{Ordering, Reverse};
use core::fmt::Write as _;

use super::capability::DeviceCapability;
use super::extension::Extension;
use super::feature::Feature;
use super::info::{DeviceType, PhysicalInfo, QueueFlags, Version};
use super::{mask, uuid};
use crate::error::{Error, ErrorKind, Result};

/// The features without which nothing works here.
const NEEDED: [Feature; 3] = [
    Feature::TimelineSemaphore,
    Feature::BufferDeviceAddress,
    Feature::RobustBufferAccess,
];

/// A physical device, and why it was taken or left out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The name that its driver gives it.
    pub name: String,
    /// The device's identity; all 0 where the driver gives none.
    pub uuid: [u8; 16],
    /// Whether the process sees it.
    pub accepted: bool,
    /// Why it was taken or left out, as a sentence's end.
    pub reason: String,
    /// Its index, where the process sees it.
    pub index: Option<u32>,
    /// What it can do, also where it was left out.
    pub capability: DeviceCapability,
}

/// The outcome of a selection.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// For each visible device, in the order of their indexes, its position among those given.
    pub visible: Vec<usize>,
    /// Every physical device: first the visible ones, then those left out, as they were given.
    pub candidates: Vec<Candidate>,
}

impl Selection {
    /// The error for a process that sees no device.
    #[cold]
    pub(crate) fn no_device(&self) -> Error {
        let mut message = String::from("no Vulkan device is visible to this process");
        if self.candidates.is_empty() {
            message.push_str(
                ": the loader found no device; is a driver installed for this machine's device, or \
                 a software driver such as Mesa's lavapipe?",
            );
        }
        for candidate in &self.candidates {
            // Writing to a string can't fail.
            let _ = write!(message, "; {}: {}", candidate.name, candidate.reason);
        }
        Error::new(ErrorKind::NoDevice, message)
    }
}

/// Selects among all physical devices, with the list of visible devices if there is one.
///
/// Left out is what lacks something needed, and what is one device seen again through another
/// driver. The rest is ordered: discrete, integrated, virtual, CPU, others; those of one type as they
/// were given. The list then speaks of indexes in that order.
///
/// # Errors
///
/// [`ErrorKind::Config`] for a list that can't be meant.
pub(crate) fn select(infos: &[PhysicalInfo], list: Option<mask::List<'_>>) -> Result<Selection> {
    let mut left_out: Vec<Option<String>> = infos.iter().map(lacking).collect();

    let mut by_preference: Vec<usize> = (0..infos.len())
        .filter(|&position| left_out[position].is_none())
        .collect();
    by_preference.sort_by(|&a, &b| preference(&infos[a], &infos[b]));
    let mut kept: Vec<usize> = Vec::new();
    for position in by_preference {
        let info = &infos[position];
        let twin = kept
            .iter()
            .find_map(|&other| Some((&infos[other], same_device(&infos[other], info)?)));
        match twin {
            Some((better, evidence)) => {
                left_out[position] = Some(duplicate(info, better, evidence));
            }
            None => kept.push(position),
        }
    }
    kept.sort_by_key(|&position| (infos[position].device_type, position));

    let uuids: Vec<[u8; 16]> = kept.iter().map(|&position| infos[position].uuid).collect();
    let visible: Vec<usize> = mask::visible(list, &uuids)?
        .into_iter()
        .map(|place| kept[place])
        .collect();

    let mut candidates: Vec<Candidate> = (0u32..)
        .zip(&visible)
        .map(|(index, &position)| accepted(&infos[position], index))
        .collect();
    for (position, info) in infos.iter().enumerate() {
        let reason = match left_out[position].take() {
            Some(reason) => reason,
            None if visible.contains(&position) => continue,
            None => list.map(mask::List::hides).unwrap_or_default(),
        };
        candidates.push(Candidate {
            accepted: false,
            reason,
            index: None,
            ..accepted(info, 0)
        });
    }
    Ok(Selection {
        visible,
        candidates,
    })
}

fn accepted(info: &PhysicalInfo, index: u32) -> Candidate {
    Candidate {
        name: info.name.clone(),
        uuid: info.uuid,
        accepted: true,
        reason: format!(
            "taken: {} device with Vulkan {} through the driver {}",
            info.device_type,
            info.api_version,
            driver(info)
        ),
        index: Some(index),
        capability: DeviceCapability::new(info),
    }
}

/// What the device lacks, if anything.
fn lacking(info: &PhysicalInfo) -> Option<String> {
    let version = info.usable_version;
    if version < Version::NEEDED {
        // Its features were not asked for.
        return Some(if info.api_version < Version::NEEDED {
            format!(
                "its driver has Vulkan {} only, and {} is needed; a newer driver may help",
                info.api_version,
                Version::NEEDED
            )
        } else {
            format!(
                "the Vulkan loader has version {version} only, and {} is needed; update it",
                Version::NEEDED
            )
        });
    }
    let mut faults = Vec::new();
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|&&feature| !info.features.contains(feature))
        .map(|feature| feature.name())
        .collect();
    if !missing.is_empty() {
        faults.push(format!(
            "it lacks {}, which every device needs here",
            missing.join(" and ")
        ));
    }
    let computes = |family: &super::info::QueueFamily| {
        family.flags.contains(QueueFlags::COMPUTE) && family.count > 0
    };
    if !info.queue_families.iter().any(computes) {
        faults.push("it has no queue that computes".to_owned());
    }
    if info.device_heap().is_none() {
        faults.push("it reports no memory of its own".to_owned());
    }
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// What shows that two physical devices are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    Pci,
    Luid,
    Uuid,
    Processor,
}

/// Whether both are one device, seen twice.
///
/// Equal identities alone tell it only across drivers: one driver lists a device once, and there are
/// drivers that give two equal cards one identity (or none: zeros). A place on the bus or an adapter
/// id that differs proves two devices whatever the rest says.
fn same_device(a: &PhysicalInfo, b: &PhysicalInfo) -> Option<Evidence> {
    let equal_pci = equal(a.pci.as_ref(), b.pci.as_ref());
    let equal_luid = equal(a.luid.as_ref(), b.luid.as_ref());
    if equal_pci == Some(false) || equal_luid == Some(false) {
        return None;
    }
    // Mesa's software driver gives its own version as its device's identity; the vendor tells it from
    // others that do so.
    let equal_uuid = uuid::is_given(&a.uuid) && a.uuid == b.uuid && a.vendor_id == b.vendor_id;
    let one_driver = a.driver.id == b.driver.id && a.driver.uuid == b.driver.uuid;
    if one_driver && !equal_uuid {
        // Parts of one card that its driver shows apart.
        return None;
    }
    if equal_pci == Some(true) {
        Some(Evidence::Pci)
    } else if equal_luid == Some(true) {
        Some(Evidence::Luid)
    } else if equal_uuid && !one_driver {
        Some(Evidence::Uuid)
    } else if !one_driver && is_one_processor(a, b) {
        Some(Evidence::Processor)
    } else {
        None
    }
}

/// Whether both are the graphics of one processor, of which a machine has one.
///
/// Apple's have no place on a bus, and each of the drivers there makes up an identity of its own.
fn is_one_processor(a: &PhysicalInfo, b: &PhysicalInfo) -> bool {
    let both_integrated = [a, b].map(|info| info.device_type) == [DeviceType::Integrated; 2];
    both_integrated && a.vendor_id == b.vendor_id && a.name == b.name
}

fn equal<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
    Some(a? == b?)
}

/// Orders physical devices that may be one: the one to keep comes first.
fn preference(a: &PhysicalInfo, b: &PhysicalInfo) -> Ordering {
    rank(a).cmp(&rank(b))
}

fn rank(info: &PhysicalInfo) -> (bool, bool, Reverse<Version>) {
    (
        info.is_portability() || info.offers(Extension::LayeredDriver),
        info.driver.conformance == [0; 4],
        Reverse(info.api_version),
    )
}

fn duplicate(info: &PhysicalInfo, better: &PhysicalInfo, evidence: Evidence) -> String {
    let evidence = match evidence {
        Evidence::Pci => "the same place on the PCI bus",
        Evidence::Luid => "the same adapter id",
        Evidence::Uuid => "the same deviceUUID",
        Evidence::Processor => "the same processor's graphics",
    };
    let (ours, theirs) = (rank(info), rank(better));
    let advantage = if ours.0 != theirs.0 {
        "it is no layer and leaves nothing out of Vulkan".to_owned()
    } else if ours.1 != theirs.1 {
        "it passed the conformance tests".to_owned()
    } else if ours.2 != theirs.2 {
        format!(
            "it has the newer Vulkan {} (here {})",
            better.api_version, info.api_version
        )
    } else {
        "it is listed first".to_owned()
    };
    format!(
        "the same device as {} ({evidence}), seen through the driver {}; that of {} is preferred \
         because {advantage}",
        better.name,
        driver(info),
        driver(better),
    )
}

fn driver(info: &PhysicalInfo) -> &str {
    if info.driver.name.is_empty() {
        "of unknown name"
    } else {
        &info.driver.name
    }
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
