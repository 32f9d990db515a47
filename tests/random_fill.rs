//! Promises of what fills memory with random numbers.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use core::fmt::Debug;
use core::ops::Bound;
use std::collections::HashSet;
use std::thread;

use support::{builder, on_each_device, on_each_device_with};
use vkaccel::{
    Buffer, Details, ErrorKind, Feature, Generator, Philox, Pod, Result, RngState, Stream, View,
};

/// Lengths around blocks, workgroups and powers of two.
fn lengths() -> impl Iterator<Item = usize> {
    let powers = (3..13).step_by(3).map(|power| 1 << power);
    let near = powers.flat_map(|power: usize| [power - 1, power, power + 1]);
    (0..=5).chain(near).chain([255, 256, 257, 70_001])
}

/// Fills views of many lengths at many places, on a stream of its own, and compares them with the
/// reference; what lies around them has to stay.
fn compare<T: Pod + PartialEq + Debug>(
    outside: T,
    fill: impl Fn(&Stream, &Generator, View<'_, T>) -> Result<()>,
    reference: impl Fn(&mut Philox, &mut [T]) -> Result<()>,
) {
    let stream = Stream::new(None).unwrap();
    // The second one is near the end of the low word of the counter.
    for state in [
        RngState::from_parts(42, 0),
        RngState::from_parts(u64::MAX - 5, (1 << 34) - 400),
    ] {
        let generator = Generator::new(0, None).unwrap();
        generator.set_state(&state).unwrap();
        let mut philox = Philox::from_state(&state).unwrap();
        for len in lengths() {
            for start in [0, 1, 2, 3, 5] {
                let buffer = stream.upload(&vec![outside; start + len + 7]).unwrap();
                let view = buffer.view(start..start + len).unwrap();
                fill(&stream, &generator, view).unwrap();
                let mut expected = vec![outside; start + len + 7];
                reference(&mut philox, &mut expected[start..start + len]).unwrap();
                let found = stream.to_vec(&buffer).unwrap();
                let same = found
                    .iter()
                    .zip(&expected)
                    .all(|(a, b)| bytes(a) == bytes(b));
                if !same {
                    let at = found.iter().zip(&expected).position(|(a, b)| a != b);
                    panic!("{len} elements from {start} on, of {state:?}: differ at {at:?}");
                }
                assert_eq!(generator.state().unwrap(), philox.state());
            }
        }
    }
}

fn bytes<T: Pod>(value: &T) -> &[u8] {
    vkaccel::bytemuck::bytes_of(value)
}

#[test]
fn raw_bits_are_those_of_the_reference_at_every_place_and_length() {
    on_each_device("raw_bits_are_those_of_the_reference", |_| {
        compare(
            0xEEEE_EEEE_u32,
            |s, g, v| s.fill_bits(g, v),
            Philox::fill_bits,
        );
        compare(-1i64, |s, g, v| s.fill_bits(g, v), Philox::fill_bits);
    });
}

#[test]
fn uniform_floats_are_those_of_the_reference_at_every_place_and_length() {
    on_each_device("uniform_floats_are_those_of_the_reference", |_| {
        compare(9.0f32, |s, g, v| s.fill_uniform(g, v), Philox::fill_uniform);
        compare(9.0f64, |s, g, v| s.fill_uniform(g, v), Philox::fill_uniform);
        compare(
            0xEEEE_u16,
            |s, g, v| s.fill_uniform_f16(g, v),
            Philox::fill_uniform_f16,
        );
    });
}

#[test]
fn integers_are_those_of_the_reference_at_every_place_and_length() {
    on_each_device("integers_are_those_of_the_reference", |_| {
        // A range that refuses nearly half of the draws, so that many are drawn anew.
        let range = -5..=i32::MAX;
        compare(
            -9i32,
            |s, g, v| s.fill_integers(g, v, range.clone()),
            |p, out| p.fill_integers(out, range.clone()),
        );
        let range = 3..=(1u64 << 63) + 9;
        compare(
            1u64,
            |s, g, v| s.fill_integers(g, v, range.clone()),
            |p, out| p.fill_integers(out, range.clone()),
        );
    });
}

#[test]
fn integers_of_every_kind_of_range_are_those_of_the_reference() {
    on_each_device("integers_of_every_kind_of_range", |_| {
        let generator = Generator::new(77, None).unwrap();
        let mut philox = Philox::new(77);
        let words = Buffer::<u32>::uninit(1001).unwrap();
        let mut expected = vec![0; 1001];
        let most = u32::MAX;
        for range in [
            (Bound::Included(7), Bound::Excluded(8)),
            (Bound::Included(0), Bound::Included(1)),
            (Bound::Excluded(0), Bound::Included(6)),
            (Bound::Included(1), Bound::Included(most)),
            (Bound::Unbounded, Bound::Excluded(3 << 30)),
            (Bound::Unbounded, Bound::Unbounded),
        ] {
            generator.fill_integers(&words, range).unwrap();
            philox.fill_integers(&mut expected, range).unwrap();
            assert_eq!(words.to_vec().unwrap(), expected, "{range:?}");
        }
        let wide = Buffer::<i64>::uninit(1001).unwrap();
        let mut expected = vec![0; 1001];
        for range in [
            i64::MIN..=i64::MAX,
            i64::MIN..=0,
            -1..=1,
            -(1 << 40)..=1 << 50,
        ] {
            generator.fill_integers(&wide, range.clone()).unwrap();
            philox.fill_integers(&mut expected, range.clone()).unwrap();
            assert_eq!(wide.to_vec().unwrap(), expected, "{range:?}");
            assert!(expected.iter().all(|number| range.contains(number)));
        }
    });
}

#[test]
fn normal_numbers_are_those_of_the_reference_at_every_place_and_length() {
    on_each_device("normal_numbers_are_those_of_the_reference", |_| {
        compare(
            9.0f32,
            |s, g, v| s.fill_normal(g, v, 0.0, 1.0),
            |p, out| p.fill_normal(out, 0.0, 1.0),
        );
        compare(
            9.0f32,
            |s, g, v| s.fill_normal(g, v, -3.25, 0.7),
            |p, out| p.fill_normal(out, -3.25, 0.7),
        );
    });
}

/// Whether the device makes normal numbers of 64 bits; without them the refusal is checked.
fn has_wide_normals() -> bool {
    let generator = Generator::new(1, None).unwrap();
    let numbers = Buffer::<f64>::uninit(1).unwrap();
    match generator.fill_normal(&numbers, 0.0, 1.0) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let missing = vec![Feature::ShaderFloat64.name().to_owned()];
            assert!(
                matches!(error.details(), Some(Details::Features { missing: named, .. }) if *named == missing),
                "{error}"
            );
            assert_eq!(generator.offset().unwrap(), 0, "no draw was taken");
            false
        }
    }
}

