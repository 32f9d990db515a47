//! Which indices of a module may leave what they index, and what keeps each inside.

use std::collections::HashSet;

use spirv::Op;

use crate::error::Result;
use crate::kernel::interface::Scalar;
use crate::kernel::reflect::atomics::atomic_pointers;
use crate::kernel::spirv::{
    Constants, Instruction, Module, Ty, Types, bits_of, damaged, mask, unsupported,
};

/// An index to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The number of its instruction.
    pub(super) instruction: usize,
    /// Which word of the instruction it is.
    pub(super) word: usize,
    /// What it becomes.
    pub(super) to: To,
}

/// What an index becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// A constant.
    Constant {
        /// Its type.
        ty: u32,
        /// Its type as a number.
        scalar: Scalar,
        /// Its bits.
        bits: u64,
    },
    /// The index or the limit, whatever is less as an unsigned number.
    AtMost {
        /// The index.
        index: u32,
        /// The type of the index.
        ty: u32,
        /// That type as a number.
        scalar: Scalar,
        /// The limit.
        limit: u64,
    },
    /// The index or the last place of a specialized length, whatever is less as an unsigned number.
    Inside {
        /// The index.
        index: u32,
        /// The type of the index.
        ty: u32,
        /// That type as a number.
        scalar: Scalar,
        /// The constant that is the length.
        len: u32,
        /// The type of the length.
        len_ty: u32,
        /// That type as a number.
        len_scalar: Scalar,
    },
    /// The index or the last place of a buffer's runtime-sized array, whatever is less as an
    /// unsigned number.
    InsideBuffer {
        /// The index, of 32 bits.
        index: u32,
        /// The type of the index.
        ty: u32,
        /// The pointer to the block.
        block: u32,
        /// The member that is the array.
        member: u32,
    },
}

/// How many there are of what is indexed.
#[derive(Clone, Copy, Debug)]
enum Count {
    Fixed(u64),
    Specialized(u32),
}

/// Finds the indices of a module that need a limit, in the order of its instructions.
///
/// # Errors
///
/// `InvalidModule` for chains of indices that do not fit their types; `Unsupported` for lengths of
/// arrays that cannot be followed.
pub(super) fn plan(module: &Module) -> Result<Vec<Change>> {
    let types = Types::read(module)?;
    let constants = Constants::read(module, &types, &[])?;
    let mut planner = Planner {
        module,
        types: &types,
        constants: &constants,
        atomics: atomic_pointers(module),
        changes: Vec::new(),
    };
    for instruction in module.instructions() {
        match instruction.op {
            Op::AccessChain | Op::InBoundsAccessChain => planner.chain(&instruction, 1)?,
            // What comes first is an element of no array.
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => planner.chain(&instruction, 2)?,
            Op::VectorExtractDynamic => planner.component(&instruction, 1)?,
            Op::VectorInsertDynamic => planner.component(&instruction, 2)?,
            _ => {}
        }
    }
    Ok(planner.changes)
}

#[derive(Debug)]
struct Planner<'a> {
    module: &'a Module,
    types: &'a Types,
    constants: &'a Constants<'a>,
    /// The pointers that atomic instructions use.
    atomics: HashSet<u32>,
    changes: Vec<Change>,
}

