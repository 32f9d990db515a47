use super::*;

const K: Stages = Stages::COMPUTE;
const T: Stages = Stages::TRANSFER;

fn items(uses: &[Vec<Use>]) -> Vec<Item<'_>> {
    let item = |uses| Item { uses, scope: None };
    uses.iter().map(|uses| item(&uses[..])).collect()
}

fn conflict(first: &Use, second: &Use) -> bool {
    let overlap =
        first.segment == second.segment && first.lo.max(second.lo) < first.hi.min(second.hi);
    overlap && !(first.scope.writes.is_empty() && second.scope.writes.is_empty())
}

/// Whether one barrier between two places of a plan orders these uses and makes a write seen.
fn is_ordered(plan: &Plan, (from, first): (usize, &Use), (to, second): (usize, &Use)) -> bool {
    let between = plan.steps.get(from + 1..=to).unwrap_or_default();
    between
        .iter()
        .filter_map(|step| step.barrier)
        .any(|barrier| {
            let waits = barrier.src.stages().contains(first.scope.stages())
                && barrier.dst.stages().contains(second.scope.stages());
            let sees = first.scope.writes.is_empty()
                || barrier.src.writes.contains(first.scope.writes)
                    && barrier.dst.reads.contains(second.scope.reads)
                    && barrier.dst.writes.contains(second.scope.writes);
            waits && sees
        })
}

/// Checks a plan against all pairs of uses.
fn check(items: &[Item<'_>], plan: &Plan) {
    let mut places = vec![usize::MAX; items.len()];
    for (place, step) in plan.steps.iter().enumerate() {
        assert_eq!(places[step.node], usize::MAX, "a node runs twice");
        places[step.node] = place;
    }
    assert!(places.iter().all(|&place| place < items.len()));
    for (at, second) in items.iter().enumerate() {
        for (before, first) in items[..at].iter().enumerate() {
            let is_apart = first.scope.is_some() && first.scope == second.scope;
            for one in first.uses {
                for other in second.uses {
                    let ends = ((places[before], one), (places[at], other));
                    assert!(
                        is_apart || !conflict(one, other) || is_ordered(plan, ends.0, ends.1),
                        "{one:?} of node {before} and {other:?} of node {at}"
                    );
                }
            }
        }
    }
    let barriers = plan.steps.iter().filter(|step| step.barrier.is_some());
    assert!(barriers.count() < plan.levels.max(1) + 1);
}

#[test]
fn chains_that_share_nothing_run_side_by_side() {
    let chain = |segment, count| vec![vec![Use::read_write(segment, 0, 64, K)]; count];
    let uses = [chain(1, 5), chain(2, 5)].concat();
    let items = items(&uses);
    let plan = plan(&items);
    check(&items, &plan);
    assert_eq!(plan.levels, 5);
    let barriers = plan.steps.iter().filter(|step| step.barrier.is_some());
    assert_eq!(barriers.count(), 4);
    let nodes: Vec<_> = plan.steps.iter().map(|step| step.node).collect();
    assert_eq!(nodes, [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]);
}

#[test]
fn readers_of_one_range_share_a_level_and_the_next_writer_is_behind_all_of_them() {
    let uses = [
        vec![Use::write(1, 0, 100, T)],
        vec![Use::read(1, 0, 50, K), Use::write(2, 0, 4, K)],
        vec![Use::read(1, 50, 100, K), Use::write(2, 4, 8, K)],
        vec![Use::write(1, 20, 80, T)],
        vec![Use::read(2, 0, 8, Stages::INDIRECT)],
    ];
    let items = items(&uses);
    let plan = plan(&items);
    check(&items, &plan);
    assert_eq!(plan.levels, 3);
}

#[test]
fn memory_that_was_given_back_and_taken_again_keeps_the_order_of_the_calls() {
    let step = |at| vec![Use::write(1, at, at + 64, K)];
    let uses = [step(0), step(64), step(0), step(32)];
    let items = items(&uses);
    let plan = plan(&items);
    check(&items, &plan);
    assert_eq!(plan.levels, 3);
    assert_eq!(plan.uses, [Use::write(1, 0, 128, K)]);
}

#[test]
fn declared_independence_is_believed_inside_of_its_scope_alone() {
    let uses = [
        vec![Use::write(1, 0, 64, K)],
        vec![Use::read_write(1, 0, 64, K)],
        vec![Use::read_write(1, 0, 64, K)],
        vec![Use::read(1, 0, 64, K)],
    ];
    let mut items = items(&uses);
    for item in &mut items[1..3] {
        item.scope = Some(7);
    }
    let plan = plan(&items);
    check(&items, &plan);
    assert_eq!(plan.levels, 3);
    assert_eq!(plan.contradiction, Some(2));
}

#[test]
fn random_nodes_are_ordered_where_they_conflict() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % bound
    };
    let stages = [K, T, Stages::UNIFORM, Stages::INDIRECT];
    for round in 0..300 {
        let segments = 1 + round % 3;
        let mut uses = Vec::new();
        for _ in 0..40 {
            let mut of_node = Vec::new();
            for _ in 0..1 + below(3) {
                let lo = below(60);
                let hi = lo + below(20);
                let segment = below(segments);
                let stage = stages[usize::try_from(below(4)).unwrap()];
                let is_late = stage == Stages::UNIFORM || stage == Stages::INDIRECT;
                of_node.push(match below(3) {
                    0 if !is_late => Use::write(segment, lo, hi, stage),
                    1 if !is_late => Use::read_write(segment, lo, hi, stage),
                    _ => Use::read(segment, lo, hi, stage),
                });
            }
            uses.push(of_node);
        }
        let items = items(&uses);
        let plan = plan(&items);
        check(&items, &plan);
        for use_ in uses.iter().flatten().filter(|use_| use_.lo < use_.hi) {
            for at in use_.lo..use_.hi {
                let found = plan
                    .uses
                    .iter()
                    .filter(|all| all.segment == use_.segment && (all.lo..all.hi).contains(&at));
                let found: Vec<_> = found.collect();
                assert_eq!(found.len(), 1);
                assert!(found[0].scope.reads.contains(use_.scope.reads));
                assert!(found[0].scope.writes.contains(use_.scope.writes));
            }
        }
    }
}
