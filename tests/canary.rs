//! Shows that faults of the crate would be found: with one put in below it, the validation layer has
//! to say so, through the same messenger that fails the other tests.
//!
//! The faults are put in through the replaceable entry: one barrier is left out, or has the wrong
//! stages, one object is not destroyed. Drivers put up with that.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk::{AccessFlags, MemoryBarrier, PipelineStageFlags};
use support::entry::{Entry, args};
use support::kernels::kernel;
use support::{on_each_device, skip};
use vkaccel::{Buffer, Grid, Result, Severity, ValidationMessage};

const BARRIER: &str = "vkCmdPipelineBarrier";

/// What a program says to the layer through an entry with a fault, on one device; it may fail, as
/// the fault may be found by the driver too.
fn messages(
    entry: &Entry,
    device: usize,
    program: impl FnOnce() -> Result<()>,
) -> Vec<ValidationMessage> {
    let runtime = entry
        .builder()
        .validation(true)
        .visible_devices(device.to_string())
        .build();
    let entered = runtime.enter();
    let _ = program();
    drop(entered);
    let _ = runtime.shutdown();
    runtime.take_validation_messages()
}

/// Runs on each device under a layer; without being asked for one, it says that it skips.
fn under_a_layer(test: &str, body: impl Fn(usize)) {
    if !support::is_set("VKACCEL_TEST_VALIDATION") {
        assert!(!support::is_set("VKACCEL_TEST_REQUIRE_DEVICE"));
        return skip(test, "not asked to run under a validation layer");
    }
    on_each_device(test, |runtime| body(runtime.index()));
}

fn is_hazard(message: &ValidationMessage) -> bool {
    message.id.starts_with("SYNC-HAZARD")
}

/// Commands of which each reads what the one before it wrote: a fill, kernels, copies and a read.
fn chain() -> Result<()> {
    let map = kernel("affine_map");
    let (x, y) = (Buffer::<u32>::uninit(1024)?, Buffer::<u32>::uninit(1024)?);
    x.fill(1)?;
    for _ in 0..3 {
        map.launch(Grid::elements(1024), (&x, &y, 2, 1, 1024))?;
        map.launch(Grid::elements(1024), (&y, &x, 2, 1, 1024))?;
        y.copy_from(x.view(..)?)?;
        map.launch(Grid::elements(1024), (&y, &x, 2, 1, 1024))?;
    }
    x.to_vec().map(drop)
}

/// The chain's barriers that order what the layer sees, as numbers of calls from 1: each command but
/// the first has one before it, in whichever recordings they come to be. Before the first there is
/// nothing to order, and reads of the host, which the last is for, are seen by no layer.
fn barriers_of_chain(device: usize) -> Vec<u64> {
    let entry = Entry::new().unwrap();
    let (barriers, commands) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(AtomicU64::new(0)),
    );
    fn count<T: 'static>(entry: &Entry, name: &str, commands: &Arc<AtomicU64>) {
        let commands = Arc::clone(commands);
        entry.alter(name, move |_: &mut T| {
            commands.fetch_add(1, Ordering::Relaxed);
        });
    }
    count::<args::CmdFillBuffer>(&entry, "vkCmdFillBuffer", &commands);
    count::<args::CmdCopyBuffer>(&entry, "vkCmdCopyBuffer", &commands);
    count::<args::CmdDispatch>(&entry, "vkCmdDispatch", &commands);
    let (log, begun) = (Arc::clone(&barriers), Arc::clone(&commands));
    entry.alter(BARRIER, move |args: &mut args::CmdPipelineBarrier| {
        let is_first = begun.load(Ordering::Relaxed) == 0;
        let is_for_host = args.2.contains(PipelineStageFlags::HOST);
        log.lock().unwrap().push(!is_first && !is_for_host);
    });
    let said = messages(&entry, device, chain);
    assert!(said.is_empty(), "{said:#?}");
    let barriers = barriers.lock().unwrap();
    let ordering = (1..).zip(&*barriers).filter(|(_, orders)| **orders);
    let numbers: Vec<u64> = ordering.map(|(number, _)| number).collect();
    assert_eq!(numbers.len() as u64 + 1, commands.load(Ordering::Relaxed));
    numbers
}