#[test]
fn wide_normal_numbers_are_those_of_the_reference_or_refused_by_the_feature() {
    on_each_device("wide_normal_numbers", |_| {
        if !has_wide_normals() {
            return support::skip("wide_normal_numbers", "the device has no 64-bit floats");
        }
        compare(
            9.0f64,
            |s, g, v| s.fill_normal(g, v, 1.5, 0.1),
            |p, out| p.fill_normal(out, 1.5, 0.1),
        );
    });
    let without = || builder().without_features([Feature::ShaderFloat64]);
    on_each_device_with("wide_normal_numbers", without, |_| {
        assert!(!has_wide_normals());
    });
}

#[test]
fn trials_are_those_of_the_reference_at_every_place_and_length() {
    on_each_device("trials_are_those_of_the_reference", |_| {
        compare(
            0xEE_u8,
            |s, g, v| s.fill_bernoulli(g, v, 0.3),
            |p, out| p.fill_bernoulli(out, 0.3),
        );
        compare(
            9.0f32,
            |s, g, v| s.fill_bernoulli(g, v, 0.5),
            |p, out| p.fill_bernoulli(out, 0.5),
        );
        let generator = Generator::new(1, None).unwrap();
        let trials = Buffer::<u8>::uninit(1003).unwrap();
        for (p, all) in [(0.0, 0), (1.0, 1)] {
            generator.fill_bernoulli(&trials, p).unwrap();
            assert_eq!(trials.to_vec().unwrap(), [all; 1003]);
        }
    });
}

