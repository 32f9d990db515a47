//! Promises of what is current on a thread: guards, scopes, set_device_index, set_stream.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use support::random::Random;
use support::{TestRuntime, builder, on_each_device, skip};
use vkaccel::{
    Buffer, Device, DeviceArg, Error, ErrorKind, Result, Runtime, Stream, current_device_index,
    current_stream, device_count, device_index, set_device_index, set_stream, with_device,
};

/// The current stream of the current device.
fn now() -> Stream {
    current_stream(None).unwrap()
}

fn index_now() -> usize {
    current_device_index().unwrap()
}

/// Any error at all.
fn some_error() -> Error {
    Stream::new("no device").unwrap_err()
}

/// Scopes nest, the same stream included, and each leaves what it found.
#[test]
fn nested_stream_scopes_unwind_to_what_was_current() {
    on_each_device("nested_stream_scopes", |_| {
        let default = now();
        let (s1, s2) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let first = s1.enter().unwrap();
        let second = s2.enter().unwrap();
        let third = s1.enter().unwrap();
        assert_eq!(now(), s1);
        drop(third);
        assert_eq!(now(), s2);
        drop(second);
        assert_eq!(now(), s1);
        drop(first);
        assert_eq!(now(), default);

        let nested = s1.scope(|| {
            assert_eq!(now(), s1);
            s2.scope(|| {
                assert_eq!(now(), s2);
                s1.scope(|| Ok(now()))
            })
        });
        assert_eq!(nested.unwrap(), s1);
        assert_eq!(now(), default);
    });
}

