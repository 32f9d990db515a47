//! What device memory costs through the public types: buffers made and dropped on an opened device.
//! Medians of interleaved rounds, in nanoseconds.
//!
//! ```text
//! cargo run --release -p vkaccel-benches --bin buffers
//! ```

use std::hint::black_box;
use std::time::Instant;

use vkaccel::{Buffer, HistoryOptions, Result, Stream, memory};
use vkaccel_benches::Numbers;

/// How often each figure is measured; the median counts.
const ROUNDS: usize = 9;
const PAIRS: u32 = 100_000;
const SOUP: u32 = 100_000;

/// A buffer made and dropped, from the cache.
fn pairs(stream: &Stream) -> Result<u32> {
    for _ in 0..PAIRS {
        drop(black_box(stream.uninit::<u8>(1000)?));
    }
    Ok(PAIRS)
}

/// The same on the thread's current stream.
fn implicit_pairs() -> Result<u32> {
    for _ in 0..PAIRS {
        drop(black_box(Buffer::<u8>::uninit(1000)?));
    }
    Ok(PAIRS)
}

/// Buffers of random sizes that live for random times; two operations a step.
fn soup(stream: &Stream, seed: u64) -> Result<u32> {
    let mut numbers = Numbers(seed);
    // From 256 bytes to 4 MiB.
    let size = |numbers: &mut Numbers| usize::try_from(numbers.size(14)).unwrap_or(0);
    let mut live = Vec::with_capacity(200);
    for _ in 0..200 {
        live.push(stream.uninit::<u8>(size(&mut numbers))?);
    }
    for _ in 0..SOUP {
        let place = usize::try_from(numbers.below(200)).unwrap_or(0);
        drop(live.swap_remove(place));
        live.push(stream.uninit::<u8>(size(&mut numbers))?);
    }
    Ok(2 * SOUP)
}

/// Threads on streams of their own.
fn threads(count: u64) -> Result<u32> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=count)
            .map(|seed| scope.spawn(move || soup(&Stream::new(0)?, seed)))
            .collect();
        let mut done = 0;
        for worker in workers {
            done = worker.join().expect("a worker does not panic")?;
        }
        Ok(done)
    })
}

fn recorded(stream: &Stream) -> Result<u32> {
    memory::record_memory_history(Some(HistoryOptions::default()), 0)?;
    let done = pairs(stream);
    memory::record_memory_history(None, 0)?;
    done
}

fn statistics() -> Result<u32> {
    for _ in 0..PAIRS {
        black_box(memory::memory_stats(0)?);
    }
    Ok(PAIRS)
}

fn flat_statistics() -> Result<u32> {
    let count = PAIRS / 100;
    for _ in 0..count {
        black_box(memory::memory_stats(0)?.to_map());
    }
    Ok(count)
}

fn main() -> Result<()> {
    let stream = Stream::new(0)?;
    drop(stream.zeroed::<u8>(1)?);
    let works: [(&str, &dyn Fn() -> Result<u32>); 8] = [
        ("pair, named stream", &|| pairs(&stream)),
        ("pair, current stream", &implicit_pairs),
        ("pair, history on", &|| recorded(&stream)),
        ("soup, an operation", &|| soup(&stream, 7)),
        ("two threads, an operation each", &|| threads(2)),
        ("four threads, an operation each", &|| threads(4)),
        ("statistics as a record", &statistics),
        ("statistics as a map", &flat_statistics),
    ];
    let mut times = vec![Vec::new(); works.len()];
    for _ in 0..ROUNDS {
        for (times, (_, work)) in times.iter_mut().zip(&works) {
            let start = Instant::now();
            let count = work()?;
            times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(count));
        }
    }
    for (times, (name, _)) in times.iter_mut().zip(&works) {
        times.sort_by(f64::total_cmp);
        println!("{name:<34} {:>8.0} ns", times[times.len() / 2]);
    }
    Ok(())
}
