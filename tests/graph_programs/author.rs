//! Random programs, with every wait that makes the results certain.

use std::collections::BTreeMap;
use std::ops::Range;

use super::program::{
    CHUNK, Class, Content, Launch, Layout, Numbers, Op, Part, Place, Program, SIZES, Shape,
};
use super::support::random::Random;

/// What commands are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Slot(usize),
    Pinned(usize),
}

/// A command: its stream, and which of that it is.
type Done = (usize, usize);

#[derive(Default)]
struct Accesses {
    written: Option<Done>,
    read: Vec<Done>,
}

/// Writes a program.
pub struct Author<'a> {
    random: &'a mut Random,
    layout: &'a Layout,
    ops: Vec<Op>,
    things: BTreeMap<Thing, Accesses>,
    /// For each stream that takes part, how many commands of each come before what it does next.
    clocks: Vec<Option<Vec<usize>>>,
    /// The stream of each event, with the stream's clock.
    events: Vec<(usize, Vec<usize>)>,
    live: Vec<(usize, Shape)>,
    slots: usize,
}

impl<'a> Author<'a> {
    pub fn new(random: &'a mut Random, layout: &'a Layout) -> Self {
        let mut clocks = vec![None; layout.streams];
        clocks[0] = Some(vec![0; layout.streams]);
        Self {
            random,
            layout,
            ops: Vec::new(),
            things: BTreeMap::new(),
            clocks,
            events: Vec::new(),
            live: layout.buffers.iter().copied().enumerate().collect(),
            slots: layout.buffers.len(),
        }
    }

    /// A program of so many steps, which begins and ends on the first stream.
    pub fn write(mut self, steps: usize) -> Program {
        for _ in 0..steps {
            self.step();
        }
        // Each stream joins the first, or a later one that joins it then.
        for stream in 1..self.layout.streams {
            if self.clocks[stream].is_some() {
                let later = stream + 1 + self.random.below(self.layout.streams);
                let by = if later < self.layout.streams {
                    later
                } else {
                    0
                };
                self.wait_stream(by, stream);
            }
        }
        Program {
            ops: self.ops,
            slots: self.slots,
            events: self.events.len(),
        }
    }

    fn step(&mut self) {
        let stream = self.random.below(self.layout.streams);
        match self.random.below(16) {
            0..=2 => {
                let launch = self.launch(&[]);
                if let Some(launch) = launch {
                    self.put_launch(stream, launch);
                }
            }
            3 => self.concurrent(stream),
            4 => self.indirect(stream),
            5 | 6 => {
                let (place, pattern) = (self.any_place(), self.seed());
                self.put_writing(stream, &place.clone(), Op::Fill(stream, place, pattern));
            }
            7 | 8 => self.copy(stream),
            9 => {
                let (place, seed) = (self.any_place(), self.seed());
                self.put_writing(stream, &place.clone(), Op::Upload(stream, place, seed));
            }
            10 => self.pinned(stream),
            11 | 12 => self.random(stream),
            13 | 14 => self.allocate(stream),
            _ => self.drop_one(),
        }
    }

