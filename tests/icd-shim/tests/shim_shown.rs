//! What the shim shows: queues, families, limits, heaps.
//!
//! # Safety
//!
//! As in `support`.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use ash::vk;
use support::{Vulkan, over_the_shim};

#[test]
fn without_settings_the_driver_shows_through() {
    over_the_shim("without_settings_the_driver_shows_through", &[], || {
        let vulkan = Vulkan::new();
        let families = vulkan.families();
        assert_eq!((families.len(), families[0].queue_count), (1, 1));
        assert!(families[0].queue_flags.contains(vk::QueueFlags::COMPUTE));
        let opened = vulkan.open();
        let memory = opened.allocate(1 << 20).unwrap();
        opened.free(memory);
    });
}

#[test]
fn queues_and_a_second_family_are_shown_and_opened() {
    let settings = [
        ("QUEUES", "4"),
        ("FAMILY", "transfer"),
        ("FAMILY_QUEUES", "2"),
    ];
    over_the_shim(
        "queues_and_a_second_family_are_shown_and_opened",
        &settings,
        || {
            let vulkan = Vulkan::new();
            let families = vulkan.families();
            let counts: Vec<_> = families.iter().map(|family| family.queue_count).collect();
            assert_eq!(counts, [4, 2]);
            assert_eq!(families[1].queue_flags, vk::QueueFlags::TRANSFER);
            // The newer function says the same.
            let mut newer = [vk::QueueFamilyProperties2::default(); 2];
            // SAFETY: the physical device is the instance's.
            unsafe {
                vulkan
                    .instance
                    .get_physical_device_queue_family_properties2(vulkan.physical, &mut newer)
            };
            let counts = newer.map(|family| family.queue_family_properties.queue_count);
            assert_eq!(counts, [4, 2]);

            let opened = vulkan.open();
            let mut queues = opened.queues.concat();
            assert!(!queues.contains(&vk::Queue::null()));
            queues.sort();
            queues.dedup();
            assert_eq!(queues.len(), 6);
        },
    );
}

#[test]
fn a_second_family_can_compute_without_timestamps() {
    let settings = [("FAMILY", "compute")];
    over_the_shim(
        "a_second_family_can_compute_without_timestamps",
        &settings,
        || {
            let family = Vulkan::new().families()[1];
            assert_eq!(
                family.queue_flags,
                vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER
            );
            assert_eq!((family.queue_count, family.timestamp_valid_bits), (1, 0));
        },
    );
}

#[test]
fn limits_are_shown_and_hold() {
    let settings = [
        ("MAX_ALLOCATIONS", "3"),
        ("MAX_ALLOCATION_BYTES", "1048576"),
        ("MAX_BUFFER_BYTES", "524288"),
        ("MAX_STORAGE_BYTES", "65536"),
    ];
    over_the_shim("limits_are_shown_and_hold", &settings, || {
        let vulkan = Vulkan::new();
        let mut older = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut newer = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut older)
            .push_next(&mut newer);
        // SAFETY: the physical device is the instance's.
        unsafe {
            vulkan
                .instance
                .get_physical_device_properties2(vulkan.physical, &mut properties)
        };
        let limits = properties.properties.limits;
        assert_eq!(limits.max_memory_allocation_count, 3);
        assert_eq!(limits.max_storage_buffer_range, 65536);
        assert_eq!(older.max_memory_allocation_size, 1 << 20);
        assert_eq!(newer.max_buffer_size, 1 << 19);

        let opened = vulkan.open();
        let mut held: Vec<_> = (0..3).map(|_| opened.allocate(4096).unwrap()).collect();
        if !vulkan.validated {
            // Layers forbid to try.
            assert_eq!(
                opened.allocate(4096),
                Err(vk::Result::ERROR_TOO_MANY_OBJECTS)
            );
            let larger = opened.allocate((1 << 20) + 1);
            assert_eq!(larger, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
            let buffer = vk::BufferCreateInfo::default()
                .size((1 << 19) + 1)
                .usage(vk::BufferUsageFlags::TRANSFER_DST);
            // SAFETY: the device is alive.
            let buffer = unsafe { opened.raw.create_buffer(&buffer, None) };
            assert_eq!(buffer, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
        }
        opened.free(held.pop().unwrap());
        held.push(opened.allocate(1 << 20).unwrap());
        held.into_iter().for_each(|memory| opened.free(memory));
    });
}

#[test]
fn a_simulated_heap_runs_full_and_its_budget_says_so() {
    let settings = [("HEAP_BYTES", "8388608"), ("HEAP_OTHERS_BYTES", "1048576")];
    over_the_shim(
        "a_simulated_heap_runs_full_and_its_budget_says_so",
        &settings,
        || {
            let vulkan = Vulkan::new();
            let heap = || {
                let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
                let mut memory =
                    vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
                // SAFETY: the physical device is the instance's, and has the extension.
                unsafe {
                    vulkan
                        .instance
                        .get_physical_device_memory_properties2(vulkan.physical, &mut memory)
                };
                let size = memory.memory_properties.memory_heaps[0].size;
                (size, budget.heap_budget[0], budget.heap_usage[0])
            };
            // SAFETY: as above.
            let extensions = unsafe {
                vulkan
                    .instance
                    .enumerate_device_extension_properties(vulkan.physical)
            };
            let budgets = extensions.unwrap().into_iter().filter(|extension| {
                extension.extension_name_as_c_str() == Ok(ash::ext::memory_budget::NAME)
            });
            assert_eq!(budgets.count(), 1);

            let opened = vulkan
                .try_open(&[ash::ext::memory_budget::NAME.as_ptr()])
                .unwrap();
            let mib = 1 << 20;
            assert_eq!(heap(), (8 * mib, 7 * mib, 0));
            let held = opened.allocate(5 * mib).unwrap();
            assert_eq!(heap(), (8 * mib, 7 * mib, 5 * mib));
            assert_eq!(
                opened.allocate(3 * mib),
                Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)
            );
            opened.free(held);
            let held = opened.allocate(7 * mib).unwrap();
            opened.free(held);
            assert_eq!(heap(), (8 * mib, 7 * mib, 0));
        },
    );
}

#[test]
fn a_setting_that_cannot_be_read_gives_no_instance() {
    let settings = [("QUEUES", "many")];
    over_the_shim(
        "a_setting_that_cannot_be_read_gives_no_instance",
        &settings,
        || {
            assert!(Vulkan::try_new().is_err());
        },
    );
}
