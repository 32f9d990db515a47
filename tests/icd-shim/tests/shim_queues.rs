//! What runs on the shim's queues: late, out of order between them, in order on each, and never
//! before what it waits for.
//!
//! # Safety
//!
//! As in `support`.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::time::{Duration, Instant};

use ash::vk;
use support::{Vulkan, over_the_shim};

const LATE: [(&str, &str); 3] = [("QUEUES", "2"), ("DELAY_US", "10000"), ("SEED", "7")];

#[test]
fn queues_overtake_each_other() {
    over_the_shim("queues_overtake_each_other", &LATE, || {
        let opened = Vulkan::new().open();
        let timelines = [opened.timeline(), opened.timeline()];
        let mut overtaken = 0;
        let rounds = 16;
        for round in 1..=rounds {
            for (queue, timeline) in opened.queues[0].iter().zip(timelines) {
                opened.submit(*queue, None, &[], (timeline, round));
            }
            opened.wait(timelines[1], round).unwrap();
            if opened.reached(timelines[0]).unwrap() < round {
                overtaken += 1;
            }
            opened.wait(timelines[0], round).unwrap();
        }
        assert!((1..rounds).contains(&overtaken), "{overtaken} of {rounds}");
        opened.destroy(&timelines, &[]);
    });
}

#[test]
fn a_queue_keeps_its_own_order() {
    over_the_shim("a_queue_keeps_its_own_order", &LATE, || {
        let opened = Vulkan::new().open();
        let (timeline, pool, buffer) = (opened.timeline(), opened.pool(0), opened.buffer());
        for word in 1..=20 {
            let commands = opened.fill(pool, &buffer, word);
            opened.submit(
                opened.queues[0][1],
                None,
                &[commands],
                (timeline, word.into()),
            );
        }
        opened.wait(timeline, 3).unwrap();
        assert!(buffer.read() >= 3);
        opened.wait(timeline, 20).unwrap();
        assert_eq!(buffer.read(), 20);
        opened.destroy(&[timeline], &[pool]);
        buffer.destroy(&opened);
    });
}

#[test]
fn a_wait_orders_two_queues_of_two_families() {
    let settings = [("DELAY_US", "5000"), ("FAMILY", "transfer")];
    over_the_shim(
        "a_wait_orders_two_queues_of_two_families",
        &settings,
        || {
            let opened = Vulkan::new().open();
            let timelines = [opened.timeline(), opened.timeline()];
            let pools = [opened.pool(0), opened.pool(1)];
            let buffers = [opened.buffer(), opened.buffer()];
            let queues = [opened.queues[0][0], opened.queues[1][0]];
            for word in 1..=10 {
                let value = u64::from(word);
                let fill = opened.fill(pools[0], &buffers[0], word);
                let copy = opened.copy(pools[1], &buffers[0], &buffers[1]);
                // The next fill comes behind the copy that reads what is there.
                let before = (timelines[1], value - 1);
                opened.submit(queues[0], Some(before), &[fill], (timelines[0], value));
                opened.submit(
                    queues[1],
                    Some((timelines[0], value)),
                    &[copy],
                    (timelines[1], value),
                );
                if word % 3 == 0 {
                    opened.wait(timelines[1], value).unwrap();
                    assert_eq!(buffers[1].read(), word);
                }
            }
            opened.wait(timelines[1], 10).unwrap();
            assert_eq!(buffers[1].read(), 10);
            opened.destroy(&timelines, &pools);
            buffers
                .into_iter()
                .for_each(|buffer| buffer.destroy(&opened));
        },
    );
}

#[test]
fn a_wait_before_its_signal_does_not_hang() {
    over_the_shim("a_wait_before_its_signal_does_not_hang", &LATE, || {
        let opened = Vulkan::new().open();
        let timelines = [opened.timeline(), opened.timeline()];
        let queues = &opened.queues[0];
        opened.submit(queues[1], Some((timelines[0], 1)), &[], (timelines[1], 1));
        opened.submit(queues[0], None, &[], (timelines[0], 1));
        opened.wait(timelines[1], 1).unwrap();
        // The host can be the one that signals.
        opened.submit(queues[1], Some((timelines[0], 2)), &[], (timelines[1], 2));
        let info = vk::SemaphoreSignalInfo::default()
            .semaphore(timelines[0])
            .value(2);
        // SAFETY: the semaphore is alive, and nothing that is under way signals it.
        unsafe { opened.raw.signal_semaphore(&info) }.unwrap();
        opened.wait(timelines[1], 2).unwrap();
        opened.destroy(&timelines, &[]);
    });
}

