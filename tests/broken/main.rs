//! Shows what a validation layer sees: small programs with one thing wrong, each beside a twin
//! without the fault, in raw Vulkan. `tests/data/broken.txt` says which of them each layer reports.
//!
//! A layer that stays silent where it has to speak is asleep, or has switches that are not set, and
//! what passes under it shows nothing; one that speaks of a good twin would fail tests that are
//! right. Each leg of `scripts/test` runs this first.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod lab;
mod programs;
mod recorder;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::collections::BTreeSet;

use lab::{By, Lab};
use programs::{PROGRAMS, Program};
use support::is_set;
use table::{Column, Seen, Table};

/// The ways in which a program gets its buffers to kernels; one where there are none.
fn ways(program: &Program) -> Vec<Option<By>> {
    match program.kernels {
        true => vec![Some(By::Descriptors), Some(By::Addresses)],
        false => vec![None],
    }
}

/// What the table has rows for, in its order.
fn rows() -> Vec<(String, Option<By>)> {
    let rows = PROGRAMS.iter().flat_map(|program| {
        let name = |by| (program.name.to_owned(), by);
        ways(program).into_iter().map(name)
    });
    rows.collect()
}

#[test]
fn the_layer_reports_what_the_table_says() {
    let test = "the_layer_reports_what_the_table_says";
    let required = is_set("VKACCEL_TEST_REQUIRE_DEVICE");
    if !is_set("VKACCEL_TEST_VALIDATION") {
        assert!(!required, "this is about a validation layer");
        return support::skip(test, "not asked to run under a validation layer");
    }
    let layer = lab::loader().and_then(table::layer);
    let (Some(entry), Some((column, version))) = (lab::loader(), layer) else {
        assert!(!required, "there is no loader or no layer");
        return support::skip(test, "no loader or no layer");
    };
    println!("USING validation layer {version}");
    let mut table = Table::read();
    let mut faults = Vec::new();
    let devices = lab::devices(entry).unwrap();
    assert!(!devices.is_empty() || !required, "there is no device");
    for (index, device) in devices.iter().enumerate() {
        println!("USING device {}, driver {}", device.name, device.driver);
        for program in PROGRAMS {
            if program.queues > device.queues {
                let reason = format!("{} queues are needed", program.queues);
                support::skip_part(program.name, &reason);
                continue;
            }
            for by in ways(program) {
                let run = |good: bool| -> BTreeSet<String> {
                    let lab = Lab::open(entry, index, by.unwrap_or(By::Descriptors));
                    (program.run)(&lab, good);
                    lab.close()
                };
                let seen = Seen {
                    broken: run(false),
                    good: run(true),
                };
                if std::env::var_os("VKACCEL_BLESS").is_some() {
                    table.accept(program.name, by, column, &seen);
                }
                let told = table.compare(program.name, by, column, &seen);
                let on_device = |text: String| format!("{}: {text}", device.name);
                faults.extend(told.faults.into_iter().map(on_device));
                for note in told.notes {
                    println!("NOTE {}: {note}", device.name);
                }
            }
        }
    }
    if std::env::var_os("VKACCEL_BLESS").is_some() {
        table.write(&rows());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_has_each_program_and_no_other() {
    assert_eq!(Table::read().names(), rows());
}

#[test]
fn a_silent_layer_and_one_that_cries_wolf_are_told_from_what_is_known() {
    let table = Table::parse(
        "seen         descriptors  RAW  -  RAW,WAR  -\n\
         blind        addresses    -    -  -        -\n\
         false_alarm  -            RAW  -  RAW      RAW\n",
    );
    let seen = |broken: &[&str], good: &[&str]| Seen {
        broken: broken.iter().map(|id| (*id).to_owned()).collect(),
        good: good.iter().map(|id| (*id).to_owned()).collect(),
    };
    let told = |program, by, column, seen| {
        let told = table.compare(program, by, column, &seen);
        (told.faults.len(), told.notes.len())
    };
    let (raw, by) = (table::long("RAW"), Some(By::Descriptors));
    let raw = raw.as_str();
    let current = Column::Current;
    assert_eq!(told("seen", by, current, seen(&[raw], &[])), (0, 0));
    assert_eq!(told("seen", by, current, seen(&[], &[])), (1, 0));
    assert_eq!(
        told("seen", by, current, seen(&["VUID-other"], &[])),
        (1, 0)
    );
    assert_eq!(told("seen", by, current, seen(&[raw], &[raw])), (1, 0));
    // What is known to be missed may be seen one day.
    let by = Some(By::Addresses);
    assert_eq!(told("blind", by, current, seen(&[], &[])), (0, 0));
    assert_eq!(told("blind", by, current, seen(&[raw], &[])), (0, 1));
    assert_eq!(told("blind", by, current, seen(&[], &[raw])), (1, 0));
    assert_eq!(
        told("false_alarm", None, current, seen(&[raw], &[raw])),
        (0, 0)
    );
    assert_eq!(
        told("false_alarm", None, current, seen(&[raw], &[])),
        (0, 1)
    );
    let distribution = Column::Distribution;
    assert_eq!(
        told("false_alarm", None, distribution, seen(&[raw], &[raw])),
        (1, 0)
    );
}
