//! Commands: what is called, and what it does to the bytes.

use super::block::{Block, Place};
use super::support::kernels::kernel;
use super::support::random::Random;
use vkaccel::{Generator, Grid, Kernel, Philox, Stream};

/// What commands use beside memory.
pub struct Kit {
    /// Each by descriptors and by addresses.
    affine: [Kernel; 2],
    map: [Kernel; 2],
    generator: Generator,
}

/// A command on blocks; it can be captured too.
#[derive(Clone, Debug)]
pub enum Command {
    Fill {
        to: Place,
        value: u8,
    },
    FillWords {
        to: Place,
        value: u32,
    },
    Write {
        to: Place,
        data: Vec<u8>,
    },
    Copy {
        from: Place,
        to: Place,
    },
    /// Copies rows that lie apart: their number, their length, and how far they are apart.
    Rows {
        from: Place,
        to: Place,
        shape: [usize; 3],
    },
    /// Copies through memory that is there for this alone.
    Through {
        from: Place,
        to: Place,
    },
    Affine {
        to: Place,
        numbers: [u32; 2],
        by: usize,
    },
    /// The same, where the device knows how many groups there are.
    Indirect {
        to: Place,
        numbers: [u32; 2],
        by: usize,
    },
    Map {
        from: Place,
        to: Place,
        numbers: [u32; 2],
        by: usize,
    },
    /// Random numbers, of the generator's sequence.
    Random {
        to: Place,
    },
}

impl Kit {
    pub fn new(seed: u64) -> Self {
        Self {
            affine: ["affine", "affine_here_at"].map(kernel),
            map: ["affine_map", "affine_at"].map(kernel),
            generator: Generator::new(seed, 0).unwrap(),
        }
    }
}

impl Command {
    /// Any command, on any of the blocks.
    pub fn any(random: &mut Random, blocks: &[Block]) -> Self {
        let block = random.below(blocks.len());
        let other = random.below(blocks.len());
        let bytes = blocks[block].some_bytes(random);
        let to = Place { block, bytes };
        let words = Place {
            block,
            bytes: blocks[block].some_regions(random),
        };
        let numbers = [random.word() | 1, random.word()];
        let by = random.below(2);
        match random.below(12) {
            0 => Self::Fill {
                to,
                value: random.word() as u8,
            },
            1 => Self::FillWords {
                to: words,
                value: random.word(),
            },
            2 => Self::Write {
                data: random.bytes(to.bytes.len()),
                to,
            },
            3 | 4 => {
                let [from, to] = equally_long(random, blocks, [other, block]);
                Self::Copy { from, to }
            }
            5 => {
                let [from, to] = equally_long(random, blocks, [other, block]);
                match rows(random, &from, &to) {
                    Some(shape) => Self::Rows { from, to, shape },
                    None => Self::Through { from, to },
                }
            }
            6 | 7 => Self::Affine {
                to: words,
                numbers,
                by,
            },
            8 => Self::Indirect {
                to: words,
                numbers,
                by,
            },
            9 | 10 => match apart(random, blocks, [other, block]) {
                Some([from, to]) => Self::Map {
                    from,
                    to,
                    numbers,
                    by,
                },
                None => Self::Affine {
                    to: words,
                    numbers,
                    by,
                },
            },
            _ => Self::Random { to: words },
        }
    }

    pub fn reads(&self) -> Option<&Place> {
        match self {
            Self::Copy { from, .. }
            | Self::Rows { from, .. }
            | Self::Through { from, .. }
            | Self::Map { from, .. } => Some(from),
            _ => None,
        }
    }

    pub fn writes(&self) -> &Place {
        match self {
            Self::Fill { to, .. }
            | Self::FillWords { to, .. }
            | Self::Write { to, .. }
            | Self::Copy { to, .. }
            | Self::Rows { to, .. }
            | Self::Through { to, .. }
            | Self::Affine { to, .. }
            | Self::Indirect { to, .. }
            | Self::Map { to, .. }
            | Self::Random { to } => to,
        }
    }

    pub fn uses(&self, block: usize) -> bool {
        let reads = self.reads().is_some_and(|place| place.block == block);
        reads || self.writes().block == block
    }

    /// Whether it must not run beside another.
    pub fn meets(&self, other: &Self, blocks: &[Block]) -> bool {
        let meet = |a: &Place, b: &Place| {
            let [x, y] = [a, b].map(|place| blocks[place.block].regions(&place.bytes));
            a.block == b.block && x.start < y.end && y.start < x.end
        };
        let read = |command: &Self, to: &Place| command.reads().is_some_and(|from| meet(from, to));
        meet(self.writes(), other.writes())
            || read(self, other.writes())
            || read(other, self.writes())
    }

