//! The allocator beside a naive one, which follows the same rules in the plainest way: the same
//! placements, the same segments and blocks, the same statistics, through random operations.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "sizes here are far below the limits of f64"
)]

mod model;

use std::sync::Mutex;

use model::{MIB, Model, told};
use vkaccel::alloc::{Events, PoolId, Simulator};

/// A small generator of numbers that are random enough (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % limit
    }

    /// Sizes around the bounds of the rules, and of all magnitudes.
    fn size(&mut self) -> u64 {
        const BOUNDS: [u64; 12] = [
            1,
            511,
            512,
            513,
            MIB,
            MIB + 1,
            3 * MIB,
            10 * MIB - 1,
            10 * MIB,
            21 * MIB,
            64 * MIB,
            20 * MIB - 512,
        ];
        if self.below(3) == 0 {
            return BOUNDS[self.below(12) as usize];
        }
        let power = self.below(25);
        (1 << power) + self.below(1 << power)
    }
}

/// A kind of run.
#[derive(Clone, Copy)]
struct Kind {
    conf: &'static str,
    total_mib: u64,
    streams: u64,
    events: Events,
    pools: u64,
    /// Whether limits come and go.
    limits: bool,
}

const PLAIN: Kind = Kind {
    conf: "",
    total_mib: 4096,
    streams: 1,
    events: Events::Immediate,
    pools: 0,
    limits: false,
};

const KINDS: &[Kind] = &[
    PLAIN,
    Kind {
        total_mib: 96,
        ..PLAIN
    },
    Kind {
        streams: 4,
        events: Events::Hold,
        ..PLAIN
    },
    Kind {
        total_mib: 100,
        streams: 3,
        events: Events::Hold,
        pools: 2,
        limits: true,
        ..PLAIN
    },
    Kind {
        conf: "roundup_power2_divisions:[1:2,4:8,>:4]",
        total_mib: 128,
        streams: 2,
        ..PLAIN
    },
    Kind {
        conf: "max_split_size_mb:24",
        total_mib: 120,
        streams: 2,
        events: Events::Hold,
        ..PLAIN
    },
    Kind {
        conf: "max_split_size_mb:40,max_non_split_rounding_mb:30,large_segment_size_mb:32",
        total_mib: 150,
        limits: true,
        ..PLAIN
    },
    Kind {
        conf: "garbage_collection_threshold:0.6",
        total_mib: 120,
        streams: 2,
        events: Events::Hold,
        pools: 1,
        limits: true,
    },
    Kind {
        conf: "garbage_collection_threshold:0.9,max_split_size_mb:30,roundup_power2_divisions:4",
        total_mib: 200,
        streams: 3,
        limits: true,
        ..PLAIN
    },
];

/// Both allocators, and what is allocated.
struct Pair {
    device: Simulator,
    model: Model,
    numbers: Numbers,
    live: Vec<u64>,
    next: u64,
    route: Option<u64>,
}

impl Pair {
    fn new(kind: Kind, seed: u64) -> Self {
        let total = kind.total_mib * MIB;
        let conf: vkaccel::alloc::AllocConf = kind.conf.parse().unwrap();
        let immediate = kind.events == Events::Immediate;
        Self {
            device: Simulator::new(total, conf.clone()).with_events(kind.events),
            model: Model::new(total, conf, immediate),
            numbers: Numbers(seed * 2 + 1),
            live: Vec::new(),
            next: 1,
            route: None,
        }
    }

    fn step(&mut self, kind: Kind) {
        let Self { device, model, .. } = self;
        match self.numbers.below(1000) {
            0..20 => self.empty_cache(),
            20..25 => {
                device.reset_peak();
                model.reset_peak();
            }
            25..28 => {
                device.reset_accumulated();
                model.reset_accumulated();
            }
            28..60 => {
                let stream = self.numbers.below(kind.streams);
                device.complete(stream);
                model.complete(stream);
            }
            60..70 if kind.limits => {
                let fraction = 0.5 + self.numbers.below(6) as f64 / 10.0;
                device.set_fraction(fraction).unwrap();
                model.set_fraction(fraction);
            }
            70..80 if kind.limits => {
                let limit = self.numbers.below(kind.total_mib * 2);
                let limit = Some(limit * MIB).filter(|limit| *limit > kind.total_mib * MIB / 3);
                device.set_limit(limit);
                model.set_limit(limit);
            }
            80..110 if kind.pools > 0 => self.route(kind.pools),
            110..180 if kind.streams > 1 && !self.live.is_empty() => {
                let id = self.live[self.numbers.below(self.live.len() as u64) as usize];
                let stream = self.numbers.below(kind.streams);
                device.record(id, stream).unwrap();
                model.record(id, stream);
            }
            choice => {
                // Memory fills up over long stretches, and empties again.
                let grows = (self.next / 64).is_multiple_of(2);
                let allocates = choice % 100 < if grows { 65 } else { 40 };
                if (allocates || self.live.is_empty()) && self.live.len() < 200 {
                    self.allocate(kind.streams);
                } else {
                    self.next += 1;
                    self.free();
                }
            }
        }
    }

