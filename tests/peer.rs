//! Promises of copies between devices. The two sides are two devices where there are two, and one in two runtimes
//! everywhere.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "icd-shim/tests/support/process.rs"]
mod process;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use ash::vk;
use process::over_the_shim;
use support::deadline::Deadline;
use support::entry::{Entry, args, hold::Hold};
use support::random::Random;
use support::slow::Slow;
use support::{TestRuntime, builder, on_each_device, skip};
use vkaccel::bytemuck;
use vkaccel::memory::{empty_host_cache, runtime_memory};
use vkaccel::{Buffer, Details, ErrorKind, Graph, Rows, Runtime, Stream, device_count};

const MIB: usize = 1 << 20;
/// The staging memory that a device keeps.
const KEPT: u64 = 64 << 10;

/// Bytes of which no two stretches are alike.
fn numbers(len: usize, seed: usize) -> Vec<u8> {
    let first = u32::try_from(seed << 24).unwrap();
    let words = (first..).take(len.div_ceil(4));
    let words = words.map(|word| word.wrapping_mul(2_654_435_761));
    let mut bytes = bytemuck::cast_slice(&words.collect::<Vec<u32>>()).to_vec();
    bytes.truncate(len);
    bytes
}

/// Runs a test with streams of each device in two runtimes, the second of which is current.
#[track_caller]
fn on_each_pair(name: &str, test: impl Fn(&Stream, &Stream)) {
    on_each_device(name, |runtime| {
        let near = Stream::new(0).unwrap();
        let _other = runtime.another(builder());
        test(&near, &Stream::new(0).unwrap());
    });
}

/// Two runtimes over drivers that are ruled, the second of which is current.
struct Ruled {
    near: (Entry, TestRuntime, Stream),
    far: (Entry, TestRuntime, Stream),
}

impl Ruled {
    fn new() -> Self {
        let side = || {
            let entry = Entry::new().unwrap();
            let runtime = TestRuntime::new(entry.builder());
            let stream = Stream::new(0).unwrap();
            stream.zeroed::<u8>(1).unwrap();
            stream.synchronize().unwrap();
            (entry, runtime, stream)
        };
        Self {
            near: side(),
            far: side(),
        }
    }
}

/// The staging memory of a runtime's device once what is free of it was given back.
fn staging_left(runtime: &TestRuntime) -> u64 {
    let _entered = runtime.runtime().enter();
    empty_host_cache().unwrap();
    runtime_memory(0).unwrap().staging_bytes
}

/// Copies of many lengths, to memory in use and to memory that is not.
fn content_arrives(near: &Stream, far: &Stream) {
    let short = [0, 1, 5, 100_003, 2 * MIB + 1].map(|len| [(len, false), (len, true)]);
    let long = (33 * MIB + 3, true);
    for (seed, (len, is_used)) in short.into_iter().flatten().chain([long]).enumerate() {
        let data = numbers(len, seed);
        let source = near.zeroed::<u8>(len).unwrap();
        near.write(&source, &data).unwrap();
        let target = far.uninit::<u8>(len).unwrap();
        if is_used {
            far.fill(&target, 0xEE).unwrap();
        }
        far.copy_from_peer(near, &source, &target).unwrap();
        // What comes behind changes nothing.
        near.fill(&source, 9).unwrap();
        assert!(far.to_vec(&target).unwrap() == data, "{len} bytes");
    }
    let source = near.upload(&[1u16, 2, 3, 4, 5]).unwrap();
    let target = far.upload(&[9u16; 6]).unwrap();
    let (from, to) = (source.view(1..4).unwrap(), target.view(2..5).unwrap());
    far.copy_from_peer(near, from, to).unwrap();
    assert_eq!(far.to_vec(&target).unwrap(), [9, 9, 2, 3, 4, 9]);
}

