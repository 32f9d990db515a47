//! What the hazard planner promises, checked against a model that knows no shortcut.

use super::*;

const K: Stages = Stages::COMPUTE;
const T: Stages = Stages::TRANSFER;
const U: Stages = Stages::UNIFORM;
const I: Stages = Stages::INDIRECT;
const H: Stages = Stages::HOST;

/// The commands of a stream and the barriers between them, each before the command of its index.
#[derive(Default)]
struct Model {
    commands: Vec<Vec<Use>>,
    barriers: Vec<(usize, Barrier)>,
}

impl Model {
    /// Whether one barrier between the two commands orders these two uses and makes a write seen.
    fn is_ordered(&self, first: (usize, &Use), second: (usize, &Use)) -> bool {
        let ((before, first), (behind, second)) = (first, second);
        self.barriers.iter().any(|(at, barrier)| {
            let between = before < *at && *at <= behind;
            let waits = barrier.src.stages().contains(first.scope.stages())
                && barrier.dst.stages().contains(second.scope.stages());
            let sees = first.scope.writes.is_empty()
                || barrier.src.writes.contains(first.scope.writes)
                    && barrier.dst.reads.contains(second.scope.reads)
                    && barrier.dst.writes.contains(second.scope.writes);
            between && waits && sees
        })
    }

    /// The pairs of uses of earlier commands and of the last one that conflict with no barrier
    /// between them.
    fn open_conflicts(&self) -> usize {
        let Some((behind, last)) = self.commands.iter().enumerate().next_back() else {
            return 0;
        };
        // Others may have written what the host reads.
        let is_seen = |(at, barrier): &(usize, Barrier)| {
            *at == behind
                && barrier.src.writes.contains(K.union(T))
                && barrier.dst.reads.contains(H)
        };
        let is_read = reads_of(last).contains(Stages::HOST);
        let mut open = usize::from(is_read && !self.barriers.iter().any(is_seen));
        for (before, command) in self.commands[..behind].iter().enumerate() {
            for first in command {
                for second in last {
                    let overlap = first.segment == second.segment
                        && first.lo.max(second.lo) < first.hi.min(second.hi);
                    let writes = !first.scope.writes.is_empty() || !second.scope.writes.is_empty();
                    let by_host = first.scope.stages() == H;
                    let conflict = overlap && writes && !by_host;
                    if conflict && !self.is_ordered((before, first), (behind, second)) {
                        open += 1;
                    }
                }
            }
        }
        open
    }

    /// Runs one command through the planner; returns whether a barrier was needed and whether one
    /// came.
    fn run(&mut self, planner: &mut Planner, uses: &[Use]) -> (bool, bool) {
        self.commands.push(uses.to_vec());
        let needed = self.open_conflicts() > 0;
        let barrier = planner.access(uses);
        if let Some(barrier) = barrier {
            self.barriers.push((self.commands.len() - 1, barrier));
        }
        assert_eq!(
            self.open_conflicts(),
            0,
            "command {} is not ordered",
            self.commands.len() - 1
        );
        (needed, barrier.is_some())
    }
}

/// A generator of its own (xorshift), so that every run tries the same programs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn use_in(&mut self, segments: u64, bytes: u64) -> Use {
        let segment = self.below(segments);
        let lo = self.below(bytes);
        // Now and then an empty range.
        let hi = lo + self.below(bytes / 2);
        match self.below(12) {
            0 => Use::read(segment, lo, hi, H),
            1 => Use::read(segment, lo, hi, I),
            2 | 3 => Use::read(segment, lo, hi, U),
            4 => Use::read(segment, lo, hi, T),
            5 => Use::write(segment, lo, hi, T),
            6 | 7 => Use::read(segment, lo, hi, K),
            8 | 9 => Use::write(segment, lo, hi, K),
            _ => Use::read_write(segment, lo, hi, K),
        }
    }
}

fn is_needed(planner: &mut Planner, uses: &[Use]) -> bool {
    planner.access(uses).is_some()
}

#[test]
fn reads_after_reads_need_no_barrier() {
    let mut planner = Planner::new();
    for stage in [K, T, U, I, K] {
        assert!(!is_needed(&mut planner, &[Use::read(1, 0, 64, stage)]));
    }
}

#[test]
fn read_after_write_write_after_read_and_write_after_write_need_one() {
    let (read, write) = (Use::read(1, 0, 8, K), Use::write(1, 0, 8, K));
    for (first, second, needed) in [
        (read, read, false),
        (write, read, true),
        (read, write, true),
        (write, write, true),
    ] {
        let mut planner = Planner::new();
        assert!(!is_needed(&mut planner, &[first]));
        assert_eq!(is_needed(&mut planner, &[second]), needed);
    }
}

#[test]
fn only_common_bytes_of_one_segment_conflict() {
    let mut planner = Planner::new();
    assert!(!is_needed(&mut planner, &[Use::write(1, 16, 32, K)]));
    assert!(!is_needed(&mut planner, &[Use::write(1, 0, 16, K)]));
    assert!(!is_needed(&mut planner, &[Use::write(1, 32, 48, K)]));
    assert!(!is_needed(&mut planner, &[Use::write(2, 16, 32, K)]));
    assert!(!is_needed(&mut planner, &[Use::read(1, 20, 20, K)]));
    assert!(is_needed(&mut planner, &[Use::read(1, 47, 48, K)]));
}

