//! What a program does, on a device.

use vkaccel::bytemuck;
use vkaccel::{
    Arg, Buffer, Event, Generator, Grid, Kernel, PinnedBuffer, Pod, Result, Stream, View,
};

use super::kernel;
use super::model::{Seen, bytes, content, element, pinned_content, state};
use super::program::{Class, Content, Launch, Layout, Numbers, Op, Part, Place, Program, Shape};

/// A buffer of some class.
pub enum Memory {
    Bytes(Buffer<u8>),
    Halves(Buffer<u16>),
    Threes(Buffer<[u8; 3]>),
    Words(Buffer<u32>),
    Floats(Buffer<f32>),
}

macro_rules! each {
    ($memory:expr, $buffer:ident => $done:expr) => {
        match $memory {
            Memory::Bytes($buffer) => $done,
            Memory::Halves($buffer) => $done,
            Memory::Threes($buffer) => $done,
            Memory::Words($buffer) => $done,
            Memory::Floats($buffer) => $done,
        }
    };
}

macro_rules! of_class {
    ($class:expr, $element:ident => $made:expr) => {
        match $class {
            Class::Bytes => Memory::Bytes({
                type $element = u8;
                $made
            }),
            Class::Halves => Memory::Halves({
                type $element = u16;
                $made
            }),
            Class::Threes => Memory::Threes({
                type $element = [u8; 3];
                $made
            }),
            Class::Words => Memory::Words({
                type $element = u32;
                $made
            }),
            Class::Floats => Memory::Floats({
                type $element = f32;
                $made
            }),
        }
    };
}

impl Memory {
    fn uploaded(stream: &Stream, class: Class, bytes: &[u8]) -> Result<Self> {
        Ok(of_class!(class, T => stream.upload(&elements::<T>(bytes))?))
    }

    fn zeroed(stream: &Stream, shape: Shape) -> Result<Self> {
        Ok(of_class!(shape.class, T => stream.zeroed::<T>(shape.len())?))
    }

    fn uninit(stream: &Stream, shape: Shape) -> Result<Self> {
        Ok(of_class!(shape.class, T => stream.uninit::<T>(shape.len())?))
    }

    fn write(&self, stream: &Stream, place: &Place, bytes: &[u8]) -> Result<()> {
        each!(self, buffer => stream.write(buffer.view(place.range.clone())?, &elements(bytes)))
    }

    fn fill(&self, stream: &Stream, place: &Place, pattern: u64) -> Result<()> {
        each!(self, buffer => stream.fill(buffer.view(place.range.clone())?, element(pattern)))
    }

    fn copy(
        stream: &Stream,
        (from, at): (&Self, &Place),
        (to, there): (&Self, &Place),
    ) -> Result<()> {
        fn copy<T: Pod>(
            stream: &Stream,
            (from, at): (&Buffer<T>, &Place),
            (to, there): (&Buffer<T>, &Place),
        ) -> Result<()> {
            stream.copy(from.view(at.range.clone())?, to.view(there.range.clone())?)
        }
        match (from, to) {
            (Self::Bytes(from), Self::Bytes(to)) => copy(stream, (from, at), (to, there)),
            (Self::Halves(from), Self::Halves(to)) => copy(stream, (from, at), (to, there)),
            (Self::Threes(from), Self::Threes(to)) => copy(stream, (from, at), (to, there)),
            (Self::Words(from), Self::Words(to)) => copy(stream, (from, at), (to, there)),
            (Self::Floats(from), Self::Floats(to)) => copy(stream, (from, at), (to, there)),
            _ => unreachable!("a program copies between buffers of one class"),
        }
    }

    fn words(&self, place: &Place) -> Result<View<'_, u32>> {
        match self {
            Self::Words(buffer) => buffer.view(place.range.clone()),
            _ => unreachable!("kernels take words"),
        }
    }

    fn read(&self, stream: &Stream) -> Vec<u8> {
        each!(self, buffer => bytemuck::cast_slice(&stream.to_vec(buffer).unwrap()).to_vec())
    }

    fn random(
        &self,
        stream: &Stream,
        generator: &Generator,
        numbers: Numbers,
        place: &Place,
    ) -> Result<()> {
        let range = place.range.clone();
        match (self, numbers) {
            (Self::Words(out), Numbers::Integers) => {
                stream.fill_integers(generator, out.view(range)?, 5..=1_000_000)
            }
            (Self::Words(out), _) => stream.fill_bits(generator, out.view(range)?),
            (Self::Floats(out), Numbers::Normal) => {
                stream.fill_normal(generator, out.view(range)?, 1.0, 2.0)
            }
            (Self::Floats(out), _) => stream.fill_uniform(generator, out.view(range)?),
            (Self::Halves(out), _) => stream.fill_uniform_f16(generator, out.view(range)?),
            (Self::Bytes(out), _) => stream.fill_bernoulli(generator, out.view(range)?, 0.3),
            (Self::Threes(_), _) => unreachable!("no numbers have three bytes"),
        }
    }
}

