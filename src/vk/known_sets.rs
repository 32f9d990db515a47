//! Which sets of a recording were written for a launch: found again by its pipeline and its memory. Pure.

use super::descriptor::DescriptorRange;

/// Where sets are found again.
#[derive(Debug, Default)]
pub(super) struct KnownSets {
    /// By hash, in groups of [`WAYS`]; as many as a power of two, or none yet.
    places: Vec<Place>,
    /// What the sets were written with; those of one launch follow each other.
    keys: Vec<Key>,
    /// How many launches were noted.
    noted: usize,
}

/// How many places there are for one launch.
const WAYS: usize = 4;
/// The fewest places that there are once there are any, and the most.
const PLACES_MIN: usize = 16;
const PLACES_MAX: usize = 2048;

/// The sets of a launch that has been.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The pipeline's number; 0 for a place that nothing is at.
    pipeline: u64,
    hash: u64,
    first_key: usize,
    first_set: usize,
}

/// What one descriptor was written with; no two of one pipeline that differ are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    slot: (u32, u32),
    segment: u64,
    offset: u64,
    len: u64,
}

impl Key {
    pub(super) fn of(range: &DescriptorRange<'_>) -> Self {
        Self {
            slot: (range.set, range.binding),
            segment: range.segment.id(),
            offset: range.offset,
            len: range.len,
        }
    }

    /// Mixes it into a hash; the slots are the same for all launches of a pipeline.
    fn mix(&self, hash: u64) -> u64 {
        // Odd numbers without a pattern. The products don't wait for each other.
        const FACTORS: [u64; 4] = [
            0x9E37_79B9_7F4A_7C15,
            0xBF58_476D_1CE4_E5B9,
            0x94D0_49BB_1331_11EB,
            0xD6E8_FEB8_6659_FD93,
        ];
        let own = self.segment.wrapping_mul(FACTORS[0])
            ^ self.offset.wrapping_mul(FACTORS[1])
            ^ self.len.wrapping_mul(FACTORS[2]).rotate_left(32);
        (hash.rotate_left(23) ^ own).wrapping_mul(FACTORS[3])
    }
}

/// The hash of a launch.
pub(super) fn hash(pipeline: u64, keys: impl Iterator<Item = Key>) -> u64 {
    keys.fold(pipeline, |hash, key| key.mix(hash))
}

impl KnownSets {
    /// The first of the sets of a launch, if they are known.
    pub(super) fn find(
        &self,
        pipeline: u64,
        hash: u64,
        keys: impl ExactSizeIterator<Item = Key> + Clone,
    ) -> Option<usize> {
        let group = self.group(hash);
        let group = self.places.get(group..group + WAYS)?;
        let found = group.iter().find(|place| {
            (place.pipeline, place.hash) == (pipeline, hash)
                && self.has_keys(place.first_key, keys.clone())
        });
        found.map(|place| place.first_set)
    }

    fn has_keys(&self, first: usize, mut keys: impl ExactSizeIterator<Item = Key>) -> bool {
        let known = self.keys.get(first..first + keys.len());
        known.is_some_and(|known| known.iter().all(|known| keys.next() == Some(*known)))
    }

    /// Takes note of sets that were written for a launch which was not known.
    pub(super) fn note(
        &mut self,
        pipeline: u64,
        hash: u64,
        keys: impl Iterator<Item = Key>,
        first_set: usize,
    ) {
        let place = Place {
            pipeline,
            hash,
            first_key: self.keys.len(),
            first_set,
        };
        self.keys.extend(keys);
        self.noted += 1;
        if 2 * self.noted > self.places.len() && self.places.len() < PLACES_MAX {
            self.grow();
        }
        self.put(place);
    }

    /// The places stay, so that none are made anew.
    pub(super) fn clear(&mut self) {
        self.places.fill(Place::default());
        self.keys.clear();
        self.noted = 0;
    }

