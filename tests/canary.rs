//! Shows that the validation layer is awake: programs that are known to be wrong must be reported,
//! through the same messenger that fails the other tests.
//!
//! The faults are put in below the crate, through the replaceable entry: barriers are left out, or
//! recorded with stages that no barrier may have. Drivers put up with that.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use ash::vk::PipelineStageFlags;
use support::entry::{Entry, args};
use vkaccel::{Buffer, Severity, ValidationMessage};

/// What the layer says to a fill, a copy and a read of two buffers through an entry with this fault.
fn messages(test: &str, fault: impl Fn(&Entry)) -> Option<Vec<ValidationMessage>> {
    let required = std::env::var("VKACCEL_TEST_REQUIRE_DEVICE").is_ok_and(|value| value == "1");
    let validated = std::env::var("VKACCEL_TEST_VALIDATION").is_ok_and(|value| value == "1");
    let entry = Entry::new();
    if !required && (!validated || entry.is_none()) {
        println!("SKIP {test}: not asked to run under a validation layer");
        return None;
    }
    let entry = entry.expect("there is a Vulkan loader");
    fault(&entry);
    let runtime = entry.builder().validation(true).build();
    let entered = runtime.enter();
    let source = Buffer::<u32>::zeroed(1024).unwrap();
    let copy = Buffer::<u32>::uninit(1024).unwrap();
    // Enough of them for several to share a recording.
    for round in 0..32 {
        source.fill(round).unwrap();
        copy.copy_from(source.view(..).unwrap()).unwrap();
    }
    copy.to_vec().unwrap();
    drop((source, copy, entered));
    runtime.shutdown().unwrap();
    Some(runtime.take_validation_messages())
}

#[test]
fn a_missing_barrier_is_reported() {
    let test = "a_missing_barrier_is_reported";
    let Some(messages) = messages(test, |entry| entry.leave_out("vkCmdPipelineBarrier")) else {
        return;
    };
    let hazards = messages
        .iter()
        .filter(|message| message.id.starts_with("SYNC-HAZARD"));
    assert!(
        hazards.count() > 0,
        "the layer is asleep; it said {messages:#?}"
    );
}

#[test]
fn a_barrier_without_stages_is_reported() {
    let without_stages = |entry: &Entry| {
        entry.alter(
            "vkCmdPipelineBarrier",
            |args: &mut args::CmdPipelineBarrier| {
                args.1 = PipelineStageFlags::empty();
                args.2 = PipelineStageFlags::empty();
            },
        );
    };
    let Some(messages) = messages("a_barrier_without_stages_is_reported", without_stages) else {
        return;
    };
    let errors = messages
        .iter()
        .filter(|message| message.severity == Severity::Error && message.id.contains("StageMask"));
    assert!(
        errors.count() > 0,
        "the layer is asleep; it said {messages:#?}"
    );
}