fn elements<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

struct Kernels {
    affine: Kernel,
    map: Kernel,
    add: Kernel,
    put: Kernel,
    tick: Kernel,
}

/// What a run of a program has made inside, by its slots.
pub type Made = Vec<Option<Memory>>;

/// Everything outside of a program, on a device.
pub struct Machine {
    pub streams: Vec<Stream>,
    outside: Vec<Memory>,
    pinned: Vec<PinnedBuffer<u32>>,
    generators: Vec<Generator>,
    kernels: Kernels,
    layout: Layout,
}

impl Machine {
    pub fn new(layout: &Layout) -> Self {
        let streams: Vec<_> = (0..layout.streams)
            .map(|_| Stream::new(0).unwrap())
            .collect();
        let buffers = layout.buffers.iter();
        let outside = buffers.map(|shape| Memory::zeroed(&streams[0], *shape).unwrap());
        let pinned = layout.pinned.iter();
        let machine = Self {
            outside: outside.collect(),
            pinned: pinned
                .map(|len| PinnedBuffer::new(len / 4).unwrap())
                .collect(),
            generators: (0..layout.generators)
                .map(|_| Generator::new(0, 0).unwrap())
                .collect(),
            kernels: Kernels {
                affine: kernel("affine"),
                map: kernel("affine_map"),
                add: kernel("add_at_index"),
                put: kernel("put_three"),
                tick: kernel("tick"),
            },
            streams,
            layout: layout.clone(),
        };
        machine.reset();
        machine
    }

    /// Makes all as it was at the start.
    pub fn reset(&self) {
        vkaccel::synchronize(0).unwrap();
        let stream = &self.streams[0];
        for (slot, (memory, shape)) in self.outside.iter().zip(&self.layout.buffers).enumerate() {
            let range = 0..shape.len();
            let all = Place { slot, range };
            memory.write(stream, &all, &content(slot, *shape)).unwrap();
        }
        for (at, pinned) in self.pinned.iter().enumerate() {
            let content = elements(&pinned_content(at, 4 * pinned.len()));
            pinned.write().unwrap().copy_from_slice(&content);
        }
        for (at, generator) in self.generators.iter().enumerate() {
            generator.set_state(&state(at)).unwrap();
        }
        vkaccel::synchronize(0).unwrap();
    }

    /// What there is to be seen, once all is done, of what is outside and of what a run has made.
    pub fn seen(&self, made: &Made) -> Seen {
        vkaccel::synchronize(0).unwrap();
        let reader = Stream::new(0).unwrap();
        let outside = self.outside.iter().map(Some);
        let all = outside.chain(made.iter().map(Option::as_ref)).enumerate();
        let buffers = all.filter_map(|(slot, memory)| Some((slot, memory?.read(&reader))));
        let pinned = self.pinned.iter();
        let pinned = pinned.map(|one| bytemuck::cast_slice(&one.read().unwrap()).to_vec());
        Seen {
            buffers: buffers.collect(),
            pinned: pinned.collect(),
            states: self.states(),
        }
    }

    pub fn states(&self) -> Vec<vkaccel::RngState> {
        let generators = self.generators.iter();
        generators.map(|one| one.state().unwrap()).collect()
    }

    /// Does what a program says, or has it captured.
    pub fn run(&self, program: &Program) -> Result<Made> {
        let inside = program.slots - self.outside.len();
        let mut run = Run {
            machine: self,
            made: (0..inside).map(|_| None).collect(),
            events: (0..program.events).map(|_| Event::new()).collect(),
        };
        program.ops.iter().try_for_each(|op| run.step(op))?;
        Ok(run.made)
    }
}

/// A program under way.
struct Run<'a> {
    machine: &'a Machine,
    made: Made,
    events: Vec<Event>,
}

