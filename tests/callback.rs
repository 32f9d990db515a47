//! Promises of host callbacks: when they run, in which order, and what they may not do.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::deadline::Deadline;
use support::on_each_device;
use support::slow::Slow;
use vkaccel::{ErrorKind, Event, Stream};

/// Longer than any callback takes to come.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn callbacks_run_in_stream_order_once_their_commands_have_finished() {
    on_each_device("callbacks_run_in_stream_order", |_| {
        let streams = [Stream::new(0).unwrap(), Stream::new(0).unwrap()];
        let slow = Slow::new(&streams[0]);
        let (sender, receiver) = channel();
        for round in 0..20 {
            for (which, stream) in streams.iter().enumerate() {
                if round % 5 == 0 {
                    slow.launch(stream);
                    streams[1 - which].wait_stream(stream).unwrap();
                }
                let done = stream.record_event().unwrap();
                let sender = sender.clone();
                let told = move || sender.send((which, round, done.query())).unwrap();
                stream.add_callback(told).unwrap();
            }
        }
        let mut next = [0, 0];
        for _ in 0..40 {
            let (which, round, done) = receiver.recv_timeout(SOON).unwrap();
            assert_eq!(round, next[which]);
            assert!(done.unwrap());
            next[which] += 1;
        }
    });
}

#[test]
fn a_callback_comes_without_further_calls_also_where_there_is_nothing_to_wait_for() {
    on_each_device("a_callback_comes_without_further_calls", |_| {
        let (sender, receiver) = channel();
        let stream = Stream::new(0).unwrap();
        for work in [false, true] {
            let sender = sender.clone();
            if work {
                drop(stream.zeroed::<u32>(100).unwrap());
            }
            stream
                .add_callback(move || sender.send(work).unwrap())
                .unwrap();
            assert_eq!(receiver.recv_timeout(SOON), Ok(work));
        }
        // Its stream may be gone by then.
        let slow = Slow::new(&stream);
        slow.launch(&stream);
        stream
            .add_callback(move || sender.send(true).unwrap())
            .unwrap();
        drop((stream, slow));
        assert_eq!(receiver.recv_timeout(SOON), Ok(true));
        assert_eq!(
            receiver.recv_timeout(SOON),
            Err(RecvTimeoutError::Disconnected)
        );
    });
}

#[test]
fn a_callback_may_record_and_add_others_but_not_wait() {
    on_each_device("a_callback_may_record", |test| {
        let _deadline = Deadline::new("a_callback_may_record", 60);
        let (sender, receiver) = channel();
        let (stream, runtime) = (Stream::new(0).unwrap(), test.runtime().clone());
        let words = Arc::new(stream.upload(&[1u32; 10]).unwrap());
        let (inner, target) = (stream.clone(), Arc::clone(&words));
        let tries = move || {
            let event = inner.record_event().unwrap();
            let refused: Vec<_> = [
                inner.synchronize(),
                event.synchronize(),
                event.synchronize_timeout(Duration::from_secs(1)).map(drop),
                inner.to_vec(&*target).map(drop),
                vkaccel::with_device(0, || runtime.shutdown()),
            ]
            .map(|result| result.map_err(|error| error.kind()))
            .into();
            inner.fill(&*target, 7).unwrap();
            let again = sender.clone();
            inner
                .add_callback(move || again.send(Vec::new()).unwrap())
                .unwrap();
            sender.send(refused).unwrap();
        };
        stream.add_callback(tries).unwrap();
        let refused = receiver.recv_timeout(SOON).unwrap();
        assert_eq!(refused, [const { Err(ErrorKind::NotPermitted) }; 5]);
        assert_eq!(receiver.recv_timeout(SOON).unwrap(), []);
        assert_eq!(stream.to_vec(&*words).unwrap(), [7; 10]);
    });
}

#[test]
fn a_panic_in_a_callback_is_told_to_the_next_user_of_its_stream_once() {
    on_each_device("a_panic_in_a_callback", |_| {
        let (stream, other) = (Stream::new(0).unwrap(), Stream::new(0).unwrap());
        let words = stream.upload(&[1u32; 10]).unwrap();
        // It panics once the next one is there, which would be told of it.
        let (go, wait) = channel();
        let line = line!() + 2;
        stream
            .add_callback(move || {
                wait.recv().unwrap();
                panic!("on purpose")
            })
            .unwrap();
        let (sender, receiver) = channel();
        // The callback behind it runs nevertheless.
        stream
            .add_callback(move || sender.send(()).unwrap())
            .unwrap();
        go.send(()).unwrap();
        receiver.recv_timeout(SOON).unwrap();
        other.synchronize().unwrap();
        let error = stream.fill(&words, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CallbackPanicked);
        for part in ["on purpose", &format!("callback.rs:{line}:")] {
            assert!(error.to_string().contains(part), "{error}");
        }
        stream.fill(&words, 3).unwrap();
        assert_eq!(stream.to_vec(&words).unwrap(), [3; 10]);
    });
}

