//! A simulated device, told a program's operations, and what comes of them.

use std::collections::HashSet;

use vkaccel::alloc::{AllocConf, Events, HistoryOptions, Placement, PoolId, Simulator};
use vkaccel::{Error, MemoryStats};

use super::limits::Limits;
use super::ops::Op;

/// What came of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    Done,
    Placed(Placement),
    /// No bytes were asked for, and none were given.
    Nothing,
    OutOfMemory,
    /// The block was never there, for want of memory.
    Skipped,
}

/// A device and its figures so far.
#[derive(Debug)]
pub struct Device {
    simulator: Simulator,
    /// The blocks that there was no memory for.
    missing: HashSet<u64>,
    figures: Figures,
}

/// What a run is judged by, in bytes where it isn't said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub operations: u64,
    pub peak_reserved: u64,
    /// What was handed out when the reserved memory first was at its peak.
    pub allocated_then: u64,
    pub peak_allocated: u64,
    pub peak_requested: u64,
    /// The sum over operations of the share of the reserved memory that was not handed out.
    unused_shares: f64,
    pub retries: u64,
    pub ooms: u64,
    /// Requests that failed where they were recorded, and for which there is memory here.
    pub recovered: u64,
    pub syncs: u64,
    pub segments_made: u64,
    pub segments_returned: u64,
}

impl Figures {
    /// The share of the reserved memory that nothing was in when it was at its peak.
    pub fn unused_at_peak(&self) -> f64 {
        unused(self.peak_reserved, self.allocated_then)
    }

    /// The same share on average, operation by operation.
    pub fn mean_unused(&self) -> f64 {
        match self.operations {
            0 => 0.0,
            operations => self.unused_shares / as_f64(operations),
        }
    }

    /// How much more is held from the driver at worst than was ever needed.
    pub fn overhead(&self) -> f64 {
        match self.peak_requested {
            0 => 1.0,
            requested => as_f64(self.peak_reserved) / as_f64(requested),
        }
    }

    fn count(&mut self, stats: &MemoryStats, before: &MemoryStats) {
        let (reserved, allocated) = (
            stats.reserved_bytes.all.current,
            stats.allocated_bytes.all.current,
        );
        self.operations += 1;
        if reserved > self.peak_reserved {
            self.peak_reserved = reserved;
            self.allocated_then = allocated;
        }
        self.peak_allocated = self.peak_allocated.max(allocated);
        let requested = stats.requested_bytes.all.current;
        self.peak_requested = self.peak_requested.max(requested);
        self.unused_shares += unused(reserved, allocated);
        // The counters may be reset in between.
        let since = stats.since(before);
        self.retries += since.num_alloc_retries;
        self.ooms += since.num_ooms;
        self.syncs += since.num_sync_all_streams;
        self.segments_made += since.num_device_alloc;
        self.segments_returned += since.num_device_free;
    }
}

fn unused(reserved: u64, allocated: u64) -> f64 {
    match reserved {
        0 => 0.0,
        reserved => as_f64(reserved.saturating_sub(allocated)) / as_f64(reserved),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "shares are shown to a few digits"
)]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

impl Device {
    pub fn new(total: u64, conf: AllocConf, events: Events) -> Self {
        Self {
            simulator: Simulator::new(total, conf).with_events(events),
            missing: HashSet::new(),
            figures: Figures::default(),
        }
    }

    /// Limits what may be reserved.
    pub fn limit(&mut self, limits: &Limits) -> Result<(), Error> {
        self.simulator.set_limit(limits.bytes);
        match limits.fraction {
            Some(fraction) => self.simulator.set_fraction(fraction),
            None => Ok(()),
        }
    }

    /// Does an operation. An error is one of the trace: of blocks that it never allocated, or twice.
    pub fn apply(&mut self, op: &Op) -> Result<Outcome, Error> {
        let before = self.simulator.stats();
        let outcome = self.perform(op)?;
        let after = self.simulator.stats();
        let reset = matches!(op, Op::ResetAccumulated);
        self.figures
            .count(&after, if reset { &after } else { &before });
        Ok(outcome)
    }

    /// Does an allocation that failed where it was recorded: if there is memory here, it is given
    /// back at once, and counted.
    pub fn apply_failed(&mut self, op: &Op) -> Result<Outcome, Error> {
        let outcome = self.apply(op)?;
        if let (Outcome::Placed(_) | Outcome::Nothing, Op::Alloc { id, .. }) = (outcome, op) {
            self.figures.recovered += 1;
            self.simulator.free(*id)?;
            self.missing.insert(*id);
        }
        Ok(outcome)
    }