/// Rows that are longer than what is moved at once and shorter.
fn rows_arrive(near: &Stream, far: &Stream) {
    for (count, len) in [(3, 700_001), (3000, 5)] {
        let (wide, wider) = (len + 3, len + 11);
        let source = near.upload(&numbers(count * wide, 1)).unwrap();
        let target = far.upload(&numbers(count * wider, 2)).unwrap();
        let mut expected = far.to_vec(&target).unwrap();
        for (row, given) in expected
            .chunks_mut(wider)
            .zip(numbers(count * wide, 1).chunks(wide))
        {
            row[2..len + 2].copy_from_slice(&given[1..=len]);
        }
        let from = source.view(1..).unwrap().rows(count, len, wide).unwrap();
        let to = target.view(2..).unwrap().rows(count, len, wider).unwrap();
        far.copy_rows_from_peer(near, from, to).unwrap();
        assert!(far.to_vec(&target).unwrap() == expected, "{count} rows");
        // To memory in use, in rows without gaps.
        let dense = far.zeroed::<u8>(count * len).unwrap();
        let to = dense.rows(count, len, len).unwrap();
        far.copy_rows_from_peer(near, from, to).unwrap();
        assert_eq!(far.to_vec(&dense).unwrap(), near_vec(near, from));
    }
    let (one, two) = (
        near.upload(&[1u8; 6]).unwrap(),
        far.upload(&[1u8; 6]).unwrap(),
    );
    let (one, two) = (one.rows(2, 3, 3).unwrap(), two.rows(3, 2, 2).unwrap());
    let error = far.copy_rows_from_peer(near, one, two).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

fn near_vec(near: &Stream, rows: Rows<'_, u8>) -> Vec<u8> {
    let mut out = vec![0; rows.len()];
    near.read_rows(rows, &mut out).unwrap();
    out
}

#[test]
fn content_goes_from_one_runtime_to_another() {
    on_each_pair("content_goes_from_one_runtime_to_another", |near, far| {
        content_arrives(near, far);
        rows_arrive(near, far);
    });
}

#[test]
fn content_goes_from_one_device_to_another_both_ways() {
    let name = "content_goes_from_one_device_to_another";
    let _runtime = TestRuntime::new(builder());
    if device_count() < 2 {
        return skip(name, "there are not two devices");
    }
    let (first, second) = (Stream::new(0).unwrap(), Stream::new(1).unwrap());
    content_arrives(&first, &second);
    content_arrives(&second, &first);
    rows_arrive(&second, &first);
    crowd(name, [&first, &second], MIB * 3, 6);
    // On the current streams of both.
    let words = first.upload(&[1u32, 2, 3]).unwrap();
    first.synchronize().unwrap();
    let copy = second.zeroed::<u32>(3).unwrap();
    copy.copy_from_peer(words.view(..).unwrap()).unwrap();
    let view = copy.view(1..).unwrap();
    view.copy_from_peer(words.view(..2).unwrap()).unwrap();
    assert_eq!(copy.to_vec().unwrap(), [1, 1, 2]);
    // Who takes the other way is told of this one.
    let error = copy.copy_from(words.view(..).unwrap()).unwrap_err();
    assert!(error.to_string().contains("copy_from_peer"), "{error}");
}

/// Threads that copy in both directions at once, on streams of the two devices or runtimes.
fn crowd(name: &str, ends: [&Stream; 2], most: usize, rounds: usize) {
    let _deadline = Deadline::new(name, 240);
    let both = |len: usize| ends.map(|end| end.zeroed::<u8>(len).unwrap());
    let buffers: Vec<_> = (0..4).map(|_| both(most)).collect();
    for end in ends {
        end.synchronize().unwrap();
    }
    thread::scope(|scope| {
        for (seed, buffers) in buffers.iter().enumerate() {
            scope.spawn(move || {
                let mut random = Random::new(seed as u64);
                let (from, to) = (seed % 2, 1 - seed % 2);
                for round in 0..rounds {
                    let len = 1 + random.below(most);
                    let data = numbers(len, seed + round);
                    let source = buffers[from].view(most - len..).unwrap();
                    let target = buffers[to].view(..len).unwrap();
                    ends[from].write(source, &data).unwrap();
                    if round % 2 == 0 {
                        ends[to].fill(target, 1).unwrap();
                    }
                    ends[to].copy_from_peer(ends[from], source, target).unwrap();
                    assert!(ends[to].to_vec(target).unwrap() == data, "{len} bytes");
                }
            });
        }
    });
}

#[test]
fn threads_copy_in_both_directions_at_once() {
    on_each_pair("threads_copy_in_both_directions", |near, far| {
        crowd("threads_copy_in_both_directions", [near, far], 2 * MIB, 6);
    });
}

#[test]
fn content_goes_through_the_staging_memory_of_both_sides() {
    let test = "content_goes_through_the_staging_memory_of_both_sides";
    over_the_shim(
        test,
        &[("MEMORY", "apart"), ("QUEUES", "2"), ("DELAY_US", "100")],
        || {
            let Ruled { near, far } = Ruled::new();
            content_arrives(&near.2, &far.2);
            rows_arrive(&near.2, &far.2);
            crowd(test, [&near.2, &far.2], 2 * MIB, 6);
            for (_, runtime, stream) in [&near, &far] {
                let counters = runtime.runtime().counters();
                assert!(counters.host_waits_staging > 0);
                stream.synchronize().unwrap();
                assert_eq!(staging_left(runtime), KEPT);
            }
        },
    );
}

/// The submissions of both sides, in their order.
fn log_submissions(sides: [(&Entry, char); 2]) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    for (entry, name) in sides {
        let log = Arc::clone(&log);
        entry.alter("vkQueueSubmit", move |_: &mut args::QueueSubmit| {
            log.lock().unwrap().push(name);
        });
    }
    log
}

