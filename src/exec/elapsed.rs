//! The time between two timestamps. Pure.

/// The milliseconds from `start` to `end`, of which `valid_bits` are meaningful and which count steps
/// of `period_ns`; negative where `end` was first.
///
/// Timestamps start anew when they have no bits left. The shorter way around is taken for the right
/// one: with 36 bits of nanoseconds, the fewest that Vulkan allows, it is wrong past half a minute.
pub(crate) fn milliseconds(start: u64, end: u64, valid_bits: u32, period_ns: f32) -> f64 {
    let mask = u64::MAX >> (64 - valid_bits.clamp(1, 64));
    let forth = end.wrapping_sub(start) & mask;
    let back = start.wrapping_sub(end) & mask;
    let (steps, sign) = if forth <= back {
        (forth, 1.0)
    } else {
        (back, -1.0)
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits of steps are more than any clock is good for"
    )]
    let steps = steps as f64;
    sign * steps * f64::from(period_ns) / 1e6
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn steps_become_milliseconds_by_the_period() {
        for (start, end, period, expected) in [
            (5, 5, 1.0, 0.0),
            (0, 1_000_000, 1.0, 1.0),
            (1_000_000, 0, 1.0, -1.0),
            (0, 1_000, 83.5, 0.0835),
            (u64::MAX, 999_999, 1.0, 1.0),
        ] {
            let elapsed = milliseconds(start, end, 64, period);
            assert!(
                (elapsed - expected).abs() < 1e-9,
                "{start} to {end}: {elapsed}"
            );
        }
    }

    #[test]
    fn bits_that_mean_nothing_are_left_out() {
        let noise = 0xABC << 36;
        let elapsed = milliseconds(noise | 10, 2_000_010, 36, 1.0);
        assert!((elapsed - 2.0).abs() < 1e-9, "{elapsed}");
        // The counter has started anew in between.
        let elapsed = milliseconds(noise | ((1 << 36) - 500_000), 500_000, 36, 1.0);
        assert!((elapsed - 1.0).abs() < 1e-9, "{elapsed}");
        let elapsed = milliseconds(500_000, (1 << 36) - 500_000, 36, 1.0);
        assert!((elapsed + 1.0).abs() < 1e-9, "{elapsed}");
    }
}
