//! Queue families: those that are shown, and the driver's that stand behind them.

use ash::vk;

use crate::config::{Config, ExtraFamily};

/// What is shown where the driver has `real` families.
pub(crate) fn shown(
    real: &[vk::QueueFamilyProperties],
    config: &Config,
) -> Vec<vk::QueueFamilyProperties> {
    let mut shown: Vec<_> = real
        .iter()
        .map(|family| vk::QueueFamilyProperties {
            queue_flags: family.queue_flags & !vk::QueueFlags::SPARSE_BINDING,
            queue_count: config.queues,
            ..*family
        })
        .collect();
    if let Some(extra) = config.extra {
        let flags = match extra {
            ExtraFamily::Transfer => vk::QueueFlags::TRANSFER,
            ExtraFamily::Compute => vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER,
        };
        shown.push(vk::QueueFamilyProperties {
            queue_flags: flags,
            queue_count: config.extra_queues,
            timestamp_valid_bits: 0,
            min_image_transfer_granularity: vk::Extent3D {
                width: 1,
                height: 1,
                depth: 1,
            },
        });
    }
    shown
}

/// The driver's family behind the one that is shown as `family`.
pub(crate) fn real(family: u32, real: &[vk::QueueFamilyProperties]) -> u32 {
    if real.get(family as usize).is_some() {
        return family;
    }
    let computes = real
        .iter()
        .zip(0..)
        .find(|(family, _)| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
    computes.map_or(0, |(_, family)| family)
}

/// The driver's families behind several, each once.
pub(crate) fn all_real(families: &[u32], of: &[vk::QueueFamilyProperties]) -> Vec<u32> {
    let mut all: Vec<u32> = families.iter().map(|family| real(*family, of)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(flags: vk::QueueFlags) -> vk::QueueFamilyProperties {
        vk::QueueFamilyProperties {
            queue_flags: flags,
            queue_count: 1,
            ..Default::default()
        }
    }

    #[test]
    fn a_family_beyond_the_drivers_is_the_first_that_computes() {
        let families = [
            family(vk::QueueFlags::TRANSFER),
            family(vk::QueueFlags::COMPUTE),
        ];
        assert_eq!(real(0, &families), 0);
        assert_eq!(real(2, &families), 1);
        assert_eq!(all_real(&[1, 2], &families), [1]);
        assert_eq!(all_real(&[2, 0], &families), [0, 1]);
    }
}