#[test]
fn the_source_is_at_the_next_pieces_while_one_is_moved_on() {
    let test = "the_source_is_at_the_next_pieces_while_one_is_moved_on";
    over_the_shim(test, &[("MEMORY", "apart")], || {
        let Ruled { near, far } = Ruled::new();
        let data = numbers(6 * MIB, 3);
        let (source, target) = (near.2.upload(&data), far.2.zeroed::<u8>(6 * MIB));
        let (source, target) = (source.unwrap(), target.unwrap());
        near.2.synchronize().unwrap();
        far.2.synchronize().unwrap();
        let log = log_submissions([(&near.0, 'n'), (&far.0, 'f')]);
        far.2.copy_from_peer(&near.2, &source, &target).unwrap();
        assert_eq!(*log.lock().unwrap(), "nnnfnfnfnfff");
        assert_eq!(far.2.to_vec(&target).unwrap(), data);
    });
}

#[test]
fn copies_in_both_directions_through_next_to_no_staging_memory_hold_nobody_up() {
    let test = "copies_in_both_directions_through_next_to_no_staging_memory_hold_nobody_up";
    over_the_shim(test, &[("MEMORY", "apart"), ("DELAY_US", "100")], || {
        let _deadline = Deadline::new(test, 240);
        // On both sides, or on one, so that the other's pieces are longer.
        for little in [[true, true], [true, false], [false, true]] {
            let Ruled { near, far } = Ruled::new();
            let sides = [(&near, little[0]), (&far, little[1])];
            let ends = sides.map(|((entry, runtime, _), is_little)| {
                let _entered = runtime.runtime().enter();
                let ends: [_; 4] = core::array::from_fn(|_| end(MIB / 2));
                if is_little {
                    // What is kept is all there is: one piece of 64 KiB.
                    empty_host_cache().unwrap();
                    let refused = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
                    entry.fail_all("vkAllocateMemory", refused);
                }
                ends
            });
            thread::scope(|scope| {
                for place in 0..4 {
                    let (source, target) = (&ends[place % 2][place], &ends[1 - place % 2][place]);
                    scope.spawn(move || copy_again_and_again(source, target, place));
                }
            });
            assert_eq!([&near.1, &far.1].map(staging_left), [KEPT; 2]);
        }
    });
}

