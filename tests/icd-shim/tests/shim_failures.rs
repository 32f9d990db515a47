//! What fails on command.
//!
//! # Safety
//!
//! As in `support`.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use ash::vk;
use support::{Opened, Vulkan, over_the_shim};

const LOST: vk::Result = vk::Result::ERROR_DEVICE_LOST;

#[test]
fn the_call_that_is_named_fails_and_no_other() {
    let rules = "vkAllocateMemory#2=ERROR_OUT_OF_DEVICE_MEMORY,\
                 vkCreateDevice#1=ERROR_INITIALIZATION_FAILED,\
                 vkCreateSemaphore#1+=ERROR_OUT_OF_HOST_MEMORY";
    let settings = [("FAIL", rules)];
    over_the_shim(
        "the_call_that_is_named_fails_and_no_other",
        &settings,
        || {
            let vulkan = Vulkan::new();
            let refused = vulkan.try_open(&[]).err();
            assert_eq!(refused, Some(vk::Result::ERROR_INITIALIZATION_FAILED));
            let opened = vulkan.open();
            let memory = opened.allocate(4096).unwrap();
            assert_eq!(
                opened.allocate(4096),
                Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)
            );
            opened.free(memory);
            opened.free(opened.allocate(4096).unwrap());
            for _ in 0..2 {
                // SAFETY: the device is alive.
                let semaphore = unsafe { opened.raw.create_semaphore(&Default::default(), None) };
                assert_eq!(semaphore, Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
            }
        },
    );
}

fn is_lost(opened: &Opened, timeline: vk::Semaphore) {
    let queue = opened.queues[0][0];
    let submitted = opened.try_submit(queue, None, &[], Some((timeline, 9)), vk::Fence::null());
    assert_eq!(submitted, Err(LOST));
    // SAFETY: the queue is used on this thread alone.
    assert_eq!(unsafe { opened.raw.queue_wait_idle(queue) }, Err(LOST));
    // SAFETY: as above.
    assert_eq!(unsafe { opened.raw.device_wait_idle() }, Err(LOST));
}

#[test]
fn a_submission_can_lose_the_device_and_the_next_device_is_sound() {
    let settings = [
        ("FAIL", "vkQueueSubmit#2=ERROR_DEVICE_LOST"),
        ("QUEUES", "2"),
    ];
    let test = "a_submission_can_lose_the_device_and_the_next_device_is_sound";
    over_the_shim(test, &settings, || {
        let vulkan = Vulkan::without_layer();
        let opened = vulkan.open();
        let timeline = opened.timeline();
        opened.submit(opened.queues[0][0], None, &[], (timeline, 1));
        opened.wait(timeline, 1).unwrap();
        let signal = Some((timeline, 2));
        let submitted =
            opened.try_submit(opened.queues[0][1], None, &[], signal, vk::Fence::null());
        assert_eq!(submitted, Err(LOST));
        is_lost(&opened, timeline);
        assert_eq!(opened.reached(timeline), Ok(u64::MAX));
        assert_eq!(opened.wait(timeline, 2), Ok(()));
        opened.destroy(&[timeline], &[]);
        drop(opened);

        let opened = vulkan.open();
        let timeline = opened.timeline();
        opened.submit(opened.queues[0][0], None, &[], (timeline, 1));
        opened.wait(timeline, 1).unwrap();
        opened.destroy(&[timeline], &[]);
    });
}

#[test]
fn a_loss_while_work_is_under_way_ends_the_waits_for_it() {
    let settings = [
        ("FAIL", "execution#3=ERROR_DEVICE_LOST"),
        ("LOST_COUNTER", "error"),
        ("DELAY_US", "20000"),
    ];
    let test = "a_loss_while_work_is_under_way_ends_the_waits_for_it";
    over_the_shim(test, &settings, || {
        let vulkan = Vulkan::without_layer();
        let opened = vulkan.open();
        let timeline = opened.timeline();
        for value in 1..=5 {
            opened.submit(opened.queues[0][0], None, &[], (timeline, value));
        }
        assert_eq!(opened.wait(timeline, 5), Err(LOST));
        assert_eq!(opened.reached(timeline), Err(LOST));
        is_lost(&opened, timeline);
        opened.destroy(&[timeline], &[]);
    });
}
