//! Steps of requests one by one, with others in between; marks; what a caller has to wait for.

use std::cell::Cell;
use std::rc::Rc;

use super::{Addressed, Allocation, Core, Limits, Request, Source, Step};
use crate::alloc::history::Context;
use crate::alloc::ids::StreamKey;
use crate::alloc::size::MIB;
use crate::error::OutOfMemoryReason;

const OWN: StreamKey = StreamKey(0);

/// A segment that takes its bytes from the device until it is dropped.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: u64,
    used: Rc<Cell<u64>>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.used.set(self.used.get() - self.bytes);
    }
}

impl Addressed for Piece {
    fn address(&self) -> u64 {
        4096
    }
}

pub(super) struct Driver {
    total: u64,
    pub(super) used: Rc<Cell<u64>>,
    asked: Vec<u64>,
}

impl Source for Driver {
    type Segment = Piece;
    type Refusal = &'static str;

    fn create(&mut self, bytes: u64) -> Result<Piece, &'static str> {
        self.asked.push(bytes);
        if bytes > self.total - self.used.get() {
            return Err("full");
        }
        self.used.set(self.used.get() + bytes);
        Ok(Piece {
            bytes,
            used: Rc::clone(&self.used),
        })
    }

    fn held(&self) -> u64 {
        0
    }
}

/// A device whose tickets are numbers, of which those up to `reached` are.
pub(super) struct Device {
    pub(super) core: Core<Piece, u64>,
    pub(super) driver: Driver,
    pub(super) reached: u64,
    pub(super) released: Vec<Piece>,
}

impl Device {
    pub(super) fn new(total: u64, conf: &str) -> Self {
        let limits = Limits {
            total,
            largest_segment: u64::MAX,
            most_allocations: u64::MAX,
        };
        Self {
            core: Core::new(conf.parse().unwrap(), limits),
            driver: Driver {
                total,
                used: Rc::default(),
                asked: Vec::new(),
            },
            reached: 0,
            released: Vec::new(),
        }
    }

