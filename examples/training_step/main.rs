//! Trains a small network by calls and by replays of a graph, and compares all that comes out.
//!
//! ```text
//! cargo run --release --features glsl --example training_step -- [STEPS]
//! ```
//!
//! `docs/graphs.md` goes through it.

use std::num::NonZeroU32;
use std::time::Duration;

mod network;
use network::{by_calls, by_replays};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = match std::env::args().nth(1) {
        Some(steps) => steps.parse::<NonZeroU32>()?.get(),
        None => 500,
    };
    let (mut calls, mut replays) = (Vec::new(), Vec::new());
    // In turns, so that what else the machine does meets both.
    for round in 0..5 {
        let (called, time) = by_calls(steps as usize)?;
        calls.push(time / steps);
        let (replayed, time) = by_replays(steps as usize)?;
        replays.push(time / steps);
        assert!(called.is_same(&replayed), "the replays made other numbers");
        if round == 0 {
            let (first, last) = ends(&called.losses);
            let right = 100.0 * called.part_right()?;
            println!(
                "loss {first:.3} at first, {last:.3} at last; {right:.1} % of new points right"
            );
        }
    }
    println!("weights and losses of calls and replays are the same, bit for bit");
    let (calls, replays) = (median(calls), median(replays));
    let ratio = calls.as_secs_f64() / replays.as_secs_f64();
    println!("a step takes {calls:.0?} by calls and {replays:.0?} by a replay: ×{ratio:.2}");
    Ok(())
}

/// The first loss, and the mean of the last tenth.
fn ends(losses: &[f32]) -> (f32, f32) {
    let last = &losses[losses.len() - losses.len().div_ceil(10)..];
    (losses[0], last.iter().sum::<f32>() / last.len() as f32)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
