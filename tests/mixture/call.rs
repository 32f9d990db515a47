//! One call: how it is made, and what plain Rust makes of it.

use super::support::kernels::kernel;
use super::support::random::Random;
use vkaccel::{Buffer, Generator, Grid, Kernel, MemPool, Philox, PinnedBuffer, Result, Stream};

/// How many buffers there are, and how many words each has.
pub const BUFFERS: usize = 3;
pub const WORDS: usize = 640;
/// Words that one launch of independent ones takes at most, and where each begins.
const PART: usize = 64;
/// How many words a workgroup of the kernel takes.
const GROUP: usize = 64;

/// What `word * times + plus` is done with.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    times: u32,
    plus: u32,
}

impl Affine {
    fn any(random: &mut Random) -> Self {
        let (times, plus) = (random.word() | 1, random.word());
        Self { times, plus }
    }

    fn apply(self, words: &mut [u32]) {
        for word in words {
            *word = word.wrapping_mul(self.times).wrapping_add(self.plus);
        }
    }
}

/// Some words of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    buffer: usize,
    at: usize,
    len: usize,
}

impl Part {
    /// Words that begin at a multiple of the largest alignment of a descriptor.
    fn aligned(random: &mut Random) -> Self {
        let at = PART * random.below(WORDS / PART);
        Self::from(random, at)
    }

    fn any(random: &mut Random) -> Self {
        let at = random.below(WORDS);
        Self::from(random, at)
    }

    fn from(random: &mut Random, at: usize) -> Self {
        Self {
            buffer: random.below(BUFFERS),
            at,
            len: 1 + random.below(WORDS - at),
        }
    }

    /// Others of the same length.
    fn of_same_length(self, random: &mut Random) -> Self {
        Self {
            buffer: random.below(BUFFERS),
            at: random.below(WORDS - self.len + 1),
            ..self
        }
    }

    fn of(self, words: &mut [Vec<u32>]) -> &mut [u32] {
        &mut words[self.buffer][self.at..self.at + self.len]
    }
}

/// Rows of one buffer that become those of another; each has its stride.
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    from: usize,
    to: usize,
    count: usize,
    len: usize,
    strides: [usize; 2],
}

/// A call, or a few that belong together.
#[derive(Clone, Debug)]
pub enum Call {
    Launch(Part, Affine),
    /// Launches that are declared independent; memory is made and dropped between some.
    Apart(Vec<(Part, Affine, bool)>),
    /// By way of a buffer made for it, which may lie in a pool of its own.
    Through {
        from: Part,
        to: Part,
        in_pool: bool,
    },
    Copy {
        from: Part,
        to: Part,
    },
    Rows(Strided),
    Draw(Part),
    /// As many workgroups as the device's memory says.
    Indirect(usize, Affine),
    Pinned {
        from: usize,
        to: usize,
    },
    Fill(Part, u32),
    Write(Part, u32),
}

impl Call {
    pub fn any(random: &mut Random) -> Self {
        let buffer = random.below(BUFFERS);
        match random.below(11) {
            0 | 1 => Self::Launch(Part::aligned(random), Affine::any(random)),
            2 => Self::apart(random, buffer),
            3 => {
                let from = Part::any(random);
                Self::Through {
                    from,
                    to: from.of_same_length(random),
                    in_pool: random.below(2) == 0,
                }
            }
            4 => {
                let from = Part::any(random);
                let to = from.of_same_length(random);
                Self::Copy { from, to }
            }
            5 => Self::rows(random, buffer),
            6 => Self::Draw(Part::any(random)),
            7 => Self::Indirect(buffer, Affine::any(random)),
            8 => Self::Pinned {
                from: buffer,
                to: random.below(BUFFERS),
            },
            9 => Self::Fill(Part::any(random), random.word()),
            _ => Self::Write(Part::any(random), random.word()),
        }
    }

    fn apart(random: &mut Random, buffer: usize) -> Self {
        let mut parts = Vec::new();
        for at in (0..WORDS).step_by(PART) {
            if random.below(2) == 0 {
                let len = 1 + random.below(PART);
                let part = Part { buffer, at, len };
                parts.push((part, Affine::any(random), random.below(6) == 0));
            }
        }
        Self::Apart(parts)
    }

    fn rows(random: &mut Random, from: usize) -> Self {
        let strides = [1 + random.below(40), 1 + random.below(40)];
        let len = 1 + random.below(strides[0].min(strides[1]));
        let count = 1 + random.below((WORDS - len) / strides[0].max(strides[1]) + 1);
        let to = (from + 1 + random.below(BUFFERS - 1)) % BUFFERS;
        Self::Rows(Strided {
            from,
            to,
            count,
            len,
            strides,
        })
    }

