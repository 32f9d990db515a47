//! What handles of one generator share, and the default generators of a runtime.
//!
//! The state is the host's: nothing of it is on a device or put off until one is opened, so that
//! seeding can't be lost to a thread that opens one, and no list of seeds grows.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::state::{RngState, check_offset};
use crate::base::sync::Mutex;
use crate::error::Result;

/// The state of one generator.
#[derive(Debug)]
pub(crate) struct GeneratorState(Mutex<Current>);

#[derive(Debug)]
struct Current {
    state: RngState,
    /// How often it was set or taken from: states come again when seeds do, and this does not.
    changes: u64,
}

impl Current {
    fn change(&mut self, state: RngState) {
        self.state = state;
        self.changes += 1;
    }
}

/// Draws that were taken, and may be given back, once.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The state before them.
    pub(crate) before: RngState,
    /// The changes with this one.
    changes: u64,
}

impl GeneratorState {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Current {
            state: RngState::from_parts(seed, 0),
            changes: 0,
        })))
    }

    pub(crate) fn get(&self) -> RngState {
        self.0.lock().state
    }

    /// # Errors
    ///
    /// `InvalidArgument` unless its offset is a multiple of 4.
    pub(crate) fn set(&self, state: &RngState) -> Result<()> {
        check_offset(state.offset())?;
        self.0.lock().change(*state);
        Ok(())
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.0.lock().change(RngState::from_parts(seed, 0));
    }

    /// Takes draws, rounded up to whole blocks, with the state before them. What several threads take never
    /// overlaps. [`give_back`](Self::give_back) may undo it.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` if so many are not left; then none is taken.
    pub(crate) fn take(&self, draws: u64) -> Result<Taken> {
        let mut current = self.0.lock();
        let before = current.state;
        current.change(before.advanced(draws)?);
        let changes = current.changes;
        Ok(Taken { before, changes })
    }

    /// Gives back draws that nobody has seen, unless the state was set or taken from since: then they
    /// stay taken, and it says so with `false`. Of several, the last are to be given back first.
    pub(crate) fn give_back(&self, taken: Taken) -> bool {
        let mut current = self.0.lock();
        let is_last = current.changes == taken.changes;
        if is_last {
            // As if they had not been taken, so that what was taken before can be given back too.
            current.state = taken.before;
            current.changes -= 1;
        }
        is_last
    }

    /// # Errors
    ///
    /// `InvalidArgument` unless the offset is a multiple of 4.
    pub(crate) fn set_offset(&self, offset: u64) -> Result<()> {
        check_offset(offset)?;
        let mut current = self.0.lock();
        let seed = current.state.seed();
        current.change(RngState::from_parts(seed, offset));
        Ok(())
    }
}

/// The default generators of a runtime's devices, each made when it is first spoken of.
#[derive(Debug)]
pub(crate) struct Defaults(Mutex<All>);

#[derive(Debug)]
struct All {
    /// The seed of those that are not made yet.
    seed: u64,
    /// By the index of the device.
    made: Vec<(u32, Arc<GeneratorState>)>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self(Mutex::new(All {
            seed: RngState::DEFAULT_SEED,
            made: Vec::new(),
        }))
    }
}

impl All {
    fn of(&mut self, device: u32) -> &Arc<GeneratorState> {
        let known = self.made.iter().position(|(index, _)| *index == device);
        let place = known.unwrap_or_else(|| {
            self.made.push((device, GeneratorState::new(self.seed)));
            self.made.len() - 1
        });
        &self.made[place].1
    }
}

impl Defaults {
    /// The generator of a device.
    pub(crate) fn of(&self, device: u32) -> Arc<GeneratorState> {
        Arc::clone(self.0.lock().of(device))
    }

    /// Seeds those that there are and those to come.
    pub(crate) fn seed_all(&self, seed: u64) {
        let mut all = self.0.lock();
        all.seed = seed;
        for (_, generator) in &all.made {
            generator.seed(seed);
        }
    }

    /// The states of the first devices, at one moment as far as all are set together.
    pub(crate) fn states(&self, devices: u32) -> Vec<RngState> {
        let mut all = self.0.lock();
        (0..devices).map(|device| all.of(device).get()).collect()
    }

    /// Sets the states of the first devices, all or none.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` unless their offsets are multiples of 4.
    pub(crate) fn set_states(&self, states: &[RngState]) -> Result<()> {
        let offsets = states.iter().map(RngState::offset);
        offsets.into_iter().try_for_each(check_offset)?;
        let mut all = self.0.lock();
        (0..)
            .zip(states)
            .try_for_each(|(device, state)| all.of(device).set(state))
    }

    /// How many generators are kept.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().made.len()
    }
}

