//! Promises of how random numbers are distributed, on numbers that devices made.
//!
//! A million of each kind in every run; a hundred million with
//! `cargo test --test random_statistics -- --ignored --nocapture`, which prints the statistics. Seeds are
//! fixed, so that a device that gives the right bits gives the same statistics in every run.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use support::on_each_device;
use vkaccel::{Buffer, ErrorKind, Generator, Pod, Result, View};

/// How many numbers one fill makes.
const PIECE: usize = 1 << 20;
/// A statistic further than this from what is expected, in standard deviations, is a fault: by chance
/// it is one in fifteen thousand.
const FAR: f64 = 4.0;

/// Prints a statistic, and fails if it is far from what is expected.
#[track_caller]
fn judge(name: &str, deviations: f64) {
    println!("{name}: {deviations:+.2} standard deviations");
    assert!(deviations.abs() < FAR, "{name}: {deviations}");
}

/// How far a chi-square statistic is from its mean, in standard deviations (Wilson and Hilferty).
fn deviations(chi_square: f64, freedom: f64) -> f64 {
    let variance = 2.0 / (9.0 * freedom);
    ((chi_square / freedom).cbrt() - (1.0 - variance)) / variance.sqrt()
}

/// How often numbers fell into each bin.
#[derive(Clone)]
struct Histogram(Vec<u64>);

impl Histogram {
    fn new(bins: usize) -> Self {
        Self(vec![0; bins])
    }

    fn add(&mut self, bin: usize) {
        self.0[bin] += 1;
    }

    fn total(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64
    }

    /// Against the probabilities of the bins.
    #[track_caller]
    fn judge(&self, name: &str, probability: impl Fn(usize) -> f64) {
        let total = self.total();
        let parts = self.0.iter().enumerate().map(|(bin, &count)| {
            let expected = total * probability(bin);
            assert!(expected > 5.0, "{name}: bin {bin} is too small");
            (count as f64 - expected).powi(2) / expected
        });
        let chi_square: f64 = parts.sum();
        let freedom = self.0.len() as f64 - 1.0;
        let label = format!(
            "{name}, {total} in {} bins, chi-square {chi_square:.1}",
            self.0.len()
        );
        judge(&label, deviations(chi_square, freedom));
    }

    #[track_caller]
    fn judge_even(&self, name: &str) {
        let bins = self.0.len() as f64;
        self.judge(name, |_| 1.0 / bins);
    }

    /// Whether two samples of one size are of one distribution: chi-square, and the largest distance of
    /// their sums (Kolmogorov and Smirnov).
    #[track_caller]
    fn judge_like(&self, other: &Self, name: &str) {
        let total = self.total();
        assert_eq!(total, other.total());
        let (mut chi_square, mut distance, mut sum) = (0.0, 0.0f64, 0.0);
        for (&a, &b) in self.0.iter().zip(&other.0) {
            let difference = a as f64 - b as f64;
            chi_square += difference.powi(2) / ((a + b) as f64).max(1.0);
            sum += difference;
            distance = distance.max(sum.abs() / total);
        }
        let freedom = self.0.len() as f64 - 1.0;
        let label = format!("{name}, two samples, chi-square {chi_square:.1}");
        judge(&label, deviations(chi_square, freedom));
        let scaled = distance * (total / 2.0).sqrt();
        let chance = (2.0 * (-2.0 * scaled * scaled).exp()).min(1.0);
        println!("{name}, two samples, distance {scaled:.3}: chance {chance:.3}");
        assert!(chance > 1e-4, "{name}: distance {scaled}");
    }
}

/// How numbers go together with those some places on.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
    products: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.sum += x;
        self.squares += x * x;
        self.products += x * y;
    }

    /// The correlation, of which chance makes one standard deviation of 1 / sqrt(n).
    #[track_caller]
    fn judge(&self, name: &str) {
        let mean = self.sum / self.count;
        let variance = self.squares / self.count - mean * mean;
        let correlation = (self.products / self.count - mean * mean) / variance;
        judge(name, correlation * self.count.sqrt());
    }
}