    fn perform(&mut self, op: &Op) -> Result<Outcome, Error> {
        let simulator = &mut self.simulator;
        match *op {
            Op::Alloc {
                id,
                size,
                stream,
                pool,
            } => {
                let pool = pool.map(|(first, second)| PoolId(first, second));
                pool.inspect(|pool| simulator.pool_begin(*pool));
                let placed = simulator.allocate(id, size, stream);
                pool.inspect(|pool| simulator.pool_end(*pool));
                return match placed {
                    Ok(placed) => {
                        self.missing.remove(&id);
                        Ok(placed.map_or(Outcome::Nothing, Outcome::Placed))
                    }
                    Err(error) if error.is_out_of_memory() => {
                        self.missing.insert(id);
                        Ok(Outcome::OutOfMemory)
                    }
                    Err(error) => Err(error),
                };
            }
            Op::Free { id } if self.missing.remove(&id) => return Ok(Outcome::Skipped),
            Op::Record { id, .. } if self.missing.contains(&id) => return Ok(Outcome::Skipped),
            Op::Free { id } => simulator.free(id)?,
            Op::Record { id, stream } => simulator.record(id, stream)?,
            Op::Complete { stream } => simulator.complete(stream),
            Op::EmptyCache => simulator.empty_cache(),
            Op::ResetPeak => simulator.reset_peak(),
            Op::ResetAccumulated => simulator.reset_accumulated(),
            Op::Fraction(fraction) => simulator.set_fraction(fraction)?,
            Op::Stats => {}
            Op::PoolBegin(pool) => simulator.pool_begin(PoolId(0, pool)),
            Op::PoolEnd(pool) => simulator.pool_end(PoolId(0, pool)),
            Op::PoolRelease(pool) => simulator.pool_release(PoolId(0, pool)),
        }
        Ok(Outcome::Done)
    }

    pub fn stats(&self) -> MemoryStats {
        self.simulator.stats()
    }

    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Records what is done from now on.
    pub fn record_history(&mut self, options: HistoryOptions) {
        self.simulator.record_history(Some(options));
    }

    /// Sets the time of what is done from now on.
    pub fn set_time(&mut self, time_us: u64) {
        self.simulator.set_time(time_us);
    }

    pub fn snapshot(&self) -> vkaccel::alloc::MemorySnapshot {
        self.simulator.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn alloc(id: u64, size: u64) -> Op {
        Op::Alloc {
            id,
            size,
            stream: 0,
            pool: None,
        }
    }

    fn device(total: u64) -> Device {
        Device::new(total, AllocConf::default(), Events::Immediate)
    }

    #[test]
    fn figures_follow_the_operations() {
        let mut device = device(64 * MIB);
        for op in [
            alloc(1, 20 * MIB),
            alloc(2, 20 * MIB),
            Op::Free { id: 1 },
            Op::ResetPeak,
            Op::ResetAccumulated,
            alloc(3, 30 * MIB),
        ] {
            device.apply(&op).unwrap();
        }
        let figures = device.figures();
        // The third one fits when the free segment has gone back to the driver.
        assert_eq!(figures.peak_reserved, 50 * MIB);
        assert_eq!(figures.allocated_then, 50 * MIB);
        assert_eq!((figures.retries, figures.ooms), (1, 0));
        assert_eq!((figures.segments_made, figures.segments_returned), (3, 1));
        assert!(figures.unused_at_peak().abs() < 1e-9);
        // Half of the memory was unused after three of six operations.
        assert!((figures.mean_unused() - 0.25).abs() < 1e-9);
        assert!((figures.overhead() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_there_was_no_memory_for_is_freed_without_a_word() {
        let mut device = device(10 * MIB);
        assert_eq!(
            device.apply(&alloc(1, 11 * MIB)).unwrap(),
            Outcome::OutOfMemory
        );
        let record = Op::Record { id: 1, stream: 1 };
        assert_eq!(device.apply(&record).unwrap(), Outcome::Skipped);
        assert_eq!(device.apply(&Op::Free { id: 1 }).unwrap(), Outcome::Skipped);
        assert!(device.apply(&Op::Free { id: 1 }).is_err());
        assert_eq!(device.figures().ooms, 1);
    }

    #[test]
    fn what_failed_where_it_was_recorded_is_given_back_at_once() {
        let mut device = device(64 * MIB);
        let outcome = device.apply_failed(&alloc(1, 30 * MIB)).unwrap();
        assert!(matches!(outcome, Outcome::Placed(_)));
        assert_eq!(device.stats().allocated_bytes.all.current, 0);
        assert_eq!(device.figures().peak_allocated, 30 * MIB);
        assert_eq!(device.figures().recovered, 1);
        let outcome = device.apply_failed(&alloc(2, 65 * MIB)).unwrap();
        assert_eq!(outcome, Outcome::OutOfMemory);
        assert_eq!((device.figures().recovered, device.figures().ooms), (1, 1));
        assert_eq!(device.apply(&Op::Free { id: 1 }).unwrap(), Outcome::Skipped);
    }
}
