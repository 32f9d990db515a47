//! What a program does, on the host.

use vkaccel::bytemuck;
use vkaccel::{Philox, Pod, RngState};

use super::program::{Class, Content, Launch, Layout, Numbers, Op, Part, Place, Program, Shape};

/// What there is to be seen of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Each buffer that is alive, by its slot.
    pub buffers: Vec<(usize, Vec<u8>)>,
    pub pinned: Vec<Vec<u8>>,
    pub states: Vec<RngState>,
}

impl Seen {
    /// What differs, in words.
    pub fn differs(&self, other: &Self) -> Option<String> {
        if self.states != other.states {
            return Some(format!("generators: {:?}, {:?}", self.states, other.states));
        }
        let slots = |seen: &Self| seen.buffers.iter().map(|one| one.0).collect::<Vec<_>>();
        if slots(self) != slots(other) {
            return Some(format!("slots: {:?}, {:?}", slots(self), slots(other)));
        }
        for ((slot, one), (_, two)) in self.buffers.iter().zip(&other.buffers) {
            if let Some(text) = differ(one, two) {
                return Some(format!("buffer {slot}: {text}"));
            }
        }
        let mut pinned = self.pinned.iter().zip(&other.pinned).enumerate();
        pinned.find_map(|(at, (one, two))| {
            differ(one, two).map(|text| format!("pinned buffer {at}: {text}"))
        })
    }
}

fn differ(one: &[u8], two: &[u8]) -> Option<String> {
    let at = one.iter().zip(two).position(|(one, two)| one != two)?;
    let count = one.iter().zip(two).filter(|(one, two)| one != two).count();
    Some(format!(
        "{count} bytes, the first at {at}: {:#04x}, {:#04x}",
        one[at], two[at]
    ))
}

/// Bytes that a seed gives.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// What a buffer has at the start.
pub fn content(slot: usize, shape: Shape) -> Vec<u8> {
    bytes(1000 + slot as u64, shape.bytes)
}

/// What a pinned buffer has at the start.
pub fn pinned_content(at: usize, bytes_: usize) -> Vec<u8> {
    bytes(2000 + at as u64, bytes_)
}

/// Where a generator is at the start.
pub fn state(at: usize) -> RngState {
    RngState::from_parts(77 + at as u64, 4 * at as u64)
}

/// An element of a pattern.
pub fn element<T: Pod>(pattern: u64) -> T {
    bytemuck::pod_read_unaligned(&pattern.to_le_bytes()[..size_of::<T>()])
}

/// Everything, on the host.
pub struct Model {
    slots: Vec<Option<(Shape, Vec<u8>)>>,
    pinned: Vec<Vec<u8>>,
    generators: Vec<Philox>,
    counts: u32,
}

impl Model {
    pub fn new(layout: &Layout) -> Self {
        let slots = layout.buffers.iter().enumerate();
        let pinned = layout.pinned.iter().enumerate();
        Self {
            slots: slots
                .map(|(slot, shape)| Some((*shape, content(slot, *shape))))
                .collect(),
            pinned: pinned.map(|(at, len)| pinned_content(at, *len)).collect(),
            generators: (0..layout.generators)
                .map(|at| Philox::from_state(&state(at)).unwrap())
                .collect(),
            counts: 0,
        }
    }

    /// Runs a program; what an earlier run has made inside is gone.
    pub fn run(&mut self, program: &Program, layout: &Layout) {
        self.slots.truncate(layout.buffers.len());
        self.slots.resize(program.slots, None);
        for op in &program.ops {
            self.step(op);
        }
    }

    pub fn seen(&self) -> Seen {
        let slots = self.slots.iter().enumerate();
        let alive = slots.filter_map(|(slot, one)| Some((slot, one.as_ref()?.1.clone())));
        Seen {
            buffers: alive.collect(),
            pinned: self.pinned.clone(),
            states: self.generators.iter().map(Philox::state).collect(),
        }
    }

    fn place(&mut self, place: &Place) -> &mut [u8] {
        let (shape, bytes) = self.slots[place.slot].as_mut().unwrap();
        let size = shape.class.size();
        &mut bytes[place.range.start * size..place.range.end * size]
    }