#[test]
fn a_fill_of_more_workgroups_than_one_row_has_is_that_of_the_reference() {
    on_each_device("a_fill_of_more_workgroups", |_| {
        // A workgroup makes 256 trials, and a row has 2^15 workgroups.
        let len = (256 << 15) + 1003;
        let generator = Generator::new(5, None).unwrap();
        let trials = Buffer::<u8>::uninit(len).unwrap();
        generator.fill_bernoulli(&trials, 0.5).unwrap();
        let mut expected = vec![0; len];
        Philox::new(5).fill_bernoulli(&mut expected, 0.5).unwrap();
        assert!(trials.to_vec().unwrap() == expected);
    });
}

#[test]
fn numbers_are_the_same_without_wide_integers_and_other_features() {
    let without = || {
        let all = Feature::ALL.iter().copied();
        let foundation = [Feature::TimelineSemaphore, Feature::BufferDeviceAddress];
        builder().without_features(all.filter(move |feature| !foundation.contains(feature)))
    };
    on_each_device_with("numbers_are_the_same_without", without, |_| {
        let generator = Generator::new(8, None).unwrap();
        let mut philox = Philox::new(8);
        let wide = Buffer::<u64>::uninit(501).unwrap();
        let mut expected = vec![0; 501];
        generator.fill_bits(&wide).unwrap();
        philox.fill_bits(&mut expected).unwrap();
        assert_eq!(wide.to_vec().unwrap(), expected);
        generator.fill_integers(&wide, ..1 << 63).unwrap();
        philox.fill_integers(&mut expected, ..1 << 63).unwrap();
        assert_eq!(wide.to_vec().unwrap(), expected);
        let floats = Buffer::<f64>::uninit(501).unwrap();
        let mut expected = vec![0.0; 501];
        generator.fill_uniform(&floats).unwrap();
        philox.fill_uniform(&mut expected).unwrap();
        assert_eq!(floats.to_vec().unwrap(), expected);
        let halves = Buffer::<u16>::uninit(501).unwrap();
        let mut expected = vec![0; 501];
        generator.fill_uniform_f16(&halves).unwrap();
        philox.fill_uniform_f16(&mut expected).unwrap();
        assert_eq!(halves.to_vec().unwrap(), expected);
    });
}

#[test]
fn the_default_generator_is_the_one_that_is_seeded_and_saved() {
    on_each_device("the_default_generator", |_| {
        vkaccel::random::manual_seed(123).unwrap();
        vkaccel::random::set_offset(40, None).unwrap();
        let generator = Generator::default_of(None).unwrap();
        let saved = vkaccel::random::get_rng_state(None).unwrap();
        assert_eq!(generator.state().unwrap(), saved);
        let words = Buffer::<u32>::uninit(4).unwrap();
        let block = [0x00EB_BA72, 0x2363_C191, 0xDA6C_CA90, 0xC128_CF09];
        for _ in 0..2 {
            generator.fill_bits(&words).unwrap();
            assert_eq!(words.to_vec().unwrap(), block);
            assert_eq!(vkaccel::random::get_offset(None).unwrap(), 44);
            vkaccel::random::set_rng_state(&saved, None).unwrap();
        }
        let other = Generator::new(123, 0).unwrap();
        other.fill_bits(&words).unwrap();
        assert_eq!(vkaccel::random::get_offset(None).unwrap(), 40);
        assert_eq!((other.seed().unwrap(), other.offset().unwrap()), (123, 4));
        assert!(other.set_offset(3).is_err());
        other.clone().set_seed(5).unwrap();
        assert_eq!(other.state().unwrap(), RngState::from_parts(5, 0));
    });
}

#[test]
fn fills_from_streams_and_threads_never_overlap() {
    on_each_device("fills_from_streams_and_threads", |test| {
        let generator = Generator::new(3, None).unwrap();
        let runtime = test.runtime();
        let fill = || -> Vec<[u32; 4]> {
            let _entered = runtime.enter();
            let stream = Stream::new(None).unwrap();
            let buffers: Vec<_> = [1000, 4, 777]
                .into_iter()
                .cycle()
                .take(30)
                .map(|len| {
                    let words = stream.uninit::<u32>(len).unwrap();
                    stream.fill_bits(&generator, &words).unwrap();
                    words
                })
                .collect();
            let words = buffers.iter().map(|words| stream.to_vec(words).unwrap());
            let blocks = words.flat_map(|words| {
                let blocks = words.chunks_exact(4).map(|block| block.try_into().unwrap());
                blocks.collect::<Vec<[u32; 4]>>()
            });
            blocks.collect()
        };
        let blocks: Vec<[u32; 4]> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(fill)).collect();
            let found = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            found.collect()
        });
        let taken = 4 * 10 * (1000 + 4 + 780);
        assert_eq!(generator.offset().unwrap(), taken);
        // Every block is one of the sequence, and none is there twice.
        let all: HashSet<[u32; 4]> = (0..taken as u32 / 4)
            .map(|index| Philox::block([3, 0], [index, 0, 0, 0]))
            .collect();
        let found: HashSet<[u32; 4]> = blocks.iter().copied().collect();
        assert_eq!(found.len(), blocks.len());
        assert!(found.is_subset(&all));
    });
}

