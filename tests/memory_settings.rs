//! Promises of the settings of device memory: where they come from, and what one does that only a
//! device shows.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use support::child::role;
use support::slow::Slow;
use support::{TestRuntime, builder, on_each_device, on_each_device_with};
use vkaccel::memory::{
    allocator_settings, get_per_process_memory_fraction, memory_allocated, memory_limit,
    memory_stats, set_allocator_settings, set_memory_limit,
};
use vkaccel::{Buffer, ErrorKind, Graph, PinnedBuffer, Runtime, Stream};

const MIB: usize = 1 << 20;

/// Whether sizes are rounded up to a quarter of a power of two, and what the limit is.
fn in_force() -> (bool, Option<u64>) {
    let _held = Buffer::<u8>::uninit(5 * MIB + 1).unwrap();
    let is_rounded = match memory_allocated(None).unwrap() {
        bytes if bytes == 6 << 20 => true,
        bytes if bytes == (5 << 20) + 512 => false,
        bytes => panic!("{bytes} bytes"),
    };
    (is_rounded, memory_limit(None).unwrap())
}

/// What a process finds that was started with some settings in its environment.
#[allow(unsafe_code)]
fn finds(role: &str) {
    match role {
        "its own" => {
            let _runtime = TestRuntime::new(builder());
            let settings = allocator_settings(None).unwrap();
            assert_eq!(settings, "roundup_power2_divisions:4");
            assert_eq!(in_force(), (true, Some(32 << 20)));
            assert!(Buffer::<u8>::uninit(33 * MIB).is_err());
        }
        "the builder's instead" => {
            let settings = builder().alloc_conf("").memory_limit(64 << 20);
            let _runtime = TestRuntime::new(settings);
            assert_eq!(in_force(), (false, Some(64 << 20)));
        }
        "none of PyTorch's" => {
            let _runtime = TestRuntime::new(builder());
            assert_eq!(allocator_settings(None).unwrap(), "");
            assert_eq!(in_force(), (false, None));
        }
        part => {
            let _runtime = TestRuntime::new(builder());
            hide_no_device(part);
            if part == "VKACCEL_MEMORY_LIMIT" {
                // A failure is not kept.
                // SAFETY: no other thread of this process reads or writes variables now.
                unsafe { std::env::remove_var(part) };
                assert_eq!(in_force(), (false, None));
            }
        }
    }
}

/// Settings with a fault that is told with `part` in its text.
fn hide_no_device(part: &str) {
    assert!(vkaccel::is_available());
    assert_eq!(vkaccel::device_count(), 1);
    assert!(vkaccel::current_accelerator(true).is_some());
    vkaccel::set_device_index(0).unwrap();
    vkaccel::get_device_capability(None).unwrap();
    vkaccel::get_memory_info(None).unwrap();
    vkaccel::synchronize(0).unwrap();
    assert!(memory_stats(None).unwrap().is_empty());
    let runtime = Runtime::current();
    runtime.selection().unwrap();
    let stream = Stream::new(None).unwrap();
    stream.synchronize().unwrap();
    let refused = [
        ("a buffer", Buffer::<u8>::uninit(1).map(drop)),
        ("of a stream", stream.zeroed::<u8>(1).map(drop)),
        ("pinned", PinnedBuffer::<u8>::new(1).map(drop)),
        ("init", runtime.init(0)),
        (
            "initial_seed",
            vkaccel::random::initial_seed(None).map(drop),
        ),
        ("a graph", Graph::new().capture_begin()),
        ("memory_limit", memory_limit(None).map(drop)),
        ("set_memory_limit", set_memory_limit(None, None)),
        ("allocator_settings", allocator_settings(None).map(drop)),
        ("set_allocator_settings", set_allocator_settings("", None)),
        (
            "the fraction",
            get_per_process_memory_fraction(None).map(drop),
        ),
    ];
    for (call, result) in refused {
        let error = result.expect_err(call);
        assert_eq!(error.kind(), ErrorKind::Config, "{call}: {error}");
        assert!(error.to_string().contains(part), "{call}: {error}");
    }
    assert!(!runtime.is_initialized());
}

#[test]
fn settings_of_the_environment_are_in_force_unless_the_builder_has_others() {
    const NAME: &str = "settings_of_the_environment_are_in_force_unless_the_builder_has_others";
    if let Some(role) = role() {
        return finds(&role);
    }
    on_each_device(NAME, |test| {
        for role in ["its own", "the builder's instead"] {
            test.child(NAME, role)
                .env("VKACCEL_ALLOC_CONF", "roundup_power2_divisions:4")
                .env("VKACCEL_MEMORY_LIMIT", "32MiB")
                .succeed();
        }
        test.child(NAME, "none of PyTorch's")
            .env("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:4")
            .env("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:4")
            .succeed();
        test.child(NAME, "VKACCEL_MEMORY_LIMIT")
            .env("VKACCEL_MEMORY_LIMIT", "much")
            .succeed();
        test.child(NAME, "no_such_key")
            .env("VKACCEL_ALLOC_CONF", "no_such_key:1")
            .succeed();
        let wrong = builder().alloc_conf("max_split_size_mb:x");
        let _runtime = test.another(wrong);
        hide_no_device("RuntimeBuilder::alloc_conf");
    });
}

/// On a device with several queues the two streams are on two of them.
#[test]
fn memory_that_another_stream_still_reads_is_handed_out_behind_a_wait_on_the_device() {
    const NAME: &str = "memory_that_another_stream_still_reads_is_handed_out";
    let eager = || builder().alloc_conf("cross_stream_reuse:True");
    on_each_device_with(NAME, eager, |_| {
        let (owner, reader) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let slow = Slow::new(&reader);
        let words = 3 * MIB;
        let copy = reader.zeroed::<u32>(words).unwrap();
        reader.synchronize().unwrap();
        let mut made = None;
        for round in 0..4u32 {
            let block = owner.uninit::<u32>(words).unwrap();
            owner.fill(&block, round).unwrap();
            reader.wait_stream(&owner).unwrap();
            slow.launch(&reader);
            reader.copy(&block, &copy).unwrap();
            reader.flush().unwrap();
            let address = block.address();
            drop(block);
            let next = owner.uninit::<u32>(words).unwrap();
            assert_eq!(next.address(), address);
            assert!(!reader.query().unwrap(), "the host waited for the reader");
            owner.fill(&next, 99).unwrap();
            owner.flush().unwrap();
            let seen = reader.to_vec(&copy).unwrap();
            assert!(seen.iter().all(|&word| word == round), "round {round}");
            let seen = owner.to_vec(&next).unwrap();
            assert!(seen.iter().all(|&word| word == 99), "round {round}");
            let stats = memory_stats(None).unwrap();
            let asked = *made.get_or_insert(stats.num_device_alloc);
            assert_eq!(stats.num_device_alloc, asked, "round {round}");
        }
    });
}
