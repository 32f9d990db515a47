//! What filling memory with random numbers costs: 64 MiB of each kind on a device, beside a fill with
//! one word and the reference on the CPU. One run, interleaved; medians in GB/s.
//!
//! ```text
//! cargo run --release -p vkaccel-benches --bin random [KIND]
//! ```
//!
//! KIND chooses the kinds with that in their name.

use std::time::{Duration, Instant};

use vkaccel::{Buffer, ErrorKind, Generator, Philox, Result, Runtime, Stream};

const ROUNDS: usize = 9;
const BYTES: usize = 64 << 20;

/// Something that writes 64 MiB.
struct Writer<'a> {
    name: &'static str,
    write: Box<dyn FnMut() -> Result<()> + 'a>,
    times: Vec<Duration>,
}

impl<'a> Writer<'a> {
    fn new(name: &'static str, write: impl FnMut() -> Result<()> + 'a) -> Self {
        Self {
            name,
            write: Box::new(write),
            times: Vec::new(),
        }
    }
}

/// Times all of them in turn, once to warm up and then in rounds, and prints the medians.
fn measure(place: &str, mut writers: Vec<Writer<'_>>) -> Result<()> {
    if let Some(kind) = std::env::args().nth(1) {
        writers.retain(|writer| writer.name.contains(&kind));
    }
    for round in 0..=ROUNDS {
        let mut left = Vec::new();
        for mut writer in writers {
            let start = Instant::now();
            match (writer.write)() {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    println!("{place:<36} {:<22} not on this device", writer.name);
                    continue;
                }
                result => result?,
            }
            if round > 0 {
                writer.times.push(start.elapsed());
            }
            left.push(writer);
        }
        writers = left;
    }
    for mut writer in writers {
        writer.times.sort_unstable();
        let median = writer.times[ROUNDS / 2].as_secs_f64();
        println!(
            "{place:<36} {:<22} {:>6.2} GB/s",
            writer.name,
            BYTES as f64 / 1e9 / median
        );
    }
    Ok(())
}

fn on_device(name: &str) -> Result<()> {
    let stream = Stream::new(None)?;
    let generator = Generator::new(1, None)?;
    let words = Buffer::<u32>::zeroed(BYTES / 4)?;
    let floats = Buffer::<f32>::zeroed(BYTES / 4)?;
    let wide = Buffer::<f64>::zeroed(BYTES / 8)?;
    let halves = Buffer::<u16>::zeroed(BYTES / 2)?;
    let bytes = Buffer::<u8>::zeroed(BYTES)?;
    // One element further on, where shaders write word by word.
    let shifted = Buffer::<u32>::zeroed(BYTES / 4 + 1)?;
    let shifted = shifted.view(1..)?;
    let (stream, generator) = (&stream, &generator);
    let done = |recorded: Result<()>| recorded.and_then(|()| stream.synchronize());
    let writers = vec![
        Writer::new("one word (fill)", || done(stream.fill(&words, 7))),
        Writer::new("raw bits", || done(stream.fill_bits(generator, &words))),
        Writer::new("raw bits, odd place", || {
            done(stream.fill_bits(generator, shifted))
        }),
        Writer::new("uniform f32", || {
            done(stream.fill_uniform(generator, &floats))
        }),
        Writer::new("uniform f64", || {
            done(stream.fill_uniform(generator, &wide))
        }),
        Writer::new("uniform f16", || {
            done(stream.fill_uniform_f16(generator, &halves))
        }),
        Writer::new("integers 1..=6", || {
            done(stream.fill_integers(generator, &words, 1..=6))
        }),
        Writer::new("normal f32", || {
            done(stream.fill_normal(generator, &floats, 0.0, 1.0))
        }),
        Writer::new("normal f64", || {
            done(stream.fill_normal(generator, &wide, 0.0, 1.0))
        }),
        Writer::new("trials, u8", || {
            done(stream.fill_bernoulli(generator, &bytes, 0.5))
        }),
    ];
    measure(name, writers)
}

fn on_host() -> Result<()> {
    let mut words = vec![0u32; BYTES / 4];
    let mut dice = words.clone();
    let mut floats = vec![0.0f32; BYTES / 4];
    let mut normal = floats.clone();
    let mut wide = vec![0.0f64; BYTES / 8];
    let fresh = || Philox::new(1);
    let writers = vec![
        Writer::new("raw bits", || fresh().fill_bits(&mut words)),
        Writer::new("uniform f32", || fresh().fill_uniform(&mut floats)),
        Writer::new("integers 1..=6", || fresh().fill_integers(&mut dice, 1..=6)),
        Writer::new("normal f32", || fresh().fill_normal(&mut normal, 0.0, 1.0)),
        Writer::new("normal f64", || fresh().fill_normal(&mut wide, 0.0, 1.0)),
    ];
    measure("CPU reference, one thread", writers)
}

fn main() -> Result<()> {
    // Without a device there is the reference alone.
    let selection = Runtime::current().selection().unwrap_or_default();
    let names = selection.iter().filter(|found| found.accepted);
    for (index, found) in names.enumerate() {
        vkaccel::with_device(index, || on_device(&found.name))?;
    }
    on_host()
}
