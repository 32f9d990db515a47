//! The programs: each broken one differs from its good twin in one thing.

use ash::vk::{AccessFlags, PipelineStageFlags};

use crate::lab::{Lab, Point, Range};
use crate::recorder::{Recorder, compute, host, indirect, transfer};

/// Bytes of a buffer, and of each of its halves.
const BYTES: u64 = 64 << 10;
const HALF: u64 = BYTES / 2;

/// A program, and what it needs.
pub struct Program {
    pub name: &'static str,
    /// How many queues of one family.
    pub queues: u32,
    /// Whether a kernel takes part, so that it matters what that gets its buffers by.
    pub kernels: bool,
    /// Runs it; with `true` its good twin.
    pub run: fn(&Lab, bool),
}

const fn program(name: &'static str, run: fn(&Lab, bool)) -> Program {
    Program {
        name,
        queues: 1,
        kernels: true,
        run,
    }
}

const fn transfers(name: &'static str, run: fn(&Lab, bool)) -> Program {
    let program = program(name, run);
    Program {
        kernels: false,
        ..program
    }
}

const fn on_queues(queues: u32, program: Program) -> Program {
    Program { queues, ..program }
}

/// In the order of the table.
pub const PROGRAMS: &[Program] = &[
    program("kernel_then_read", |lab, good| {
        within(lab, |to, x, y| {
            to.store(x);
            barrier_if(good, to);
            to.map(x, y);
        });
    }),
    program("kernel_then_write", |lab, good| {
        within(lab, |to, x, _| {
            to.store(x);
            barrier_if(good, to);
            to.store(x);
        });
    }),
    program("kernel_reads_then_write", |lab, good| {
        within(lab, |to, x, y| {
            to.map(x, y);
            barrier_if(good, to);
            to.store(x);
        });
    }),
    program("kernel_then_copy", |lab, good| {
        within(lab, |to, x, y| {
            to.store(x);
            if good {
                to.barrier(compute(), transfer());
            }
            to.copy(x, y);
        });
    }),
    program("fill_then_kernel", |lab, good| {
        within(lab, |to, x, y| {
            to.fill(x);
            if good {
                to.barrier(transfer(), compute());
            }
            to.map(x, y);
        });
    }),
    transfers("copy_then_copy", |lab, good| {
        within(lab, |to, x, y| {
            to.copy(x, y);
            if good {
                to.barrier(transfer(), transfer());
            }
            to.copy(y, x);
        });
    }),
    // Ranges that overlap, and ranges that do not.
    program("overlapping_ranges", |lab, good| {
        within(lab, |to, x, _| {
            to.store(x.part(0, HALF));
            let start = if good { HALF } else { HALF / 2 };
            to.map(x.part(start, HALF / 2), x.part(start + HALF / 2, HALF / 4));
        });
    }),
    // A kernel that has the whole buffer, and touches all of it, or the first words alone.
    program("whole_buffer_bound", |lab, good| {
        within(lab, |to, x, y| {
            to.store_first(x, if good { 64 } else { x.words() });
            to.map(x.part(HALF, HALF), y);
        });
    }),
    program("two_buffers_on_one_memory", |lab, good| {
        let other = lab.alias(lab.buffer(BYTES));
        let again = lab.alias(other);
        within(lab, |to, _, y| {
            to.store(other);
            barrier_if(good, to);
            to.map(again, y);
        });
    }),
    // The barrier is there, but for the accesses of the kernel's stage it names none.
    program("barrier_without_accesses", |lab, good| {
        within(lab, |to, x, y| {
            to.store(x);
            let none = (compute().0, AccessFlags::empty());
            let scope = if good { compute() } else { none };
            to.barrier(scope, scope);
            to.map(x, y);
        });
    }),
    program("barrier_for_other_stages", |lab, good| {
        within(lab, |to, x, y| {
            to.store(x);
            to.barrier(compute(), if good { compute() } else { transfer() });
            to.map(x, y);
        });
    }),
    transfers("barrier_without_stages", |lab, good| {
        within(lab, |to, x, _| {
            to.fill(x);
            let none = (PipelineStageFlags::empty(), AccessFlags::empty());
            let scope = if good { transfer() } else { none };
            to.barrier(scope, scope);
        });
    }),
    transfers("access_that_the_stage_has_not", |lab, good| {
        within(lab, |to, x, _| {
            to.fill(x);
            let wrong = (transfer().0, AccessFlags::SHADER_WRITE);
            to.barrier(if good { transfer() } else { wrong }, transfer());
        });
    }),
    program("kernel_then_indirect", |lab, good| {
        within(lab, |to, x, y| {
            to.store(x.part(0, 256));
            to.barrier(compute(), if good { indirect() } else { compute() });
            to.store_indirect(y, x);
        });
    }),
    program("copy_then_indirect", |lab, good| {
        within(lab, |to, x, y| {
            to.fill(x.part(0, 256));
            to.barrier(transfer(), if good { indirect() } else { compute() });
            to.store_indirect(y, x);
        });
    }),
    program("kernel_then_submit_read", |lab, good| {
        submits(
            lab,
            |to, x, _| to.store(x),
            |to, x, y| {
                barrier_if(good, to);
                to.map(x, y);
            },
        );
    }),
    program("kernel_then_submit_write", |lab, good| {
        submits(
            lab,
            |to, x, _| to.store(x),
            |to, x, _| {
                barrier_if(good, to);
                to.store(x);
            },
        );
    }),
    program("kernel_reads_then_submit_write", |lab, good| {
        submits(
            lab,
            |to, x, y| to.map(x, y),
            |to, x, _| {
                barrier_if(good, to);
                to.store(x);
            },
        );
    }),
    transfers("copy_then_submit_copy", |lab, good| {
        submits(
            lab,
            |to, x, y| to.copy(x, y),
            |to, x, y| {
                if good {
                    to.barrier(transfer(), transfer());
                }
                to.copy(y, x);
            },
        );
    }),
    // The good twin is ordered by a wait of the second submission, and by nothing else.
    program("kernel_then_submit_that_waits", |lab, good| {
        two_queues(
            lab,
            [0, 0],
            good,
            |to, x, _| to.store(x),
            |to, x, y| to.map(x, y),
        );
    }),
    // The same commands once more, while the first have not finished.
    program("commands_submitted_twice", |lab, good| {
        let (x, y) = (lab.buffer(BYTES), lab.buffer(BYTES));
        let commands = lab.record(|to| {
            barrier_if(good, to);
            to.store(x);
            barrier_if(true, to);
            to.map(x, y);
        });
        let timeline = lab.timeline();
        lab.submit(0, Some(commands), None, Point(timeline, 1));
        lab.submit(0, Some(commands), None, Point(timeline, 2));
        lab.wait(Point(timeline, 2));
    }),
    // The good twin is ordered by the host, which waits for the first submission.
    program("host_orders_submits", |lab, good| {
        host_orders(lab, [0, 0], good);
    }),
    on_queues(
        2,
        program("kernel_then_other_queue", |lab, good| {
            two_queues(
                lab,
                [0, 1],
                good,
                |to, x, _| to.store(x),
                |to, x, y| to.map(x, y),
            );
        }),
    ),
    on_queues(
        2,
        program("kernel_reads_then_other_queue_writes", |lab, good| {
            two_queues(
                lab,
                [0, 1],
                good,
                |to, x, y| to.map(x, y),
                |to, x, _| to.store(x),
            );
        }),
    ),
    on_queues(
        2,
        transfers("copy_then_other_queue", |lab, good| {
            two_queues(
                lab,
                [0, 1],
                good,
                |to, x, y| to.copy(x, y),
                |to, x, y| to.copy(y, x),
            );
        }),
    ),
    // In between stands a queue that only passes the signal on.
    on_queues(
        3,
        transfers("copy_then_third_queue", |lab, good| {
            let (x, y) = (lab.buffer(BYTES), lab.buffer(BYTES));
            let first = lab.record(|to| to.copy(x, y));
            let last = lab.record(|to| to.copy(y, x));
            let points = [1, 1, 1].map(|value| Point(lab.timeline(), value));
            lab.submit(0, Some(first), None, points[0]);
            lab.submit(1, None, good.then_some(points[0]), points[1]);
            lab.submit(2, Some(last), Some(points[1]), points[2]);
            points.iter().for_each(|point| lab.wait(*point));
        }),
    ),
    // Two queues wait for one signal.
    on_queues(
        3,
        transfers("copy_then_two_queues", |lab, good| {
            let [x, y, z] = [(); 3].map(|()| lab.buffer(BYTES));
            let first = lab.record(|to| to.copy(x, y));
            let others = [
                lab.record(|to| to.copy(y, x)),
                lab.record(|to| to.copy(y, z)),
            ];
            let points = [1, 1, 1].map(|value| Point(lab.timeline(), value));
            lab.submit(0, Some(first), None, points[0]);
            lab.submit(1, Some(others[0]), Some(points[0]), points[1]);
            lab.submit(2, Some(others[1]), good.then_some(points[0]), points[2]);
            points.iter().for_each(|point| lab.wait(*point));
        }),
    ),
    // What is waited for is a later submission of the queue.
    on_queues(
        2,
        transfers("copy_then_wait_for_later", |lab, good| {
            let (x, y) = (lab.buffer(BYTES), lab.buffer(BYTES));
            let first = lab.record(|to| to.copy(x, y));
            let last = lab.record(|to| to.copy(y, x));
            let (timeline, end) = (lab.timeline(), Point(lab.timeline(), 1));
            lab.submit(0, Some(first), None, Point(timeline, 1));
            lab.submit(0, None, None, Point(timeline, 2));
            lab.submit(1, Some(last), good.then_some(Point(timeline, 2)), end);
            lab.wait(Point(timeline, 2));
            lab.wait(end);
        }),
    ),
    // The submission that waits is an earlier one of the queue.
    on_queues(
        2,
        transfers("copy_then_wait_before", |lab, good| {
            let (x, y) = (lab.buffer(BYTES), lab.buffer(BYTES));
            let first = lab.record(|to| to.copy(x, y));
            let last = lab.record(|to| to.copy(y, x));
            let (signal, timeline) = (Point(lab.timeline(), 1), lab.timeline());
            lab.submit(0, Some(first), None, signal);
            lab.submit(1, None, good.then_some(signal), Point(timeline, 1));
            lab.submit(1, Some(last), None, Point(timeline, 2));
            lab.wait(signal);
            lab.wait(Point(timeline, 2));
        }),
    ),
    on_queues(
        2,
        program("host_orders_queues", |lab, good| {
            host_orders(lab, [0, 1], good);
        }),
    ),
    program("host_reads_without_waiting", |lab, good| {
        let (x, timeline) = (lab.buffer(BYTES), lab.timeline());
        let commands = lab.record(|to| {
            to.store(x);
            if good {
                to.barrier(compute(), host());
            }
        });
        lab.submit(0, Some(commands), None, Point(timeline, 1));
        if good {
            lab.wait(Point(timeline, 1));
        }
        x.read();
        lab.wait(Point(timeline, 1));
    }),
    program("host_writes_without_waiting", |lab, good| {
        let (x, y, timeline) = (lab.buffer(BYTES), lab.buffer(BYTES), lab.timeline());
        let commands = lab.record(|to| to.map(x, y));
        lab.submit(0, Some(commands), None, Point(timeline, 1));
        if good {
            lab.wait(Point(timeline, 1));
        }
        x.write(&[1]);
        lab.wait(Point(timeline, 1));
    }),
    // By then the commands have finished, but nobody has asked whether they have.
    program("buffer_destroyed_without_waiting", |lab, good| {
        let (x, seen, timeline) = (lab.buffer(BYTES), lab.buffer(4), lab.timeline());
        seen.write(&[0]);
        let commands = lab.record(|to| {
            to.store(x);
            to.barrier(compute(), transfer());
            to.fill(seen);
            to.barrier(transfer(), host());
        });
        lab.submit(0, Some(commands), None, Point(timeline, 1));
        if good {
            lab.wait(Point(timeline, 1));
        }
        while seen.read() != 1 {
            std::thread::yield_now();
        }
        std::thread::sleep(core::time::Duration::from_millis(30));
        lab.destroy(x);
        lab.wait(Point(timeline, 1));
    }),
    transfers("buffer_left_behind", |lab, good| {
        let x = lab.buffer(BYTES);
        if !good {
            lab.forget(x);
        }
    }),
];

