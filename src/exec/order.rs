//! What the submissions of one lane wait for of the other lanes. Pure.
//!
//! - A recording asks for what its stream was told to wait for.
//! - What the host has seen reached orders nothing on the device, but commands that come after may
//!   build on it. So a submission also waits for the highest value of every other lane that was seen
//!   reached; that wait ends at once.
//! - A wait holds for all later submissions of the lane, so that none is made twice.

use crate::device::plan::LANES_MAX;

/// One value of every lane's timeline; 0, which no lane uses, where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values([u64; LANES_MAX]);

impl Values {
    /// The value of a lane.
    pub(crate) fn of(&self, lane: usize) -> u64 {
        self.0.get(lane).copied().unwrap_or(0)
    }

    /// Makes the value of a lane `value` at least.
    pub(crate) fn raise(&mut self, lane: usize, value: u64) {
        if let Some(kept) = self.0.get_mut(lane) {
            *kept = value.max(*kept);
        }
    }

    /// The lanes that have a value, with it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.0.iter().copied().enumerate();
        all.filter(|(_, value)| *value > 0)
    }
}

/// What a lane has waited for so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waited(Values);

impl Waited {
    /// What the next submission on lane `own` has to wait for, where its recording asks for `asked`
    /// and the host has seen `seen` reached. From then on it counts as waited for.
    pub(crate) fn next(&mut self, own: usize, asked: &Values, seen: &Values) -> Values {
        let mut waits = Values::default();
        for lane in (0..LANES_MAX).filter(|&lane| lane != own) {
            let value = asked.of(lane).max(seen.of(lane));
            if value > self.0.of(lane) {
                waits.raise(lane, value);
                self.0.raise(lane, value);
            }
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(usize, u64)]) -> Values {
        let mut values = Values::default();
        for &(lane, value) in of {
            values.raise(lane, value);
        }
        values
    }

    fn next(
        waited: &mut Waited,
        asked: &[(usize, u64)],
        seen: &[(usize, u64)],
    ) -> Vec<(usize, u64)> {
        waited
            .next(1, &values(asked), &values(seen))
            .iter()
            .collect()
    }

    #[test]
    fn a_submission_waits_for_what_was_asked_and_what_was_seen() {
        let mut waited = Waited::default();
        assert_eq!(next(&mut waited, &[], &[]), []);
        assert_eq!(next(&mut waited, &[(0, 7)], &[(2, 3)]), [(0, 7), (2, 3)]);
        assert_eq!(next(&mut waited, &[(0, 8)], &[(0, 9)]), [(0, 9)]);
        assert_eq!(next(&mut waited, &[(0, 12)], &[(0, 10)]), [(0, 12)]);
    }

    #[test]
    fn a_lane_never_waits_for_itself() {
        assert_eq!(next(&mut Waited::default(), &[(1, 5)], &[(1, 6)]), []);
    }

    #[test]
    fn no_wait_is_made_twice() {
        let mut waited = Waited::default();
        assert_eq!(next(&mut waited, &[(3, 5)], &[]), [(3, 5)]);
        assert_eq!(next(&mut waited, &[(3, 5)], &[(3, 4)]), []);
        assert_eq!(next(&mut waited, &[(3, 2)], &[(3, 6)]), [(3, 6)]);
    }

    /// Lanes with what happens before each of their submissions, by the rules of Vulkan alone: all that
    /// was submitted to the lane before, and all before what is waited for.
    struct Lanes {
        waited: Vec<Waited>,
        /// For each lane, for each submission: the newest submission of every lane before it.
        before: Vec<Vec<Values>>,
    }

    impl Lanes {
        fn last(&self, lane: usize) -> u64 {
            self.before[lane].len() as u64
        }

        fn submit(&mut self, lane: usize, asked: &Values, seen: &Values) {
            let mut before = self.before[lane].last().copied().unwrap_or_default();
            before.raise(lane, self.last(lane));
            for (other, value) in self.waited[lane].next(lane, asked, seen).iter() {
                assert!(
                    value <= self.last(other),
                    "a wait for what was not submitted"
                );
                before.raise(other, value);
                let index = usize::try_from(value - 1).unwrap();
                for (third, value) in self.before[other][index].iter() {
                    before.raise(third, value);
                }
            }
            self.before[lane].push(before);
        }
    }

    #[test]
    fn whatever_was_asked_or_seen_happens_before() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % bound
        };
        for _ in 0..200 {
            let count = 2 + usize::try_from(below(4)).unwrap();
            let mut lanes = Lanes {
                waited: vec![Waited::default(); count],
                before: vec![Vec::new(); count],
            };
            let mut seen = Values::default();
            for _ in 0..100 {
                let lane = usize::try_from(below(count as u64)).unwrap();
                let mut asked = Values::default();
                for other in 0..count {
                    // The host sees more and more, but never what was not submitted.
                    if below(4) == 0 {
                        seen.raise(other, below(lanes.last(other) + 1));
                    }
                    if below(4) == 0 {
                        asked.raise(other, below(lanes.last(other) + 1));
                    }
                }
                lanes.submit(lane, &asked, &seen);
                let before = lanes.before[lane].last().unwrap();
                for other in 0..count {
                    let promised = asked.of(other).max(seen.of(other));
                    assert!(
                        before.of(other) >= promised.min(lanes.last(other)),
                        "lane {lane}"
                    );
                }
            }
        }
    }
}
