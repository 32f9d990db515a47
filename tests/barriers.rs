//! Kernels that take descriptors and kernels that take addresses get the same barriers.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::{Arc, Mutex};

use support::entry::{Entry, args};
use support::kernels::kernel;
use support::random::Random;
use support::{TestRuntime, on_each_device};
use vkaccel::{Arg, Grid, Stream};

/// A program of kernels and copies on parts of two buffers, some of which overlap: what it records,
/// as text, and after which of its commands something was submitted.
fn record(test: &TestRuntime, map: &str) -> (Vec<String>, Vec<usize>) {
    let entry = Entry::new().unwrap();
    let _runtime = test.another(entry.builder());
    let log = Arc::new(Mutex::new((Vec::new(), Vec::new())));
    fn note<T: 'static>(
        entry: &Entry,
        log: &Arc<Mutex<(Vec<String>, Vec<usize>)>>,
        name: &str,
        text: impl Fn(&T) -> Option<String> + Send + 'static,
    ) {
        let log = Arc::clone(log);
        entry.alter(name, move |args: &mut T| {
            let mut log = log.lock().unwrap();
            match text(args) {
                Some(text) => log.0.push(text),
                None => {
                    let after = log.0.len();
                    log.1.push(after);
                }
            }
        });
    }
    let map = kernel(map);
    let stream = Stream::new(0).unwrap();
    let buffers = [(); 2].map(|()| stream.zeroed::<u32>(4096).unwrap());
    stream.synchronize().unwrap();
    note(&entry, &log, "vkCmdDispatch", |_: &args::CmdDispatch| {
        Some("launch".to_owned())
    });
    note(
        &entry,
        &log,
        "vkCmdCopyBuffer",
        |_: &args::CmdCopyBuffer| Some("copy".to_owned()),
    );
    note(&entry, &log, "vkQueueSubmit", |_: &args::QueueSubmit| None);
    note(
        &entry,
        &log,
        "vkCmdPipelineBarrier",
        |args: &args::CmdPipelineBarrier| {
            Some(format!("barrier from {:?} to {:?}", args.1, args.2))
        },
    );
    let mut random = Random::new(7);
    for _ in 0..60 {
        // Parts that descriptors of any device may start at.
        let mut part = || {
            let start = random.below(12) * 256;
            let which = random.below(2);
            (
                which,
                buffers[which].view(start..start + 256 * 4).unwrap(),
                start,
            )
        };
        let ((a, from, from_at), (b, to, to_at)) = (part(), part());
        // What a command reads and writes at once has no defined order.
        if a == b && from_at.abs_diff(to_at) < 256 * 4 {
            continue;
        }
        if random.below(4) == 0 {
            stream.copy(from, to).unwrap();
        } else {
            let args = (from, Arg::from(to).write(), 1, 1, 1024);
            stream.launch(&map, Grid::elements(1024), args).unwrap();
        }
    }
    stream.synchronize().unwrap();
    entry.forget_rules();
    let log = log.lock().unwrap();
    log.clone()
}

/// No layer sees accesses by address, so that what it sees of descriptors has to hold for both.
#[test]
fn a_program_has_the_same_barriers_by_descriptors_and_by_addresses() {
    on_each_device("the_same_barriers", |test| {
        for _ in 0..50 {
            let (by_descriptors, submitted) = record(test, "affine_map");
            let (by_addresses, submitted_too) = record(test, "affine_at");
            // Where a recording ends may depend on how far the device has got.
            if submitted == submitted_too {
                assert_eq!(by_descriptors, by_addresses);
                let barriers = by_addresses
                    .iter()
                    .filter(|text| text.starts_with("barrier"));
                assert!(barriers.count() > 10, "{by_addresses:#?}");
                return;
            }
        }
        panic!("no two runs were submitted alike");
    });
}
