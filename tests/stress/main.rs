//! Everything at once, at random: threads, streams, launches by both ways, copies, random numbers, graphs,
//! drops and flushed caches, beside the host's computation of every byte.
//!
//! The environment gives time and seed (`support/seeds.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod block;
mod command;
#[path = "../support/race/mod.rs"]
mod race;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::cell::Cell;
use std::sync::mpsc::channel;

use race::Log;
use support::entry::Entry;
use support::on_each_device;
use support::seeds::for_seeds;
use vkaccel::{Buffer, Stream};
use world::World;

/// How many threads there are, and what each does.
const THREADS: usize = 3;
const STEPS: usize = 120;

#[test]
fn whatever_threads_do_at_once_every_byte_is_what_the_calls_say() {
    const NAME: &str = "whatever_threads_do_at_once";
    on_each_device(NAME, |test| {
        let (done, runs) = (Cell::new([0; 4]), Cell::new(0));
        // Holds the layer: a current one leaves a thread's key behind whenever it is unloaded, and there are
        // a thousand for a process.
        drop(Buffer::<u32>::zeroed(1).unwrap());
        for_seeds(NAME, 3, |seed| {
            let entry = Entry::new().unwrap();
            let log = Log::install(&entry);
            let own = test.another(entry.builder());
            // The thread that opens the device is the one whose entry it is.
            drop(Buffer::<u32>::zeroed(1).unwrap());
            let shared = Stream::new(0).unwrap();
            // Each thread hands memory to the next one.
            let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
            let next = senders.into_iter().cycle().skip(1);
            std::thread::scope(|scope| {
                for (thread, (next, previous)) in next.zip(receivers).enumerate() {
                    let (shared, runtime) = (shared.clone(), own.runtime().clone());
                    scope.spawn(move || {
                        let _entered = runtime.enter();
                        let seed = seed * THREADS as u64 + thread as u64;
                        World::new(seed, thread, shared, next, previous).run(STEPS);
                    });
                }
            });
            let did = own.runtime().counters();
            let all = [did.launches, did.transfers, did.replays, did.callbacks];
            done.set(std::array::from_fn(|kind| done.get()[kind] + all[kind]));
            runs.set(runs.get() + 1);
            drop((shared, own));
            log.check();
        });
        // One run alone may leave something out.
        let done = done.get();
        assert!(
            runs.get() < 3 || done.iter().all(|&count| count > 0),
            "{done:?}"
        );
    });
}
