//! Promises of fills whose seed and counter are in memory, which no public call makes by itself: on
//! each device, in a runtime of its own, as the environment says (`tests/support/mod.rs`).

use core::fmt::Debug;
use core::ops::Range;

use super::*;
use crate::api::Buffer;
use crate::error::ErrorKind;
use crate::rng::Philox;

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value == "1")
}

fn on_each_device(name: &str, test: impl Fn()) {
    let builder = || Runtime::builder().validation(is_set("VKACCEL_TEST_VALIDATION"));
    let seen = builder().build().selection().unwrap_or_default();
    let count = seen.iter().filter(|one| one.accepted).count();
    if count == 0 {
        assert!(!is_set("VKACCEL_TEST_REQUIRE_DEVICE"), "there is no device");
        println!("SKIP {name}: no device");
    }
    for index in 0..count {
        let runtime = builder().visible_devices(index.to_string()).build();
        let entered = runtime.enter();
        test();
        drop(entered);
        runtime.shutdown().unwrap();
        let messages = runtime.take_validation_messages();
        assert!(messages.is_empty(), "validation messages: {messages:#?}");
    }
}

/// The 16 bytes of states in memory, which start at a multiple of 8 but not of 16.
struct InMemory(Buffer<u64>);

impl InMemory {
    fn new(stream: &Stream, state: &RngState) -> Self {
        Self(stream.upload(&Self::content(state)).unwrap())
    }

    fn content(state: &RngState) -> [u64; 4] {
        let [seed, block] = bytemuck::cast(state.in_memory());
        [u64::MAX, seed, block, u64::MAX]
    }

    fn launch<T: Pod>(&self, stream: &Stream, fill: &Fill, first_draw: u64, out: View<'_, T>) {
        let state = self.0.view(1..3).unwrap().range().unwrap();
        let (core, opened) = stream.open().unwrap();
        let program = opened
            .random
            .program_from_memory(&opened.device, fill.kernel);
        let Some(range) = out.range() else {
            return;
        };
        fill.check(range).unwrap();
        fill.launch_from_memory(&program.unwrap(), &core, range, first_draw, state, None)
            .unwrap();
    }
}

/// States in memory and draws behind them: without and with a carry between the counter's words, of the
/// state and the distance, of the index, of both.
fn starts() -> [(RngState, u64); 6] {
    const WORD: u64 = 1 << 32;
    [
        (42, 0, 0),
        (u64::MAX - 5, 9, 4),
        (7 << 40, WORD - 100, 0),
        (1, WORD - 10, 3),
        (2, 3 * WORD - 5, 7 * WORD + 5),
        (3, 5 * WORD + 0xFFFF_FF00, 0xFFFF_FFF0),
    ]
    .map(|(seed, block, behind)| (RngState::from_parts(seed, 4 * block), 4 * behind))
}

/// Fills views of many lengths at many places by both forms, and compares them with the reference;
/// what lies around them has to stay.
fn compare<T: Pod + PartialEq + Debug>(
    outside: T,
    fill: &Fill,
    reference: impl Fn(&mut Philox, &mut [T]) -> Result<()>,
) {
    let stream = Stream::new(None).unwrap();
    for (state, first_draw) in starts() {
        let memory = InMemory::new(&stream, &state);
        let begin = RngState::from_parts(state.seed(), state.offset() + first_draw);
        let generator = Generator::new(0, None).unwrap();
        for len in [1, 2, 3, 4, 5, 7, 9, 63, 65, 256, 1003, 4099] {
            for start in [0, 1, 2, 3, 5] {
                let view = start..start + len;
                let content = vec![outside; start + len + 7];
                let mut expected = content.clone();
                let mut philox = Philox::from_state(&begin).unwrap();
                reference(&mut philox, &mut expected[view.clone()]).unwrap();

                let [eager, recorded] = [(); 2].map(|()| stream.upload(&content).unwrap());
                let part = recorded.view(view.clone()).unwrap();
                memory.launch(&stream, fill, first_draw, part);
                generator.set_state(&begin).unwrap();
                let part = eager.view(view.clone()).unwrap();
                stream.fill_random(&generator, part, fill).unwrap();
                for found in [eager, recorded] {
                    let found = stream.to_vec(&found).unwrap();
                    assert_same(&found, &expected, &view, (&state, first_draw));
                }
            }
        }
    }
}

fn assert_same<T: Pod>(found: &[T], expected: &[T], view: &Range<usize>, from: (&RngState, u64)) {
    let bytes = bytemuck::bytes_of::<T>;
    let differs = |(found, expected)| bytes(found) != bytes(expected);
    let at = found.iter().zip(expected).position(differs);
    assert_eq!(at, None, "differ in {view:?} from {from:?} on");
}

