//! Owns the pass that keeps indices inside of what they index.
//!
//! Robust buffer access keeps a shader inside of its buffers. Arrays of fixed length (shared,
//! private, of a function, in push constants, of descriptors), vectors and matrices have nothing
//! of the kind: an index past the end writes anywhere, on drivers that run on the CPU into the
//! process. SPIRV-Tools' pass `graphics-robust-access` does the same work; a test compares what
//! the two find. An index that is negative or too large becomes the last one.

mod plan;
#[cfg(test)]
#[cfg(test_data)]
mod tests;

use std::collections::HashMap;

use spirv::Op;

use self::plan::To;
use crate::error::Result;
use crate::kernel::interface::Scalar;
use crate::kernel::spirv::{HEADER_WORDS, Instruction, MAX_BOUND, Module, bits_of, unsupported};

/// The extended instructions that a minimum is among.
const GLSL: &str = "GLSL.std.450";

/// The numbers of the unsigned minimum and maximum among them.
const U_MIN: u32 = 38;
const U_MAX: u32 = 41;

/// The word of the header that is above every id.
const BOUND_WORD: usize = 3;

/// A module with every index kept inside.
///
/// # Errors
///
/// `InvalidModule` for chains of indices that do not fit their types; `Unsupported` for what the
/// pass cannot keep inside, and for a module with more ids than any tool takes.
pub(crate) fn clamp(module: &Module) -> Result<Vec<u32>> {
    let changes = plan::plan(module)?;
    if changes.is_empty() {
        return Ok(module.words().to_vec());
    }
    let mut writer = Writer::new(module);
    // The constants are known before the functions are written, and come before them.
    let mut planned = Vec::with_capacity(changes.len());
    for change in &changes {
        planned.push(writer.limit(change.to)?);
    }
    let mut pending = changes.iter().zip(planned).peekable();
    let mut constants_written = false;
    for instruction in module.instructions() {
        match instruction.op {
            Op::MemoryModel => writer.import(),
            Op::Function if !constants_written => {
                writer.write_constants();
                constants_written = true;
            }
            _ => {}
        }
        let mut words = instruction.words().to_vec();
        while let Some((change, limit)) =
            pending.next_if(|(change, _)| change.instruction == instruction.number)
        {
            let index = writer.bounded(change.to, limit)?;
            if let Some(word) = words.get_mut(change.word) {
                *word = index;
            }
        }
        writer.out.extend(words);
    }
    writer.finish()
}

/// Whether the pass can do its work on a module.
///
/// # Errors
///
/// As [`clamp`].
pub(crate) fn check(module: &Module) -> Result<()> {
    plan::plan(module).map(drop)
}

/// Writes the changed module.
#[derive(Debug)]
struct Writer {
    out: Vec<u32>,
    next_id: u32,
    /// The id of the extended instructions, and whether it is yet to be written.
    glsl: u32,
    glsl_is_new: bool,
    /// The type of an unsigned 32-bit integer.
    u32_ty: Option<u32>,
    /// By type and bits.
    constants: HashMap<(u32, u64), u32>,
    /// By type and length: the last place.
    last_places: HashMap<(u32, u32), u32>,
    constant_words: Vec<u32>,
}