    /// The first place for a launch.
    fn group(&self, hash: u64) -> usize {
        let groups = (self.places.len() / WAYS).max(1);
        WAYS * (usize::try_from(hash >> 32).unwrap_or(0) & (groups - 1))
    }

    fn grow(&mut self) {
        let more = (4 * self.places.len()).clamp(PLACES_MIN, PLACES_MAX);
        let places = core::mem::replace(&mut self.places, vec![Place::default(); more]);
        for place in places.into_iter().filter(|place| place.pipeline != 0) {
            self.put(place);
        }
    }

    /// Where a group is full, one goes that is not always the oldest: launches come round and round, and
    /// else all of such a group would be gone each time.
    fn put(&mut self, place: Place) {
        let first = self.group(place.hash);
        let group = &mut self.places[first..first + WAYS];
        let empty = group.iter().position(|place| place.pipeline == 0);
        group[empty.unwrap_or(self.noted % WAYS)] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch of a pipeline with memory that some numbers tell apart.
    fn keys(numbers: [u64; 3]) -> [Key; 2] {
        [0, 1].map(|binding| Key {
            slot: (0, binding),
            segment: 1 + numbers[0],
            offset: 256 * (numbers[1] + u64::from(binding)),
            len: 256 * (1 + numbers[2]),
        })
    }

    /// Looks for the sets of a launch, and notes them if they are not known.
    fn visit(known: &mut KnownSets, pipeline: u64, keys: &[Key], next: usize) -> Option<usize> {
        let hash = hash(pipeline, keys.iter().copied());
        let found = known.find(pipeline, hash, keys.iter().copied());
        if found.is_none() {
            known.note(pipeline, hash, keys.iter().copied(), next);
        }
        found
    }

    #[test]
    fn what_is_found_was_written_for_the_same_pipeline_and_the_same_memory() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % bound
        };
        let mut known = KnownSets::default();
        let mut written: Vec<(u64, [Key; 2])> = Vec::new();
        let mut found = 0;
        for step in 0..200_000 {
            if step % 20_000 == 0 {
                known.clear();
                written.clear();
            }
            let pipeline = 1 + below(3);
            let keys = keys([below(4), below(20), below(2)]);
            match visit(&mut known, pipeline, &keys, written.len()) {
                Some(first) => {
                    assert_eq!(written[first], (pipeline, keys), "step {step}");
                    found += 1;
                }
                None => written.push((pipeline, keys)),
            }
        }
        // Of 480 different launches.
        assert!(found > 180_000, "{found}");
    }

    #[test]
    fn a_few_hundred_launches_are_found_again_but_for_few() {
        let mut known = KnownSets::default();
        let mut next = 0;
        let mut missed = 0;
        for round in 0..3 {
            missed = 0;
            for launch in 0..256 {
                if visit(&mut known, 7, &keys([0, launch, 0]), next).is_none() {
                    next += 1;
                    missed += 1;
                }
            }
            assert!(round > 0 || missed == 256);
        }
        assert!(missed <= 4, "{missed}");
    }

    #[test]
    fn nothing_is_found_once_all_is_cleared() {
        let mut known = KnownSets::default();
        let keys = keys([0, 0, 0]);
        assert_eq!(visit(&mut known, 1, &keys, 5), None);
        assert_eq!(visit(&mut known, 1, &keys, 0), Some(5));
        known.clear();
        assert_eq!(visit(&mut known, 1, &keys, 0), None);
    }

    #[test]
    fn a_launch_with_fewer_descriptors_is_another_one() {
        let mut known = KnownSets::default();
        let keys = keys([0, 0, 0]);
        assert_eq!(visit(&mut known, 1, &keys[..1], 0), None);
        assert_eq!(visit(&mut known, 1, &keys, 1), None);
        assert_eq!(visit(&mut known, 2, &keys, 2), None);
        assert_eq!(visit(&mut known, 1, &keys[..1], 0), Some(0));
    }
}
