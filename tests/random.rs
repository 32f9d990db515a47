//! Promises of the generators' seeds and states.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::collections::HashSet;
use std::thread;

use support::entry::Entry;
use support::{TestRuntime, builder, on_each_device};
use vkaccel::random::{
    get_offset, get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all,
    parse_seed, seed, seed_all, set_offset, set_rng_state, set_rng_state_all,
};
use vkaccel::{Details, ErrorKind, Philox, RngState};

/// The first four draws from a state on.
fn first_block(state: &RngState) -> [u32; 4] {
    let mut words = [0; 4];
    let mut philox = Philox::from_state(state).unwrap();
    philox.fill_bits(&mut words).unwrap();
    words
}

#[test]
fn a_state_is_sixteen_bytes_and_comes_back_exactly() {
    on_each_device("a_state_is_sixteen_bytes", |_| {
        let mut bytes = [0; 16];
        bytes[0] = 0x7B;
        manual_seed(123).unwrap();
        assert_eq!(get_rng_state(None).unwrap().as_bytes(), &bytes);
        bytes[8] = 0x28;
        set_offset(40, None).unwrap();
        let state = get_rng_state(0).unwrap();
        assert_eq!(state.as_bytes(), &bytes);
        let block = [0x00EB_BA72, 0x2363_C191, 0xDA6C_CA90, 0xC128_CF09];
        assert_eq!(first_block(&state), block);
        manual_seed(5).unwrap();
        set_rng_state(&RngState::from_bytes(&bytes).unwrap(), None).unwrap();
        assert_eq!(first_block(&get_rng_state(None).unwrap()), block);

        for len in [8, 15, 17, 24] {
            let error = RngState::from_bytes(&vec![0; len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(
                matches!(error.details(), Some(Details::Size { expected: 16, .. })),
                "{error}"
            );
        }
        let kind = |result: vkaccel::Result<()>| result.unwrap_err().kind();
        assert_eq!(kind(set_offset(41, None)), ErrorKind::InvalidArgument);
        let odd = RngState::from_parts(9, 41);
        assert_eq!(kind(set_rng_state(&odd, None)), ErrorKind::InvalidArgument);
        assert_eq!(kind(set_rng_state_all(&[odd])), ErrorKind::InvalidArgument);
        let none: [RngState; 0] = [];
        let error = set_rng_state_all(&none).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let said = "0 states were given for 1 visible device;";
        assert!(error.to_string().contains(said), "{error}");
        let good = RngState::from_parts(9, 4);
        for device in [1, -1] {
            assert_eq!(kind(set_rng_state(&good, device)), ErrorKind::InvalidDevice);
            assert_eq!(kind(set_offset(4, device)), ErrorKind::InvalidDevice);
        }
        assert_eq!(kind(set_offset(4, "gpu:0")), ErrorKind::InvalidDevice);
        assert_eq!(get_rng_state(None).unwrap(), state);
    });
}

#[test]
fn seeds_of_all_64_bits_come_back_and_start_their_own_sequence() {
    on_each_device("seeds_of_all_64_bits", |_| {
        assert_eq!(initial_seed(None).unwrap(), 67_280_421_310_721);
        for seed in [0, (1 << 63) - 1, (1 << 63) + 5, u64::MAX] {
            manual_seed(seed).unwrap();
            assert_eq!(initial_seed(None).unwrap(), seed);
            manual_seed(initial_seed(None).unwrap()).unwrap();
            let state = get_rng_state(None).unwrap();
            assert_eq!(state.as_bytes()[..8], seed.to_le_bytes());
            let block = match seed {
                0 => [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8],
                u64::MAX => [0x72A4_7709, 0x1547_4739, 0x9F41_B01F, 0x2279_9A5A],
                0x8000_0000_0000_0005 => [0xF880_2C11, 0x02D5_7A31, 0x4A22_C87B, 0x78E6_09C8],
                _ => Philox::block([u32::MAX, u32::MAX >> 1], [0; 4]),
            };
            assert_eq!(first_block(&state), block, "{seed}");
        }
    });
    assert_eq!(parse_seed("-1").unwrap(), u64::MAX);
    assert_eq!(parse_seed("18446744073709551615").unwrap(), u64::MAX);
    assert_eq!(parse_seed("0x10").unwrap(), 16);
    let error = parse_seed("18446744073709551616").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn fresh_seeds_differ_and_can_be_set_again() {
    on_each_device("fresh_seeds_differ", |_| {
        let mut seen = HashSet::new();
        for round in 0..1000 {
            let fresh = if round % 2 == 0 { seed() } else { seed_all() }.unwrap();
            assert_eq!(get_offset(None).unwrap(), 0);
            assert_eq!(initial_seed(None).unwrap(), fresh);
            manual_seed(fresh).unwrap();
            assert_eq!(initial_seed(None).unwrap(), fresh);
            seen.insert(fresh);
        }
        assert_eq!(seen.len(), 1000);
    });
}

#[test]
fn seeding_opens_nothing_and_the_last_seed_wins() {
    on_each_device("seeding_opens_nothing", |test| {
        for seed in 0..100_000 {
            manual_seed(seed).unwrap();
        }
        assert_eq!(get_offset(None).unwrap(), 0);
        set_offset(8, 0).unwrap();
        set_rng_state(&RngState::from_parts(3, 4), "vulkan:0").unwrap();
        set_rng_state_all(&[RngState::from_parts(99_999, 12)]).unwrap();
        assert!(!test.runtime().is_initialized());
        test.runtime().init(None).unwrap();
        assert_eq!(
            get_rng_state(None).unwrap(),
            RngState::from_parts(99_999, 12)
        );
        manual_seed_all(1).unwrap();
        assert_eq!(initial_seed(None).unwrap(), 1);
    });
}

#[test]
fn a_seed_for_all_devices_is_never_lost_while_one_is_opened() {
    on_each_device("a_seed_for_all_devices", |test| {
        for _ in 0..20 {
            let fresh = test.another(builder());
            let runtime = fresh.runtime();
            thread::scope(|scope| {
                scope.spawn(|| runtime.init(0).unwrap());
                for _ in 0..7 {
                    scope.spawn(|| {
                        let _entered = runtime.enter();
                        manual_seed_all(777).unwrap();
                    });
                }
            });
            assert!(runtime.is_initialized());
            for state in get_rng_state_all().unwrap() {
                assert_eq!(state, RngState::from_parts(777, 0));
            }
        }
    });
}

#[test]
fn seeds_outlast_an_opening_that_fails() {
    on_each_device("seeds_outlast_an_opening", |test| {
        for call in ["vkCreateInstance", "vkCreateDevice", "vkCreateSemaphore"] {
            let entry = Entry::new().unwrap();
            let opened = test.another(entry.builder());
            let runtime = opened.runtime();
            manual_seed(777).unwrap();
            set_offset(8, None).unwrap();
            entry.fail(call, 1, ash::vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            let error = runtime.init(0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfHostMemory, "{call}: {error}");
            assert!(!runtime.is_initialized());
            // It is told once.
            runtime.init(0).unwrap();
            let expected = RngState::from_parts(777, 8);
            assert_eq!(get_rng_state(0).unwrap(), expected, "{call}");
        }
    });
}

#[test]
fn states_of_all_devices_are_taken_and_set_together() {
    let all = TestRuntime::new(builder());
    let count = vkaccel::device_count();
    if count == 0 {
        return support::skip("states_of_all_devices", "no device");
    }
    for index in 0..count {
        vkaccel::with_device(index, || manual_seed(index as u64 + 10)).unwrap();
    }
    assert!(!all.runtime().is_initialized());
    let states = get_rng_state_all().unwrap();
    assert!(all.runtime().is_initialized());
    let seeds: Vec<u64> = states.iter().map(RngState::seed).collect();
    assert_eq!(seeds, (10..10 + count as u64).collect::<Vec<_>>());
    manual_seed_all(1).unwrap();
    for index in 0..count {
        assert_eq!(initial_seed(index).unwrap(), 1);
    }
    set_rng_state_all(&states).unwrap();
    assert_eq!(get_rng_state_all().unwrap(), states);
    set_offset(16, count - 1).unwrap();
    assert_eq!(get_offset(count - 1).unwrap(), 16);
}

#[test]
fn the_offset_counts_draws_in_blocks_of_four() {
    on_each_device("the_offset_counts_draws", |_| {
        manual_seed(6).unwrap();
        set_offset(u64::MAX - 3, None).unwrap();
        let state = get_rng_state(None).unwrap();
        assert_eq!(state, RngState::from_parts(6, u64::MAX - 3));
        for odd in [1, 2, 3, 5, u64::MAX] {
            assert!(set_offset(odd, None).is_err());
        }
        assert_eq!(get_offset(None).unwrap(), u64::MAX - 3);
        manual_seed(6).unwrap();
        assert_eq!(get_offset(0).unwrap(), 0);
    });
}

#[test]
fn where_there_is_no_device_seeding_succeeds_and_asking_says_why_it_cannot() {
    let _none = TestRuntime::new(builder().visible_devices(""));
    manual_seed(1).unwrap();
    manual_seed_all(2).unwrap();
    seed().unwrap();
    set_offset(4, None).unwrap();
    set_rng_state(&RngState::from_parts(1, 4), 0).unwrap();
    set_rng_state_all(&[RngState::from_parts(1, 4)]).unwrap();
    assert!(set_offset(5, None).is_err());
    let missing = |kind| matches!(kind, ErrorKind::NoDevice | ErrorKind::NoDriver);
    assert!(missing(initial_seed(None).unwrap_err().kind()));
    assert!(missing(get_rng_state(0).unwrap_err().kind()));
    assert!(missing(get_rng_state_all().unwrap_err().kind()));
    assert!(missing(get_offset(None).unwrap_err().kind()));
    let error = set_offset(4, -1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidDevice);
}