/// A stream with a buffer that nothing uses.
fn end(len: usize) -> (Stream, Buffer<u8>) {
    let stream = Stream::new(0).unwrap();
    let buffer = stream.zeroed(len).unwrap();
    stream.synchronize().unwrap();
    (stream, buffer)
}

fn copy_again_and_again(source: &(Stream, Buffer<u8>), target: &(Stream, Buffer<u8>), seed: usize) {
    for round in 0..10 {
        let data = numbers(source.1.len(), seed + round);
        source.0.write(&source.1, &data).unwrap();
        let copied = target.0.copy_from_peer(&source.0, &source.1, &target.1);
        copied.unwrap();
        assert!(target.0.to_vec(&target.1).unwrap() == data);
    }
}

#[test]
fn only_the_source_is_waited_for() {
    on_each_device("only_the_source_is_waited_for", |runtime| {
        let near = Stream::new(0).unwrap();
        let slow_near = Slow::new(&near);
        let other = runtime.another(builder());
        let far = Stream::new(0).unwrap();
        let slow_far = Slow::new(&far);
        let (source, target) = (near.zeroed::<u32>(1000), far.zeroed::<u32>(1000));
        let (source, target) = (source.unwrap(), target.unwrap());
        slow_far.launch(&far);
        far.fill(&target, 1).unwrap();
        slow_near.launch(&near);
        near.fill(&source, 7).unwrap();
        let before = [runtime, &other].map(|side| side.runtime().counters());
        far.copy_from_peer(&near, &source, &target).unwrap();
        let after = [runtime, &other].map(|side| side.runtime().counters());
        let since = [after[0].since(&before[0]), after[1].since(&before[1])];
        assert_eq!(since.map(|side| side.host_waits_staging), [1, 0]);
        assert_eq!(since.map(|side| side.host_waits_asked), [0, 0]);
        assert_eq!(far.to_vec(&target).unwrap(), [7; 1000]);

        // One whose source is there returns before what stands before it on its own stream is done.
        let entry = Entry::new().unwrap();
        let _ruled = runtime.another(entry.builder());
        let held = Stream::new(0).unwrap();
        let target = held.zeroed::<u32>(1000).unwrap();
        held.synchronize().unwrap();
        let _hold = Hold::new(&entry);
        held.fill(&target, 1).unwrap();
        held.copy_from_peer(&near, &source, &target).unwrap();
        assert!(!held.query().unwrap());
        assert_eq!(held.to_vec(&target).unwrap(), [7; 1000]);
    });
}

/// What either stream does with the source and the target stands before or behind the copy.
fn streams_take_turns() {
    let (from, to) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
    let (source, target) = (from.zeroed::<u32>(MIB), to.zeroed::<u32>(MIB));
    let (source, target) = (source.unwrap(), target.unwrap());
    for round in 0..20 {
        from.fill(&source, round).unwrap();
        to.fill(&target, 77).unwrap();
        to.copy_from_peer(&from, &source, &target).unwrap();
        from.fill(&source, 88).unwrap();
        let seen = to.to_vec(&target).unwrap();
        assert!(seen.iter().all(|&word| word == round), "{round}");
    }
}

#[test]
fn on_one_device_it_is_a_copy_there_and_nobody_waits() {
    on_each_device("on_one_device_it_is_a_copy_there", |_| {
        let (from, to) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let slow = Slow::new(&from);
        let (source, target) = (from.zeroed::<u32>(1000), to.zeroed::<u32>(1000));
        let (source, target) = (source.unwrap(), target.unwrap());
        let before = Runtime::current().counters();
        slow.launch(&from);
        from.fill(&source, 5).unwrap();
        to.copy_from_peer(&from, &source, &target).unwrap();
        from.fill(&source, 6).unwrap();
        let since = Runtime::current().counters().since(&before);
        assert_eq!((since.host_waits_staging, since.host_waits_asked), (0, 0));
        assert_eq!(to.to_vec(&target).unwrap(), [5; 1000]);
        assert_eq!(from.to_vec(&source).unwrap(), [6; 1000]);
        streams_take_turns();
        // On one stream too, and onto itself.
        to.fill(target.view(1..).unwrap(), 8).unwrap();
        let (low, high) = (target.view(..999).unwrap(), target.view(1..).unwrap());
        to.copy_from_peer(&to, low, high).unwrap();
        assert_eq!(to.to_vec(&target).unwrap()[..3], [5, 5, 8]);
    });
}

