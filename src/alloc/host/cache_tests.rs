//! What the cache of host memory promises, one case each.

use core::time::Duration;

use super::{HostBlock, HostCache, HostConf, HostRequest, HostStep};

const MIB: u64 = 1 << 20;

/// A segment is a number, a ticket one that is reached once `done` is as high.
struct Host {
    cache: HostCache<u8, u32, u64>,
    done: u64,
    made: u32,
    /// How many bytes the driver has.
    driver: u64,
    released: Vec<u32>,
    waits: u32,
}

type Block = HostBlock<u8, u32>;

impl Host {
    fn new() -> Self {
        Self::with(HostConf::default())
    }

    fn with(conf: HostConf) -> Self {
        Self {
            cache: HostCache::new(conf),
            done: 0,
            made: 0,
            driver: u64::MAX,
            released: Vec::new(),
            waits: 0,
        }
    }

    fn held(&self) -> u64 {
        self.cache.stats().allocated_bytes.current
    }

    fn active(&self) -> (u64, u64) {
        let stats = self.cache.stats();
        (stats.active_requests.current, stats.active_bytes.current)
    }

    fn take(&mut self, key: u8, bytes: u64) -> Result<Block, &'static str> {
        let mut request = HostRequest::new(key, bytes, u64::MAX - 1);
        loop {
            let done = self.done;
            let reached = |ticket: &u64| *ticket <= done;
            let step = self
                .cache
                .allocate(&mut request, &reached, &mut self.released);
            match step {
                HostStep::Done(block) => return Ok(block),
                HostStep::Create(size) if self.held() + size <= self.driver => {
                    self.made += 1;
                    let time = Duration::from_micros(1);
                    return Ok(self.cache.created(&request, size, self.made, time));
                }
                HostStep::Create(size) => self.cache.refused(&mut request, size),
                HostStep::Wait(tickets) => {
                    self.waits += 1;
                    self.done = tickets.into_iter().max().unwrap();
                }
                HostStep::OverLimit(_) => return Err("over the limit"),
                HostStep::Refused => return Err("refused"),
                HostStep::NeverFits => return Err("never fits"),
            }
        }
    }

    fn free(&mut self, block: Block, uses: &[u64]) {
        self.cache.free(block, uses.to_vec(), &mut self.released);
    }

    fn empty(&mut self) {
        let done = self.done;
        self.cache
            .empty(|_| true, &|ticket| *ticket <= done, &mut self.released);
    }
}

#[test]
fn thirty_two_mib_and_a_page_cost_64_kib_more_at_most() {
    let mut host = Host::new();
    let large = host.take(0, 33_558_528).unwrap();
    assert_eq!(host.held(), 33_619_968);
    let segment = large.segment;
    host.free(large, &[]);
    let small = host.take(0, 10_240).unwrap();
    let large = host.take(0, 33_558_528).unwrap();
    assert_eq!(large.segment, segment);
    assert!(host.held() <= 33_619_968 + 65_536);
    host.free(small, &[]);
    host.free(large, &[]);
    host.empty();
    assert_eq!((host.held(), host.released.len()), (0, 2));
}

#[test]
fn a_block_serves_again_when_its_last_use_is_reached() {
    let mut host = Host::new();
    let block = host.take(0, MIB).unwrap();
    let segment = block.segment;
    host.free(block, &[1, 3]);
    assert_eq!(host.active(), (1, MIB));
    host.done = 2;
    let other = host.take(0, MIB).unwrap();
    assert_ne!(other.segment, segment);
    host.done = 3;
    assert_eq!(host.take(0, MIB).unwrap().segment, segment);
    assert_eq!(host.waits, 0);
}

#[test]
fn blocks_of_one_key_never_serve_another() {
    let mut host = Host::new();
    let block = host.take(0, MIB).unwrap();
    host.free(block, &[]);
    let other = host.take(1, MIB).unwrap();
    assert_eq!((other.segment, host.made), (2, 2));
}

