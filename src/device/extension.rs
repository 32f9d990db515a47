//! The device extensions that the crate uses where they are there.

use std::collections::BTreeSet;

use super::info::Version;

macro_rules! extensions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $core:expr, $enable:literal;)*) => {
        /// A device extension that the crate uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Extension {
            $($(#[$doc])* $variant),*
        }

        impl Extension {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }

            /// The version that took it in.
            const fn core(self) -> Option<Version> {
                match self {
                    $(Self::$variant => $core),*
                }
            }

            /// Whether it has to be enabled at the device; some only answer queries.
            pub(crate) const fn is_enabled_at_device(self) -> bool {
                match self {
                    $(Self::$variant => $enable),*
                }
            }
        }
    };
}

extensions! {
    /// Says that parts of Vulkan are left out; must be enabled where it is offered.
    PortabilitySubset = "VK_KHR_portability_subset", None, true;
    /// How much of each heap is in use by anybody.
    MemoryBudget = "VK_EXT_memory_budget", None, true;
    /// Host memory of the program's own as device memory.
    ExternalMemoryHost = "VK_EXT_external_memory_host", None, true;
    /// Atomic operations on 32-bit floats.
    ShaderAtomicFloat = "VK_EXT_shader_atomic_float", None, true;
    /// `maxBufferSize`, `LocalSizeId`.
    Maintenance4 = "VK_KHR_maintenance4", Some(Version::V1_3), true;
    /// The range of subgroup sizes.
    SubgroupSizeControl = "VK_EXT_subgroup_size_control", Some(Version::V1_3), true;
    /// Integer dot products.
    ShaderIntegerDotProduct = "VK_KHR_shader_integer_dot_product", Some(Version::V1_3), true;
    /// Says that all timestamps of a device count the same time, which core Vulkan does not.
    CalibratedTimestamps = "VK_EXT_calibrated_timestamps", None, false;
    /// The place on the PCI bus.
    PciBusInfo = "VK_EXT_pci_bus_info", None, false;
    /// Says that the driver stands on another API, and which.
    LayeredDriver = "VK_MSFT_layered_driver", None, false;
}

impl Extension {
    /// Whether it is part of this version of Vulkan.
    pub(crate) fn is_core_in(self, version: Version) -> bool {
        self.core().is_some_and(|core| version >= core)
    }

    /// Whether what it brings can be used on a device with this version and these extensions.
    pub(crate) fn is_usable(self, version: Version, extensions: &BTreeSet<String>) -> bool {
        self.is_core_in(version) || extensions.contains(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_core_from_the_version_that_took_it_in() {
        let patched = Version {
            patch: 230,
            ..Version::V1_3
        };
        assert!(Extension::Maintenance4.is_core_in(patched));
        assert!(!Extension::Maintenance4.is_core_in(Version::NEEDED));
        assert!(!Extension::MemoryBudget.is_core_in(patched));
    }
}