impl Run<'_> {
    fn memory(&self, slot: usize) -> &Memory {
        let outside = &self.machine.outside;
        match outside.get(slot) {
            Some(memory) => memory,
            None => self.made[slot - outside.len()].as_ref().unwrap(),
        }
    }

    fn stream(&self, stream: usize) -> &Stream {
        &self.machine.streams[stream]
    }

    fn step(&mut self, op: &Op) -> Result<()> {
        let Machine {
            streams,
            pinned,
            generators,
            outside,
            ..
        } = self.machine;
        match op {
            Op::Launch(stream, launch) => self.launch(*stream, launch),
            Op::Concurrent(stream, parts) => {
                let mut parts = parts.iter();
                self.stream(*stream).concurrent(|| {
                    parts.try_for_each(|part| match part {
                        Part::Launch(launch) => self.launch(*stream, launch),
                        Part::Fill(place, pattern) => self.fill(*stream, place, *pattern),
                        Part::Twice {
                            from,
                            to,
                            scale,
                            offset,
                        } => self.map_twice(*stream, from, to, (*scale, *offset)),
                    })
                })
            }
            Op::Counts(stream, groups, by_kernel) => self.counts(*stream, *groups, *by_kernel),
            Op::Indirect(stream, place) => {
                let counts = outside[0].words(&Place {
                    slot: 0,
                    range: 0..3,
                })?;
                let data = self.memory(place.slot).words(place)?;
                streams[*stream].launch_indirect(&self.machine.kernels.tick, counts, (data,))
            }
            Op::Fill(stream, place, pattern) => self.fill(*stream, place, *pattern),
            Op::Copy(stream, from, to) => {
                let (src, dst) = (self.memory(from.slot), self.memory(to.slot));
                Memory::copy(&streams[*stream], (src, from), (dst, to))
            }
            Op::Upload(stream, place, seed) => {
                let memory = self.memory(place.slot);
                let size = each!(memory, buffer => element_size(buffer));
                let data = bytes(*seed, place.range.len() * size);
                memory.write(&streams[*stream], place, &data)
            }
            Op::FromPinned(stream, at, place) => {
                let to = self.memory(place.slot).words(place)?;
                streams[*stream].copy_from_pinned(&pinned[*at], to)
            }
            Op::ToPinned(stream, place, at) => {
                let from = self.memory(place.slot).words(place)?;
                streams[*stream].copy_to_pinned(from, &pinned[*at])
            }
            Op::Random(stream, generator, numbers, place) => {
                let memory = self.memory(place.slot);
                memory.random(&streams[*stream], &generators[*generator], *numbers, place)
            }
            Op::Allocate(stream, slot, shape, content) => {
                let memory = allocate(&streams[*stream], *slot, *shape, content)?;
                self.made[slot - outside.len()] = Some(memory);
                Ok(())
            }
            Op::Drop(slot) => {
                self.made[slot - outside.len()] = None;
                Ok(())
            }
            Op::Record(stream, event) => self.events[*event].record(&streams[*stream]),
            Op::WaitEvent(stream, event) => streams[*stream].wait_event(&self.events[*event]),
            Op::WaitStream(stream, of) => streams[*stream].wait_stream(&streams[*of]),
        }
    }

    fn fill(&self, stream: usize, place: &Place, pattern: u64) -> Result<()> {
        self.memory(place.slot)
            .fill(self.stream(stream), place, pattern)
    }

    fn counts(&self, stream: usize, groups: u32, by_kernel: bool) -> Result<()> {
        let place = Place {
            slot: 0,
            range: 0..3,
        };
        let stream = self.stream(stream);
        if by_kernel {
            let counts = self.memory(0).words(&place)?;
            let args = (counts, groups, 1, 1);
            return stream.launch(&self.machine.kernels.put, Grid::groups(1), args);
        }
        let counts = [groups, 1, 1].map(u32::to_le_bytes);
        self.memory(0).write(stream, &place, counts.as_flattened())
    }

    fn map_twice(
        &self,
        stream: usize,
        from: &Place,
        to: &Place,
        (scale, offset): (u32, u32),
    ) -> Result<()> {
        let (stream, map, len) = (
            self.stream(stream),
            &self.machine.kernels.map,
            to.range.len(),
        );
        let (from, to) = (
            self.memory(from.slot).words(from)?,
            self.memory(to.slot).words(to)?,
        );
        let first = stream.uninit::<u32>(len)?;
        stream.launch(map, Grid::elements(len), (from, &first, scale, offset, len))?;
        // Only for what it does to the order.
        let _second = stream.uninit::<u32>(len)?;
        stream.launch(map, Grid::elements(len), (&first, to, scale, offset, len))
    }

    fn launch(&self, stream: usize, launch: &Launch) -> Result<()> {
        let stream = self.stream(stream);
        let Kernels {
            affine, map, add, ..
        } = &self.machine.kernels;
        let words = |place: &Place| Ok(Arg::from(self.memory(place.slot).words(place)?));
        match launch {
            Launch::Affine {
                data,
                scale,
                offset,
            } => {
                let len = data.range.len();
                let args = (words(data)?, *scale, *offset, len);
                stream.launch(affine, Grid::elements(len), args)
            }
            Launch::Map {
                from,
                to,
                scale,
                offset,
            } => {
                let len = to.range.len();
                let args = (words(from)?, words(to)?, *scale, *offset, len);
                stream.launch(map, Grid::elements(len), args)
            }
            Launch::Add { data, index, value } => {
                let args = (words(data)?, *index, *value);
                stream.launch(add, Grid::groups(1), args)
            }
        }
    }
}

fn element_size<T: Pod>(_: &Buffer<T>) -> usize {
    size_of::<T>()
}

fn allocate(stream: &Stream, slot: usize, shape: Shape, content: &Content) -> Result<Memory> {
    match content {
        Content::Zeros => Memory::zeroed(stream, shape),
        Content::Uploaded(seed) => {
            Memory::uploaded(stream, shape.class, &bytes(*seed, shape.bytes))
        }
        Content::Filled(pattern) => {
            let memory = Memory::uninit(stream, shape)?;
            let range = 0..shape.len();
            memory.fill(stream, &Place { slot, range }, *pattern)?;
            Ok(memory)
        }
    }
}
