//! What staging promises, on numbers in place of memory and tickets.

use std::collections::BTreeMap;

use super::*;

/// A segment is a number, a ticket one that is reached once `done` is as high.
struct Sim {
    ring: Ring<u32, u64>,
    done: u64,
    made: u32,
    /// How many bytes the driver has.
    driver: u64,
    released: Vec<u32>,
    polls: u32,
    waited: Vec<u64>,
}

impl Sim {
    fn new() -> Self {
        let mut ring = Ring::new();
        ring.reserve(0);
        Self {
            ring,
            done: 0,
            made: 0,
            driver: u64::MAX,
            released: Vec::new(),
            polls: 0,
            waited: Vec::new(),
        }
    }

    /// A piece; none where others hold all there is.
    fn take(&mut self, owner: u64, bytes: u64) -> Option<Place<u32>> {
        let mut wish = Wish::new(owner, bytes);
        loop {
            let done = self.done;
            let reached = |ticket: &u64| *ticket <= done;
            match self.ring.take(&wish, &reached, &mut self.released) {
                RingStep::Done(place) => return Some(place),
                RingStep::Poll(_) => {
                    assert!(!wish.polled);
                    self.polls += 1;
                    wish.polled = true;
                }
                RingStep::Create(size) if self.ring.held() > self.driver => {
                    self.ring.refused(size);
                    wish.refused = true;
                }
                RingStep::Create(size) => {
                    self.made += 1;
                    return Some(self.ring.created(&wish, size, self.made));
                }
                RingStep::Wait(ticket) => {
                    assert!(ticket > self.done);
                    self.waited.push(ticket);
                    self.done = ticket;
                }
                RingStep::Busy => return None,
                RingStep::Exhausted => panic!("nothing is left"),
            }
        }
    }

    /// A piece that a command up to `ticket` uses.
    fn use_for(&mut self, owner: u64, bytes: u64, ticket: u64) -> Place<u32> {
        let place = self.take(owner, bytes).unwrap();
        self.ring.used(place.chunk, ticket, ticket);
        self.ring.let_go(place.chunk);
        place
    }
}

#[test]
fn small_pieces_follow_each_other_in_one_chunk() {
    let mut sim = Sim::new();
    let places = [4, 300, 4].map(|bytes| sim.use_for(1, bytes, 1));
    assert_eq!(places.map(|place| place.offset), [0, 256, 768]);
    assert_eq!((sim.made, sim.polls, sim.ring.held()), (0, 0, CHUNK_MIN));
}

#[test]
fn chunks_come_back_when_their_newest_use_is_reached() {
    let mut sim = Sim::new();
    let first = sim.use_for(1, CHUNK_MAX, 5);
    sim.ring.used(first.chunk, 7, 7);
    sim.done = 6;
    let other = sim.use_for(1, CHUNK_MAX, 8);
    assert_ne!(other.segment, first.segment);
    sim.done = 7;
    assert_eq!(sim.use_for(2, CHUNK_MAX, 9).segment, first.segment);
    assert!(sim.waited.is_empty());
}

#[test]
fn a_chunk_of_which_somebody_holds_a_piece_is_not_free() {
    let mut sim = Sim::new();
    let held = sim.take(1, CHUNK_MAX).unwrap();
    let other = sim.take(2, CHUNK_MAX).unwrap();
    assert_ne!(held.segment, other.segment);
    sim.ring.let_go(held.chunk);
    assert_eq!(sim.take(2, CHUNK_MAX).unwrap().segment, held.segment);
}

#[test]
fn a_stream_waits_for_its_own_oldest_chunk_only() {
    let mut sim = Sim::new();
    sim.use_for(2, CHUNK_MAX, 1);
    for ticket in 10..40 {
        sim.use_for(1, CHUNK_MAX, ticket);
        assert!(sim.ring.held() <= BOUND);
    }
    // Seven chunks beside that of the other stream, and the reserve.
    assert_eq!(sim.made, 8);
    assert!(sim.waited.len() >= 20 && sim.waited.is_sorted());
    assert_eq!(sim.waited[0], 10);
}

#[test]
fn a_stream_without_a_chunk_gets_one_although_others_have_all() {
    let mut sim = Sim::new();
    while sim.ring.held() + CHUNK_MAX <= BOUND {
        sim.use_for(1, CHUNK_MAX, 100);
    }
    for owner in 2..40 {
        let place = sim.use_for(owner, CHUNK_MAX, 100);
        assert!(place.len >= CHUNK_MIN);
    }
    assert!(sim.waited.is_empty());
    assert!(sim.ring.held() > BOUND && sim.ring.held() < BOUND + 40 * CHUNK_MIN);
    sim.done = 100;
    sim.take(1, 1).unwrap();
    assert!(sim.ring.held() <= BOUND);
}