#[test]
fn the_newer_submit_does_the_same() {
    over_the_shim("the_newer_submit_does_the_same", &LATE, || {
        let opened = Vulkan::new().open();
        let (timeline, pool) = (opened.timeline(), opened.pool(0));
        let buffers = [opened.buffer(), opened.buffer()];
        let commands = [
            opened.fill(pool, &buffers[0], 5),
            opened.copy(pool, &buffers[0], &buffers[1]),
        ];
        let point = |value| {
            let info = vk::SemaphoreSubmitInfo::default()
                .semaphore(timeline)
                .value(value);
            [info.stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)]
        };
        let (first, second) = (point(1), point(2));
        let commands = commands
            .map(|commands| [vk::CommandBufferSubmitInfo::default().command_buffer(commands)]);
        let fill = vk::SubmitInfo2::default()
            .command_buffer_infos(&commands[0])
            .signal_semaphore_infos(&first);
        let copy = vk::SubmitInfo2::default()
            .wait_semaphore_infos(&first)
            .command_buffer_infos(&commands[1])
            .signal_semaphore_infos(&second);
        for (queue, info) in [(1, copy), (0, fill)] {
            // SAFETY: all that is used is destroyed at the end, after a wait.
            unsafe {
                opened
                    .raw
                    .queue_submit2(opened.queues[0][queue], &[info], vk::Fence::null())
            }
            .unwrap();
        }
        opened.wait(timeline, 2).unwrap();
        assert_eq!(buffers[1].read(), 5);
        opened.destroy(&[timeline], &[pool]);
        buffers
            .into_iter()
            .for_each(|buffer| buffer.destroy(&opened));
    });
}

#[test]
fn fences_and_binary_semaphores_work_between_queues() {
    over_the_shim(
        "fences_and_binary_semaphores_work_between_queues",
        &LATE,
        || {
            let opened = Vulkan::new().open();
            let pool = opened.pool(0);
            let buffers = [opened.buffer(), opened.buffer()];
            // SAFETY: the device is alive.
            let binary = unsafe { opened.raw.create_semaphore(&Default::default(), None) }.unwrap();
            // SAFETY: as above.
            let fence = unsafe { opened.raw.create_fence(&Default::default(), None) }.unwrap();
            let queues = &opened.queues[0];
            for word in 1..=5 {
                let fill = opened.fill(pool, &buffers[0], word);
                let copy = opened.copy(pool, &buffers[0], &buffers[1]);
                let none = vk::Fence::null();
                opened
                    .try_submit(queues[0], None, &[fill], Some((binary, 0)), none)
                    .unwrap();
                opened
                    .try_submit(queues[1], Some((binary, 0)), &[copy], None, fence)
                    .unwrap();
                // SAFETY: the fence is alive.
                unsafe { opened.raw.wait_for_fences(&[fence], true, 10_000_000_000) }.unwrap();
                assert_eq!(buffers[1].read(), word);
                // SAFETY: the fence was waited for.
                unsafe { opened.raw.reset_fences(&[fence]) }.unwrap();
            }
            // SAFETY: as above; a fence alone stands behind all of its queue's work.
            unsafe { opened.raw.queue_submit(queues[1], &[], fence) }.unwrap();
            // SAFETY: the fence is alive.
            unsafe { opened.raw.wait_for_fences(&[fence], true, 10_000_000_000) }.unwrap();
            // SAFETY: all work was waited for.
            unsafe { opened.raw.destroy_fence(fence, None) };
            opened.destroy(&[binary], &[pool]);
            buffers
                .into_iter()
                .for_each(|buffer| buffer.destroy(&opened));
        },
    );
}

#[test]
fn idle_means_that_nothing_is_held_back() {
    over_the_shim("idle_means_that_nothing_is_held_back", &LATE, || {
        let opened = Vulkan::new().open();
        let timelines = [opened.timeline(), opened.timeline()];
        for value in 1..=5 {
            for (queue, timeline) in opened.queues[0].iter().zip(timelines) {
                opened.submit(*queue, None, &[], (timeline, value));
            }
        }
        // SAFETY: the queue is used on this thread alone.
        unsafe { opened.raw.queue_wait_idle(opened.queues[0][0]) }.unwrap();
        assert_eq!(opened.reached(timelines[0]), Ok(5));
        // SAFETY: as above.
        unsafe { opened.raw.device_wait_idle() }.unwrap();
        assert_eq!(opened.reached(timelines[1]), Ok(5));
        opened.destroy(&timelines, &[]);
    });
}

/// How many threads the shim has; nothing where that can't be seen.
fn threads() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    Some(names.filter(|name| name.starts_with("icd-shim")).count())
}

#[test]
fn closing_a_device_ends_the_threads_of_its_queues() {
    let test = "closing_a_device_ends_the_threads_of_its_queues";
    over_the_shim(test, &[("QUEUES", "8")], || {
        let vulkan = Vulkan::new();
        for _ in 0..3 {
            let opened = vulkan.open();
            // A thread gets its name only once it runs.
            let deadline = Instant::now() + Duration::from_secs(5);
            while threads().is_some_and(|count| count < 8) && Instant::now() < deadline {
                std::thread::yield_now();
            }
            assert!(threads().is_none_or(|count| count == 8));
            drop(opened);
            assert!(threads().is_none_or(|count| count == 0));
        }
    });
}
