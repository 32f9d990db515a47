//! What bounds checks cost: the same kernels without them, with those of the device, and with the
//! clamped indices of a checked kernel too. One run, interleaved; medians and ratios.
//!
//! ```text
//! cargo run --release -p vkaccel-benches --bin robustness
//! ```
//!
//! # Safety
//!
//! The unchecked kernels are this file's own; they index inside their buffers and arrays.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use vkaccel::{Buffer, Feature, Grid, Kernel, Result, Runtime};

/// How often each variant is timed, and how many launches share one timing.
const ROUNDS: usize = 15;
const LAUNCHES: u32 = 4;
const ELEMENTS: usize = 1 << 20;

/// Reads and writes memory, and does nothing else: the cost of checked descriptors.
const STREAM: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint result[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    result[i] = source[i] * 2 + 1;
}";

/// Walks through shared memory by computed indices: the cost of clamping.
const SHARED: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint result[]; };
shared uint tile[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint local = gl_LocalInvocationID.x;
    tile[local] = source[i];
    barrier();
    uint sum = 0;
    for (uint step = 0; step < 32; step++) sum += tile[(local + step * 7) & 63];
    result[i] = sum;
}";

struct Variant {
    name: &'static str,
    runtime: Runtime,
    checked: bool,
}

fn main() -> Result<()> {
    let count = Runtime::current()
        .selection()?
        .iter()
        .filter(|found| found.accepted)
        .count();
    println!(
        "{:<28} {:<8} {:<24} {:>10} {:>7}",
        "device", "kernel", "variant", "us/launch", "ratio"
    );
    for index in 0..count {
        let build = || Runtime::builder().visible_devices(index.to_string());
        let bare = build()
            .without_features([Feature::RobustBufferAccess])
            .build();
        let variants = [
            Variant {
                name: "no checks",
                runtime: bare,
                checked: false,
            },
            Variant {
                name: "robust buffer access",
                runtime: build().build(),
                checked: false,
            },
            Variant {
                name: "robust and clamped",
                runtime: build().build(),
                checked: true,
            },
        ];
        for (kernel, source) in [("stream", STREAM), ("shared", SHARED)] {
            report(kernel, source, &variants)?;
        }
    }
    Ok(())
}

fn report(kernel: &str, source: &str, variants: &[Variant]) -> Result<()> {
    let prepared = variants
        .iter()
        .map(|variant| Prepared::new(variant, source));
    let prepared = prepared.collect::<Result<Vec<_>>>()?;
    let mut times = vec![Vec::new(); variants.len()];
    for _ in 0..=ROUNDS {
        for (times, prepared) in times.iter_mut().zip(&prepared) {
            times.push(prepared.time()?);
        }
    }
    let medians: Vec<_> = times.into_iter().map(median).collect();
    for (variant, time) in variants.iter().zip(&medians) {
        let _entered = variant.runtime.enter();
        println!(
            "{:<28.28} {kernel:<8} {:<24} {:>10.1} {:>7.2}",
            vkaccel::get_device_capability(0)?.name(),
            variant.name,
            time.as_secs_f64() * 1e6 / f64::from(LAUNCHES),
            time.as_secs_f64() / medians[0].as_secs_f64(),
        );
    }
    Ok(())
}

struct Prepared {
    runtime: Runtime,
    kernel: Kernel,
    source: Buffer<u32>,
    result: Buffer<u32>,
}

impl Prepared {
    fn new(variant: &Variant, source: &str) -> Result<Self> {
        let _entered = variant.runtime.enter();
        let builder = Kernel::builder(source);
        let kernel = if variant.checked {
            builder.build()?
        } else {
            // SAFETY: compiled here; it stays inside its buffers, which have an element for each
            // invocation, and its loop has a bound.
            unsafe { builder.build_unchecked() }?
        };
        Ok(Self {
            runtime: variant.runtime.clone(),
            kernel,
            source: Buffer::zeroed(ELEMENTS)?,
            result: Buffer::zeroed(ELEMENTS)?,
        })
    }

    fn time(&self) -> Result<Duration> {
        let _entered = self.runtime.enter();
        vkaccel::synchronize(0)?;
        let started = Instant::now();
        for _ in 0..LAUNCHES {
            self.kernel
                .launch(Grid::elements(ELEMENTS), (&self.source, &self.result))?;
        }
        vkaccel::synchronize(0)?;
        Ok(started.elapsed())
    }
}

/// The first timing warms up and is left out.
fn median(mut times: Vec<Duration>) -> Duration {
    times.remove(0);
    times.sort_unstable();
    times[times.len() / 2]
}
