//! `vkaccel memory replay`: does again, on a simulated device, what a program did with memory.

use std::collections::HashMap;

use vkaccel::alloc::{AllocConf, Events, HistoryOptions, MemorySnapshot, TraceAction};

use super::check::{self, Compared, Found};
use super::device::Device;
use super::files;
use super::golden::{Golden, Header};
use super::input::{self, Input};
use super::limits::Limits;
use super::lines::Recorded;
use super::ops::Op;
use super::options::ReplayOptions;
use super::program::{Program, Step};
use super::tables::{self, Replay, Run};
use crate::exit::{self, Failure};

/// What a device without bounds has: more than any sum of allocations.
const UNBOUNDED: u64 = 1 << 60;

/// How many entries are written at most.
const MAX_SHOWN: usize = 1_000_000;

/// Replays a file and prints what came of it.
pub fn run(options: &ReplayOptions) -> Result<(), Failure> {
    files::check_folders(&options.outs)?;
    let file = options.file.display().to_string();
    let input = input::open(&options.file, options.device)?;
    let replay = match input {
        Input::Golden(header, golden) if options.check => return check(&file, &header, *golden),
        Input::Recorded(_) if options.check => {
            return Err(Failure::usage(format_args!(
                "{file} is no golden trace: it does not say what to compare with"
            )));
        }
        Input::Golden(header, golden) => replay_golden(options, file, &header, *golden)?,
        Input::Recorded(recorded) => replay_recorded(options, file, &recorded)?,
    };
    exit::print(&match options.json {
        true => tables::json(&replay),
        false => tables::text(&replay),
    })
}

/// The settings to try: those asked for, or the file's own.
fn confs(options: &ReplayOptions, own: &str) -> Result<Vec<(String, AllocConf)>, Failure> {
    if options.confs.is_empty() {
        let conf = own.parse().map_err(|error| {
            Failure::usage(format_args!(
                "{}: the settings it was recorded with, `{own}`, are none of vkaccel's: {error}; \
                 --conf gives others (--conf '' the defaults)",
                options.file.display()
            ))
        });
        return Ok(vec![(own.to_owned(), conf?)]);
    }
    Ok(options.confs.clone())
}

fn replay_golden(
    options: &ReplayOptions,
    file: String,
    header: &Header,
    mut golden: Golden<Box<dyn std::io::BufRead>>,
) -> Result<Replay, Failure> {
    let total = options.total.unwrap_or(header.total);
    let confs = confs(options, &header.conf)?;
    let device = |(_, conf): &(String, AllocConf)| Device::new(total, conf.clone(), header.events);
    let mut devices: Vec<Device> = confs.iter().map(device).collect();
    if !options.outs.is_empty() {
        devices
            .iter_mut()
            .for_each(|device| device.record_history(shown()));
    }
    while let Some(line) = golden.next()? {
        if options.no_limits && matches!(line.op, Op::Fraction(_)) {
            continue;
        }
        let failed = line.expected.result.as_deref() == Some("oom");
        for device in &mut devices {
            let done = match failed {
                true => device.apply_failed(&line.op),
                false => device.apply(&line.op),
            };
            done.map_err(|error| golden.fault(error))?;
        }
    }
    if let [device] = devices.as_slice() {
        files::write_all(&options.outs, &device.snapshot())?;
    }
    Ok(Replay {
        file,
        total: Some(total),
        notes: Vec::new(),
        runs: runs(confs, &vec![Limits::default(); devices.len()], &devices),
    })
}

fn replay_recorded(
    options: &ReplayOptions,
    file: String,
    recorded: &Recorded,
) -> Result<Replay, Failure> {
    let snapshot = &recorded.snapshot;
    if snapshot.history.is_empty() {
        return Err(Failure::usage(format_args!(
            "{file} has no history: it says what there was at one moment alone, which nothing can be \
             replayed of"
        )));
    }
    let known = Some(snapshot.total_bytes).filter(|total| *total > 0);
    let in_force = Limits::in_force(&snapshot.settings);
    let program = Program::of(snapshot, known.map(|total| in_force.of(total)));
    let total = options.total.or(known).or(program.total);
    let confs = confs(options, &recorded.conf)?;
    let limits: Vec<Limits> = confs
        .iter()
        .map(|(_, conf)| limits(options, snapshot, conf))
        .collect();
    let mut devices = Vec::new();
    for ((_, conf), limits) in confs.iter().zip(&limits) {
        let mut device = Device::new(total.unwrap_or(UNBOUNDED), conf.clone(), Events::Hold);
        device
            .limit(limits)
            .map_err(|error| Failure::usage(format_args!("{file}: {error}")))?;
        if !options.outs.is_empty() {
            device.record_history(shown());
        }
        for (number, step) in (0..).zip(&program.steps) {
            // The number of its step is what an entry is found by afterwards.
            device.set_time(number);
            let done = match step.failed {
                true => device.apply_failed(&step.op),
                false => device.apply(&step.op),
            };
            let at = step.entry.map_or(0, |entry| entry + 1);
            done.map_err(|error| Failure::usage(format_args!("{file}, entry {at}: {error}")))?;
        }
        devices.push(device);
    }
    if let ([device], false) = (devices.as_slice(), options.outs.is_empty()) {
        let mut shown = device.snapshot();
        attribute(&mut shown, snapshot, &program.steps);
        files::write_all(&options.outs, &shown)?;
    }
    Ok(Replay {
        file,
        total,
        notes: notes(options, snapshot, &program, known),
        runs: runs(confs, &limits, &devices),
    })
}