/// A seed that nobody could have known before.
pub(crate) fn fresh_seed() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // The keys of the standard library's hash come from the operating system, once a thread; the rest
    // keeps threads, calls and forked processes apart.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(CALLS.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    if let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        hasher.write_u128(now.as_nanos());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_hundred_thousand_seeds_leave_one_generator_with_the_last() {
        let defaults = Defaults::default();
        assert_eq!(defaults.of(0).get().seed(), 67_280_421_310_721);
        for seed in 0..100_000 {
            defaults.of(0).seed(seed);
        }
        assert_eq!(defaults.len(), 1);
        assert_eq!(defaults.of(0).get(), RngState::from_parts(99_999, 0));
        for seed in 0..100_000 {
            defaults.seed_all(seed);
        }
        assert_eq!(defaults.len(), 1);
        for device in 0..3 {
            assert_eq!(defaults.of(device).get().seed(), 99_999);
        }
    }

    #[test]
    fn a_seed_for_all_reaches_generators_that_are_made_at_the_same_time() {
        for _ in 0..1000 {
            let defaults = Defaults::default();
            std::thread::scope(|scope| {
                scope.spawn(|| (0..3).for_each(|device| drop(defaults.of(device))));
                for _ in 0..7 {
                    scope.spawn(|| defaults.seed_all(777));
                }
            });
            for device in 0..3 {
                assert_eq!(defaults.of(device).get().seed(), 777);
            }
        }
    }

    #[test]
    fn what_is_refused_leaves_all_states_as_they_were() {
        let defaults = Defaults::default();
        let before = [RngState::from_parts(1, 4), RngState::from_parts(2, 8)];
        defaults.set_states(&before).unwrap();
        let bad = [RngState::from_parts(3, 0), RngState::from_parts(4, 41)];
        let error = defaults.set_states(&bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(defaults.of(0).set(&bad[1]).is_err());
        assert!(defaults.of(0).set_offset(41).is_err());
        assert_eq!(defaults.states(2), before);
        defaults.of(0).set_offset(40).unwrap();
        assert_eq!(defaults.of(0).get(), RngState::from_parts(1, 40));
    }

    #[test]
    fn what_threads_take_never_overlaps() {
        let generator = GeneratorState::new(1);
        let take = || -> Vec<u64> {
            let taken = (0..1000).map(|_| generator.take(5).unwrap().before.offset());
            taken.collect()
        };
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            let taken = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            taken.collect()
        });
        all.sort_unstable();
        assert!(all.into_iter().eq((0..4000).map(|fill| 8 * fill)));
        assert_eq!(generator.get(), RngState::from_parts(1, 32_000));
    }

    #[test]
    fn what_threads_give_back_is_taken_again_or_by_nobody() {
        let generator = GeneratorState::new(1);
        let take = |thread: u64| -> Vec<u64> {
            let mut kept = Vec::new();
            for round in 0..2000 {
                let taken = generator.take(5).unwrap();
                let offset = taken.before.offset();
                if !(thread + round).is_multiple_of(3) || !generator.give_back(taken) {
                    kept.push(offset);
                }
            }
            kept
        };
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| scope.spawn(move || take(thread)))
                .collect();
            let kept = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            kept.collect()
        });
        let kept = all.len() as u64;
        all.sort_unstable();
        assert!(all.into_iter().eq((0..kept).map(|fill| 8 * fill)));
        assert_eq!(generator.get(), RngState::from_parts(1, 8 * kept));
    }

    #[test]
    fn draws_stay_taken_once_the_state_was_changed() {
        let generator = GeneratorState::new(1);
        // Also to what it is already: whoever set it may have drawn, or be about to.
        let after = RngState::from_parts(1, 8);
        let changes: [&dyn Fn(); 4] = [
            &|| generator.seed(1),
            &|| generator.set(&after).unwrap(),
            &|| generator.set_offset(8).unwrap(),
            &|| drop(generator.take(0)),
        ];
        for change in changes {
            generator.seed(1);
            let taken = generator.take(8).unwrap();
            change();
            let changed = generator.get();
            assert!(!generator.give_back(taken));
            assert_eq!(generator.get(), changed);
        }
    }

    #[test]
    fn draws_are_given_back_from_the_last_on() {
        let generator = GeneratorState::new(1);
        let [first, second] = [3, 9].map(|draws| generator.take(draws).unwrap());
        assert_eq!(generator.get().offset(), 16);
        assert!(generator.give_back(second) && generator.give_back(first));
        assert_eq!(generator.get().offset(), 0);
        let [first, second] = [3, 9].map(|draws| generator.take(draws).unwrap());
        assert!(!generator.give_back(first) && generator.give_back(second));
        assert_eq!(generator.get().offset(), 4);
    }

    #[test]
    fn fresh_seeds_differ() {
        let seeds: std::collections::HashSet<u64> = (0..1000).map(|_| fresh_seed()).collect();
        assert_eq!(seeds.len(), 1000);
    }
}
