//! What Vulkan reports about a physical device, as plain data.
//!
//! Filled by a query, or by hand in tests; everything that is decided before a device is opened is
//! decided from it.

use core::fmt;
use std::collections::BTreeSet;

use super::extension::Extension;
use super::feature::FeatureSet;
use super::limits::DeviceLimits;

/// A version of Vulkan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Version {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
    /// The patch number.
    pub patch: u32,
}

impl Version {
    /// The oldest version that the crate works with.
    pub(crate) const NEEDED: Self = Self::new(1, 2);
    pub(crate) const V1_1: Self = Self::new(1, 1);
    pub(crate) const V1_3: Self = Self::new(1, 3);

    pub(crate) const fn new(major: u32, minor: u32) -> Self {
        Self {
            major,
            minor,
            patch: 0,
        }
    }

    /// Reads Vulkan's packed form: 3 bits of variant (ignored), 7, 10 and 12 bits.
    pub(crate) const fn from_packed(packed: u32) -> Self {
        Self {
            major: (packed >> 22) & 0x7f,
            minor: (packed >> 12) & 0x3ff,
            patch: packed & 0xfff,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What sort of device it is, as its driver says.
///
/// The order of declaration is the order in which devices are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeviceType {
    /// A card with memory of its own.
    Discrete,
    /// Part of the host processor's package, sharing its memory.
    Integrated,
    /// A node in a virtual machine.
    Virtual,
    /// The host processor itself: a software driver.
    Cpu,
    /// None of these.
    Other,
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Cpu => "CPU",
            Self::Other => "other",
        })
    }
}

/// The driver behind a physical device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Driver {
    /// `VkDriverId`; 0 where it was not asked for.
    pub id: i32,
    /// The name, as `radv`.
    pub name: String,
    /// The driver's own text about its version, as `Mesa 22.3.6`; may be empty.
    pub info: String,
    /// The packed version; packed as the vendor likes.
    pub version: u32,
    /// The version of the conformance tests it passed; all 0 if none.
    pub conformance: [u8; 4],
    /// The same for two devices if and only if one driver build drives both.
    pub uuid: [u8; 16],
}

/// A place on the PCI bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PciAddress {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub function: u32,
}

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident { $($flag:ident = $bit:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct $name(pub u32);

        impl $name {
            $(pub const $flag: Self = Self($bit);)*

            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let named = [$((Self::$flag, stringify!($flag))),*];
                let mut rest = self.0;
                let mut set = f.debug_set();
                for (flag, name) in named {
                    if self.contains(flag) {
                        rest &= !flag.0;
                        set.entry(&format_args!("{name}"));
                    }
                }
                if rest != 0 {
                    set.entry(&format_args!("{rest:#x}"));
                }
                set.finish()
            }
        }
    };
}

flags! {
    /// What a queue family can do; the bits are Vulkan's.
    QueueFlags { GRAPHICS = 1, COMPUTE = 2, TRANSFER = 4, SPARSE_BINDING = 8, PROTECTED = 16 }
}

flags! {
    /// What a memory type is like; the bits are Vulkan's.
    MemoryFlags {
        DEVICE_LOCAL = 1,
        HOST_VISIBLE = 2,
        HOST_COHERENT = 4,
        HOST_CACHED = 8,
        LAZILY_ALLOCATED = 16,
        PROTECTED = 32,
        DEVICE_COHERENT_AMD = 64,
        DEVICE_UNCACHED_AMD = 128,
        RDMA_CAPABLE_NV = 256,
    }
}

impl MemoryFlags {
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A family of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFamily {
    pub flags: QueueFlags,
    /// How many queues it has.
    pub count: u32,
    /// How many bits of a timestamp are meaningful; 0: its queues write none.
    pub timestamp_valid_bits: u32,
}

/// A heap that memory is allocated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryHeap {
    /// In bytes.
    pub size: u64,
    pub device_local: bool,
}

/// A type of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryType {
    pub flags: MemoryFlags,
    /// The index of its heap.
    pub heap: u32,
}

/// What Vulkan reports about a physical device.
#[derive(Clone, Debug)]
pub(crate) struct PhysicalInfo {
    pub name: String,
    pub vendor_id: u32,
    pub device_id: u32,
    pub device_type: DeviceType,
    /// The version that the device reports.
    pub api_version: Version,
    /// The version that may be used: the device's, but no newer than the instance was made for.
    pub usable_version: Version,
    pub driver: Driver,
    /// All 0 where the driver gives none.
    pub uuid: [u8; 16],
    /// The adapter's id on Windows.
    pub luid: Option<[u8; 8]>,
    pub pci: Option<PciAddress>,
    pub queue_families: Vec<QueueFamily>,
    pub memory_heaps: Vec<MemoryHeap>,
    pub memory_types: Vec<MemoryType>,
    pub limits: DeviceLimits,
    /// Those of [`Feature`](super::Feature) that it has.
    pub features: FeatureSet,
    /// Every device extension that it offers.
    pub extensions: BTreeSet<String>,
}

impl PhysicalInfo {
    /// Whether the device lists the extension.
    pub(crate) fn offers(&self, extension: Extension) -> bool {
        self.extensions.contains(extension.name())
    }

    /// Whether the driver says that it leaves out parts of Vulkan.
    pub(crate) fn is_portability(&self) -> bool {
        self.offers(Extension::PortabilitySubset)
    }

    /// Whether device and host share their memory.
    pub(crate) fn is_unified(&self) -> bool {
        matches!(self.device_type, DeviceType::Integrated | DeviceType::Cpu)
            || self.memory_heaps.iter().all(|heap| heap.device_local)
    }

    /// The index of the heap that counts as the device's memory: the largest local one.
    pub(crate) fn device_heap(&self) -> Option<u32> {
        (0u32..)
            .zip(&self.memory_heaps)
            .filter(|(_, heap)| heap.device_local)
            // The first one of equals: `max_by_key` alone gives the last.
            .max_by_key(|(index, heap)| (heap.size, core::cmp::Reverse(*index)))
            .map(|(index, _)| index)
    }

    /// The size of that heap in bytes; 0 where there is none.
    pub(crate) fn device_memory(&self) -> u64 {
        self.device_heap()
            .and_then(|heap| self.memory_heaps.get(heap as usize))
            .map_or(0, |heap| heap.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_versions_are_read_without_their_variant() {
        let packed = (1 << 22) | (3 << 12) | 230;
        assert_eq!(Version::from_packed(packed).to_string(), "1.3.230");
        assert_eq!(
            Version::from_packed(packed | 1 << 29),
            Version::from_packed(packed)
        );
        assert!(Version::from_packed(packed) > Version::V1_3);
    }

    #[test]
    fn flags_print_their_names_and_unknown_bits() {
        let flags = MemoryFlags::DEVICE_LOCAL | MemoryFlags(0x1000);
        assert_eq!(format!("{flags:?}"), "{DEVICE_LOCAL, 0x1000}");
    }
}