/// What panics when it is dropped, and so on.
struct Panics(u32);

impl Drop for Panics {
    fn drop(&mut self) {
        match self.0 {
            0 => panic!("on purpose"),
            left => std::panic::panic_any(Panics(left - 1)),
        }
    }
}

#[test]
fn no_panic_of_a_callback_holds_others_up_whatever_it_leaves() {
    on_each_device("no_panic_of_a_callback", |_| {
        let other = Stream::new(0).unwrap();
        let slow = Slow::new(&other);
        for round in 0..4 {
            let stream = Stream::new(0).unwrap();
            stream.wait_stream(&other).unwrap();
            slow.launch(&stream);
            other.wait_stream(&stream).unwrap();
            let panics = move || std::panic::panic_any(Panics(round / 2));
            stream.add_callback(panics).unwrap();
            // Its stream may be gone by then, so that nobody is told.
            if round % 2 == 0 {
                drop(stream);
            }
            let (sender, receiver) = channel();
            other
                .add_callback(move || sender.send(()).unwrap())
                .unwrap();
            assert_eq!(receiver.recv_timeout(SOON), Ok(()));
        }
    });
}

#[test]
fn shutting_down_waits_for_callbacks() {
    on_each_device("shutting_down_waits_for_callbacks", |test| {
        let _deadline = Deadline::new("shutting_down_waits_for_callbacks", 60);
        let seen = Arc::new(Mutex::new(0));
        let stream = Stream::new(0).unwrap();
        let slow = Slow::new(&stream);
        for _ in 0..5 {
            slow.launch(&stream);
            let seen = Arc::clone(&seen);
            stream
                .add_callback(move || *seen.lock().unwrap() += 1)
                .unwrap();
        }
        test.runtime().shutdown().unwrap();
        assert_eq!(*seen.lock().unwrap(), 5);
    });
}

#[test]
fn what_a_callback_holds_may_be_the_last_of_its_stream_and_device() {
    on_each_device("what_a_callback_holds", |test| {
        let _deadline = Deadline::new("what_a_callback_holds", 60);
        for round in 0..10u32 {
            let (sender, receiver) = channel();
            let inner = test.another(support::builder());
            let stream = Stream::new(0).unwrap();
            let words = stream.upload(&[round; 100]).unwrap();
            let event = Event::new();
            event.record(&stream).unwrap();
            let (last, handle) = (inner.runtime().clone(), stream.clone());
            let held = move || {
                drop((words, event, handle, last));
                sender.send(()).unwrap();
            };
            stream.add_callback(held).unwrap();
            drop(stream);
            receiver.recv_timeout(SOON).unwrap();
            drop(inner);
        }
    });
}

/// What a callback that is forgotten holds would keep the device for ever.
#[test]
fn a_callback_that_meets_a_shutdown_runs_or_is_refused() {
    on_each_device("a_callback_that_meets_a_shutdown", |test| {
        let _deadline = Deadline::new("a_callback_that_meets_a_shutdown", 120);
        for round in 0..60 {
            let inner = test.another(support::builder().validation(false));
            let stream = Stream::new(0).unwrap();
            stream.zeroed::<u32>(1).unwrap();
            stream.synchronize().unwrap();
            let (sender, receiver) = channel();
            let mut taken = 0;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let refused = loop {
                        let (sender, held) = (sender.clone(), stream.clone());
                        let told = move || {
                            sender.send(()).unwrap();
                            drop(held);
                        };
                        match stream.add_callback(told) {
                            Ok(()) => taken += 1,
                            Err(error) => break error,
                        }
                    };
                    assert_eq!(refused.kind(), ErrorKind::ShutDown, "{refused}");
                });
                std::thread::sleep(Duration::from_micros(300 + 37 * round));
                inner.runtime().shutdown().unwrap();
            });
            drop((stream, sender));
            // It ends once none is left that was neither run nor dropped.
            let ran = || receiver.recv_timeout(SOON);
            assert!((0..taken).all(|_| ran() == Ok(())), "of {taken}");
            assert_eq!(ran(), Err(RecvTimeoutError::Disconnected));
        }
    });
}