/// Scopes leave what they found on the error path too, and on panics.
#[test]
fn scopes_that_end_by_an_error_or_a_panic_restore_too() {
    on_each_device("scopes_that_end_by_an_error", |_| {
        let default = now();
        let (s1, s2) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let failed: Result<()> = s1.scope(|| {
            let inner: Result<()> = s2.scope(|| {
                let innermost = s1.scope(|| {
                    assert_eq!(now(), s1);
                    Err(some_error())
                });
                assert_eq!(now(), s2);
                innermost
            });
            assert_eq!(now(), s1);
            inner
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidDevice);
        assert_eq!(now(), default);

        let panicked = catch_unwind(AssertUnwindSafe(|| {
            s1.scope(|| s2.scope(|| -> Result<()> { panic!("on purpose") }))
        }));
        assert!(panicked.is_err());
        assert_eq!(now(), default);

        let panicked = catch_unwind(AssertUnwindSafe(|| {
            with_device(0, || -> Result<()> { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        assert_eq!(index_now(), 0);
    });
}

#[test]
fn guards_dropped_out_of_order_end_at_what_was_before_all() {
    on_each_device("guards_dropped_out_of_order", |_| {
        let default = now();
        let (s1, s2) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let outer = s1.enter().unwrap();
        let inner = s2.enter().unwrap();
        drop(outer);
        assert_eq!(now(), s2, "the inner one still counts");
        drop(inner);
        assert_eq!(now(), default);
    });
}

/// What a thread's guards have saved, by kind and device; the newest is the last.
#[derive(Default)]
struct Saved(Vec<(usize, u64)>);

impl Saved {
    /// Takes out what a guard saved, for whoever is above it, or else for the thread.
    fn restore(&mut self, guard: usize, now: &mut u64) {
        let at = self.0.iter().position(|saved| saved.0 == guard).unwrap();
        let (_, before) = self.0.remove(at);
        *self.0.get_mut(at).map_or(now, |above| &mut above.1) = before;
    }
}

/// Guards of devices and of streams, with what is set by hand between them, beside a plain model.
#[test]
fn guards_of_devices_and_streams_dropped_in_any_order_follow_the_rules() {
    let runtime = TestRuntime::new(builder());
    let count = device_count();
    if count == 0 {
        return skip("guards_of_devices_and_streams", "no device");
    }
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let streams: Vec<Stream> = (0..6).map(|i| Stream::new(i % count).unwrap()).collect();
        let defaults: Vec<Stream> = (0..count).map(|i| current_stream(i).unwrap()).collect();
        let mut device = 0u64;
        let mut current: Vec<u64> = defaults.iter().map(Stream::id).collect();
        let mut of_devices = Saved::default();
        let mut of_streams: Vec<Saved> = (0..count).map(|_| Saved::default()).collect();
        let mut guards: Vec<(usize, Box<dyn Any>, Option<usize>)> = Vec::new();
        for step in 0..160 {
            let stream = &streams[random.below(6)];
            let of = stream.device().index().unwrap() as usize;
            let leaves = step >= 80;
            match random.below(if leaves { 1 } else { 5 }) {
                0 if !guards.is_empty() => {
                    let (id, guard, stream_of) = guards.swap_remove(random.below(guards.len()));
                    drop(guard);
                    of_devices.restore(id, &mut device);
                    if let Some(of) = stream_of {
                        of_streams[of].restore(id, &mut current[of]);
                    }
                }
                1 => {
                    of_devices.0.push((step, device));
                    device = of as u64;
                    guards.push((step, Box::new(device_index(of).unwrap()), None));
                }
                2 => {
                    of_devices.0.push((step, device));
                    of_streams[of].0.push((step, current[of]));
                    (device, current[of]) = (of as u64, stream.id());
                    guards.push((step, Box::new(stream.enter().unwrap()), Some(of)));
                }
                3 => {
                    set_stream(stream).unwrap();
                    (device, current[of]) = (of as u64, stream.id());
                }
                4 => {
                    set_device_index(of).unwrap();
                    device = of as u64;
                }
                _ => {}
            }
            assert_eq!(index_now() as u64, device, "seed {seed}, step {step}");
            for (of, current) in current.iter().enumerate() {
                let found = current_stream(of).unwrap().id();
                assert_eq!(found, *current, "seed {seed}, step {step}, device {of}");
            }
        }
        assert!(guards.is_empty());
        defaults
            .iter()
            .rev()
            .for_each(|one| set_stream(one).unwrap());
    }
    drop(runtime);
}

#[test]
fn a_forgotten_guard_leaves_its_stream_current_and_harms_no_other() {
    on_each_device("a_forgotten_guard", |_| {
        let default = now();
        let (s1, s2) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let outer = s1.enter().unwrap();
        #[allow(clippy::mem_forget, reason = "what forgetting does is under test")]
        core::mem::forget(s2.enter().unwrap());
        assert_eq!(now(), s2);
        drop(outer);
        assert_eq!(now(), s2);
        set_stream(&default).unwrap();
        assert_eq!(now(), default);
        assert_eq!(s1.scope(|| Ok(now())).unwrap(), s1);
        assert_eq!(now(), default);
    });
}

#[test]
fn a_stream_that_was_set_stays_until_another_is() {
    on_each_device("a_stream_that_was_set", |_| {
        let (default, stream) = (now(), Stream::new(0).unwrap());
        assert_eq!(Stream::default_of(None).unwrap(), default);
        set_stream(&stream).unwrap();
        assert_eq!(now(), stream);
        assert_eq!(current_stream(0).unwrap(), stream);
        assert_eq!(Stream::default_of(0).unwrap(), default);
        assert_eq!(
            Stream::default_of(99).unwrap_err().kind(),
            ErrorKind::InvalidDevice
        );
        // Inside of a scope, what is set lasts as long as the scope.
        let inner = Stream::new(0).unwrap();
        stream.scope(|| set_stream(&inner)).unwrap();
        assert_eq!(now(), stream);
        // Its last handle is the thread's own.
        drop(stream);
        let words = Buffer::from_slice(&[1u32, 2]).unwrap();
        assert_eq!(words.to_vec().unwrap(), [1, 2]);
        set_stream(&default).unwrap();
        assert_eq!(now(), default);
    });
}

#[test]
fn threads_have_current_values_of_their_own() {
    on_each_device("threads_have_current_values", |test| {
        let (default, stream) = (now(), Stream::new(0).unwrap());
        set_stream(&stream).unwrap();
        let runtime = test.runtime().clone();
        let of_other = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _entered = runtime.enter();
                let before = now();
                let own = Stream::new(0).unwrap();
                set_stream(&own).unwrap();
                assert_eq!(now(), own);
                before
            });
            other.join().unwrap()
        });
        assert_eq!(
            of_other, default,
            "another thread starts with the default stream"
        );
        assert_eq!(now(), stream);
    });
}

#[test]
fn a_runtime_is_current_while_its_guard_lives_and_objects_keep_theirs() {
    on_each_device("a_runtime_is_current", |_| {
        let outside = Stream::new(0).unwrap();
        let before = now();
        {
            let inner = TestRuntime::new(builder());
            let default = now();
            assert_ne!(default, before, "each runtime has streams of its own");
            let inside = Stream::new(0).unwrap();
            let _current = inside.enter().unwrap();
            assert_eq!(now(), inside);
            assert_eq!(
                set_stream(&outside).unwrap_err().kind(),
                ErrorKind::InvalidArgument
            );
            // A stream of the outer runtime still works there.
            let words = outside.upload(&[1u8, 2]).unwrap();
            assert_eq!(outside.to_vec(&words).unwrap(), [1, 2]);
            {
                // The same runtime again: the thread's values go on.
                let _again = inner.runtime().enter();
                assert_eq!(now(), inside);
            }
            assert_eq!(now(), inside);
        }
        assert_eq!(now(), before);
    });
}

#[test]
fn runtime_guards_dropped_out_of_order_end_at_what_was_before_all() {
    on_each_device("runtime_guards_dropped", |_| {
        let before = now();
        let (a, b) = (builder().build(), builder().build());
        let outer = a.enter();
        let inner = b.enter();
        let of_inner = now();
        drop(outer);
        assert_eq!(now(), of_inner);
        drop(inner);
        assert_eq!(now(), before);
        a.shutdown().unwrap();
        b.shutdown().unwrap();
    });
}

#[test]
fn a_runtime_that_was_left_ends_on_its_thread_inside_of_another_too() {
    on_each_device("a_runtime_that_was_left", |_| {
        let opened = |runtime: &Runtime| {
            let stream = Stream::new(0).unwrap();
            set_stream(&stream).unwrap();
            assert_eq!(now(), stream);
            stream.zeroed::<u8>(1).unwrap();
            assert!(runtime.is_initialized());
        };
        // In the runtime of the test.
        let left = builder().build();
        let guard = left.enter();
        opened(&left);
        let was_set = now();
        drop(guard);
        let guard = left.enter();
        assert_ne!(now(), was_set, "what was current has ended");
        // A guard from before that is dropped later ends nothing.
        let old = was_set.enter().unwrap();
        drop(guard);
        let guard = left.enter();
        let newer = Stream::new(0).unwrap();
        let entered = newer.enter().unwrap();
        drop(old);
        assert_eq!(now(), newer);
        drop((entered, guard));
        // Out of order.
        let (a, b) = (builder().build(), builder().build());
        let outer = a.enter();
        opened(&a);
        let was_set = now();
        let inner = b.enter();
        drop(outer);
        drop(inner);
        let _again = a.enter();
        assert_ne!(now(), was_set, "what was current has ended");
    });
}

#[test]
fn setting_the_device_takes_an_index_that_exists() {
    on_each_device("setting_the_device", |test| {
        for same in [
            DeviceArg::from(0),
            "vulkan:0".into(),
            Device::new(0).into(),
            0usize.into(),
        ] {
            set_device_index(same).unwrap();
            assert_eq!(index_now(), 0);
        }
        // A negative one changes nothing, here alone.
        set_device_index(-1).unwrap();
        set_device_index(i64::MIN).unwrap();
        drop(device_index(-1).unwrap());
        let current: [DeviceArg; 4] = [
            None.into(),
            "vulkan".into(),
            Device::any().into(),
            DeviceArg::CURRENT,
        ];
        for indexless in current {
            let error = set_device_index(indexless).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidDevice);
        }
        let bad: [DeviceArg; 9] = [
            1.into(),
            u64::MAX.into(),
            "vulkan:1".into(),
            "cuda:0".into(),
            "vulkan:".into(),
            "vulkan:-1".into(),
            "vulkan: 0".into(),
            "".into(),
            Device::new(7).into(),
        ];
        for bad in bad {
            for error in [
                set_device_index(bad.clone()).unwrap_err(),
                device_index(bad.clone()).unwrap_err(),
                with_device(bad.clone(), || Ok(())).unwrap_err(),
                current_stream(bad.clone()).unwrap_err(),
                Stream::new(bad.clone()).unwrap_err(),
                vkaccel::synchronize(bad.clone()).unwrap_err(),
                vkaccel::get_device_capability(bad).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::InvalidDevice, "{error}");
            }
        }
        assert_eq!(index_now(), 0, "nothing was changed by what failed");
        assert!(
            !test.runtime().is_initialized(),
            "none of that opens the device"
        );
        assert!(device_index(None).is_ok());
    });
}