/// The limits for a run: those recorded, unless they are to be left out.
fn limits(options: &ReplayOptions, snapshot: &MemorySnapshot, conf: &AllocConf) -> Limits {
    let recorded = Limits::recorded(&snapshot.settings);
    match (options.no_limits, options.confs.is_empty()) {
        (true, _) => Limits::default(),
        (false, true) => recorded,
        (false, false) => recorded.under(conf),
    }
}

fn runs(confs: Vec<(String, AllocConf)>, limits: &[Limits], devices: &[Device]) -> Vec<Run> {
    let each = confs.into_iter().zip(limits).zip(devices);
    let run = each.map(|(((conf, _), limits), device)| Run {
        conf,
        limits: *limits,
        figures: *device.figures(),
    });
    run.collect()
}

fn shown() -> HistoryOptions {
    HistoryOptions::default().with_max_entries(MAX_SHOWN)
}

/// What a reader of the figures must know of the file.
fn notes(
    options: &ReplayOptions,
    snapshot: &MemorySnapshot,
    program: &Program,
    known: Option<u64>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if options.total.or(known).is_none() {
        notes.push(
            match program.total {
                Some(_) => {
                    "the size of the device is what a failed allocation tells; --total sets it"
                }
                None => "the file does not say what the device has; --total sets it",
            }
            .to_owned(),
        );
    }
    let limits = Limits::recorded(&snapshot.settings);
    if options.no_limits && !limits.is_empty() {
        notes.push(format!(
            "the limits it was recorded with are left out: {}",
            limits.text()
        ));
    }
    if program.earlier > 0 {
        notes.push(format!(
            "{} blocks are from before the history: they are allocated first, in order of their \
             addresses",
            program.earlier
        ));
    }
    if snapshot.history_dropped > 0 {
        notes.push(format!(
            "{} older entries were dropped when it was recorded",
            snapshot.history_dropped
        ));
    }
    if program.odd > 0 {
        notes.push(format!(
            "{} entries don't fit those before them and were passed over",
            program.odd
        ));
    }
    notes
}

/// Gives what a simulated device recorded the times and stacks of what it was told to do.
fn attribute(shown: &mut MemorySnapshot, recorded: &MemorySnapshot, steps: &[Step]) {
    let first = recorded.history.first();
    let mut owners = HashMap::new();
    for entry in &mut shown.history {
        let step = usize::try_from(entry.time_us).ok();
        let step = step.and_then(|step| steps.get(step)?.entry);
        let cause = step.and_then(|index| recorded.history.get(index));
        entry.time_us = cause.or(first).map_or(0, |cause| cause.time_us);
        if let Some(cause) = cause {
            entry.frames = cause.frames.clone();
        }
        if entry.action == TraceAction::Alloc {
            owners.insert(entry.address, entry.frames.clone());
        }
    }
    for segment in &mut shown.segments {
        for block in &mut segment.blocks {
            if let Some(frames) = owners.get(&block.address) {
                block.frames = frames.clone();
            }
        }
    }
    shown.device = recorded.device;
}

/// Compares a golden trace with what a simulated device makes of it.
fn check(
    file: &str,
    header: &Header,
    mut golden: Golden<Box<dyn std::io::BufRead>>,
) -> Result<(), Failure> {
    check::check_keys(header)
        .map_err(|text| Failure::usage(format_args!("{file}, line 1: {text}")))?;
    let conf = header.conf.parse();
    let conf: AllocConf =
        conf.map_err(|error| Failure::usage(format_args!("{file}, line 1: {error}")))?;
    let mut device = Device::new(header.total, conf, header.events);
    let mut compared = Compared::default();
    let mut whole = false;
    while let Some(line) = golden.next()? {
        whole = line.expected.stats.is_some();
        let outcome = device.apply(&line.op);
        let outcome = outcome.map_err(|error| golden.fault(error))?;
        let due = (compared.operations + 1).is_multiple_of(header.every);
        let stats = device.stats();
        match compared.compare(header, &line.expected, outcome, &stats, due) {
            Ok(()) => {}
            Err(Found::Unusable(text)) => return Err(golden.fault(text)),
            Err(Found::Difference(text)) => {
                return Err(Failure::run(format_args!(
                    "{file}, line {}, {}: {text}",
                    golden.line_number(),
                    line.op
                )));
            }
        }
    }
    if !whole {
        return Err(Failure::usage(format_args!(
            "{file} is cut off: its last line has no statistics"
        )));
    }
    exit::print(&format!(
        "{file}: equal in {} operations, {} placements and {} statistics\n",
        compared.operations, compared.placements, compared.statistics
    ))
}