    fn seed(&mut self) -> u64 {
        let high = self.random.below(1 << 30) as u64;
        (high << 30) | self.random.below(1 << 30) as u64
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.random.below(1 << 16)).unwrap()
    }

    /// A live buffer, but not that of the counts.
    fn pick(&mut self, fits: impl Fn(Shape) -> bool) -> Option<(usize, Shape)> {
        let all: Vec<_> = self.live[1..].iter().filter(|one| fits(one.1)).collect();
        (!all.is_empty()).then(|| *all[self.random.below(all.len())])
    }

    fn part(&mut self, len: usize) -> Range<usize> {
        let start = self.random.below(len);
        start..start + 1 + self.random.below(len - start)
    }

    fn any_place(&mut self) -> Place {
        let (slot, shape) = self.pick(|_| true).unwrap();
        let range = self.part(shape.len());
        Place { slot, range }
    }

    /// Words that a kernel may be given, which are none of those.
    fn chunks(&mut self, but: &[Place]) -> Option<Place> {
        let (slot, shape) = self.pick(|shape| shape.class == Class::Words)?;
        let chunks = self.part(shape.bytes / CHUNK);
        let place = Place {
            slot,
            range: chunks.start * CHUNK / 4..chunks.end * CHUNK / 4,
        };
        let meets = |other: &Place| {
            let (one, two) = (&place.range, &other.range);
            other.slot == slot && one.start < two.end && two.start < one.end
        };
        (!but.iter().any(meets)).then_some(place)
    }

    fn launch(&mut self, but: &[Place]) -> Option<Launch> {
        let data = self.chunks(but)?;
        let (scale, value) = (self.word() | 1, self.word());
        Some(match self.random.below(4) {
            0 => {
                let index = self.random.below(data.range.len());
                Launch::Add { data, index, value }
            }
            1 => {
                let from = self.chunks(&[but, core::slice::from_ref(&data)].concat())?;
                let len = from.range.len().min(data.range.len());
                let cut = |place: Place| Place {
                    range: place.range.start..place.range.start + len,
                    ..place
                };
                Launch::Map {
                    from: cut(from),
                    to: cut(data),
                    scale,
                    offset: value,
                }
            }
            _ => Launch::Affine {
                data,
                scale,
                offset: value,
            },
        })
    }

    fn put_launch(&mut self, stream: usize, launch: Launch) {
        let (reads, writes) = uses(&launch);
        self.put(stream, &reads, &writes, Op::Launch(stream, launch));
    }

    fn concurrent(&mut self, stream: usize) {
        let (mut parts, mut taken) = (Vec::new(), Vec::new());
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for _ in 0..2 + self.random.below(4) {
            let kind = self.random.below(8);
            if kind == 0 {
                // What is no launch has launches before and behind it.
                let (place, pattern) = (self.any_place(), self.seed());
                writes.push(Thing::Slot(place.slot));
                parts.push(Part::Fill(place, pattern));
                taken.clear();
                continue;
            }
            let is_map = |launch: &Launch| matches!(launch, Launch::Map { .. });
            // So has an allocation.
            let others = if kind == 1 { &[][..] } else { &taken[..] };
            let Some(launch) = self.launch(others).filter(|one| kind != 1 || is_map(one)) else {
                continue;
            };
            let used = uses(&launch);
            reads.extend(used.0);
            writes.extend(used.1);
            parts.push(match launch {
                Launch::Map {
                    from,
                    to,
                    scale,
                    offset,
                } if kind == 1 => {
                    taken = vec![to.clone()];
                    Part::Twice {
                        from,
                        to,
                        scale,
                        offset,
                    }
                }
                launch => {
                    taken.extend(places(&launch));
                    Part::Launch(launch)
                }
            });
        }
        self.put(stream, &reads, &writes, Op::Concurrent(stream, parts));
    }

    fn indirect(&mut self, stream: usize) {
        let counts = Thing::Slot(0);
        let (groups, by_kernel) = (self.random.below(5), self.random.below(2) == 0);
        let groups = u32::try_from(groups).unwrap();
        self.put(
            stream,
            &[],
            &[counts],
            Op::Counts(stream, groups, by_kernel),
        );
        let stream = self.random.below(self.layout.streams);
        if let Some(place) = self.chunks(&[]) {
            let data = [Thing::Slot(place.slot)];
            self.put(stream, &[counts], &data, Op::Indirect(stream, place));
        }
    }

    fn copy(&mut self, stream: usize) {
        let (to, shape) = self.pick(|_| true).unwrap();
        let (from, other) = match self.random.below(3) {
            0 => (to, shape),
            _ => self.pick(|one| one.class == shape.class).unwrap(),
        };
        let len = 1 + self.random.below(shape.len().min(other.len()));
        let mut place = |slot, shape: Shape| {
            let start = self.random.below(shape.len() - len + 1);
            Place {
                slot,
                range: start..start + len,
            }
        };
        let (from, to) = (place(from, other), place(to, shape));
        let (reads, writes) = ([Thing::Slot(from.slot)], [Thing::Slot(to.slot)]);
        self.put(stream, &reads, &writes, Op::Copy(stream, from, to));
    }

    fn pinned(&mut self, stream: usize) {
        let pinned = self.random.below(self.layout.pinned.len());
        let len = self.layout.pinned[pinned] / 4;
        let fits = |shape: Shape| shape.class == Class::Words && shape.len() >= len;
        let Some((slot, shape)) = self.pick(fits) else {
            return;
        };
        let start = self.random.below(shape.len() - len + 1);
        let place = Place {
            slot,
            range: start..start + len,
        };
        let (memory, host) = ([Thing::Slot(slot)], [Thing::Pinned(pinned)]);
        match self.random.below(2) {
            0 => self.put(
                stream,
                &host,
                &memory,
                Op::FromPinned(stream, pinned, place),
            ),
            _ => self.put(stream, &memory, &host, Op::ToPinned(stream, place, pinned)),
        }
    }

    fn random(&mut self, stream: usize) {
        let generator = self.random.below(self.layout.generators);
        let Some((slot, shape)) = self.pick(|shape| shape.class != Class::Threes) else {
            return;
        };
        let numbers = match (shape.class, self.random.below(4)) {
            (Class::Bytes, _) => Numbers::Bernoulli,
            (Class::Halves, _) => Numbers::Halves,
            (Class::Floats, 0) => Numbers::Normal,
            (Class::Floats, _) => Numbers::Uniform,
            (_, 0) => Numbers::Integers,
            _ => Numbers::Bits,
        };
        let range = self.part(shape.len());
        let place = Place { slot, range };
        let op = Op::Random(stream, generator, numbers, place.clone());
        self.put_writing(stream, &place, op);
    }

    fn allocate(&mut self, stream: usize) {
        let shape = Shape {
            class: Class::ALL[self.random.below(Class::ALL.len())],
            bytes: SIZES[self.random.below(SIZES.len())],
        };
        let content = match self.random.below(3) {
            0 => Content::Zeros,
            1 => Content::Uploaded(self.seed()),
            _ => Content::Filled(self.seed()),
        };
        let slot = self.slots;
        self.slots += 1;
        let op = Op::Allocate(stream, slot, shape, content);
        self.put(stream, &[], &[Thing::Slot(slot)], op);
        self.live.push((slot, shape));
    }

    /// Drops one that was made inside.
    fn drop_one(&mut self) {
        let outside = self.layout.buffers.len();
        if self.live.len() > outside {
            let at = outside + self.random.below(self.live.len() - outside);
            let (slot, _) = self.live.remove(at);
            self.ops.push(Op::Drop(slot));
        }
    }

    fn put_writing(&mut self, stream: usize, place: &Place, op: Op) {
        self.put(stream, &[], &[Thing::Slot(place.slot)], op);
    }

    /// Puts a command on a stream, behind all that it needs.
    fn put(&mut self, stream: usize, reads: &[Thing], writes: &[Thing], op: Op) {
        self.take_part(stream);
        let mut needed: Vec<Done> = Vec::new();
        for thing in reads.iter().chain(writes) {
            let accesses = self.things.entry(*thing).or_default();
            needed.extend(accesses.written);
            if writes.contains(thing) {
                needed.extend(&accesses.read);
            }
        }
        for done in needed {
            self.order(stream, done);
        }
        self.ops.push(op);
        let done = (stream, self.tick(stream));
        for thing in reads {
            self.things.entry(*thing).or_default().read.push(done);
        }
        for thing in writes {
            let accesses = self.things.entry(*thing).or_default();
            accesses.written = Some(done);
            accesses.read.clear();
        }
        if self.random.below(3) == 0 {
            self.record(stream);
        }
    }

    fn clock(&mut self, stream: usize) -> &mut Vec<usize> {
        self.clocks[stream].as_mut().unwrap()
    }

    fn tick(&mut self, stream: usize) -> usize {
        let own = &mut self.clock(stream)[stream];
        *own += 1;
        *own
    }

    /// Has a stream join the program, by a wait for one that has.
    fn take_part(&mut self, stream: usize) {
        if self.clocks[stream].is_none() {
            let known: Vec<_> = (0..stream)
                .filter(|&one| self.clocks[one].is_some())
                .collect();
            let of = known[self.random.below(known.len())];
            self.wait_stream(stream, of);
        }
    }

    fn order(&mut self, stream: usize, (of, number): Done) {
        if of == stream || self.clock(stream)[of] >= number {
            return;
        }
        if self.random.below(3) == 0 {
            return self.wait_stream(stream, of);
        }
        let covers = |(on, clock): &(usize, Vec<usize>)| *on == of && clock[of] >= number;
        let known: Vec<_> = (0..self.events.len())
            .filter(|&event| covers(&self.events[event]))
            .collect();
        let event = match known.len() {
            0 => self.record(of),
            count => known[self.random.below(count)],
        };
        self.ops.push(Op::WaitEvent(stream, event));
        let clock = self.events[event].1.clone();
        self.merge(stream, &clock);
    }

    fn record(&mut self, stream: usize) -> usize {
        let clock = self.clock(stream).clone();
        let event = self.events.len();
        self.events.push((stream, clock));
        self.ops.push(Op::Record(stream, event));
        event
    }

    fn wait_stream(&mut self, stream: usize, of: usize) {
        self.ops.push(Op::WaitStream(stream, of));
        let clock = self.clock(of).clone();
        self.merge(stream, &clock);
    }

    fn merge(&mut self, stream: usize, other: &[usize]) {
        let clock = self.clocks[stream].get_or_insert_with(|| vec![0; other.len()]);
        for (own, other) in clock.iter_mut().zip(other) {
            *own = (*own).max(*other);
        }
    }
}

fn uses(launch: &Launch) -> (Vec<Thing>, Vec<Thing>) {
    match launch {
        Launch::Affine { data, .. } | Launch::Add { data, .. } => {
            (Vec::new(), vec![Thing::Slot(data.slot)])
        }
        Launch::Map { from, to, .. } => (vec![Thing::Slot(from.slot)], vec![Thing::Slot(to.slot)]),
    }
}

fn places(launch: &Launch) -> Vec<Place> {
    match launch {
        Launch::Affine { data, .. } | Launch::Add { data, .. } => vec![data.clone()],
        Launch::Map { from, to, .. } => vec![from.clone(), to.clone()],
    }
}