/// Makes so many numbers on the device and passes them on piece by piece.
fn draw<T: Pod>(
    seed: u64,
    count: usize,
    fill: impl Fn(&Generator, View<'_, T>) -> Result<()>,
    mut each: impl FnMut(&[T]),
) -> Result<()> {
    let generator = Generator::new(seed, None)?;
    let buffer = Buffer::<T>::uninit(PIECE)?;
    let mut left = count;
    while left > 0 {
        let len = left.min(PIECE);
        let view = buffer.view(..len)?;
        fill(&generator, view)?;
        each(&view.to_vec()?);
        left -= len;
    }
    Ok(())
}

fn raw_bits(count: usize) {
    let mut bytes = Histogram::new(256);
    let mut high = Histogram::new(1 << 14);
    let mut serial = [1, 2, 4].map(|lag| (lag, Histogram::new(1 << 12)));
    let mut correlation = Moments::default();
    let mut ones = 0u64;
    let all = |words: &[u32]| {
        for &word in words {
            for byte in word.to_le_bytes() {
                bytes.add(byte.into());
            }
            high.add((word >> 18) as usize);
            ones += u64::from(word.count_ones());
        }
        // Pairs that don't overlap: numbers `lag` apart, out of runs of twice as many.
        for (lag, pairs) in &mut serial {
            for run in words.chunks_exact(2 * *lag) {
                let (first, second) = run.split_at(*lag);
                for (a, b) in first.iter().zip(second) {
                    pairs.add(((a >> 26) << 6 | b >> 26) as usize);
                }
            }
        }
        for pair in words.windows(2) {
            correlation.add(f64::from(pair[0]) / 4e9, f64::from(pair[1]) / 4e9);
        }
    };
    draw(1, count, |g, view| g.fill_bits(view), all).unwrap();
    bytes.judge_even("raw bits, bytes");
    high.judge_even("raw bits, upper 14 bits");
    for (lag, pairs) in &serial {
        pairs.judge_even(&format!("raw bits, serial pairs {lag} apart"));
    }
    correlation.judge("raw bits, serial correlation");
    let bits = 32.0 * count as f64;
    judge("raw bits, ones", (2.0 * ones as f64 - bits) / bits.sqrt());

    let wide = |seed| {
        let mut high = Histogram::new(1 << 12);
        draw(
            seed,
            count / 2,
            |g, view| g.fill_bits::<u64>(view),
            |words| {
                words
                    .iter()
                    .for_each(|word| high.add((word >> 52) as usize));
            },
        )
        .unwrap();
        high
    };
    let (first, second) = (wide(1), wide(2));
    first.judge_even("raw 64 bits, upper 12 bits");
    first.judge_like(&second, "raw 64 bits of neighbouring seeds");
}

fn uniform_floats(count: usize) {
    let floats = |seed| {
        let mut bins = Histogram::new(1000);
        draw(
            seed,
            count,
            |g, view| g.fill_uniform::<f32>(view),
            |floats| {
                for &x in floats {
                    assert!((0.0..1.0).contains(&x));
                    bins.add((f64::from(x) * 1000.0) as usize);
                }
            },
        )
        .unwrap();
        bins
    };
    // Bins of a thousandth hold 16777 or 16778 of the 2^24 parts.
    let parts = f64::from(1 << 24);
    let edge = |bin: usize| (bin as f64 * parts / 1000.0).ceil();
    let (first, second) = (floats(11), floats(1 << 63 | 11));
    first.judge("uniform f32", |bin| (edge(bin + 1) - edge(bin)) / parts);
    first.judge_like(&second, "uniform f32 of two seeds");

    let mut bins = Histogram::new(1000);
    let mut low = Histogram::new(256);
    draw(
        12,
        count / 2,
        |g, view| g.fill_uniform::<f64>(view),
        |floats| {
            for &x in floats {
                assert!((0.0..1.0).contains(&x));
                bins.add((x * 1000.0) as usize);
                low.add((x * (1u64 << 53) as f64) as usize & 0xFF);
            }
        },
    )
    .unwrap();
    bins.judge_even("uniform f64");
    low.judge_even("uniform f64, lowest 8 of 53 bits");

    let mut parts = Histogram::new(2048);
    draw(
        13,
        count,
        |g, view| g.fill_uniform_f16::<u16>(view),
        |halves| {
            for &half in halves {
                // The exponent of 1 is 15, and the highest bit of 11 is hidden.
                let fraction = usize::from(half & 0x3FF | 0x400);
                parts.add(match half {
                    0 => 0,
                    _ => fraction >> (14 - (half >> 10)),
                });
            }
        },
    )
    .unwrap();
    parts.judge_even("uniform f16, all 2048 of them");
}

fn integers(count: usize) {
    let mut dice = Histogram::new(6);
    let fill = |g: &Generator, view: View<'_, i32>| g.fill_integers(view, 1..=6);
    draw(21, count, fill, |eyes| {
        eyes.iter().for_each(|&eyes| dice.add(eyes as usize - 1));
    })
    .unwrap();
    dice.judge_even("integers from 1 to 6");

    // A quarter of the draws is refused here, and a biased method would show a step.
    let size = 3u32 << 30;
    let mut thirds = Histogram::new(999);
    let fill = |g: &Generator, view: View<'_, u32>| g.fill_integers(view, ..size);
    draw(22, count, fill, |numbers| {
        for &number in numbers {
            thirds.add((u64::from(number) * 999 / u64::from(size)) as usize);
        }
    })
    .unwrap();
    thirds.judge_even("integers below 3 x 2^30");

    let size = (3u64 << 62) + 1;
    let mut thirds = Histogram::new(999);
    let fill = |g: &Generator, view: View<'_, u64>| g.fill_integers(view, ..size);
    draw(23, count / 2, fill, |numbers| {
        for &number in numbers {
            thirds.add((u128::from(number) * 999 / u128::from(size)) as usize);
        }
    })
    .unwrap();
    thirds.judge_even("integers below 3 x 2^62 + 1");
}

/// The chance that a normal number is below `x` (Marsaglia's series).
fn normal_below(x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() && n < 400.0 {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / core::f64::consts::TAU.sqrt()
}

fn normal_numbers<T: vkaccel::RandomFloat + Into<f64>>(
    name: &str,
    count: usize,
    unit: [T; 2],
) -> Result<()> {
    // From -3.75 to 3.75 in steps of 1/16, and the two tails.
    let bin = |x: f64| ((x * 16.0).floor() + 61.0).clamp(0.0, 121.0) as usize;
    let edge = |bin: usize| (bin as f64 - 61.0) / 16.0;
    let mut bins = Histogram::new(122);
    let mut tails = [0u64; 2];
    let mut angles = Histogram::new(360);
    let mut radii = Histogram::new(100);
    let (mut plain, mut squares) = ([Moments::default(); 4], [Moments::default(); 4]);
    let [mean, deviation] = unit;
    let fill = |g: &Generator, view: View<'_, T>| g.fill_normal(view, mean, deviation);
    draw(31, count, fill, |numbers| {
        for x in numbers.iter().map(|&x| x.into()) {
            assert!(x.is_finite());
            bins.add(bin(x));
            for (tail, from) in tails.iter_mut().zip([4.0, 5.0]) {
                *tail += u64::from(x.abs() >= from);
            }
        }
        // Each pair is a point in the plane, whose direction is uniform, and so is exp(-r²/2).
        for pair in numbers.chunks_exact(2) {
            let [x, y] = [pair[0].into(), pair[1].into()];
            let turns = y.atan2(x) / core::f64::consts::TAU + 0.5;
            angles.add(((turns * 360.0) as usize).min(359));
            let tail = (-0.5 * (x * x + y * y)).exp();
            radii.add(((tail * 100.0) as usize).min(99));
        }
        for (lag, (plain, squares)) in plain.iter_mut().zip(&mut squares).enumerate() {
            for (x, y) in numbers.iter().zip(&numbers[lag + 1..]) {
                let [x, y] = [(*x).into(), (*y).into()];
                plain.add(x, y);
                squares.add(x * x, y * y);
            }
        }
    })?;
    bins.judge(name, |bin| match bin {
        0 => normal_below(edge(1)),
        121 => 1.0 - normal_below(edge(121)),
        _ => normal_below(edge(bin + 1)) - normal_below(edge(bin)),
    });
    for (tail, from) in tails.into_iter().zip([4.0, 5.0]) {
        let expected = 2.0 * normal_below(-from) * count as f64;
        if expected > 20.0 {
            let label = format!("{name}, {tail} of them {from} deviations away and more");
            judge(&label, (tail as f64 - expected) / expected.sqrt());
        }
    }
    angles.judge_even(&format!("{name}, directions of pairs"));
    radii.judge_even(&format!("{name}, lengths of pairs"));
    for (lag, (plain, squares)) in plain.iter().zip(&squares).enumerate() {
        plain.judge(&format!("{name}, correlation {} apart", lag + 1));
        squares.judge(&format!("{name}, correlation of squares {} apart", lag + 1));
    }
    Ok(())
}

fn trials(count: usize) {
    for (p, seed) in [(0.3, 41), (0.999, 42)] {
        let mut ones = 0;
        let fill = |g: &Generator, view: View<'_, u8>| g.fill_bernoulli(view, p);
        draw(seed, count, fill, |trials| {
            ones += trials.iter().map(|&trial| u64::from(trial)).sum::<u64>();
        })
        .unwrap();
        let expected = p * count as f64;
        let deviation = (expected * (1.0 - p)).sqrt();
        judge(
            &format!("trials of {p}"),
            (ones as f64 - expected) / deviation,
        );
    }
}

fn all(count: usize) {
    raw_bits(count);
    uniform_floats(count);
    integers(count);
    normal_numbers("normal f32", count, [0.0f32, 1.0]).unwrap();
    match normal_numbers("normal f64", count / 2, [0.0f64, 1.0]) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            support::skip("normal f64", "the device has no 64-bit floats");
        }
        result => result.unwrap(),
    }
    trials(count);
}

#[test]
fn a_million_numbers_of_each_kind_are_distributed_as_they_should_be() {
    on_each_device("a_million_numbers", |_| all(1_000_000));
}

#[test]
#[ignore = "takes minutes; run by hand, and prints the statistics"]
fn a_hundred_million_numbers_of_each_kind_are_distributed_as_they_should_be() {
    on_each_device("a_hundred_million_numbers", |_| all(100_000_000));
}