#[test]
fn the_reserve_serves_where_the_driver_has_nothing() {
    let mut sim = Sim::new();
    sim.driver = CHUNK_MIN;
    let place = sim.use_for(1, CHUNK_MAX, 3);
    assert_eq!((place.len, place.segment), (CHUNK_MIN, 0));
    // Another stream's use is waited for where there is nothing else.
    assert_eq!(sim.use_for(2, CHUNK_MAX, 4).len, CHUNK_MIN);
    assert_eq!(sim.waited, [3]);
    sim.done = 4;
    let held = sim.take(1, 100).unwrap();
    assert_eq!(sim.take(2, 100), None);
    sim.ring.let_go(held.chunk);
    assert!(sim.take(2, 100).is_some());
}

#[test]
fn without_any_memory_there_is_nothing_to_wait_for() {
    let mut ring = Ring::<u32, u64>::new();
    let mut wish = Wish::new(1, 100);
    let take = |ring: &mut Ring<u32, u64>, wish: &Wish| ring.take(wish, &|_| true, &mut Vec::new());
    assert_eq!(take(&mut ring, &wish), RingStep::Create(CHUNK_MIN));
    ring.refused(CHUNK_MIN);
    wish.refused = true;
    assert_eq!(take(&mut ring, &wish), RingStep::Exhausted);
    assert!(!ring.has_reserve() && ring.held() == 0);
    ring.reserve(0);
    assert!(matches!(take(&mut ring, &wish), RingStep::Done(_)));
}

#[test]
fn trimming_leaves_the_reserve_and_what_is_used() {
    let mut sim = Sim::new();
    let used = sim.use_for(1, CHUNK_MAX, 5);
    sim.use_for(2, CHUNK_MAX, 2);
    sim.done = 2;
    sim.ring.trim(&|ticket| *ticket <= 2, &mut sim.released);
    assert_eq!(sim.released, [2]);
    assert_eq!(sim.ring.held(), CHUNK_MIN + CHUNK_MAX);
    sim.ring.trim(&|_| true, &mut sim.released);
    assert_eq!(sim.released, [2, used.segment]);
    assert_eq!(sim.ring.held(), CHUNK_MIN);
}

#[test]
fn no_piece_overlaps_another_that_is_in_use() {
    let mut random = 1u64;
    let mut below = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % bound
    };
    let mut sim = Sim::new();
    let mut ticket = 0;
    // Pieces by segment and offset, with their end and ticket.
    let mut live: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
    for _ in 0..5_000 {
        sim.driver = if below(20) == 0 { 0 } else { u64::MAX };
        let shift = below(24);
        let bytes = 1 + below(1 << shift);
        let owner = below(5);
        ticket += 1;
        let place = sim.use_for(owner, bytes, ticket);
        assert!(
            place.len == bytes || place.len >= CHUNK_MIN,
            "{place:?} of {bytes}"
        );
        let done = sim.done;
        live.retain(|_, (_, ticket)| *ticket > done);
        let range = (place.segment, 0)..(place.segment, place.offset + place.len);
        if let Some((before, (end, _))) = live.range(range).next_back() {
            assert!(*end <= place.offset, "{before:?} to {end}, {place:?}");
        }
        live.insert(
            (place.segment, place.offset),
            (place.offset + place.len, ticket),
        );
        if below(3) == 0 {
            sim.done += below(ticket - sim.done + 1);
        }
    }
}

#[test]
fn an_older_use_that_is_told_of_late_does_not_hide_a_newer_one() {
    let mut sim = Sim::new();
    let place = sim.take(1, CHUNK_MAX).unwrap();
    sim.ring.used(place.chunk, 7, 7);
    sim.ring.used(place.chunk, 3, 3);
    sim.ring.let_go(place.chunk);
    let mut released = Vec::new();
    sim.ring.trim(&|ticket| *ticket <= 3, &mut released);
    assert_eq!(released.len(), 0, "recording 7 still uses it");
    sim.ring.trim(&|ticket| *ticket <= 7, &mut released);
    assert_eq!(released.len(), 1);
    // The next stream that has a chunk counts anew.
    let place = sim.take(2, CHUNK_MAX).unwrap();
    sim.ring.used(place.chunk, 1, 1);
    sim.ring.let_go(place.chunk);
    sim.ring.trim(&|_| false, &mut released);
    assert_eq!(released.len(), 1);
}