#[test]
fn fills_from_memory_are_those_of_the_calls_and_of_the_reference() {
    on_each_device("fills_from_memory", || {
        compare(0xEEEE_EEEE_u32, &Fill::bits::<u32>(), Philox::fill_bits);
        compare(-1i64, &Fill::bits::<i64>(), Philox::fill_bits);
        compare(9.0f32, &Fill::uniform::<f32>(), Philox::fill_uniform);
        compare(9.0f64, &Fill::uniform::<f64>(), Philox::fill_uniform);
        let halves = Fill::uniform_f16::<u16>().unwrap();
        compare(0xEEEE_u16, &halves, Philox::fill_uniform_f16);
        let trials = Fill::bernoulli::<u8>(0.3).unwrap();
        compare(0xEE_u8, &trials, |p, out| p.fill_bernoulli(out, 0.3));
        let trials = Fill::bernoulli::<f32>(0.5).unwrap();
        compare(9.0f32, &trials, |p, out| p.fill_bernoulli(out, 0.5));
        let normal = Fill::normal(-3.25f32, 0.7).unwrap();
        compare(9.0f32, &normal, |p, out| p.fill_normal(out, -3.25, 0.7));
        // Ranges that refuse nearly half of the draws, so that many are drawn anew.
        let range = -5..=i32::MAX;
        let integers = Fill::integers(range.clone()).unwrap();
        compare(-9i32, &integers, |p, out| {
            p.fill_integers(out, range.clone())
        });
        let range = 3..=(1u64 << 63) + 9;
        let integers = Fill::integers(range.clone()).unwrap();
        compare(1u64, &integers, |p, out| {
            p.fill_integers(out, range.clone())
        });
    });
}

#[test]
fn wide_normal_numbers_from_memory_are_those_of_the_calls_and_of_the_reference() {
    on_each_device("fills_from_memory", || {
        let normal = Fill::normal(1.5f64, 0.1).unwrap();
        let opened = Stream::new(None).unwrap().open().unwrap().1;
        match opened
            .random
            .program_from_memory(&opened.device, normal.kernel)
        {
            Ok(_) => compare(9.0f64, &normal, |p, out| p.fill_normal(out, 1.5, 0.1)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                println!("PART normal f64: the device has no 64-bit floats");
            }
        }
    });
}

#[test]
fn a_fill_from_memory_of_several_launches_is_one() {
    on_each_device("fills_from_memory", || {
        let stream = Stream::new(None).unwrap();
        // The first launch makes 2^26 blocks of 4 trials, and its last ones have a carry before them.
        let state = RngState::from_parts(5, 4 * ((1 << 32) - (1 << 26) - 100));
        let (first_draw, len) = (40, (1 << 28) + 1003);
        let trials = stream.uninit::<u8>(len).unwrap();
        let view = trials.view(..).unwrap();
        let fill = Fill::bernoulli::<u8>(0.5).unwrap();
        InMemory::new(&stream, &state).launch(&stream, &fill, first_draw, view);
        for start in [0, len - 4003] {
            let offset = state.offset() + first_draw + start as u64 / 4 * 4;
            let mut philox = Philox::from_state(&RngState::from_parts(5, offset)).unwrap();
            let start = start / 4 * 4;
            let mut expected = vec![0; 4003];
            philox.fill_bernoulli(&mut expected, 0.5).unwrap();
            let found = stream.to_vec(view.view(start..start + 4003).unwrap());
            assert!(found.unwrap() == expected);
        }
    });
}

#[test]
fn a_fill_from_memory_takes_what_the_memory_holds_when_it_runs() {
    on_each_device("fills_from_memory", || {
        let stream = Stream::new(None).unwrap();
        let memory = InMemory::new(&stream, &RngState::from_parts(0, 0));
        let states = [3, 1, 4, 1, 5].map(|seed| RngState::from_parts(seed, 8 * seed));
        let contents = states.map(|state| {
            let words = InMemory::content(&state);
            stream.upload(&words).unwrap()
        });
        let fill = Fill::bits::<u32>();
        let buffers = [(); 5].map(|()| stream.uninit::<u32>(1003).unwrap());
        stream.synchronize().unwrap();
        let before = Runtime::current().counters();
        for (content, buffer) in contents.iter().zip(&buffers) {
            stream.copy(content, &memory.0).unwrap();
            memory.launch(&stream, &fill, 12, buffer.into());
        }
        stream.synchronize().unwrap();
        // The launch reads what the copy before it wrote, and the copy behind it writes that anew.
        let since = Runtime::current().counters().since(&before);
        assert_eq!((since.launches, since.barriers), (5, 9));
        for (state, buffer) in states.iter().zip(&buffers) {
            let begin = RngState::from_parts(state.seed(), state.offset() + 12);
            let mut expected = [0u32; 1003];
            let mut philox = Philox::from_state(&begin).unwrap();
            philox.fill_bits(&mut expected).unwrap();
            assert_eq!(stream.to_vec(buffer).unwrap(), expected);
        }
    });
}
