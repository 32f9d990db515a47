//! The checker on programs written by hand: it finds each fault, and says nothing of what is right.

use std::collections::BTreeSet;
use std::sync::Arc;

use ash::vk::{AccessFlags as Access, PipelineStageFlags as Stage};

use crate::by_hand::*;
use crate::race::check::Fault;
use crate::race::history::{Command, Event, List, Object, Point, Range, Submission};

/// One race, of accesses that are ordered or not.
#[track_caller]
fn assert_race(found: &[Fault], ordered: bool) {
    let [Fault::Race { is_ordered, .. }] = found else {
        panic!("{found:#?}");
    };
    assert_eq!(*is_ordered, ordered, "{found:#?}");
}

#[track_caller]
fn assert_none(found: &[Fault]) {
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn conflicts_without_a_barrier_are_races_of_each_kind() {
    for pair in [
        [kernel_writes(), kernel_reads()],
        [kernel_reads(), kernel_writes()],
        [kernel_writes(), kernel_writes()],
        [copy_writes(), kernel_reads()],
        [kernel_writes(), copy_reads()],
        [copy_writes(), copy_writes()],
        [kernel_writes(), indirect_reads()],
        [copy_writes(), uniform_reads()],
    ] {
        assert_race(&in_a_row(pair.to_vec()), false);
        let [first, second] = pair;
        let alone = vec![submit(1, vec![first]), submit(1, vec![second])];
        assert_race(&submitted(alone), false);
    }
}

#[test]
fn what_does_not_conflict_needs_no_barrier() {
    assert_none(&in_a_row(vec![
        kernel_reads(),
        copy_reads(),
        uniform_reads(),
    ]));
    let at = |lo, hi| touch(Stage::COMPUTE_SHADER, Access::SHADER_WRITE, bytes(lo, hi));
    assert_none(&in_a_row(vec![at(0, 64), at(64, 128), at(128, 128)]));
    assert_race(&in_a_row(vec![at(0, 65), at(64, 128)]), false);
    let elsewhere = Range {
        memory: 2,
        ..bytes(0, 64)
    };
    let elsewhere = touch(Stage::COMPUTE_SHADER, Access::SHADER_WRITE, elsewhere);
    assert_none(&in_a_row(vec![kernel_writes(), elsewhere]));
}

#[test]
fn accesses_of_one_command_are_no_race() {
    let [Command::Work(mut both), Command::Work(read)] = [kernel_writes(), kernel_reads()] else {
        panic!();
    };
    both.touches.extend(read.touches);
    assert_none(&in_a_row(vec![Command::Work(both)]));
}

#[test]
fn a_barrier_orders_what_its_scopes_name() {
    assert_none(&in_a_row(vec![kernel_writes(), kernels(), kernel_reads()]));
    assert_none(&in_a_row(vec![kernel_writes(), kernels(), kernel_writes()]));
    let to_copies = barrier(
        (Stage::COMPUTE_SHADER, Access::SHADER_WRITE),
        (Stage::TRANSFER, Access::TRANSFER_READ),
    );
    assert_none(&in_a_row(vec![
        kernel_writes(),
        to_copies.clone(),
        copy_reads(),
    ]));
    assert_race(
        &in_a_row(vec![copy_writes(), to_copies.clone(), copy_reads()]),
        false,
    );
    assert_race(
        &in_a_row(vec![kernel_writes(), to_copies, kernel_reads()]),
        false,
    );
    let all = (Stage::ALL_COMMANDS, Access::MEMORY_WRITE);
    let any = (Stage::ALL_COMMANDS, Access::MEMORY_READ);
    for (write, read) in [
        (kernel_writes(), indirect_reads()),
        (copy_writes(), uniform_reads()),
    ] {
        assert_none(&in_a_row(vec![write, barrier(all, any), read]));
    }
}

#[test]
fn a_barrier_before_or_behind_both_orders_neither() {
    assert_race(
        &in_a_row(vec![kernels(), kernel_writes(), kernel_reads()]),
        false,
    );
    assert_race(
        &in_a_row(vec![kernel_writes(), kernel_reads(), kernels()]),
        false,
    );
}

#[test]
fn a_write_has_to_be_made_available_and_visible_to_the_access() {
    let compute = Stage::COMPUTE_SHADER;
    for (from, to, first, second) in [
        (NONE, STORAGE, kernel_writes(), kernel_reads()),
        (
            Access::SHADER_READ,
            STORAGE,
            kernel_writes(),
            kernel_reads(),
        ),
        (Access::SHADER_WRITE, NONE, kernel_writes(), kernel_reads()),
        (
            Access::SHADER_WRITE,
            Access::UNIFORM_READ,
            kernel_writes(),
            kernel_reads(),
        ),
        (
            Access::SHADER_WRITE,
            Access::SHADER_READ,
            kernel_writes(),
            kernel_writes(),
        ),
        (
            Access::SHADER_WRITE,
            STORAGE,
            kernel_writes(),
            uniform_reads(),
        ),
    ] {
        let between = barrier((compute, from), (compute, to));
        assert_race(&in_a_row(vec![first, between, second]), true);
    }
    assert_race(
        &in_a_row(vec![
            kernel_writes(),
            order(compute, compute),
            kernel_reads(),
        ]),
        true,
    );
}

#[test]
fn a_write_behind_a_read_is_only_ordered() {
    let compute = Stage::COMPUTE_SHADER;
    assert_none(&in_a_row(vec![
        kernel_reads(),
        order(compute, compute),
        kernel_writes(),
    ]));
    assert_none(&in_a_row(vec![
        copy_reads(),
        order(Stage::TRANSFER, compute),
        kernel_writes(),
    ]));
    assert_race(
        &in_a_row(vec![
            kernel_reads(),
            order(Stage::TRANSFER, compute),
            kernel_writes(),
        ]),
        false,
    );
}

#[test]
fn barriers_form_a_chain_where_their_stages_meet() {
    let (compute, transfer) = (Stage::COMPUTE_SHADER, Stage::TRANSFER);
    let there = barrier((compute, Access::SHADER_WRITE), (transfer, NONE));
    let back = barrier((transfer, NONE), (compute, Access::SHADER_READ));
    let away = barrier((Stage::DRAW_INDIRECT, NONE), (compute, Access::SHADER_READ));
    assert_none(&in_a_row(vec![
        kernel_writes(),
        there.clone(),
        back,
        kernel_reads(),
    ]));
    assert_race(
        &in_a_row(vec![kernel_writes(), there, away, kernel_reads()]),
        false,
    );
}

/// What is not available can't be made visible later by a barrier that does not name the write.
#[test]
fn a_chain_without_the_write_shows_nothing() {
    let (compute, transfer) = (Stage::COMPUTE_SHADER, Stage::TRANSFER);
    let there = order(compute, transfer);
    let back = barrier((transfer, Access::TRANSFER_WRITE), (compute, STORAGE));
    assert_race(
        &in_a_row(vec![kernel_writes(), there, back, kernel_reads()]),
        true,
    );
}

#[test]
fn stages_bring_those_before_and_behind_them_in_the_pipeline_but_not_their_accesses() {
    let (compute, indirect) = (Stage::COMPUTE_SHADER, Stage::DRAW_INDIRECT);
    // The counts were read before the kernel ran.
    assert_none(&in_a_row(vec![
        indirect_reads(),
        order(compute, Stage::TRANSFER),
        copy_writes(),
    ]));
    let to_counts = barrier(
        (compute, Access::SHADER_WRITE),
        (indirect, Access::INDIRECT_COMMAND_READ),
    );
    assert_none(&in_a_row(vec![
        kernel_writes(),
        to_counts.clone(),
        indirect_reads(),
    ]));
    assert_race(
        &in_a_row(vec![kernel_writes(), to_counts, kernel_reads()]),
        true,
    );
}

#[test]
fn queues_are_ordered_by_signals_and_waits() {
    let write = || submit(1, vec![kernel_writes()]).signals(1, 5);
    let read = |value| submit(2, vec![kernel_reads()]).waits(1, value);
    assert_none(&submitted(vec![write(), read(5)]));
    // Five is the first value from three on.
    assert_none(&submitted(vec![write(), read(3)]));
    let unordered = submit(2, vec![kernel_reads()]);
    assert_race(&submitted(vec![write(), unordered]), false);
    let early = submit(1, vec![]).signals(1, 4);
    assert_race(&submitted(vec![early, write(), read(4)]), false);
    let later = submit(1, vec![]).signals(1, 6);
    assert_none(&submitted(vec![write(), later, read(6)]));
    // What was submitted behind the signal is not behind the wait.
    let behind = submit(1, vec![kernel_writes()]);
    let found = submitted(vec![write(), read(5), submit(1, vec![kernels()]), behind]);
    assert_race(&found, false);
}

#[test]
fn a_wait_holds_for_all_that_is_submitted_behind_it_in_the_stages_that_wait() {
    let write = || submit(1, vec![kernel_writes()]).signals(1, 1);
    let wait = || submit(2, vec![]).waits(1, 1);
    assert_none(&submitted(vec![
        write(),
        wait(),
        submit(2, vec![kernel_reads()]),
    ]));
    assert_race(
        &submitted(vec![write(), submit(2, vec![kernel_reads()]), wait()]),
        false,
    );
    let copies_wait = wait().waits_at(Stage::TRANSFER);
    assert_none(&submitted(vec![
        write(),
        copies_wait.clone(),
        submit(2, vec![copy_reads()]),
    ]));
    assert_race(
        &submitted(vec![write(), copies_wait, submit(2, vec![kernel_reads()])]),
        false,
    );
}

#[test]
fn order_between_queues_is_passed_on() {
    let first = || submit(1, vec![kernel_writes()]).signals(1, 1);
    let second = || submit(2, vec![]).waits(1, 1).signals(2, 1);
    let third = || submit(3, vec![kernel_reads()]).waits(2, 1);
    assert_none(&submitted(vec![first(), second(), third()]));
    let second_waits_not = submit(2, vec![]).signals(2, 1);
    assert_race(&submitted(vec![first(), second_waits_not, third()]), false);
    // And on a queue itself by a barrier, for stages that did not wait.
    let copies = || {
        submit(2, vec![copy_reads()])
            .waits(1, 1)
            .waits_at(Stage::TRANSFER)
    };
    let handed_on = barrier((Stage::TRANSFER, NONE), (Stage::COMPUTE_SHADER, STORAGE));
    let kernel = || vec![kernel_reads()];
    assert_none(&submitted(vec![
        first(),
        copies(),
        submit(2, vec![handed_on]),
        submit(2, kernel()),
    ]));
    assert_race(
        &submitted(vec![first(), copies(), submit(2, kernel())]),
        false,
    );
}

#[test]
fn the_same_queue_is_not_ordered_by_its_submissions() {
    let first = submit(1, vec![kernel_writes()]).signals(1, 1);
    let second = submit(1, vec![kernel_reads()]).signals(1, 2);
    assert_race(&submitted(vec![first.clone(), second.clone()]), false);
    assert_none(&submitted(vec![first.clone(), second.clone().waits(1, 1)]));
    let divider = submit(1, vec![kernels()]);
    assert_none(&submitted(vec![first, divider, second]));
}

/// The host's knowledge is no order on the device.
#[test]
fn what_the_host_has_seen_finish_is_still_to_be_ordered() {
    let seen = Event::Seen(Point {
        semaphore: 1,
        value: 1,
    });
    let write = Event::Submission(submit(1, vec![kernel_writes()]).signals(1, 1));
    for queue in [1, 2] {
        let read = Event::Submission(submit(queue, vec![kernel_reads()]));
        assert_race(&run(vec![write.clone(), seen.clone(), read]), false);
    }
    let reached = Event::Submission(submit(2, vec![kernel_reads()]).waits(1, 1));
    assert_none(&run(vec![write, seen, reached]));
}

#[test]
fn a_list_that_is_submitted_again_meets_itself() {
    let list = Arc::new(List {
        commands: vec![kernel_writes()],
        again: true,
        ..List::default()
    });
    let divider = Arc::new(List {
        commands: vec![kernels()],
        again: true,
        ..List::default()
    });
    let submission = |lists: &[&Arc<List>]| Submission {
        queue: 1,
        lists: lists.iter().map(|list| Arc::clone(list)).collect(),
        ..Submission::default()
    };
    assert_race(
        &submitted(vec![submission(&[&list]), submission(&[&list])]),
        false,
    );
    assert_none(&submitted(vec![
        submission(&[&list]),
        submission(&[&divider, &list]),
        submission(&[&divider, &list]),
    ]));
    assert_race(&submitted(vec![submission(&[&list, &list])]), false);
}

/// A command that writes, then what comes between it and the host.
fn host(between: Vec<Command>, seen: u64, access: fn(Range) -> Event) -> Vec<Fault> {
    let mut commands = vec![copy_writes()];
    commands.extend(between);
    run(vec![
        Event::Submission(submit(1, commands).signals(1, 1)),
        Event::Seen(Point {
            semaphore: 1,
            value: seen,
        }),
        access(bytes(0, 8)),
    ])
}

#[test]
fn the_host_reads_what_is_over_and_was_made_visible_to_it() {
    let shown = || {
        let to_host = (Stage::HOST, Access::HOST_READ);
        vec![barrier((Stage::TRANSFER, Access::TRANSFER_WRITE), to_host)]
    };
    for access in [Event::HostReads, Event::HostWrites] {
        assert_none(&host(shown(), 1, access));
        let unseen = host(shown(), 0, access);
        assert!(matches!(
            unseen[..],
            [Fault::Host {
                is_ordered: false,
                ..
            }]
        ));
        let hidden = host(vec![], 1, access);
        assert!(matches!(
            hidden[..],
            [Fault::Host {
                is_ordered: true,
                ..
            }]
        ));
    }
    // In a submission that was not seen to be over.
    let late = run(vec![
        Event::Submission(submit(1, vec![copy_writes()]).signals(1, 1)),
        Event::Submission(submit(1, shown()).signals(1, 2)),
        Event::Seen(Point {
            semaphore: 1,
            value: 1,
        }),
        Event::HostReads(bytes(0, 8)),
    ]);
    assert!(matches!(
        late[..],
        [Fault::Host {
            is_ordered: true,
            ..
        }]
    ));
}

#[test]
fn the_host_writes_what_nothing_reads_any_more_and_reads_beside_readers() {
    let read = || Event::Submission(submit(1, vec![copy_reads()]).signals(1, 1));
    let seen = Event::Seen(Point {
        semaphore: 1,
        value: 1,
    });
    assert_none(&run(vec![read(), seen, Event::HostWrites(bytes(0, 8))]));
    assert_none(&run(vec![read(), Event::HostReads(bytes(0, 8))]));
    let early = run(vec![read(), Event::HostWrites(bytes(0, 8))]);
    assert!(matches!(
        early[..],
        [Fault::Host {
            is_ordered: false,
            ..
        }]
    ));
    // What the host writes is seen by all that is submitted later.
    assert_none(&run(vec![Event::HostWrites(bytes(0, 8)), read()]));
}

#[test]
fn nothing_ends_before_it_is_seen_to_be_unused() {
    let object = Object::Buffer(7);
    let list = List {
        uses: BTreeSet::from([object]),
        ..List::default()
    };
    let used = Submission {
        lists: vec![Arc::new(list)],
        ..submit(1, vec![])
    };
    let used = || Event::Submission(used.clone().signals(1, 2));
    let seen = |value| {
        let semaphore = 1;
        Event::Seen(Point { semaphore, value })
    };
    assert_none(&run(vec![used(), seen(2), Event::Ends(object)]));
    assert_none(&run(vec![seen(2), used(), Event::Ends(object)]));
    assert_none(&run(vec![used(), Event::Ends(Object::Memory(7))]));
    for events in [
        vec![used(), Event::Ends(object), seen(2)],
        vec![used(), seen(1), Event::Ends(object)],
    ] {
        let found = run(events);
        assert!(
            matches!(found[..], [Fault::Ends { submission: 0, .. }]),
            "{found:#?}"
        );
    }
}

#[test]
fn a_wait_is_for_what_was_submitted_before_it() {
    let signal = || submit(1, vec![]).signals(1, 1);
    let wait = || submit(2, vec![]).waits(1, 1);
    assert_none(&submitted(vec![signal(), wait()]));
    for events in [vec![wait()], vec![wait(), signal()]] {
        let found = submitted(events);
        assert!(matches!(found[..], [Fault::Wait { .. }]), "{found:#?}");
    }
}