    pub(super) fn step(&mut self, request: &mut Request) -> Step<u64, &'static str> {
        let reached = self.reached;
        let is_reached = move |ticket: &u64| *ticket <= reached;
        self.core
            .allocate(request, &mut self.driver, &is_reached, &mut self.released)
    }

    /// An allocation that needs one step.
    fn allocate(&mut self, bytes: u64) -> Allocation<u64> {
        match self.step(&mut Request::new(bytes, OWN)) {
            Step::Done(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn free(&mut self, found: &Allocation<u64>, mark: u64, uses: &[(u64, u64)]) {
        let uses: Vec<_> = uses
            .iter()
            .map(|(stream, ticket)| (StreamKey(*stream), *ticket))
            .collect();
        for (stream, _) in &uses {
            self.core.record(found.block, *stream);
        }
        self.core.free(
            found.block,
            mark,
            uses,
            &Context::default(),
            &mut self.released,
        );
    }
}

/// The tickets of a step that waits.
fn waits(step: Step<u64, &'static str>) -> Vec<u64> {
    match step {
        Step::Wait(tickets) => tickets,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_released_is_dropped_by_the_caller_before_the_driver_is_asked_again() {
    let mut device = Device::new(22 * MIB, "");
    let found = device.allocate(5 * MIB);
    device.free(&found, 1, &[]);
    let mut request = Request::new(21 * MIB, OWN);
    assert_eq!(waits(device.step(&mut request)), []);
    assert_eq!(device.released.len(), 1);
    assert_eq!(device.driver.used.get(), 20 * MIB);
    device.released.clear();
    assert!(matches!(device.step(&mut request), Step::Done(_)));
    assert_eq!(device.driver.asked, [20 * MIB, 22 * MIB, 22 * MIB]);
    let stats = device.core.stats();
    assert_eq!(
        (stats.num_alloc_retries, stats.num_sync_all_streams),
        (1, 1)
    );
}

#[test]
fn a_full_device_waits_for_the_last_ticket_of_each_stream() {
    let mut device = Device::new(60 * MIB, "");
    let blocks = [(); 3].map(|()| device.allocate(20 * MIB));
    device.free(&blocks[0], 1, &[(1, 10), (2, 30)]);
    device.free(&blocks[1], 1, &[(1, 20)]);
    let mut request = Request::new(40 * MIB, OWN);
    assert_eq!(waits(device.step(&mut request)), [20, 30]);
    device.reached = 30;
    assert_eq!(waits(device.step(&mut request)), []);
    assert_eq!(device.released.len(), 2);
    device.released.clear();
    assert!(matches!(device.step(&mut request), Step::Done(_)));
}

#[test]
fn what_others_free_meanwhile_is_found_without_asking_the_driver() {
    let mut device = Device::new(20 * MIB, "");
    let [pending, other, _last] = [9, 5, 5].map(|mib| device.allocate(mib * MIB));
    device.free(&pending, 1, &[(1, 10)]);
    let mut request = Request::new(5 * MIB, OWN);
    assert_eq!(waits(device.step(&mut request)), [10]);
    // Without the lock another thread gives its block back.
    device.free(&other, 7, &[]);
    match device.step(&mut request) {
        Step::Done(found) => assert_eq!((found.offset, found.mark), (other.offset, 7)),
        other => panic!("{other:?}"),
    }
    assert_eq!(device.core.stats().num_alloc_retries, 0);
}

#[test]
fn what_a_pressure_callback_frees_serves_the_request_and_no_error_is_counted() {
    let mut device = Device::new(40 * MIB, "");
    let large = device.allocate(40 * MIB);
    let mut request = Request::new(30 * MIB, OWN);
    match device.step(&mut request) {
        Step::Exhausted { figures, refusal } => {
            assert_eq!(refusal, Some("full"));
            assert_eq!(figures.reason, OutOfMemoryReason::FullNow);
            assert_eq!((figures.requested, figures.allocated), (30 * MIB, 40 * MIB));
        }
        other => panic!("{other:?}"),
    }
    device.free(&large, 1, &[]);
    assert!(matches!(device.step(&mut request), Step::Done(_)));
    let stats = device.core.stats();
    assert_eq!((stats.num_ooms, stats.num_alloc_retries), (0, 1));
}

#[test]
fn a_request_that_failed_can_fail_again_and_is_one_error() {
    let mut device = Device::new(40 * MIB, "");
    let _held = device.allocate(40 * MIB);
    let mut request = Request::new(30 * MIB, StreamKey(9));
    for _ in 0..3 {
        assert!(matches!(device.step(&mut request), Step::Exhausted { .. }));
    }
    device.core.give_up(&request);
    assert_eq!(device.core.stats().num_ooms, 1);
    assert_eq!(device.core.stats().num_alloc_retries, 3);
    // A stream that got nothing leaves nothing behind.
    assert_eq!(device.core.shelves.iter().count(), 1);
}

#[test]
fn a_driver_that_refuses_what_should_fit_is_told_from_a_full_one() {
    let mut device = Device::new(40 * MIB, "");
    device.driver.total = 10 * MIB;
    let mut request = Request::new(15 * MIB, OWN);
    match device.step(&mut request) {
        Step::Exhausted { figures, .. } => {
            assert_eq!(figures.reason, OutOfMemoryReason::RefusedByDriver);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn marks_go_with_the_memory_and_the_highest_one_stays() {
    let mut device = Device::new(40 * MIB, "");
    let blocks = [(); 4].map(|()| device.allocate(5 * MIB));
    assert_eq!(blocks.each_ref().map(|found| found.mark), [0; 4]);
    for (found, mark) in blocks.iter().zip([3, 9, 2, 1]) {
        device.free(found, mark, &[]);
    }
    let halves = [(); 2].map(|()| device.allocate(10 * MIB));
    assert_eq!(halves.each_ref().map(|found| found.mark), [9, 9]);
    // A block keeps the highest mark that it was ever given back with.
    device.free(&halves[0], 5, &[]);
    assert_eq!(device.allocate(10 * MIB).mark, 9);
}

#[test]
fn reused_pending_memory_comes_with_the_tickets_to_wait_for() {
    let mut device = Device::new(40 * MIB, "cross_stream_reuse:True");
    let found = device.allocate(20 * MIB);
    device.free(&found, 4, &[(1, 10), (2, 20)]);
    let part = device.allocate(5 * MIB);
    assert_eq!((part.offset, part.mark, part.waits), (0, 4, vec![10, 20]));
    // The rest waits still, for both.
    device.reached = 10;
    let more = device.allocate(5 * MIB);
    assert_eq!((more.offset, more.waits), (5 * MIB, vec![20]));
    device.reached = 20;
    let last = device.allocate(10 * MIB);
    assert_eq!((last.offset, last.waits), (10 * MIB, vec![]));
}

#[test]
fn the_largest_fitting_pending_block_is_left_for_larger_requests() {
    let mut device = Device::new(80 * MIB, "cross_stream_reuse:True");
    let (large, small) = (device.allocate(40 * MIB), device.allocate(20 * MIB));
    device.free(&large, 1, &[(1, 10)]);
    device.free(&small, 1, &[(1, 20)]);
    let found = device.allocate(18 * MIB);
    assert_eq!((found.rank, found.waits), (small.rank, vec![20]));
}

#[test]
fn recorded_streams_are_told_once_each_and_forgotten_when_the_block_is_free() {
    let mut device = Device::new(40 * MIB, "");
    let found = device.allocate(MIB);
    for stream in [2, 0, 1, 2] {
        device.core.record(found.block, StreamKey(stream));
    }
    assert_eq!(
        device.core.recorded(found.block),
        [StreamKey(2), StreamKey(1)]
    );
    device.free(&found, 1, &[]);
    let found = device.allocate(MIB);
    assert_eq!(device.core.recorded(found.block), []);
}

#[test]
fn emptying_the_cache_waits_first_and_returns_whole_segments() {
    let mut device = Device::new(80 * MIB, "");
    let blocks = [20, 5, 5].map(|mib| device.allocate(mib * MIB));
    device.free(&blocks[0], 1, &[(1, 10)]);
    device.free(&blocks[1], 1, &[]);
    assert_eq!(device.core.empty_cache_begin(), [10]);
    device.reached = 10;
    let context = Context::default();
    let mut released = Vec::new();
    device
        .core
        .empty_cache_end(&|ticket| *ticket <= 10, &context, &mut released);
    assert_eq!(released.len(), 1);
    drop(released);
    assert_eq!(device.driver.used.get(), 20 * MIB);
    let stats = device.core.stats();
    assert_eq!((stats.num_sync_all_streams, stats.num_device_free), (1, 1));
}

#[test]
fn collected_segments_go_back_before_the_driver_is_asked() {
    let conf = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9";
    let mut device = Device::new(100 * MIB, conf);
    let found = device.allocate(60 * MIB);
    device.free(&found, 1, &[]);
    let mut request = Request::new(61 * MIB, OWN);
    assert_eq!(waits(device.step(&mut request)), []);
    assert_eq!(device.released.len(), 1);
    device.released.clear();
    assert!(matches!(device.step(&mut request), Step::Done(_)));
    let stats = device.core.stats();
    assert_eq!((stats.num_device_free, stats.num_alloc_retries), (1, 0));
}