#[test]
fn uses_of_one_command_never_conflict_with_each_other() {
    let mut planner = Planner::new();
    let uses = [
        Use::read(1, 0, 64, K),
        Use::write(1, 0, 64, K),
        Use::read_write(1, 32, 96, K),
    ];
    assert!(!is_needed(&mut planner, &uses));
    assert!(is_needed(&mut planner, &uses));
}

#[test]
fn one_barrier_covers_all_that_came_before_it() {
    let mut planner = Planner::new();
    assert!(!is_needed(&mut planner, &[Use::write(1, 0, 8, K)]));
    assert!(!is_needed(&mut planner, &[Use::write(2, 0, 8, T)]));
    assert!(is_needed(&mut planner, &[Use::read(1, 0, 8, K)]));
    assert!(!is_needed(&mut planner, &[Use::read(2, 0, 8, K)]));
    assert!(!is_needed(&mut planner, &[Use::read(2, 0, 8, T)]));
}

#[test]
fn a_barrier_names_what_came_before_and_what_may_come() {
    let mut planner = Planner::new();
    planner.access(&[Use::read(2, 0, 8, T), Use::write(1, 0, 8, T)]);
    let barrier = planner.access(&[Use::read(1, 0, 8, U)]).unwrap();
    let src = Scope {
        reads: T,
        writes: T,
    };
    let dst = Scope {
        reads: K.union(T).union(U),
        writes: K.union(T),
    };
    assert_eq!(barrier, Barrier { src, dst });
}

#[test]
fn a_write_after_reads_alone_orders_and_writes_nothing_back() {
    let mut planner = Planner::new();
    planner.access(&[Use::read(1, 0, 8, K)]);
    let barrier = planner.access(&[Use::write(1, 0, 8, K)]).unwrap();
    assert_eq!(barrier.src.reads, K);
    assert!(barrier.src.writes.is_empty());
}

#[test]
fn late_readers_see_writes_from_before_other_barriers() {
    for late in [U, I] {
        let mut planner = Planner::new();
        planner.access(&[Use::write(1, 0, 12, K)]);
        planner.access(&[Use::write(2, 0, 8, K)]);
        assert!(is_needed(&mut planner, &[Use::read(2, 0, 8, K)]));
        // The write of segment 1 is behind a barrier that did not name this reader.
        assert!(!is_needed(&mut planner, &[Use::read(3, 0, 8, late)]));
        assert!(!is_needed(&mut planner, &[Use::read(1, 12, 16, late)]));
        let barrier = planner.access(&[Use::read(1, 8, 12, late)]).unwrap();
        assert!(barrier.src.writes.contains(K) && barrier.dst.reads.contains(late));
        // Now it has seen it, and segment 2 with it.
        assert!(!is_needed(&mut planner, &[Use::read(1, 0, 12, late)]));
        assert!(!is_needed(&mut planner, &[Use::read(2, 0, 8, late)]));
    }
}

#[test]
fn what_the_host_reads_may_be_written_again_at_once() {
    let mut planner = Planner::new();
    assert!(!is_needed(&mut planner, &[Use::write(1, 0, 8, T)]));
    assert!(is_needed(&mut planner, &[Use::read(1, 0, 8, H)]));
    assert!(!is_needed(&mut planner, &[Use::write(1, 0, 8, T)]));
}

#[test]
fn a_chain_on_one_buffer_gets_a_barrier_before_every_launch_but_the_first() {
    let mut planner = Planner::new();
    let doubled = [Use::read_write(1, 0, 4096, K)];
    let barriers = (0..31).filter(|_| is_needed(&mut planner, &doubled));
    assert_eq!(barriers.count(), 30);
}

#[test]
fn independent_launches_get_no_barrier_however_many_there_are() {
    let mut planner = Planner::new();
    for round in 0..1000 {
        let uses = [
            Use::read(1, 0, 4096, K),
            Use::write(2, round * 4, round * 4 + 4, K),
        ];
        assert!(!is_needed(&mut planner, &uses), "launch {round}");
    }
}

#[test]
fn a_full_list_gives_a_barrier_and_starts_anew() {
    let mut planner = Planner::new();
    let apart = |index: u64| [Use::write(1, index * 16, index * 16 + 4, K)];
    for index in 0..64 {
        assert!(!is_needed(&mut planner, &apart(index)));
    }
    let barrier = planner.access(&apart(64)).unwrap();
    assert_eq!(barrier.src.writes, K);
    for index in 0..63 {
        assert!(!is_needed(&mut planner, &apart(index)));
    }
    assert!(is_needed(&mut planner, &apart(63)));
}

#[test]
fn what_is_listed_already_needs_no_room() {
    let mut planner = Planner::new();
    let apart = |index: u64| Use::read(1, index * 16, index * 16 + 4, K);
    for index in 0..64 {
        planner.access(&[apart(index)]);
    }
    assert!(!is_needed(&mut planner, &[apart(3), apart(40)]));
    assert!(is_needed(&mut planner, &[apart(3), apart(64)]));
}

