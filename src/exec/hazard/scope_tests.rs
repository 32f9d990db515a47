//! What scopes of independent launches promise, checked against a model.

use super::*;

const K: Stages = Stages::COMPUTE;
const T: Stages = Stages::TRANSFER;
const U: Stages = Stages::UNIFORM;

fn is_needed(planner: &mut Planner, use_: Use) -> bool {
    planner.access_apart(&[use_]).is_some()
}

#[test]
fn launches_of_a_scope_get_no_barrier_between_them() {
    let mut planner = Planner::new();
    planner.open_scope();
    for _ in 0..200 {
        assert!(!is_needed(&mut planner, Use::read_write(1, 0, 64, K)));
    }
    planner.close_scope();
    assert!(is_needed(&mut planner, Use::read(1, 0, 64, K)));
}

#[test]
fn launches_of_a_scope_are_ordered_with_what_is_before_and_behind_it() {
    let mut planner = Planner::new();
    planner.access(&[Use::write(1, 0, 64, T)]);
    planner.open_scope();
    assert!(!is_needed(&mut planner, Use::write(2, 0, 64, K)));
    assert!(is_needed(&mut planner, Use::read(1, 0, 64, K)));
    assert!(!is_needed(&mut planner, Use::read(2, 0, 64, K)));
    planner.close_scope();
    assert!(is_needed(&mut planner, Use::write(1, 0, 64, K)));
}

#[test]
fn another_command_in_a_scope_is_ordered_with_all_launches_around_it() {
    let mut planner = Planner::new();
    planner.open_scope();
    assert!(!is_needed(&mut planner, Use::write(1, 0, 64, K)));
    assert!(planner.access(&[Use::read(1, 0, 64, T)]).is_some());
    assert!(planner.access(&[Use::write(2, 0, 64, T)]).is_none());
    assert!(is_needed(&mut planner, Use::read(2, 0, 64, K)));
    assert!(!is_needed(&mut planner, Use::write(2, 0, 64, K)));
}

#[test]
fn a_scope_with_more_ranges_than_the_list_holds_is_ordered_with_what_follows() {
    let mut planner = Planner::new();
    planner.open_scope();
    for index in 0..200 {
        let range = Use::write(1, index * 16, index * 16 + 4, K);
        assert!(!is_needed(&mut planner, range), "launch {index}");
    }
    planner.close_scope();
    planner.open_scope();
    assert!(is_needed(
        &mut planner,
        Use::read(1, 199 * 16, 199 * 16 + 4, K)
    ));
    assert!(!is_needed(&mut planner, Use::read(1, 0, 4, K)));
}

#[test]
fn what_contradicts_a_scope_is_told() {
    let mut planner = Planner::new();
    let (read, write) = (Use::read(1, 0, 64, K), Use::write(1, 32, 96, K));
    planner.access(&[write]);
    assert!(!planner.contradicts(&[write]));
    planner.open_scope();
    assert!(!planner.contradicts(&[write]));
    planner.access_apart(&[read]);
    assert!(planner.contradicts(&[write]) && !planner.contradicts(&[read]));
    planner.close_scope();
    assert!(!planner.contradicts(&[write]));
}

/// One command: its use, and the scope that it is a launch of, if it is.
struct Command {
    use_: Use,
    scope: Option<u32>,
    /// The barrier before it.
    barrier: Option<Barrier>,
}

/// Whether a barrier behind the first and before the last orders the two.
fn is_ordered(commands: &[Command], first: &Use, last: &Use) -> bool {
    commands
        .iter()
        .filter_map(|command| command.barrier)
        .any(|barrier| {
            let waits = barrier.src.stages().contains(first.scope.stages())
                && barrier.dst.stages().contains(last.scope.stages());
            let sees = first.scope.writes.is_empty()
                || barrier.src.writes.contains(first.scope.writes)
                    && barrier.dst.reads.contains(last.scope.reads)
                    && barrier.dst.writes.contains(last.scope.writes);
            waits && sees
        })
}

#[test]
fn random_programs_with_scopes_order_all_but_the_launches_of_one() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % bound
    };
    let (mut barriers, mut spared) = (0, 0);
    for _ in 0..300 {
        let mut planner = Planner::new();
        let mut commands: Vec<Command> = Vec::new();
        let (mut scope, mut next) = (None, 0);
        for _ in 0..60 {
            if below(6) == 0 {
                next += 1;
                if scope.take().is_some() {
                    planner.close_scope();
                } else {
                    scope = Some(next);
                    planner.open_scope();
                }
            }
            let lo = below(8);
            let (segment, hi) = (below(2), lo + below(4));
            let launched = scope.is_some() && below(5) > 0;
            let use_ = match below(if launched { 4 } else { 6 }) {
                0 => Use::read(segment, lo, hi, U),
                1 => Use::read(segment, lo, hi, K),
                2 => Use::write(segment, lo, hi, K),
                3 => Use::read_write(segment, lo, hi, K),
                4 => Use::read(segment, lo, hi, T),
                _ => Use::write(segment, lo, hi, T),
            };
            let barrier = if launched {
                planner.access_apart(&[use_])
            } else {
                // It splits the scope.
                next += 1;
                scope = scope.map(|_| next);
                planner.access(&[use_])
            };
            barriers += u32::from(barrier.is_some());
            let of_scope = scope.filter(|_| launched);
            commands.push(Command {
                use_,
                scope: of_scope,
                barrier,
            });
            let (last, before) = commands.split_last().unwrap();
            for (index, first) in before.iter().enumerate() {
                let behind = &commands[index + 1..];
                let conflicts = first.use_.conflicts(&last.use_);
                if first.scope.is_some() && first.scope == last.scope {
                    spared += u32::from(conflicts && !is_ordered(behind, &first.use_, &last.use_));
                } else if conflicts {
                    assert!(is_ordered(behind, &first.use_, &last.use_));
                }
            }
        }
    }
    assert!(barriers > 1000 && spared > 300, "{barriers} and {spared}");
}