/// The layer has to say it of a fault of one barrier, sooner or later: between two submissions it
/// may take it for order that the crate has seen the first one finish before it made the second.
fn expect(
    barrier: u64,
    is_expected: fn(&ValidationMessage) -> bool,
    run: impl Fn() -> Vec<ValidationMessage>,
) {
    let is_reported = (0..30).any(|_| run().iter().any(is_expected));
    assert!(is_reported, "barrier {barrier}: {:#?}", run());
}

#[test]
fn each_barrier_that_is_left_out_is_reported() {
    under_a_layer("each_barrier_that_is_left_out", |device| {
        for number in barriers_of_chain(device) {
            expect(number, is_hazard, || {
                let entry = Entry::new().unwrap();
                entry.leave_out_one(BARRIER, number);
                messages(&entry, device, chain)
            });
        }
    });
}

/// A kernel that writes the counts of an indirect launch, and the launch.
fn decide() -> Result<()> {
    let (put, tick) = (kernel("put_three"), kernel("tick"));
    let (counts, ticks) = (Buffer::<u32>::uninit(3)?, Buffer::<u32>::uninit(1)?);
    put.launch(Grid::groups(1), (&counts, 2, 1, 1))?;
    tick.launch_indirect(&counts, (&ticks,))?;
    vkaccel::synchronize(None)
}

/// Before the counts are looked at, and before the launch reads what is handed on.
#[test]
fn each_barrier_that_is_left_out_before_an_indirect_launch_is_reported() {
    under_a_layer("each_barrier_before_an_indirect_launch", |device| {
        let whole = Entry::new().unwrap();
        let said = messages(&whole, device, decide);
        assert!(said.is_empty(), "{said:#?}");
        assert_eq!(whole.calls(BARRIER), 2);
        for number in 1..=2 {
            expect(number, is_hazard, || {
                let entry = Entry::new().unwrap();
                entry.leave_out_one(BARRIER, number);
                messages(&entry, device, decide)
            });
        }
    });
}

/// Alters the chain's barriers in turn; the layer has to say what is expected.
fn alter_each_barrier(
    device: usize,
    change: fn(&mut args::CmdPipelineBarrier),
    is_expected: fn(&ValidationMessage) -> bool,
) {
    for number in barriers_of_chain(device) {
        expect(number, is_expected, || {
            let entry = Entry::new().unwrap();
            let mut calls = 0;
            entry.alter(BARRIER, move |args: &mut args::CmdPipelineBarrier| {
                calls += 1;
                if calls == number {
                    change(args);
                }
            });
            messages(&entry, device, chain)
        });
    }
}

#[test]
fn each_barrier_for_a_wrong_stage_is_reported() {
    under_a_layer("each_barrier_for_a_wrong_stage", |device| {
        let misdirect = |args: &mut args::CmdPipelineBarrier| {
            let everything = MemoryBarrier::default()
                .src_access_mask(AccessFlags::MEMORY_WRITE)
                .dst_access_mask(AccessFlags::MEMORY_READ);
            args.2 = PipelineStageFlags::DRAW_INDIRECT;
            (args.4, args.5) = (1, Box::leak(Box::new(everything)));
        };
        alter_each_barrier(device, misdirect, is_hazard);
    });
}

#[test]
fn each_barrier_without_stages_is_reported() {
    under_a_layer("each_barrier_without_stages", |device| {
        let empty = |args: &mut args::CmdPipelineBarrier| {
            args.1 = PipelineStageFlags::empty();
            args.2 = PipelineStageFlags::empty();
        };
        alter_each_barrier(device, empty, |message| {
            message.severity == Severity::Error && message.id.contains("StageMask")
        });
    });
}

/// Of each kind in turn, the object that is destroyed first is not destroyed.
#[test]
fn each_kind_of_object_that_is_left_behind_is_reported() {
    under_a_layer("each_kind_of_object_that_is_left_behind", |device| {
        let whole = Entry::new().unwrap();
        let said = messages(&whole, device, chain);
        assert!(said.is_empty(), "{said:#?}");
        let ends = Entry::ends_of_device_objects();
        let called: Vec<_> = (ends.iter().filter(|end| whole.calls(end) > 0)).collect();
        assert!(called.len() >= 8, "{called:?}");
        for end in called {
            let entry = Entry::new().unwrap();
            entry.leave_out_one(end, 1);
            let said = messages(&entry, device, chain);
            let is_leak = |message: &ValidationMessage| {
                message.severity == Severity::Error && message.id.contains("vkDestroyDevice")
            };
            assert!(said.iter().any(is_leak), "{end}: {said:#?}");
        }
    });
}