#[test]
fn a_command_with_more_ranges_than_the_list_holds_is_ordered_with_its_neighbours() {
    let mut planner = Planner::new();
    let mut model = Model::default();
    let many: Vec<Use> = (0..200)
        .map(|index| Use::write(1, index * 16, index * 16 + 4, K))
        .collect();
    assert_eq!(model.run(&mut planner, &many), (false, false));
    assert_eq!(model.run(&mut planner, &[]), (false, false));
    let last = [Use::read(1, 199 * 16, 199 * 16 + 4, K)];
    assert_eq!(model.run(&mut planner, &last), (true, true));
    assert_eq!(model.run(&mut planner, &many), (true, true));
    assert_eq!(model.run(&mut planner, &many), (true, true));
    let late = [Use::read(1, 150 * 16, 150 * 16 + 4, U)];
    assert_eq!(model.run(&mut planner, &late), (true, true));
    assert_eq!(model.run(&mut planner, &late), (false, false));
}

#[test]
fn many_unseen_writes_are_still_seen_by_late_readers() {
    let mut planner = Planner::new();
    let mut model = Model::default();
    for index in 0..40 {
        let range = (index * 16, index * 16 + 4);
        model.run(&mut planner, &[Use::write(1, range.0, range.1, K)]);
        model.run(&mut planner, &[Use::read(1, range.0, range.1, K)]);
    }
    for late in [I, U] {
        assert!(model.run(&mut planner, &[Use::read(1, 0, 4, late)]).1);
        for index in 0..40 {
            let read = [Use::read(1, index * 16, index * 16 + 4, late)];
            assert_eq!(model.run(&mut planner, &read), (false, false));
        }
    }
}

#[test]
fn a_full_barrier_leaves_nothing_to_wait_for() {
    let mut planner = Planner::new();
    planner.access(&[Use::read_write(1, 0, 64, K)]);
    let barrier = planner.barrier_all();
    assert!(barrier.src.writes.contains(K.union(T)));
    assert!(barrier.dst.reads.contains(K.union(T).union(U).union(I)));
    for stage in [K, T, U, I] {
        assert!(!is_needed(&mut planner, &[Use::read(1, 0, 64, stage)]));
    }
}

#[test]
fn a_host_read_gets_a_barrier_whoever_wrote_what_it_reads() {
    let mut planner = Planner::new();
    for _ in 0..2 {
        let barrier = planner.access(&[Use::read(1, 0, 64, H)]).unwrap();
        assert!(barrier.src.writes.contains(K.union(T)) && barrier.dst.reads.contains(H));
    }
    assert!(!is_needed(&mut planner, &[Use::read(1, 64, 64, H)]));
}

#[test]
fn a_cleared_planner_has_nothing_to_wait_for() {
    let mut planner = Planner::new();
    planner.access(&[Use::read_write(1, 0, 64, K)]);
    planner.clear();
    for stage in [K, T, U, I] {
        assert!(!is_needed(&mut planner, &[Use::read(1, 0, 64, stage)]));
    }
}

#[test]
fn random_programs_get_every_barrier_they_need_and_no_other() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut barriers, mut without) = (0, 0);
    for _ in 0..400 {
        let mut planner = Planner::new();
        let mut model = Model::default();
        // Few bytes, so that neither list can fill up.
        for _ in 0..40 {
            let count = random.below(4) as usize;
            let uses: Vec<Use> = (0..count).map(|_| random.use_in(2, 8)).collect();
            let (needed, given) = model.run(&mut planner, &uses);
            assert_eq!(needed, given, "command {}", model.commands.len() - 1);
            *(if given { &mut barriers } else { &mut without }) += 1;
        }
    }
    assert!(
        barriers > 1000 && without > 1000,
        "{barriers} with, {without} without"
    );
}

#[test]
fn random_programs_over_many_ranges_get_every_barrier_they_need() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for round in 0..60 {
        let mut planner = Planner::new();
        let mut model = Model::default();
        let bytes = 1 << (6 + round % 8);
        for _ in 0..60 {
            let count = random.below(90) as usize / (1 + random.below(30) as usize);
            let uses: Vec<Use> = (0..count).map(|_| random.use_in(3, bytes)).collect();
            model.run(&mut planner, &uses);
        }
    }
}

#[test]
fn removing_any_barrier_leaves_a_conflict() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for _ in 0..30 {
        let mut planner = Planner::new();
        let mut model = Model::default();
        for _ in 0..30 {
            let uses: Vec<Use> = (0..2).map(|_| random.use_in(2, 8)).collect();
            model.run(&mut planner, &uses);
        }
        for removed in 0..model.barriers.len() {
            let mut rest = model.barriers.clone();
            let (at, _) = rest.remove(removed);
            let without = Model {
                commands: model.commands[..=at].to_vec(),
                barriers: rest,
            };
            assert!(without.open_conflicts() > 0, "barrier before command {at}");
        }
    }
}