    fn allocate(&mut self, streams: u64) {
        let (id, stream) = (self.next, self.numbers.below(streams));
        let bytes = self.numbers.size();
        self.next += 1;
        let found = self.device.allocate(id, bytes, stream);
        let expected = self.model.allocate(id, bytes, stream, self.route);
        match (found, expected) {
            (Ok(Some(placed)), Ok(expected)) => {
                assert_eq!(told(&placed), expected);
                self.live.push(id);
            }
            (Err(error), Err(reason)) => {
                let figures = error.out_of_memory().unwrap();
                assert_eq!(figures.reason, reason);
                assert_eq!(figures.requested, bytes);
            }
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    fn free(&mut self) {
        let place = self.numbers.below(self.live.len() as u64) as usize;
        let id = self.live.swap_remove(place);
        self.device.free(id).unwrap();
        self.model.free(id);
    }

    fn route(&mut self, pools: u64) {
        let pool = self.numbers.below(pools);
        match self.route.take() {
            Some(pool) => self.device.pool_end(PoolId(0, pool + 1)),
            None if self.numbers.below(3) == 0 => {
                self.device.pool_release(PoolId(0, pool + 1));
                self.model.let_go(pool);
            }
            None => {
                self.device.pool_begin(PoolId(0, pool + 1));
                self.model.hold(pool);
                self.route = Some(pool);
            }
        }
    }

    fn empty_cache(&mut self) {
        self.device.empty_cache();
        self.model.empty_cache();
    }

    fn check(&self) {
        self.model.check_stats(&self.device.stats());
        self.model.check_blocks(&self.device.snapshot());
    }

    /// Gives everything back: nothing is left.
    fn end(mut self, kind: Kind) {
        while !self.live.is_empty() {
            self.free();
        }
        for pool in 0..kind.pools {
            self.device.pool_release(PoolId(0, pool + 1));
            self.model.let_go(pool);
        }
        self.empty_cache();
        self.check();
        assert!(self.model.segments.is_empty());
        let stats = self.device.stats();
        assert_eq!(stats.reserved_bytes.all.current, 0);
        assert_eq!(stats.active.all.current, 0);
    }
}

/// Runs each kind for a number of steps, and checks after each of them.
fn run(steps: u64, seeds: u64) {
    for (place, kind) in (1..).zip(KINDS) {
        for seed in 0..seeds {
            let mut pair = Pair::new(*kind, place * 1000 + seed);
            let (mut ooms, mut retries) = (0, 0);
            for step in 0..steps {
                let before = pair.model.counters;
                pair.step(*kind);
                let describe = || format!("{:?}, seed {seed}, step {step}", kind.conf);
                let checked =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pair.check()));
                assert!(checked.is_ok(), "{}", describe());
                ooms += pair.model.counters[1].saturating_sub(before[1]);
                retries += pair.model.counters[0].saturating_sub(before[0]);
            }
            // Where memory is short, it did run out, and was found again by giving back.
            if kind.total_mib <= 512 {
                assert!(
                    ooms > 0 && retries > ooms,
                    "{ooms} errors, {retries} retries"
                );
            }
            pair.end(*kind);
        }
    }
}

/// The same from four threads, which take turns at one lock in no order of ours.
fn run_threads(steps: u64) {
    for (seed, kind) in (77..).zip(KINDS) {
        let pair = Mutex::new(Pair::new(*kind, seed));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for step in 0..steps {
                        let mut pair = pair.lock().unwrap();
                        pair.step(*kind);
                        if step % 8 == 0 {
                            pair.check();
                        }
                    }
                });
            }
        });
        pair.into_inner().unwrap().end(*kind);
    }
}

#[test]
fn threads_at_one_lock_do_and_count_what_the_plain_rules_say() {
    run_threads(200);
}

#[test]
fn random_operations_do_and_count_what_the_plain_rules_say() {
    run(2000, 1);
}

#[test]
#[ignore = "a million operations take a minute or two"]
fn a_million_operations_do_and_count_what_the_plain_rules_say() {
    run(28_000, 4);
    run_threads(2000);
}
