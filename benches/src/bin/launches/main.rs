//! What a launch costs, beside the same work in raw Vulkan by hand; on the first device, or on a driver
//! that does nothing, where what is left is the caller's own cost. One run, interleaved; medians.
//!
//! ```text
//! taskset -c 0 cargo run --release -p vkaccel-benches --bin launches
//! taskset -c 0 cargo run --release -p vkaccel-benches --bin launches -- --null
//! ```
//!
//! Another argument names the rows to be measured, by a part of their names.

mod own;
mod raw;
mod work;

use std::time::Instant;

use vkaccel::{Counters, Graph, Runtime};
use vkaccel_benches::null;

use own::Own;
use raw::{Raw, Recorded};
use work::{Abi, Result, Work};

/// How often each figure is measured, on a device and on the driver that does nothing; the median counts.
const ROUNDS: usize = 51;
const NULL_ROUNDS: usize = 501;
/// How many launches are one figure.
const LAUNCHES: u32 = 1000;
/// How many round trips are.
const TRIPS: u32 = 100;

/// What a row is about.
struct Row {
    name: String,
    work: Work,
    form: Form,
    /// How many launches or round trips share one timing.
    count: u32,
}

/// How work is done.
enum Form {
    /// All launches, and one wait.
    Together,
    /// The same; the crate's on the current stream.
    OnCurrent,
    /// All launches, each with a submission, and one wait.
    OneByOne,
    /// All launches with a wait, again and again.
    Trips,
    /// Recorded once, and submitted with a wait again and again.
    Replay(Recorded, Graph),
}

/// What came out of a row's rounds.
#[derive(Default)]
struct Times {
    raw: Vec<f64>,
    own: Vec<f64>,
    /// What the crate did in the last round.
    counted: Counters,
}

fn main() -> Result<()> {
    keep_heap();
    let mut args: Vec<_> = std::env::args().skip(1).collect();
    let is_null = args.iter().any(|arg| arg == "--null");
    args.retain(|arg| arg != "--null");
    let (entry, runtime) = match is_null {
        true => on_null_driver()?,
        false => on_first_device()?,
    };
    let mut raw = Raw::open(entry)?;
    let own = Own::open(runtime)?;
    if !is_null {
        compare(&mut raw, &own)?;
    }
    let mut rows = rows(&raw, &own)?;
    rows.retain(|row| args.iter().all(|part| row.title().contains(part)));
    println!(
        "{:<49} {:>9} {:>11} {:>6} {:>8} {:>9} {:>5}",
        "", "raw, ns", "vkaccel, ns", "ratio", "submits", "barriers", "sets"
    );
    let rounds = if is_null { NULL_ROUNDS } else { ROUNDS };
    for row in &rows {
        let mut times = Times::default();
        for _ in 0..=rounds {
            row.measure(&mut raw, &own, &mut times)?;
        }
        row.print(times);
    }
    Ok(())
}

#[allow(unsafe_code, reason = "drivers are loaded here, for both sides")]
fn on_null_driver() -> Result<(ash::Entry, Runtime)> {
    null::load()?;
    let functions = ash::StaticFn {
        get_instance_proc_addr: null::get_instance_proc_addr,
    };
    // SAFETY: functions of a driver that does nothing.
    let entry = unsafe { ash::Entry::from_static_fn(functions) };
    // SAFETY: as above.
    let builder = unsafe { Runtime::builder().entry(null::entry) };
    Ok((entry, builder.build()))
}

#[allow(unsafe_code, reason = "drivers are loaded here, for both sides")]
fn on_first_device() -> Result<(ash::Entry, Runtime)> {
    // SAFETY: the library that is found is a Vulkan loader.
    let entry = unsafe { ash::Entry::load() }?;
    Ok((entry, Runtime::builder().visible_devices("0").build()))
}

/// Has the heap keep what is freed: drivers keep commands there, and whether the system takes their pages
/// back and clears them anew each time depends on what else lies there.
#[allow(unsafe_code, reason = "a setting of the C library's")]
fn keep_heap() {
    #[cfg(target_env = "gnu")]
    for setting in [
        libc::M_TRIM_THRESHOLD,
        libc::M_MMAP_THRESHOLD,
        libc::M_TOP_PAD,
    ] {
        // SAFETY: a setting of the allocator, made before there are other threads.
        let set = unsafe { libc::mallopt(setting, 64 << 20) };
        assert_eq!(set, 1, "the C library takes the setting");
    }
}

