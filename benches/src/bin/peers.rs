//! What copies between two devices cost, beside a download and an upload; on a machine with one device, between two
//! runtimes. Medians of interleaved rounds, in GB/s.
//!
//! ```text
//! cargo run --release -p vkaccel-benches --bin peers
//! ```

use std::time::Instant;

use vkaccel::{Buffer, Result, Runtime, Stream, device_count};

/// How often each figure is measured; the median counts.
const ROUNDS: usize = 9;
const MIB: usize = 1 << 20;
const BYTES: usize = 64 * MIB;

/// A stream with a buffer.
struct End(Stream, Buffer<u8>);

/// A way to copy, through host memory that is there already where it needs some.
type Way = fn(&End, &End, &mut [u8]) -> Result<()>;

impl End {
    fn new(device: usize) -> Result<Self> {
        let stream = Stream::new(device)?;
        let buffer = stream.zeroed(BYTES)?;
        stream.synchronize()?;
        Ok(Self(stream, buffer))
    }
}

/// The content goes to the host, and from there to the other device.
fn separately(from: &End, to: &End, _: &mut [u8]) -> Result<()> {
    let content = from.0.to_vec(&from.1)?;
    to.0.write(&to.1, &content)
}

fn by_memory_that_is_there(from: &End, to: &End, content: &mut [u8]) -> Result<()> {
    from.0.read(&from.1, content)?;
    to.0.write(&to.1, content)
}

fn at_once(from: &End, to: &End, _: &mut [u8]) -> Result<()> {
    to.0.copy_from_peer(&from.0, &from.1, &to.1)
}

/// GB/s of a way to copy.
fn measure(way: Way, [from, to]: [&End; 2], is_used: bool, content: &mut [u8]) -> Result<f64> {
    from.0.synchronize()?;
    if is_used {
        // The host leaves memory alone that the device uses.
        to.0.fill(to.1.view(..1)?, 1)?;
    }
    let start = Instant::now();
    way(from, to, content)?;
    to.0.synchronize()?;
    #[expect(clippy::cast_precision_loss, reason = "a figure of two digits")]
    let bytes = BYTES as f64;
    Ok(bytes / start.elapsed().as_secs_f64() / 1e9)
}

fn main() -> Result<()> {
    let first = End::new(0)?;
    let another = Runtime::builder().build();
    let second = match device_count() {
        1 => {
            let _entered = another.enter();
            End::new(0)?
        }
        _ => End::new(1)?,
    };
    let mut content = vec![0; BYTES];
    let ways: [Way; 3] = [separately, by_memory_that_is_there, at_once];
    println!(
        "{:<32} to_vec, write  read, write  copy_from_peer",
        "64 MiB, GB/s"
    );
    for (direction, ends) in [("there", [&first, &second]), ("back", [&second, &first])] {
        for (target, is_used) in [("a target at rest", false), ("a target in use", true)] {
            let mut rates = ways.map(|_| Vec::new());
            for _ in 0..ROUNDS {
                for (rates, &way) in rates.iter_mut().zip(&ways) {
                    rates.push(measure(way, ends, is_used, &mut content)?);
                }
            }
            let [whole, reused, at_once] = rates.map(|mut rates| {
                rates.sort_by(f64::total_cmp);
                rates[rates.len() / 2]
            });
            println!("{direction}, {target:<24} {whole:>14.2} {reused:>12.2} {at_once:>15.2}");
        }
    }
    Ok(())
}