impl Planner<'_> {
    /// The indices of an access chain, from an operand on.
    fn chain(&mut self, instruction: &Instruction<'_>, first: usize) -> Result<()> {
        let types = self.types;
        let (_, pointer) = types.of(self.module, instruction.operand(0)?)?;
        let Ty::Pointer { pointee, .. } = pointer else {
            return Err(damaged(format_args!(
                "%{} indexes what is no pointer",
                instruction.result()
            )));
        };
        let mut ty = *pointee;
        let indices = instruction.operands().get(first..).unwrap_or(&[]);
        for (operand, &index) in (first..).zip(indices) {
            ty = match types.get(ty)? {
                Ty::Struct { members } => self.member(instruction, members, index)?,
                Ty::Vector { component, len } => {
                    self.limit(instruction, operand, index, Count::Fixed((*len).into()))?;
                    // Nothing lies inside of a number, so this must be the last index.
                    if operand + 1 != instruction.operands().len() {
                        return Err(damaged(format_args!(
                            "%{} indexes a {}",
                            instruction.result(),
                            component.name()
                        )));
                    }
                    break;
                }
                Ty::Matrix { column, columns } => {
                    self.limit(instruction, operand, index, Count::Fixed((*columns).into()))?;
                    *column
                }
                Ty::Array { element, len } => {
                    let count = self.count(*len)?;
                    self.limit(instruction, operand, index, count)?;
                    *element
                }
                Ty::RuntimeArray { element } => {
                    // Robust buffer access keeps loads and stores inside of the buffer. Atomics
                    // too, but not every driver does so.
                    if self.atomics.contains(&instruction.result()) {
                        self.in_buffer(instruction, operand, index)?;
                    }
                    *element
                }
                Ty::Scalar(_) | Ty::Pointer { .. } | Ty::Other(_) => {
                    return Err(damaged(format_args!(
                        "%{} indexes what has no parts",
                        instruction.result()
                    )));
                }
            };
        }
        Ok(())
    }

    /// Plans what keeps an index into the runtime-sized array of a block inside.
    fn in_buffer(
        &mut self,
        instruction: &Instruction<'_>,
        operand: usize,
        index: u32,
    ) -> Result<()> {
        let (ty, scalar) = self.integer(instruction, index)?;
        let member = self.constants.get(instruction.operand(1)?);
        let member = member.and_then(|member| u32::try_from(member.integer()).ok());
        let is_plain =
            instruction.op == Op::AccessChain || instruction.op == Op::InBoundsAccessChain;
        // The launch sees that a variable's buffer has an element; of other pointers nobody knows.
        let block = instruction.operand(0)?;
        let of_variable = self
            .module
            .find(block)
            .is_some_and(|i| i.op == Op::Variable);
        let is_plain = is_plain && of_variable;
        let (true, 2, 32, Some(member)) = (is_plain, operand, bits_of(scalar), member) else {
            return Err(unsupported(format!(
                "the atomics on %{} index a buffer in a way that cannot be kept inside; index the \
                 block's last member by a 32-bit integer",
                instruction.result()
            )));
        };
        self.change(
            instruction,
            operand,
            To::InsideBuffer {
                index,
                ty,
                block,
                member,
            },
        );
        Ok(())
    }

    /// The type of an index.
    fn integer(&self, instruction: &Instruction<'_>, index: u32) -> Result<(u32, Scalar)> {
        match self.types.of(self.module, index)? {
            (ty, Ty::Scalar(scalar)) if is_integer(*scalar) => Ok((ty, *scalar)),
            _ => Err(damaged(format_args!(
                "%{} has an index that is no integer (%{index})",
                instruction.result()
            ))),
        }
    }

    fn change(&mut self, instruction: &Instruction<'_>, operand: usize, to: To) {
        // The words before the operands are the first and those of the result.
        let before = instruction.words().len() - instruction.operands().len();
        self.changes.push(Change {
            instruction: instruction.number,
            word: before + operand,
            to,
        });
    }

    /// The type of a struct's member.
    fn member(&self, instruction: &Instruction<'_>, members: &[u32], index: u32) -> Result<u32> {
        self.constants
            .get(index)
            .filter(|constant| !constant.specialized)
            .and_then(|constant| usize::try_from(constant.integer()).ok())
            .and_then(|index| members.get(index).copied())
            .ok_or_else(|| {
                damaged(format_args!(
                    "%{} takes a member that the struct does not have",
                    instruction.result()
                ))
            })
    }

    /// The component that an instruction takes from a vector or puts into one.
    fn component(&mut self, instruction: &Instruction<'_>, operand: usize) -> Result<()> {
        let types = self.types;
        let (_, vector) = types.of(self.module, instruction.operand(0)?)?;
        let Ty::Vector { len, .. } = vector else {
            return Err(damaged(format_args!(
                "%{} takes a component of what is no vector",
                instruction.result()
            )));
        };
        let index = instruction.operand(operand)?;
        self.limit(instruction, operand, index, Count::Fixed((*len).into()))
    }

    fn count(&self, len: u32) -> Result<Count> {
        match self.constants.get(len) {
            Some(constant) if constant.specialized => Ok(Count::Specialized(len)),
            Some(constant) => match u64::try_from(constant.integer()) {
                Ok(count) if count > 0 => Ok(Count::Fixed(count)),
                _ => Err(damaged(format_args!(
                    "an array has {} elements (%{len})",
                    constant.integer()
                ))),
            },
            None => Err(unsupported(format!(
                "an array's length is computed as %{len} in a way that cannot be followed, so \
                 indices into it cannot be kept inside; use integer arithmetic on specialization \
                 constants"
            ))),
        }
    }

    /// Plans what keeps an index below a count.
    fn limit(
        &mut self,
        instruction: &Instruction<'_>,
        operand: usize,
        index: u32,
        count: Count,
    ) -> Result<()> {
        let (ty, scalar) = self.integer(instruction, index)?;
        let fixed_index = self.constants.get(index).filter(|c| !c.specialized);
        // Indices are signed, whatever their type says.
        let most = mask(bits_of(scalar) - 1);
        let to = match (count, fixed_index) {
            (Count::Fixed(count), Some(constant)) => {
                let limit = most.min(count - 1);
                if constant.bits <= limit {
                    return Ok(());
                }
                To::Constant {
                    ty,
                    scalar,
                    bits: limit,
                }
            }
            (Count::Fixed(count), None) => To::AtMost {
                index,
                ty,
                scalar,
                limit: most.min(count - 1),
            },
            // Every array has a first element.
            (Count::Specialized(_), Some(constant)) if constant.bits == 0 => return Ok(()),
            (Count::Specialized(len), _) => self.specialized(index, ty, scalar, len)?,
        };
        self.change(instruction, operand, to);
        Ok(())
    }

    fn specialized(&self, index: u32, ty: u32, scalar: Scalar, len: u32) -> Result<To> {
        let (len_ty, len_scalar) = match self.types.of(self.module, len)? {
            (len_ty, Ty::Scalar(len_scalar)) if is_integer(*len_scalar) => (len_ty, *len_scalar),
            _ => {
                return Err(damaged(format_args!(
                    "an array's length (%{len}) is no integer"
                )));
            }
        };
        if bits_of(len_scalar) < 32 {
            return Err(unsupported(format!(
                "an array's length is a specialization constant of {} bits (%{len}), so indices \
                 into it cannot be kept inside; use one of 32 bits",
                bits_of(len_scalar)
            )));
        }
        Ok(To::Inside {
            index,
            ty,
            scalar,
            len,
            len_ty,
            len_scalar,
        })
    }
}

fn is_integer(scalar: Scalar) -> bool {
    !matches!(
        scalar,
        Scalar::Bool | Scalar::F16 | Scalar::F32 | Scalar::F64
    )
}
