//! All kinds of calls after each other, at random, on streams that wait for each other, in graphs and by
//! callbacks: every word is what plain Rust makes of it, and nothing is held in the end.
//!
//! The environment gives time and seed (`support/seeds.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod call;
mod program;
#[path = "../support/mod.rs"]
mod support;

use program::Program;
use support::books::check_books;
use support::on_each_device;
use support::seeds::for_seeds;
use vkaccel::{memory, synchronize};

/// How many calls there are in a run, graphs and replays among them.
const STEPS: usize = 120;

#[test]
fn any_calls_in_any_order_do_what_they_say_and_leave_nothing() {
    const NAME: &str = "any_calls_in_any_order";
    on_each_device(NAME, |_| {
        for_seeds(NAME, 6, |seed| {
            Program::new(seed).run(STEPS);
            synchronize(0).unwrap();
            memory::empty_cache().unwrap();
            assert_eq!(check_books(), []);
            assert_eq!(memory::memory_reserved(0).unwrap(), 0);
        });
    });
}
