//! Random requests against what must hold of any cache, in many orders.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use super::{HostBlock, HostCache, HostConf, HostRequest, HostStep};

/// A generator of numbers (xorshift with a multiplication).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// Who has a segment.
#[derive(Debug, PartialEq)]
enum Owner {
    User,
    /// Given back, free once all of these are reached.
    Cache(Vec<u64>),
}

struct Model {
    random: Random,
    cache: HostCache<u8, u64, u64>,
    conf: HostConf,
    limit: u64,
    reached: BTreeSet<u64>,
    tickets: u64,
    made: u64,
    /// Every segment that is held, with its key, its size and its owner.
    held: BTreeMap<u64, (u8, u64, Owner)>,
    users: Vec<HostBlock<u8, u64>>,
    freed: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut maybe = |size: u64| (random.below(2) == 0).then_some(size);
        let conf = HostConf {
            max_round_threshold: maybe(1 << 20),
            max_cached_size: maybe(2 << 20),
        };
        Self {
            random,
            cache: HostCache::new(conf),
            conf,
            limit: u64::MAX,
            reached: BTreeSet::new(),
            tickets: 0,
            made: 0,
            held: BTreeMap::new(),
            users: Vec::new(),
            freed: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0..=6 => self.allocate(),
            7..=12 if !self.users.is_empty() => {
                let index = self.random.below(self.users.len() as u64);
                self.free(usize::try_from(index).unwrap());
            }
            7..=13 => {
                let ticket = self.random.below(self.tickets + 1);
                self.reached.insert(ticket);
            }
            14 => {
                self.limit = match self.random.below(3) {
                    0 => u64::MAX,
                    _ => self.random.below(64 << 20),
                };
                let limit = (self.limit < u64::MAX).then_some(self.limit);
                self.cache.set_limit(limit);
            }
            _ => {
                let mut released = Vec::new();
                let reached = &self.reached;
                self.cache
                    .empty(|_| true, &|ticket| reached.contains(ticket), &mut released);
                self.let_go(released);
                let is_left = |(_, _, owner): &(u8, u64, Owner)| match owner {
                    Owner::User => true,
                    Owner::Cache(uses) => !uses.iter().all(|use_| self.reached.contains(use_)),
                };
                assert!(self.held.values().all(is_left), "a free block was left");
            }
        }
        self.check();
    }

    fn allocate(&mut self) {
        let shift = self.random.below(23);
        let bytes = 1 + self.random.below(1 << shift);
        let key = u8::try_from(self.random.below(2)).unwrap();
        let refuses = self.random.below(8) == 0;
        let mut request = HostRequest::new(key, bytes, u64::MAX);
        let mut steps = 0;
        let block = loop {
            steps += 1;
            assert!(steps < 8, "no end");
            let mut released = Vec::new();
            let reached = &self.reached;
            let step = self.cache.allocate(
                &mut request,
                &|ticket| reached.contains(ticket),
                &mut released,
            );
            self.let_go(released);
            match step {
                HostStep::Done(block) => break block,
                HostStep::Create(size) if refuses => self.cache.refused(&mut request, size),
                HostStep::Create(size) => {
                    assert!(self.sum(|_| true) + size <= self.limit, "above the limit");
                    self.made += 1;
                    let block = self
                        .cache
                        .created(&request, size, self.made, Duration::ZERO);
                    self.held
                        .insert(self.made, (key, size, Owner::Cache(Vec::new())));
                    break block;
                }
                HostStep::Wait(tickets) => self.reached.extend(tickets),
                HostStep::OverLimit(size) => {
                    let busy = self.sum(|owner| *owner == Owner::User);
                    return assert!(busy + size > self.limit, "there was room");
                }
                HostStep::Refused => return assert!(refuses),
                HostStep::NeverFits => panic!("{bytes} fit"),
            }
        };
        let (of, size, owner) = self.held.get_mut(&block.segment).unwrap();
        assert_eq!((*of, *size), (key, block.size));
        assert!(bytes <= block.size, "too small");
        let own = self.conf.block_size(bytes).unwrap();
        assert!(block.size <= own + own / 8, "{bytes} in {}", block.size);
        match core::mem::replace(owner, Owner::User) {
            Owner::User => panic!("handed out twice"),
            Owner::Cache(uses) => assert!(uses.iter().all(|use_| self.reached.contains(use_))),
        }
        self.users.push(block);
    }

    fn free(&mut self, index: usize) {
        let block = self.users.swap_remove(index);
        let uses: Vec<u64> = (0..self.random.below(3)).map(|_| self.ticket()).collect();
        let mut released = Vec::new();
        self.held.get_mut(&block.segment).unwrap().2 = Owner::Cache(uses.clone());
        self.cache.free(block, uses, &mut released);
        self.let_go(released);
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn let_go(&mut self, released: Vec<u64>) {
        for segment in released {
            self.freed += 1;
            match self.held.remove(&segment) {
                Some((_, _, Owner::Cache(uses))) => {
                    assert!(uses.iter().all(|use_| self.reached.contains(use_)));
                }
                other => panic!("{other:?} was released"),
            }
        }
    }

    fn sum(&self, passes: impl Fn(&Owner) -> bool) -> u64 {
        let sizes = self.held.values().filter(|(_, _, owner)| passes(owner));
        sizes.map(|(_, size, _)| size).sum()
    }

    fn check(&self) {
        let stats = self.cache.stats();
        assert_eq!(stats.allocations.current, self.held.len() as u64);
        assert_eq!(stats.allocated_bytes.current, self.sum(|_| true));
        assert_eq!(stats.num_host_alloc, self.made);
        assert_eq!(stats.num_host_free, self.freed);
        // What is pending counts as active until somebody looks.
        let users = self.users.len() as u64;
        let used = self.held.values().filter(|(_, _, owner)| match owner {
            Owner::User => true,
            Owner::Cache(uses) => !uses.is_empty(),
        });
        let active = stats.active_requests.current;
        assert!((users..=used.count() as u64).contains(&active));
        assert!(stats.active_bytes.current <= stats.allocated_bytes.current);
    }
}

#[test]
fn no_block_is_lost_shared_or_early_in_any_order() {
    for seed in 0..24 {
        let mut model = Model::new(seed);
        for _ in 0..4000 {
            model.step();
        }
    }
}