/// One recording with two buffers, submitted and waited for.
fn within(lab: &Lab, record: impl FnOnce(&Recorder<'_>, Range, Range)) {
    let (x, y, timeline) = (lab.buffer(BYTES), lab.buffer(BYTES), lab.timeline());
    // What an indirect launch may read: one group.
    x.write(&[1, 1, 1]);
    let commands = lab.record(|to| record(to, x, y));
    lab.submit(0, Some(commands), None, Point(timeline, 1));
    lab.wait(Point(timeline, 1));
}

type Commands = fn(&Recorder<'_>, Range, Range);

/// Two submissions to one queue, the second without a wait.
fn submits(
    lab: &Lab,
    first: impl FnOnce(&Recorder<'_>, Range, Range),
    second: impl FnOnce(&Recorder<'_>, Range, Range),
) {
    let (x, y, timeline) = (lab.buffer(BYTES), lab.buffer(BYTES), lab.timeline());
    let first = lab.record(|to| first(to, x, y));
    let second = lab.record(|to| second(to, x, y));
    lab.submit(0, Some(first), None, Point(timeline, 1));
    lab.submit(0, Some(second), None, Point(timeline, 2));
    lab.wait(Point(timeline, 2));
}

/// Two submissions to these queues; in the good twin the second waits for the first.
fn two_queues(lab: &Lab, queues: [usize; 2], good: bool, first: Commands, second: Commands) {
    let (x, y) = (lab.buffer(BYTES), lab.buffer(BYTES));
    let first = lab.record(|to| first(to, x, y));
    let second = lab.record(|to| second(to, x, y));
    let points = [Point(lab.timeline(), 1), Point(lab.timeline(), 1)];
    lab.submit(queues[0], Some(first), None, points[0]);
    lab.submit(
        queues[1],
        Some(second),
        good.then_some(points[0]),
        points[1],
    );
    points.iter().for_each(|point| lab.wait(*point));
}

/// Two submissions to these queues; in the good twin the host waits between them.
fn host_orders(lab: &Lab, queues: [usize; 2], good: bool) {
    let (x, y) = (lab.buffer(BYTES), lab.buffer(BYTES));
    let first = lab.record(|to| to.store(x));
    let second = lab.record(|to| to.map(x, y));
    let points = [Point(lab.timeline(), 1), Point(lab.timeline(), 1)];
    lab.submit(queues[0], Some(first), None, points[0]);
    if good {
        lab.wait(points[0]);
    }
    lab.submit(queues[1], Some(second), None, points[1]);
    points.iter().for_each(|point| lab.wait(*point));
}

/// What kernels need between them.
fn barrier_if(needed: bool, to: &Recorder<'_>) {
    if needed {
        to.barrier(compute(), compute());
    }
}