#[test]
fn the_best_fit_serves_and_the_newest_of_equals() {
    let mut host = Host::new();
    let sizes = [20 * MIB, 16 * MIB, 16 * MIB, 18 * MIB];
    let blocks = sizes.map(|size| host.take(0, size).unwrap());
    for block in blocks {
        host.free(block, &[]);
    }
    assert_eq!(host.take(0, 16 * MIB).unwrap().segment, 3);
    assert_eq!(host.take(0, 16 * MIB).unwrap().segment, 2);
    assert_eq!(host.take(0, 16 * MIB).unwrap().segment, 4);
    // An eighth more would not do for the block of 20 MiB.
    assert_eq!(host.take(0, 16 * MIB).unwrap().segment, 5);
}

#[test]
fn emptying_leaves_what_commands_use() {
    let mut host = Host::new();
    let (used, free) = (host.take(0, MIB).unwrap(), host.take(0, MIB).unwrap());
    host.free(used, &[5]);
    host.free(free, &[]);
    host.empty();
    assert_eq!((host.held(), host.released.as_slice()), (MIB, &[2][..]));
    host.done = 5;
    host.empty();
    assert_eq!(host.held(), 0);
}

#[test]
fn a_limit_is_kept_to_the_byte_and_cached_blocks_make_way() {
    let mut host = Host::new();
    host.cache.set_limit(Some(4 * MIB));
    let block = host.take(0, 3 * MIB).unwrap();
    assert_eq!(host.take(0, MIB + 1), Err("over the limit"));
    let exact = host.take(0, MIB).unwrap();
    host.free(block, &[]);
    let other = host.take(1, 3 * MIB).unwrap();
    assert_eq!(host.released, [1]);
    host.free(exact, &[7]);
    host.free(other, &[8]);
    assert!(host.take(0, 4 * MIB).is_ok());
    assert_eq!((host.waits, host.held()), (1, 4 * MIB));
    host.cache.set_limit(None);
    assert!(host.take(0, 64 * MIB).is_ok());
}

#[test]
fn a_driver_that_refuses_is_asked_again_once_there_is_more() {
    let mut host = Host::new();
    host.driver = 4 * MIB;
    let (one, two) = (
        host.take(0, 2 * MIB).unwrap(),
        host.take(0, 2 * MIB).unwrap(),
    );
    host.free(one, &[]);
    host.free(two, &[9]);
    let block = host.take(0, 4 * MIB).unwrap();
    assert_eq!((host.waits, host.done, host.made), (1, 9, 3));
    assert_eq!(host.take(0, 1), Err("refused"));
    host.free(block, &[]);
    assert_eq!(host.take(0, u64::MAX), Err("never fits"));
    assert_eq!(host.take(0, 5 * MIB), Err("refused"));
    assert_eq!(host.cache.stats().active_requests.current, 0);
    assert!(host.take(0, 1).is_ok());
}

#[test]
fn rounding_never_goes_past_what_a_segment_can_have() {
    let mut host = Host::new();
    let most = 2 * MIB + 1;
    let mut request = HostRequest::new(0, most, most);
    let step = host
        .cache
        .allocate(&mut request, &|_| true, &mut Vec::new());
    assert!(matches!(step, HostStep::Create(size) if size == most));
}

#[test]
fn blocks_above_the_largest_cached_size_go_back_at_once() {
    let mut host = Host::with(HostConf {
        max_cached_size: Some(MIB),
        ..HostConf::default()
    });
    let (kept, large) = (host.take(0, MIB).unwrap(), host.take(0, MIB + 1).unwrap());
    host.free(kept, &[]);
    host.free(large, &[2]);
    assert_eq!(host.released, []);
    host.done = 2;
    host.cache
        .collect(&|ticket| *ticket <= 2, &mut host.released);
    assert_eq!((host.released.as_slice(), host.held()), (&[2][..], MIB));
}