impl Writer {
    fn new(module: &Module) -> Self {
        let mut next_id = module.bound();
        let imported = module.globals().find(|instruction| {
            instruction.op == Op::ExtInstImport
                && instruction.string(0).is_ok_and(|(name, _)| name == GLSL)
        });
        let glsl_is_new = imported.is_none();
        let glsl = imported.map_or(next_id, |instruction: Instruction<'_>| instruction.result());
        next_id += u32::from(glsl_is_new);
        let header = module.words().get(..HEADER_WORDS).unwrap_or(&[]);
        Self {
            out: header.to_vec(),
            next_id,
            glsl,
            glsl_is_new,
            u32_ty: module
                .globals()
                .find(is_u32)
                .map(|instruction| instruction.result()),
            constants: HashMap::new(),
            last_places: HashMap::new(),
            constant_words: Vec::new(),
        }
    }

    fn id(&mut self) -> Result<u32> {
        if self.next_id >= MAX_BOUND {
            return Err(unsupported(format!(
                "the module has so many ids that its indices cannot be kept inside: more than \
                 {MAX_BOUND} would be needed"
            )));
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    /// Imports the extended instructions, where the module does not.
    fn import(&mut self) {
        if !core::mem::take(&mut self.glsl_is_new) {
            return;
        }
        let mut bytes = GLSL.as_bytes().to_vec();
        // The string ends with at least one zero.
        bytes.resize((bytes.len() + 4) & !3, 0);
        let name = bytes.as_chunks::<4>().0;
        let mut operands = vec![self.glsl];
        operands.extend(name.iter().map(|chunk| u32::from_le_bytes(*chunk)));
        emit(&mut self.out, Op::ExtInstImport, &operands);
    }

    /// The type of an unsigned 32-bit integer; a module may have only one.
    fn u32_ty(&mut self) -> Result<u32> {
        if let Some(ty) = self.u32_ty {
            return Ok(ty);
        }
        let ty = self.id()?;
        emit(&mut self.constant_words, Op::TypeInt, &[ty, 32, 0]);
        self.u32_ty = Some(ty);
        Ok(ty)
    }

    /// The constant that an index becomes, or that limits it.
    fn limit(&mut self, to: To) -> Result<u32> {
        match to {
            To::InsideBuffer { .. } => {
                let ty = self.u32_ty()?;
                self.constant(ty, Scalar::U32, 1)
            }
            To::Constant { ty, scalar, bits } => self.constant(ty, scalar, bits),
            To::AtMost {
                ty, scalar, limit, ..
            } => self.constant(ty, scalar, limit),
            // The index is as wide as the length, or is made so.
            To::Inside {
                ty,
                scalar,
                len,
                len_ty,
                len_scalar,
                ..
            } => {
                if bits_of(scalar) > bits_of(len_scalar) {
                    self.last_place(ty, scalar, len, true)
                } else {
                    let (ty, scalar) = if bits_of(scalar) == bits_of(len_scalar) {
                        (ty, scalar)
                    } else {
                        (len_ty, len_scalar)
                    };
                    self.last_place(ty, scalar, len, false)
                }
            }
        }
    }

    fn constant(&mut self, ty: u32, scalar: Scalar, bits: u64) -> Result<u32> {
        if let Some(&id) = self.constants.get(&(ty, bits)) {
            return Ok(id);
        }
        let id = self.id()?;
        // Never above the largest signed number, so narrow types have no sign to extend.
        let [low, high] = halves(bits);
        let words = [ty, id, low, high];
        let words = if scalar.size_bytes() == 8 {
            &words[..]
        } else {
            &words[..3]
        };
        emit(&mut self.constant_words, Op::Constant, words);
        self.constants.insert((ty, bits), id);
        Ok(id)
    }

    /// The last place of a specialized length, as a constant of a type; the length is widened to
    /// that first, where it is narrower.
    fn last_place(&mut self, ty: u32, scalar: Scalar, len: u32, widen: bool) -> Result<u32> {
        if let Some(&id) = self.last_places.get(&(ty, len)) {
            return Ok(id);
        }
        let one = self.constant(ty, scalar, 1)?;
        let wide = if widen {
            let wide = self.id()?;
            let words = [ty, wide, Op::SConvert as u32, len];
            emit(&mut self.constant_words, Op::SpecConstantOp, &words);
            wide
        } else {
            len
        };
        let id = self.id()?;
        let words = [ty, id, Op::ISub as u32, wide, one];
        emit(&mut self.constant_words, Op::SpecConstantOp, &words);
        self.last_places.insert((ty, len), id);
        Ok(id)
    }

    fn write_constants(&mut self) {
        self.out.append(&mut self.constant_words);
    }

    /// Writes what keeps an index inside, and gives the id that replaces it.
    fn bounded(&mut self, to: To, limit: u32) -> Result<u32> {
        let (index, ty) = match to {
            To::Constant { .. } => return Ok(limit),
            To::AtMost { index, ty, .. } => (index, ty),
            To::InsideBuffer {
                index,
                ty,
                block,
                member,
            } => {
                let last = self.last_of_buffer(ty, block, member, limit)?;
                return self.minimum(ty, index, last);
            }
            To::Inside {
                index,
                scalar,
                len_ty,
                len_scalar,
                ..
            } if bits_of(scalar) < bits_of(len_scalar) => {
                let wide = self.id()?;
                emit(&mut self.out, Op::SConvert, &[len_ty, wide, index]);
                (wide, len_ty)
            }
            To::Inside { index, ty, .. } => (index, ty),
        };
        self.minimum(ty, index, limit)
    }

    fn minimum(&mut self, ty: u32, index: u32, limit: u32) -> Result<u32> {
        let id = self.id()?;
        let words = [ty, id, self.glsl, U_MIN, index, limit];
        emit(&mut self.out, Op::ExtInst, &words);
        Ok(id)
    }

    /// Writes what finds the last place of a block's runtime-sized array, as a 32-bit integer of
    /// type `ty`. An array of no elements counts as one of one: a launch takes no buffer
    /// without one, or memory in its place that is large enough.
    fn last_of_buffer(&mut self, ty: u32, block: u32, member: u32, one: u32) -> Result<u32> {
        let unsigned = self.u32_ty()?;
        let len = self.id()?;
        emit(
            &mut self.out,
            Op::ArrayLength,
            &[unsigned, len, block, member],
        );
        let most = self.id()?;
        let words = [unsigned, most, self.glsl, U_MAX, len, one];
        emit(&mut self.out, Op::ExtInst, &words);
        let last = self.id()?;
        emit(&mut self.out, Op::ISub, &[unsigned, last, most, one]);
        if ty == unsigned {
            return Ok(last);
        }
        let cast = self.id()?;
        emit(&mut self.out, Op::Bitcast, &[ty, cast, last]);
        Ok(cast)
    }

    fn finish(mut self) -> Result<Vec<u32>> {
        if self.next_id > MAX_BOUND {
            return Err(unsupported(format!(
                "the module has so many ids that its indices cannot be kept inside: more than \
                 {MAX_BOUND} would be needed"
            )));
        }
        if let Some(bound) = self.out.get_mut(BOUND_WORD) {
            *bound = self.next_id;
        }
        Ok(self.out)
    }
}

/// Whether an instruction declares the unsigned 32-bit integer.
fn is_u32(instruction: &Instruction<'_>) -> bool {
    instruction.op == Op::TypeInt && instruction.operands() == [32, 0]
}

/// The low and the high word.
fn halves(bits: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
    [
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    ]
}

/// Writes an instruction.
fn emit(out: &mut Vec<u32>, op: Op, operands: &[u32]) {
    // What is written here has at most seven words.
    let len = 1 + u32::try_from(operands.len()).unwrap_or(0);
    out.push(len << 16 | op as u32);
    out.extend_from_slice(operands);
}