#[test]
fn fills_take_their_place_between_other_commands() {
    on_each_device("fills_take_their_place", |_| {
        let generator = Generator::new(1, None).unwrap();
        let mut philox = Philox::new(1);
        let bytes = Buffer::<u8>::zeroed(64).unwrap();
        let copy = Buffer::<u8>::zeroed(64).unwrap();
        for round in 0..20u8 {
            bytes.fill(round).unwrap();
            let view = bytes.view(3..30).unwrap();
            generator.fill_bernoulli(view, 0.5).unwrap();
            // Next to it, in the same words.
            bytes.view(30..31).unwrap().fill(0xAA).unwrap();
            bytes.view(..3).unwrap().fill(0xBB).unwrap();
            copy.copy_from(bytes.view(..).unwrap()).unwrap();
            bytes.fill(0).unwrap();
            let mut expected = [round; 64];
            philox.fill_bernoulli(&mut expected[3..30], 0.5).unwrap();
            expected[30] = 0xAA;
            expected[..3].fill(0xBB);
            assert_eq!(copy.to_vec().unwrap(), expected);
        }
    });
}

#[test]
fn what_cannot_be_filled_takes_no_draws() {
    on_each_device("what_cannot_be_filled", |test| {
        let generator = Generator::new(1, None).unwrap();
        let words = Buffer::<u32>::zeroed(5).unwrap();
        let floats = Buffer::<f32>::zeroed(5).unwrap();
        let kind = |result: Result<()>| result.unwrap_err().kind();
        let refused = ErrorKind::InvalidArgument;
        assert_eq!(kind(generator.fill_integers(&words, 5..5)), refused);
        assert_eq!(kind(generator.fill_normal(&floats, 0.0, -1.0)), refused);
        assert_eq!(kind(generator.fill_normal(&floats, 0.0, f32::MAX)), refused);
        assert_eq!(kind(generator.fill_bernoulli(&words, 1.5)), refused);
        assert_eq!(kind(generator.fill_uniform_f16(&words)), refused);
        assert_eq!(generator.offset().unwrap(), 0);
        generator.set_offset(u64::MAX - 7).unwrap();
        assert_eq!(kind(generator.fill_bits(&words)), ErrorKind::LimitExceeded);
        assert_eq!(generator.offset().unwrap(), u64::MAX - 7);
        generator.fill_bits(words.view(..4).unwrap()).unwrap();
        assert_eq!(words.to_vec().unwrap()[4], 0);

        let elsewhere = test.another(builder());
        let foreign = Generator::new(1, None).unwrap();
        assert_eq!(kind(foreign.fill_bits(&words)), ErrorKind::InvalidDevice);
        let stream = Stream::new(None).unwrap();
        let error = stream.fill_bits(&generator, &words).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice);
        assert!(error.to_string().contains("generator"), "{error}");
        assert_eq!(foreign.offset().unwrap(), 0);
        drop(elsewhere);
    });
}

#[test]
fn an_empty_fill_takes_no_draw_and_opens_nothing_more() {
    on_each_device("an_empty_fill", |_| {
        let generator = Generator::new(1, None).unwrap();
        generator
            .fill_bits(&Buffer::<u32>::zeroed(0).unwrap())
            .unwrap();
        let words = Buffer::<u32>::zeroed(3).unwrap();
        generator.fill_bits(words.view(3..).unwrap()).unwrap();
        let floats = Buffer::<f64>::zeroed(0).unwrap();
        generator.fill_normal(&floats, 0.0, 1.0).unwrap();
        assert_eq!(generator.offset().unwrap(), 0);
        assert_eq!(words.to_vec().unwrap(), [0; 3]);
    });
}
