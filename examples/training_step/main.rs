//! Trains a small network by calls and by replays of a graph, and compares all that comes out.
//!
//! ```text
//! cargo run --release --features glsl --example training_step -- [STEPS]
//! ```
//!
//! `docs/graphs.md` goes through it.

use std::num::NonZeroU32;
use std::time::Duration;

use vkaccel::{Counters, Runtime};

mod network;
use network::{Trained, by_calls, by_replays};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = match std::env::args().nth(1) {
        Some(steps) => steps.parse::<NonZeroU32>()?.get(),
        None => 500,
    };
    // The shortest times, with turns taken: what else the machine does only makes them longer.
    let (mut calls, mut replays) = (Duration::MAX, Duration::MAX);
    for round in 0..5 {
        let (called, counted, time) = run(by_calls, steps)?;
        calls = calls.min(time);
        let (replayed, counted_replays, time) = run(by_replays, steps)?;
        replays = replays.min(time);
        assert!(called.is_same(&replayed), "the replays made other numbers");
        if round == 0 {
            let (first, last) = ends(&called.losses);
            let right = 100.0 * called.part_right()?;
            println!(
                "loss {first:.3} at first, {last:.3} at last; {right:.1} % of new points right"
            );
            println!("a step by calls:    {}", of_a_step(&counted, steps));
            println!("a step by a replay: {}", of_a_step(&counted_replays, steps));
        }
    }
    println!("weights and losses of calls and replays are the same, bit for bit");
    let ratio = calls.as_secs_f64() / replays.as_secs_f64();
    println!("a step takes {calls:.1?} by calls and {replays:.1?} by a replay: ×{ratio:.2}");
    Ok(())
}

/// Trains in one way; gives what came out, what the driver was asked for, and how long a step took.
fn run(
    way: fn(usize) -> vkaccel::Result<(Trained, Duration)>,
    steps: u32,
) -> vkaccel::Result<(Trained, Counters, Duration)> {
    let before = Runtime::current().counters();
    let (trained, time) = way(steps as usize)?;
    let counted = Runtime::current().counters().since(&before);
    Ok((trained, counted, time / steps))
}

/// What a step has on average, with its part of all that is done once.
fn of_a_step(counted: &Counters, steps: u32) -> String {
    let each = |count: u64| count as f64 / f64::from(steps);
    let (launches, barriers) = (each(counted.launches), each(counted.barriers));
    let submits = each(counted.submits);
    format!("{launches:.1} launches, {barriers:.1} barriers, {submits:.1} submissions")
}

/// The first loss, and the mean of the last tenth.
fn ends(losses: &[f32]) -> (f32, f32) {
    let last = &losses[losses.len() - losses.len().div_ceil(10)..];
    (losses[0], last.iter().sum::<f32>() / last.len() as f32)
}