    /// Puts it on a stream.
    pub fn issue(&self, stream: &Stream, blocks: &mut [Block], kit: &Kit) {
        let done = match self {
            Self::Fill { to, value } => stream.fill(blocks[to.block].view(to), *value),
            Self::FillWords { to, value } => {
                let fill = |words: vkaccel::View<'_, u32>| stream.fill(words, *value).unwrap();
                blocks[to.block].as_elements(to, fill);
                Ok(())
            }
            Self::Write { to, data } => stream.write(blocks[to.block].view(to), data),
            Self::Copy { from, to } => {
                let (from, to) = (blocks[from.block].view(from), blocks[to.block].view(to));
                stream.copy(from, to)
            }
            Self::Rows {
                from,
                to,
                shape: [count, len, stride],
            } => {
                let [from, to] = [from, to].map(|place| {
                    let view = blocks[place.block].view(place);
                    view.rows(*count, *len, *stride).unwrap()
                });
                stream.copy_rows(from, to)
            }
            Self::Through { from, to } => {
                let temporary = stream.uninit::<u8>(to.bytes.len()).unwrap();
                stream
                    .copy(blocks[from.block].view(from), &temporary)
                    .unwrap();
                stream.copy(&temporary, blocks[to.block].view(to))
            }
            Self::Affine {
                to,
                numbers: [scale, offset],
                by,
            } => {
                let words = words(to);
                let args = (blocks[to.block].view(to), *scale, *offset, words);
                stream.launch(&kit.affine[*by], Grid::elements(words), args)
            }
            Self::Indirect {
                to,
                numbers: [scale, offset],
                by,
            } => {
                let words = words(to);
                let groups = words.div_ceil(64) as u32;
                let counts = stream.upload(&[groups, 1, 1]).unwrap();
                let args = (blocks[to.block].view(to), *scale, *offset, words);
                stream.launch_indirect(&kit.affine[*by], &counts, args)
            }
            Self::Map {
                from,
                to,
                numbers: [scale, offset],
                by,
            } => {
                let words = words(to);
                let (from, to) = (blocks[from.block].view(from), blocks[to.block].view(to));
                let args = (from, to, *scale, *offset, words);
                stream.launch(&kit.map[*by], Grid::elements(words), args)
            }
            Self::Random { to } => {
                let fill = |words: vkaccel::View<'_, u32>| {
                    stream.fill_bits(&kit.generator, words).unwrap();
                };
                blocks[to.block].as_elements(to, fill);
                Ok(())
            }
        };
        done.unwrap_or_else(|error| panic!("{self:?}: {error}"));
    }

    /// Does to the models what it does to the memory each time that it runs.
    pub fn apply(&self, blocks: &mut [Block], philox: &mut Philox) {
        match self {
            Self::Fill { to, value } => blocks[to.block].model(to).fill(*value),
            Self::FillWords { to, value } => change(blocks, to, |_| *value),
            Self::Write { to, data } => blocks[to.block].model(to).copy_from_slice(data),
            Self::Copy { from, to } | Self::Through { from, to } => {
                let data = blocks[from.block].model(from).to_vec();
                blocks[to.block].model(to).copy_from_slice(&data);
            }
            Self::Rows {
                from,
                to,
                shape: [count, len, stride],
            } => {
                let data = blocks[from.block].model(from).to_vec();
                let to = blocks[to.block].model(to);
                for at in (0..*count).map(|row| row * stride) {
                    to[at..at + len].copy_from_slice(&data[at..at + len]);
                }
            }
            Self::Affine { to, numbers, .. } | Self::Indirect { to, numbers, .. } => {
                change(blocks, to, |word| affine(word, *numbers));
            }
            Self::Map {
                from, to, numbers, ..
            } => {
                let data = blocks[from.block].model(from).to_vec();
                blocks[to.block].model(to).copy_from_slice(&data);
                change(blocks, to, |word| affine(word, *numbers));
            }
            Self::Random { to } => {
                let mut numbers = vec![0u32; words(to)];
                philox.fill_bits(&mut numbers).unwrap();
                let mut numbers = numbers.into_iter();
                change(blocks, to, |_| numbers.next().unwrap());
            }
        }
    }
}

fn affine(word: u32, [scale, offset]: [u32; 2]) -> u32 {
    word.wrapping_mul(scale).wrapping_add(offset)
}

fn words(place: &Place) -> usize {
    place.bytes.len() / 4
}

/// Changes the words of a place, one by one.
fn change(blocks: &mut [Block], place: &Place, mut f: impl FnMut(u32) -> u32) {
    for bytes in blocks[place.block].model(place).chunks_exact_mut(4) {
        let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        bytes.copy_from_slice(&f(word).to_le_bytes());
    }
}

/// Bytes of two blocks, or of one, that may overlap then.
fn equally_long(random: &mut Random, blocks: &[Block], of: [usize; 2]) -> [Place; 2] {
    let bytes = of.map(|block| blocks[block].some_bytes(random));
    let len = bytes[0].len().min(bytes[1].len());
    [0, 1].map(|which| Place {
        block: of[which],
        bytes: bytes[which].start..bytes[which].start + len,
    })
}

/// Rows in two places, if these have nothing in common: their number, length and distance.
fn rows(random: &mut Random, from: &Place, to: &Place) -> Option<[usize; 3]> {
    let overlap = from.bytes.start < to.bytes.end && to.bytes.start < from.bytes.end;
    if from.block == to.block && overlap {
        return None;
    }
    let stride = 1 + random.below(from.bytes.len());
    let len = 1 + random.below(stride);
    Some([(from.bytes.len() - len) / stride + 1, len, stride])
}

/// Whole regions of two blocks, or of one, that have nothing in common; if there happen to be some.
fn apart(random: &mut Random, blocks: &[Block], of: [usize; 2]) -> Option<[Place; 2]> {
    let bytes = of.map(|block| blocks[block].some_regions(random));
    let [from, to] = &bytes;
    let len = from.len().min(to.len());
    let overlap = from.start < to.start + len && to.start < from.start + len;
    if of[0] == of[1] && overlap {
        return None;
    }
    // As long as the shorter one, which need not be whole regions of the other.
    Some([0, 1].map(|which| Place {
        block: of[which],
        bytes: bytes[which].start..bytes[which].start + len,
    }))
}