    /// What the host makes of it; `groups` is what the device's memory says.
    pub fn apply(&self, words: &mut [Vec<u32>], philox: &mut Philox, groups: usize) {
        match self {
            Self::Launch(part, affine) => affine.apply(part.of(words)),
            Self::Apart(parts) => {
                for (part, affine, _) in parts {
                    affine.apply(part.of(words));
                }
            }
            Self::Through { from, to, .. } | Self::Copy { from, to } => {
                let moved = from.of(words).to_vec();
                to.of(words).copy_from_slice(&moved);
            }
            Self::Rows(rows) => {
                for row in 0..rows.count {
                    let at = rows.strides.map(|stride| row * stride);
                    let moved = words[rows.from][at[0]..at[0] + rows.len].to_vec();
                    words[rows.to][at[1]..at[1] + rows.len].copy_from_slice(&moved);
                }
            }
            Self::Draw(part) => philox.fill_bits(part.of(words)).unwrap(),
            Self::Indirect(buffer, affine) => {
                affine.apply(&mut words[*buffer][..(groups * GROUP).min(WORDS)]);
            }
            Self::Pinned { from, to } => words[*to] = words[*from].clone(),
            Self::Fill(part, word) | Self::Write(part, word) => part.of(words).fill(*word),
        }
    }
}

/// What calls are made with.
pub struct Kit {
    pub buffers: Vec<Buffer<u32>>,
    pub generator: Generator,
    pub pool: MemPool,
    /// The workgroups of indirect launches, in three directions.
    pub groups: Buffer<u32>,
    affine: Kernel,
    pinned: PinnedBuffer<u32>,
}

impl Kit {
    /// Buffers of the content, and a kernel that takes them in one of both ways.
    pub fn new(seed: u64, stream: &Stream, words: &[Vec<u32>]) -> Self {
        let upload = |words: &Vec<u32>| stream.upload(words).unwrap();
        Self {
            buffers: words.iter().map(upload).collect(),
            generator: Generator::new(seed, 0).unwrap(),
            pool: MemPool::new(0).unwrap(),
            groups: stream.upload(&[1, 1, 1]).unwrap(),
            affine: kernel(["affine", "affine_here_at"][seed as usize % 2]),
            pinned: PinnedBuffer::new(WORDS).unwrap(),
        }
    }

    fn view(&self, part: Part) -> Result<vkaccel::View<'_, u32>> {
        self.buffers[part.buffer].view(part.at..part.at + part.len)
    }

    fn launch(&self, stream: &Stream, part: Part, affine: Affine) -> Result<()> {
        let args = (self.view(part)?, affine.times, affine.plus, part.len);
        stream.launch(&self.affine, Grid::elements(part.len), args)
    }

    pub fn make(&self, call: &Call, stream: &Stream) -> Result<()> {
        match call {
            Call::Launch(part, affine) => self.launch(stream, *part, *affine),
            Call::Apart(parts) => stream.concurrent(|| {
                parts.iter().try_for_each(|(part, affine, with_memory)| {
                    if *with_memory {
                        drop(stream.zeroed::<u32>(100)?);
                    }
                    self.launch(stream, *part, *affine)
                })
            }),
            Call::Through { from, to, in_pool } => {
                let make = || stream.uninit::<u32>(from.len);
                let way = if *in_pool {
                    self.pool.scope(make)?
                } else {
                    make()?
                };
                stream.copy(self.view(*from)?, &way)?;
                stream.copy(&way, self.view(*to)?)
            }
            Call::Copy { from, to } => stream.copy(self.view(*from)?, self.view(*to)?),
            Call::Rows(rows) => {
                let of =
                    |buffer: usize, stride| self.buffers[buffer].rows(rows.count, rows.len, stride);
                let [from, to] = rows.strides;
                stream.copy_rows(of(rows.from, from)?, of(rows.to, to)?)
            }
            Call::Draw(part) => stream.fill_bits(&self.generator, self.view(*part)?),
            Call::Indirect(buffer, affine) => {
                let words = &self.buffers[*buffer];
                let args = (words, affine.times, affine.plus, WORDS);
                stream.launch_indirect(&self.affine, &self.groups, args)
            }
            Call::Pinned { from, to } => {
                stream.copy_to_pinned(&self.buffers[*from], &self.pinned)?;
                stream.copy_from_pinned(&self.pinned, &self.buffers[*to])
            }
            Call::Fill(part, word) => stream.fill(self.view(*part)?, *word),
            Call::Write(part, word) => stream.write(self.view(*part)?, &vec![*word; part.len]),
        }
    }
}