    /// Changes each word of a place.
    fn words(&mut self, place: &Place, change: impl Fn(u32) -> u32) {
        for word in self.place(place).as_chunks_mut::<4>().0 {
            *word = change(u32::from_le_bytes(*word)).to_le_bytes();
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Launch(_, launch) => self.launch(launch),
            Op::Concurrent(_, parts) => {
                for part in parts {
                    match part {
                        Part::Launch(launch) => self.launch(launch),
                        Part::Fill(place, pattern) => self.fill(place, *pattern),
                        Part::Twice {
                            from,
                            to,
                            scale,
                            offset,
                        } => {
                            self.map(from, to, *scale, *offset);
                            self.map(&to.clone(), to, *scale, *offset);
                        }
                    }
                }
            }
            Op::Counts(_, groups, _) => {
                self.counts = *groups;
                let counts = [*groups, 1, 1].map(u32::to_le_bytes);
                let range = 0..3;
                let place = Place { slot: 0, range };
                self.place(&place).copy_from_slice(counts.as_flattened());
            }
            Op::Indirect(_, place) => {
                let first = Place {
                    slot: place.slot,
                    range: place.range.start..place.range.start + 1,
                };
                let ticks = 64 * self.counts;
                self.words(&first, |word| word.wrapping_add(ticks));
            }
            Op::Fill(_, place, pattern) => self.fill(place, *pattern),
            Op::Copy(_, from, to) => {
                let bytes = self.place(from).to_vec();
                self.place(to).copy_from_slice(&bytes);
            }
            Op::Upload(_, place, seed) => {
                let memory = self.place(place);
                memory.copy_from_slice(&bytes(*seed, memory.len()));
            }
            Op::FromPinned(_, pinned, place) => {
                let bytes = self.pinned[*pinned].clone();
                self.place(place).copy_from_slice(&bytes);
            }
            Op::ToPinned(_, place, pinned) => {
                self.pinned[*pinned] = self.place(place).to_vec();
            }
            Op::Random(_, generator, numbers, place) => self.random(*generator, *numbers, place),
            Op::Allocate(_, slot, shape, content) => self.allocate(*slot, *shape, content),
            Op::Drop(slot) => self.slots[*slot] = None,
            Op::Record(..) | Op::WaitEvent(..) | Op::WaitStream(..) => {}
        }
    }

    fn launch(&mut self, launch: &Launch) {
        match launch {
            Launch::Affine {
                data,
                scale,
                offset,
            } => self.words(data, |word| word.wrapping_mul(*scale).wrapping_add(*offset)),
            Launch::Map {
                from,
                to,
                scale,
                offset,
            } => self.map(from, to, *scale, *offset),
            Launch::Add { data, index, value } => {
                let at = data.range.start + index;
                let range = at..at + 1;
                let word = Place {
                    slot: data.slot,
                    range,
                };
                self.words(&word, |word| word.wrapping_add(*value));
            }
        }
    }

    fn map(&mut self, from: &Place, to: &Place, scale: u32, offset: u32) {
        let bytes = self.place(from).to_vec();
        self.place(to).copy_from_slice(&bytes);
        self.words(to, |word| word.wrapping_mul(scale).wrapping_add(offset));
    }

    fn fill(&mut self, place: &Place, pattern: u64) {
        let size = self.slots[place.slot].as_ref().unwrap().0.class.size();
        for element in self.place(place).chunks_mut(size) {
            element.copy_from_slice(&pattern.to_le_bytes()[..size]);
        }
    }

    fn allocate(&mut self, slot: usize, shape: Shape, content: &Content) {
        let memory = match content {
            Content::Uploaded(seed) => bytes(*seed, shape.bytes),
            Content::Zeros | Content::Filled(_) => vec![0; shape.bytes],
        };
        self.slots[slot] = Some((shape, memory));
        if let Content::Filled(pattern) = content {
            let range = 0..shape.len();
            self.fill(&Place { slot, range }, *pattern);
        }
    }

    fn random(&mut self, generator: usize, numbers: Numbers, place: &Place) {
        let class = self.slots[place.slot].as_ref().unwrap().0.class;
        let philox = &mut self.generators[generator];
        let bytes = match (class, numbers) {
            (Class::Words, Numbers::Integers) => drawn::<u32>(place, |out| {
                philox.fill_integers(out, 5..=1_000_000).unwrap();
            }),
            (Class::Words, _) => drawn::<u32>(place, |out| philox.fill_bits(out).unwrap()),
            (Class::Floats, Numbers::Normal) => {
                drawn::<f32>(place, |out| philox.fill_normal(out, 1.0, 2.0).unwrap())
            }
            (Class::Floats, _) => drawn::<f32>(place, |out| philox.fill_uniform(out).unwrap()),
            (Class::Halves, _) => drawn::<u16>(place, |out| philox.fill_uniform_f16(out).unwrap()),
            _ => drawn::<u8>(place, |out| philox.fill_bernoulli(out, 0.3).unwrap()),
        };
        self.place(place).copy_from_slice(&bytes);
    }
}

/// The bytes of numbers for a place.
fn drawn<T: Pod>(place: &Place, draw: impl FnOnce(&mut [T])) -> Vec<u8> {
    let mut out = vec![T::zeroed(); place.range.len()];
    draw(&mut out);
    bytemuck::cast_slice(&out).to_vec()
}
