//! The example of a training step comes to the same numbers by calls and by replays, on every device.

#![cfg(feature = "glsl")]
#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

#[path = "../examples/training_step/network.rs"]
mod network;

use network::{BATCH, HIDDEN, KEPT, RATE, by_calls, by_replays};
use support::on_each_device;
use vkaccel::{Philox, Runtime};

const STEPS: u32 = 150;

#[test]
fn a_training_by_replays_comes_to_the_numbers_of_one_by_calls() {
    on_each_device("a_training_by_replays", |_| {
        let (called, _) = by_calls(STEPS as usize).unwrap();
        let before = Runtime::current().counters();
        let (replayed, _) = by_replays(STEPS as usize).unwrap();
        let since = Runtime::current().counters().since(&before);
        assert!(called.is_same(&replayed));
        assert_eq!(since.replays, u64::from(STEPS));
        // What both have is a network that has learned; one that always says 0 has a loss of 1.
        let losses = &called.losses;
        assert!(losses[0] > 1.0, "{losses:?}");
        let last = &losses[losses.len() - 30..];
        assert!(last.iter().sum::<f32>() < 0.6 * 30.0, "{losses:?}");
        let right = called.part_right().unwrap();
        assert!(right > 0.85, "{right} of the points");
        // Both draw another dropout at each step.
        let repeated = losses.iter().skip(1).any(|loss| *loss == losses[0]);
        assert!(!repeated, "{losses:?}");
    });
}

#[test]
fn a_step_may_be_captured_before_it_was_ever_called() {
    on_each_device("a_step_may_be_captured", |_| {
        let (replayed, _) = by_replays(3).unwrap();
        let (called, _) = by_calls(3).unwrap();
        assert!(replayed.is_same(&called));
    });
}

/// The loss of the first batch, in double precision.
fn first_loss(parameters: &[Vec<f64>; 4]) -> f64 {
    let mut numbers = Philox::new(1);
    // Behind those that the weights of both layers took.
    numbers
        .fill_normal(&mut [0.0f32; 2 * HIDDEN], 0.0, 1.0)
        .unwrap();
    numbers
        .fill_normal(&mut [0.0f32; HIDDEN], 0.0, 1.0)
        .unwrap();
    let mut points = [0.0f32; 2 * BATCH];
    numbers.fill_uniform(&mut points).unwrap();
    let mut mask = [0.0f32; BATCH * HIDDEN];
    Philox::new(2)
        .fill_bernoulli(&mut mask, f64::from(KEPT))
        .unwrap();
    let [weights, bias, out_weights, out_bias] = parameters;
    let squares = points.chunks_exact(2).zip(mask.chunks_exact(HIDDEN));
    let squares = squares.map(|(point, mask)| {
        let [x, y] = [point[0], point[1]].map(|number| 2.0 * f64::from(number) - 1.0);
        let says = (0..HIDDEN).map(|unit| {
            let active = (x * weights[unit] + y * weights[HIDDEN + unit] + bias[unit]).tanh();
            active * f64::from(mask[unit]) / f64::from(KEPT) * out_weights[unit]
        });
        (says.sum::<f64>() + out_bias[0] - (x * y).signum()).powi(2)
    });
    squares.sum::<f64>() / BATCH as f64
}

#[test]
fn a_step_moves_all_parameters_down_the_slope_of_the_loss() {
    on_each_device("a_step_moves_all_parameters", |_| {
        let (before, _) = by_replays(0).unwrap();
        let (after, _) = by_replays(1).unwrap();
        let mut parameters = before.parameters.clone().map(|values| {
            let values = values.iter();
            values.map(|value| f64::from(*value)).collect::<Vec<_>>()
        });
        assert!((first_loss(&parameters) - f64::from(after.losses[0])).abs() < 1e-5);
        for set in 0..4 {
            for place in 0..parameters[set].len() {
                let here = parameters[set][place];
                let [above, below] = [1e-4, -1e-4].map(|way| {
                    parameters[set][place] = here + way;
                    first_loss(&parameters)
                });
                parameters[set][place] = here;
                let moved = f64::from(after.parameters[set][place]) - here;
                let expected = f64::from(-RATE) * (above - below) / 2e-4;
                let is_near = (moved - expected).abs() < 1e-5;
                assert!(is_near, "{set}, {place}: {moved}, not {expected}");
            }
        }
    });
}