/// Sees that both sides do the same.
fn compare(raw: &mut Raw, own: &Own) -> Result<()> {
    for abi in Abi::ALL {
        for work in [Work::chained(abi, 20), Work::independent(abi)] {
            raw.fill(7)?;
            own.fill(7)?;
            raw.run(&work)?;
            own.run(&work)?;
            // Behind all pieces, a second pass brings them to the first buffer.
            if !work.is_chained {
                let back = work.back();
                raw.run(&back)?;
                own.run(&back)?;
            }
            let (by_raw, by_own) = (raw.words()?, own.words()?);
            assert_eq!(by_raw, by_own, "{work:?}");
            if work.is_chained {
                assert_eq!(by_own[0], work.first_word(7));
                let (recorded, graph) = (raw.recorded(&work)?, own.captured(&work)?);
                raw.replay(&recorded)?;
                own.replay(&graph)?;
                assert_eq!(raw.words()?, own.words()?, "{work:?}");
            }
        }
    }
    Ok(())
}

fn rows(raw: &Raw, own: &Own) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut add = |name: &str, work, form, count| {
        rows.push(Row {
            name: name.to_owned(),
            work,
            form,
            count,
        });
    };
    for abi in Abi::ALL {
        let work = Work::chained(abi, LAUNCHES);
        add(
            "chained launches, 1,000 + wait",
            work,
            Form::Together,
            LAUNCHES,
        );
    }
    let work = Work::chained(Abi::Descriptors, LAUNCHES);
    add(
        "chained, on the current stream",
        work,
        Form::OnCurrent,
        LAUNCHES,
    );
    for abi in Abi::ALL {
        let work = Work::independent(abi);
        add(
            "independent launches, 1,000 + wait",
            work,
            Form::Together,
            LAUNCHES,
        );
    }
    for abi in Abi::ALL {
        let work = Work::chained(abi, LAUNCHES);
        add("one submit a launch", work, Form::OneByOne, LAUNCHES);
    }
    for abi in Abi::ALL {
        add("launch + wait", Work::chained(abi, 1), Form::Trips, TRIPS);
    }
    for nodes in [1, 100, 1000] {
        let work = Work::chained(Abi::Descriptors, nodes);
        let form = Form::Replay(raw.recorded(&work)?, own.captured(&work)?);
        add(&format!("replay of {nodes} + wait"), work, form, TRIPS);
    }
    Ok(rows)
}

impl Row {
    fn measure(&self, raw: &mut Raw, own: &Own, times: &mut Times) -> Result<()> {
        let started = Instant::now();
        self.by_raw(raw)?;
        times.raw.push(self.nanoseconds(started));
        let before = own.runtime.counters();
        let started = Instant::now();
        self.by_own(own)?;
        times.own.push(self.nanoseconds(started));
        times.counted = own.runtime.counters().since(&before);
        Ok(())
    }

    fn title(&self) -> String {
        let abi = format!("{:?}", self.work.abi).to_lowercase();
        format!("{:<36} {abi}", self.name)
    }

    fn nanoseconds(&self, started: Instant) -> f64 {
        started.elapsed().as_secs_f64() * 1e9 / f64::from(self.count)
    }

    fn by_raw(&self, raw: &mut Raw) -> Result<()> {
        match &self.form {
            Form::Together | Form::OnCurrent => raw.run(&self.work),
            Form::OneByOne => raw.run_one_by_one(&self.work),
            Form::Trips => (0..self.count).try_for_each(|_| raw.run(&self.work)),
            Form::Replay(recorded, _) => (0..self.count).try_for_each(|_| raw.replay(recorded)),
        }
    }

    fn by_own(&self, own: &Own) -> Result<()> {
        match &self.form {
            Form::Together => own.run(&self.work),
            Form::OnCurrent => own.run_on_current(&self.work),
            Form::OneByOne => own.run_one_by_one(&self.work),
            Form::Trips => (0..self.count).try_for_each(|_| own.run(&self.work)),
            Form::Replay(_, graph) => (0..self.count).try_for_each(|_| own.replay(graph)),
        }
    }

    fn print(&self, times: Times) {
        let (raw, own) = (median(times.raw), median(times.own));
        println!(
            "{:<49} {raw:>9.0} {own:>11.0} {:>6.2} {:>8} {:>9} {:>5}",
            self.title(),
            own / raw,
            times.counted.submits,
            times.counted.barriers,
            times.counted.descriptor_sets
        );
    }
}

/// The first timing warms up and is left out.
fn median(mut times: Vec<f64>) -> f64 {
    times.remove(0);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
