//! Histories written by hand: commands that touch the same memory, barriers, and submissions.

use std::sync::Arc;

use ash::vk::{AccessFlags as Access, PipelineStageFlags as Stage};

use crate::race::check::{Fault, faults};
use crate::race::history::{
    Barrier, Command, Event, History, List, MemoryBarrier, Point, Range, Submission, Touch, Wait,
    Work,
};

pub const STORAGE: Access =
    Access::from_raw(Access::SHADER_READ.as_raw() | Access::SHADER_WRITE.as_raw());
pub const NONE: Access = Access::empty();

pub fn bytes(lo: u64, hi: u64) -> Range {
    Range { memory: 1, lo, hi }
}

pub fn touch(stage: Stage, access: Access, range: Range) -> Command {
    let touches = vec![Touch {
        range,
        stage,
        access,
    }];
    Command::Work(Work {
        name: "it",
        touches,
    })
}

pub fn kernel_writes() -> Command {
    touch(Stage::COMPUTE_SHADER, Access::SHADER_WRITE, bytes(0, 64))
}

pub fn kernel_reads() -> Command {
    touch(Stage::COMPUTE_SHADER, Access::SHADER_READ, bytes(0, 64))
}

pub fn copy_reads() -> Command {
    touch(Stage::TRANSFER, Access::TRANSFER_READ, bytes(0, 64))
}

pub fn copy_writes() -> Command {
    touch(Stage::TRANSFER, Access::TRANSFER_WRITE, bytes(0, 64))
}

pub fn indirect_reads() -> Command {
    touch(
        Stage::DRAW_INDIRECT,
        Access::INDIRECT_COMMAND_READ,
        bytes(0, 12),
    )
}

pub fn uniform_reads() -> Command {
    touch(Stage::COMPUTE_SHADER, Access::UNIFORM_READ, bytes(0, 12))
}

pub fn barrier(from: (Stage, Access), to: (Stage, Access)) -> Command {
    Command::Barrier(Barrier {
        from: from.0,
        to: to.0,
        memory: vec![MemoryBarrier {
            from: from.1,
            to: to.1,
            range: None,
        }],
    })
}

/// A barrier between stages, without memory.
pub fn order(from: Stage, to: Stage) -> Command {
    Command::Barrier(Barrier {
        from,
        to,
        memory: Vec::new(),
    })
}

pub fn kernels() -> Command {
    let all = (Stage::COMPUTE_SHADER, STORAGE);
    barrier(all, all)
}

pub fn submit(queue: u64, commands: Vec<Command>) -> Submission {
    let list = List {
        commands,
        ..List::default()
    };
    Submission {
        queue,
        lists: vec![Arc::new(list)],
        ..Submission::default()
    }
}

impl Submission {
    pub fn waits(mut self, semaphore: u64, value: u64) -> Self {
        self.waits.push(Wait {
            point: Point { semaphore, value },
            stages: Stage::ALL_COMMANDS,
        });
        self
    }

    pub fn waits_at(mut self, stages: Stage) -> Self {
        self.waits.last_mut().unwrap().stages = stages;
        self
    }

    pub fn signals(mut self, semaphore: u64, value: u64) -> Self {
        self.signals.push(Point { semaphore, value });
        self
    }
}

pub fn run(events: Vec<Event>) -> Vec<Fault> {
    faults(&History { events })
}

pub fn submitted(submissions: Vec<Submission>) -> Vec<Fault> {
    run(submissions.into_iter().map(Event::Submission).collect())
}

pub fn in_a_row(commands: Vec<Command>) -> Vec<Fault> {
    submitted(vec![submit(1, commands)])
}