#[test]
#[allow(deprecated)]
fn the_old_names_do_what_the_new_ones_do() {
    on_each_device("the_old_names", |_| {
        vkaccel::set_device_idx(0).unwrap();
        assert_eq!(vkaccel::current_device_idx().unwrap(), index_now());
        let error = vkaccel::set_device_idx(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidDevice);
    });
}

/// A runtime that sees two devices; nothing, said so, where the process sees fewer.
fn two_devices(name: &str) -> Option<TestRuntime> {
    let runtime = TestRuntime::new(builder());
    if device_count() >= 2 {
        return Some(runtime);
    }
    skip(name, "there are not two devices");
    None
}

/// The same on two devices.
#[test]
fn a_stream_scope_restores_the_device_and_its_own_devices_stream_alone() {
    let Some(_runtime) = two_devices("a_stream_scope_restores_the_device") else {
        return;
    };
    let (default_0, default_1) = (current_stream(0).unwrap(), current_stream(1).unwrap());
    let (of_0, of_1) = (Stream::new(0).unwrap(), Stream::new(1).unwrap());
    let scope = of_1.enter().unwrap();
    assert_eq!((index_now(), now()), (1, of_1.clone()));
    assert_eq!(current_stream(0).unwrap(), default_0);
    set_stream(&of_0).unwrap();
    assert_eq!(
        (index_now(), now()),
        (0, of_0.clone()),
        "the device comes along"
    );
    assert_eq!(current_stream(1).unwrap(), of_1);
    drop(scope);
    assert_eq!(index_now(), 0);
    assert_eq!(current_stream(1).unwrap(), default_1);
    assert_eq!(
        current_stream(0).unwrap(),
        of_0,
        "what was set by hand is kept"
    );
}