#[test]
fn what_can_not_be_copied_is_refused_and_leaves_both_sides_as_they_were() {
    on_each_pair("what_can_not_be_copied", |near, far| {
        let source = near.upload(&[1u32, 2, 3]).unwrap();
        let target = far.upload(&[4u32, 5, 6]).unwrap();
        let short = target.view(1..).unwrap();
        let error = far.copy_from_peer(near, &source, short).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(matches!(error.details(), Some(Details::Size { .. })));
        for error in [
            far.copy_from_peer(near, &target, &source),
            far.copy_from_peer(far, &source, &target),
            near.copy_from_peer(near, &source, &target),
        ] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidDevice);
        }
        // Captures are of one device.
        for captured in [near, far] {
            let mut graph = Graph::new();
            let result = graph.capture_on(captured, || far.copy_from_peer(near, &source, &target));
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotPermitted, "{error}");
            assert!(error.to_string().contains("copy_from_peer"), "{error}");
        }
        // A callback may not wait for the source.
        near.fill(&source, 9).unwrap();
        let (sender, receiver) = mpsc::channel();
        let streams = (near.clone(), far.clone());
        let buffers = (source, target);
        far.add_callback(move || {
            let (near, far) = streams;
            let copied = far.copy_from_peer(&near, &buffers.0, &buffers.1);
            sender.send((copied, buffers)).unwrap();
        })
        .unwrap();
        far.synchronize().unwrap();
        let (copied, (source, target)) = receiver.recv().unwrap();
        assert_eq!(copied.unwrap_err().kind(), ErrorKind::NotPermitted);
        assert_eq!(near.to_vec(&source).unwrap(), [9; 3]);
        assert_eq!(far.to_vec(&target).unwrap(), [4, 5, 6]);
        far.copy_from_peer(near, &source, &target).unwrap();
        assert_eq!(far.to_vec(&target).unwrap(), [9; 3]);
    });
}

#[test]
fn a_device_that_is_lost_in_a_copy_leaves_the_other_whole() {
    let test = "a_device_that_is_lost_in_a_copy_leaves_the_other_whole";
    over_the_shim(test, &[("MEMORY", "apart")], || {
        for loses_near in [true, false] {
            let Ruled { mut near, mut far } = Ruled::new();
            let data = numbers(6 * MIB, 1);
            let source: Buffer<u8> = near.2.upload(&data).unwrap();
            let target = far.2.zeroed::<u8>(6 * MIB).unwrap();
            near.2.synchronize().unwrap();
            far.2.synchronize().unwrap();
            let (lost, left) = match loses_near {
                true => (&mut near, &mut far),
                false => (&mut far, &mut near),
            };
            lost.1.expect_loss();
            // In the middle.
            lost.0
                .fail("vkQueueSubmit", 4, vk::Result::ERROR_DEVICE_LOST);
            let (lost, left) = (lost.2.clone(), left.2.clone());
            let error = far.2.copy_from_peer(&near.2, &source, &target).unwrap_err();
            assert!(error.is_device_lost(), "{error}");
            assert!(lost.synchronize().unwrap_err().is_device_lost());
            // The other has given back all that it had for it, and works.
            left.synchronize().unwrap();
            let runtime = if loses_near { &far.1 } else { &near.1 };
            assert_eq!(staging_left(runtime), KEPT);
            let mine = left.upload(&data).unwrap();
            assert!(left.to_vec(&mine).unwrap() == data);
            let again = far.2.copy_from_peer(&near.2, &source, &target);
            assert!(again.unwrap_err().is_device_lost());
        }
    });
}
