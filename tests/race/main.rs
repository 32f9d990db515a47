//! All that the crate submits is ordered: an independent check of what it had the driver do.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/race/mod.rs"]
mod race;

#[path = "../icd-shim/tests/support/process.rs"]
mod process;

mod by_hand;
mod checker;
mod graphs;
mod modules;
mod programs;
mod queues;
mod removal;
mod steps;
mod twins;