#[test]
fn device_guards_nest_and_end_in_any_order() {
    let Some(_runtime) = two_devices("device_guards_nest") else {
        return;
    };
    let outer = device_index(1).unwrap();
    assert_eq!(index_now(), 1);
    let inner = device_index("vulkan:0").unwrap();
    assert_eq!(index_now(), 0);
    drop(inner);
    assert_eq!(index_now(), 1);
    let nothing = device_index(None).unwrap();
    set_device_index(0).unwrap();
    drop(nothing);
    assert_eq!(index_now(), 0, "a guard of nothing restores nothing");
    drop(outer);
    assert_eq!(index_now(), 0);

    let outer = device_index(1).unwrap();
    let inner = device_index(1).unwrap();
    drop(outer);
    assert_eq!(index_now(), 1);
    drop(inner);
    assert_eq!(index_now(), 0);

    let inside = with_device(1, || {
        set_device_index(0)?;
        with_device(1, current_device_index)
    });
    assert_eq!((inside.unwrap(), index_now()), (1, 0));
}

#[test]
fn commands_run_on_the_current_device_and_explicit_forms_on_their_own() {
    let Some(runtime) = two_devices("commands_run_on_the_current_device") else {
        return;
    };
    let on_1 = with_device(1, || Buffer::from_slice(&[1u32, 2, 3])).unwrap();
    assert_eq!(on_1.device(), Device::new(1));
    assert_eq!(
        on_1.to_vec().unwrap(),
        [1, 2, 3],
        "on its own device, whatever is current"
    );
    let stream = Stream::new(1).unwrap();
    let also_on_1 = stream.zeroed::<u32>(3).unwrap();
    stream.copy(&on_1, &also_on_1).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(also_on_1.to_vec().unwrap(), [1, 2, 3]);

    let on_0 = Buffer::<u32>::zeroed(3).unwrap();
    assert_eq!(on_0.device(), Device::new(0));
    let error = on_0.copy_from(on_1.view(..).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidDevice);
    for text in ["vulkan:0", "vulkan:1"] {
        assert!(error.to_string().contains(text), "{error}");
    }
    let kernel = support::kernels::kernel("affine");
    let error = kernel
        .launch(vkaccel::Grid::elements(3), (&on_1, 1, 1, 3))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidDevice);
    assert!(runtime.runtime().is_initialized());
}
