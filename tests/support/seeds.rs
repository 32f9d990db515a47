//! Runs of random tests: with a few fixed seeds, or for as long as somebody asks.
//!
//! - `VKACCEL_STRESS_SECONDS=N` runs with one seed after the other for that long, on each device.
//! - `VKACCEL_STRESS_SEED=N` is the first of them, and the only one without the time: a failure says which.

use std::time::{Duration, Instant};

use super::deadline::Deadline;

/// How long one run may take: far more than any needs, also on a machine that is busy.
const DEADLINE_S: u64 = 120;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is {text}, no number")),
    )
}

/// Says which run it was if the test fails.
struct Run<'a>(&'a str, u64);

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} failed with VKACCEL_STRESS_SEED={}", self.0, self.1);
        }
    }
}

/// Runs `run` with so many seeds, or as the environment says; each run has a deadline.
pub fn for_seeds(name: &str, count: u64, run: impl Fn(u64)) {
    let started = Instant::now();
    let time = number("VKACCEL_STRESS_SECONDS").map(Duration::from_secs);
    let first = number("VKACCEL_STRESS_SEED");
    let count = first.map_or(count, |_| 1);
    for seed in first.unwrap_or(1).. {
        let done = seed - first.unwrap_or(1);
        if time.map_or(done >= count, |time| started.elapsed() >= time) {
            break;
        }
        let _run = Run(name, seed);
        let _deadline = Deadline::new(
            &format!("{name} with VKACCEL_STRESS_SEED={seed}"),
            DEADLINE_S,
        );
        run(seed);
    }
}
