//! The values of a module's scalar constants, after specialization.

use std::collections::HashMap;

use spirv::{Decoration, Op};

use super::{Instruction, Module, Types};
use crate::error::Result;
use crate::kernel::interface::Scalar;

/// A scalar constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    /// Its bits, zero-extended.
    pub(crate) bits: u64,
    /// Its type.
    pub(crate) ty: Scalar,
    /// Whether specialization can change it.
    pub(crate) specialized: bool,
}

impl Constant {
    /// Its value as an integer, with its sign where the type has one.
    pub(crate) fn integer(self) -> i128 {
        match self.ty {
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                i128::from(sign_extend(self.bits, bits_of(self.ty)))
            }
            _ => i128::from(self.bits),
        }
    }
}

/// The values of a module's scalar constants.
#[derive(Debug)]
pub(crate) struct Constants<'a> {
    module: &'a Module,
    values: HashMap<u32, Constant>,
}

impl<'a> Constants<'a> {
    /// Computes the constants, the specialization constants of the ids in `specialization` with
    /// the bits given there.
    ///
    /// # Errors
    ///
    /// `InvalidModule` for a constant that is cut short.
    pub(crate) fn read(
        module: &'a Module,
        types: &Types,
        specialization: &[(u32, u64)],
    ) -> Result<Self> {
        let given: HashMap<u32, u64> = specialization.iter().copied().collect();
        let mut constants = Self {
            module,
            values: HashMap::new(),
        };
        // Constants come before their uses, so one pass in order computes all of them.
        for instruction in module.globals() {
            let Some(ty) = types.scalar_of(module, instruction.result()) else {
                continue;
            };
            if let Some(constant) = constants.one(&instruction, ty, &given)? {
                constants.values.insert(instruction.result(), constant);
            }
        }
        Ok(constants)
    }

    /// The constant of an id; `None` where it is no scalar constant, or one that is computed in a
    /// way that the reader does not follow.
    pub(crate) fn get(&self, id: u32) -> Option<Constant> {
        self.values.get(&id).copied()
    }

    fn one(
        &self,
        instruction: &Instruction<'_>,
        ty: Scalar,
        given: &HashMap<u32, u64>,
    ) -> Result<Option<Constant>> {
        let spec_id = self
            .module
            .decoration(instruction.result(), Decoration::SpecId);
        let given = spec_id.and_then(|id| given.get(&id).copied());
        let (bits, specialized) = match instruction.op {
            Op::Constant => (literal(instruction, ty)?, false),
            Op::ConstantTrue => (1, false),
            Op::ConstantFalse | Op::ConstantNull => (0, false),
            Op::SpecConstant => (given.unwrap_or(literal(instruction, ty)?), true),
            Op::SpecConstantTrue => (given.map_or(1, |bits| u64::from(bits != 0)), true),
            Op::SpecConstantFalse => (given.map_or(0, |bits| u64::from(bits != 0)), true),
            Op::SpecConstantOp => match self.operation(instruction, ty)? {
                Some(constant) => return Ok(Some(constant)),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(Constant {
            bits: bits & mask(bits_of(ty)),
            ty,
            specialized,
        }))
    }

    fn operation(&self, instruction: &Instruction<'_>, ty: Scalar) -> Result<Option<Constant>> {
        let Some(op) = Op::from_u32(instruction.operand(0)?) else {
            return Ok(None);
        };
        let operands = instruction.operands().get(1..).unwrap_or(&[]);
        if op == Op::CompositeExtract {
            return Ok(self.extract(operands));
        }
        let Some(values) = operands
            .iter()
            .map(|&id| self.get(id))
            .collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        let Some(bits) = compute(op, &values) else {
            return Ok(None);
        };
        Ok(Some(Constant {
            bits: bits & mask(bits_of(ty)),
            ty,
            specialized: values.iter().any(|value| value.specialized),
        }))
    }

    /// A part of a constant composite: its id, then the indices.
    fn extract(&self, operands: &[u32]) -> Option<Constant> {
        let (&composite, path) = operands.split_first()?;
        let mut id = composite;
        for &index in path {
            let instruction = self.module.find(id)?;
            if !matches!(
                instruction.op,
                Op::ConstantComposite | Op::SpecConstantComposite
            ) {
                return None;
            }
            id = *instruction.operands().get(index as usize)?;
        }
        self.get(id)
    }
}

/// The bits of an `OpConstant` or `OpSpecConstant` as they stand in the module.
///
/// # Errors
///
/// `InvalidModule` where there are fewer words than the type takes.
pub(crate) fn literal(instruction: &Instruction<'_>, ty: Scalar) -> Result<u64> {
    let low = u64::from(instruction.operand(0)?);
    let bits = if ty.size_bytes() == 8 {
        low | u64::from(instruction.operand(1)?) << 32
    } else {
        low
    };
    Ok(bits & mask(bits_of(ty)))
}

fn compute(op: Op, values: &[Constant]) -> Option<u64> {
    let first = values.first()?;
    let (a, width) = (first.bits, bits_of(first.ty));
    let sa = sign_extend(a, width);
    if let [_] = values {
        return Some(match op {
            Op::Not => !a,
            Op::SNegate => a.wrapping_neg(),
            Op::LogicalNot => u64::from(a == 0),
            Op::UConvert => a,
            #[expect(clippy::cast_sign_loss, reason = "the bits are what is wanted")]
            Op::SConvert => sa as u64,
            _ => return None,
        });
    }
    let second = values.get(1)?;
    let b = second.bits;
    let sb = sign_extend(b, bits_of(second.ty));
    if let [_, _, third] = values {
        return (op == Op::Select).then_some(if a != 0 { b } else { third.bits });
    }
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    #[expect(clippy::cast_sign_loss, reason = "the bits are what is wanted")]
    let bits = |value: i64| value as u64;
    Some(match op {
        Op::IAdd => a.wrapping_add(b),
        Op::ISub => a.wrapping_sub(b),
        Op::IMul => a.wrapping_mul(b),
        Op::UDiv => a.checked_div(b)?,
        Op::UMod => a.checked_rem(b)?,
        Op::SDiv => bits(sa.checked_div(sb)?),
        Op::SRem => bits(sa.checked_rem(sb)?),
        // The sign of the result is that of the divisor.
        Op::SMod => bits(sa.checked_rem(sb)?.checked_add(sb)?.checked_rem(sb)?),
        Op::ShiftRightLogical if shift < width => a >> shift,
        Op::ShiftLeftLogical if shift < width => a << shift,
        Op::ShiftRightArithmetic if shift < width => bits(sa >> shift),
        Op::BitwiseOr => a | b,
        Op::BitwiseXor => a ^ b,
        Op::BitwiseAnd => a & b,
        Op::LogicalOr => u64::from(a != 0 || b != 0),
        Op::LogicalAnd => u64::from(a != 0 && b != 0),
        Op::LogicalEqual => u64::from((a != 0) == (b != 0)),
        Op::LogicalNotEqual => u64::from((a != 0) != (b != 0)),
        Op::IEqual => u64::from(a == b),
        Op::INotEqual => u64::from(a != b),
        Op::ULessThan => u64::from(a < b),
        Op::ULessThanEqual => u64::from(a <= b),
        Op::UGreaterThan => u64::from(a > b),
        Op::UGreaterThanEqual => u64::from(a >= b),
        Op::SLessThan => u64::from(sa < sb),
        Op::SLessThanEqual => u64::from(sa <= sb),
        Op::SGreaterThan => u64::from(sa > sb),
        Op::SGreaterThanEqual => u64::from(sa >= sb),
        _ => return None,
    })
}

/// The width of a scalar in bits; that of a truth value is 1.
pub(crate) const fn bits_of(ty: Scalar) -> u32 {
    match ty {
        Scalar::Bool => 1,
        other => other.size_bytes() * 8,
    }
}

/// The largest unsigned number of so many bits.
pub(crate) const fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

#[expect(clippy::cast_possible_wrap, reason = "the bits are what is wanted")]
const fn sign_extend(bits: u64, width: u32) -> i64 {
    let unused = 64 - width;
    ((bits << unused) as i64) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(bits: u64, ty: Scalar) -> Constant {
        Constant {
            bits,
            ty,
            specialized: false,
        }
    }

    #[test]
    fn signed_arithmetic_follows_the_width() {
        let minus_seven = constant(0xffff_fff9, Scalar::I32);
        let three = constant(3, Scalar::I32);
        let low = |op| compute(op, &[minus_seven, three]).map(|bits| bits & mask(32));
        assert_eq!(low(Op::SDiv), Some(0xffff_fffe));
        assert_eq!(low(Op::SRem), Some(0xffff_ffff));
        assert_eq!(low(Op::SMod), Some(2));
        assert_eq!(low(Op::SLessThan), Some(1));
        assert_eq!(low(Op::ULessThan), Some(0));
        assert_eq!(minus_seven.integer(), -7);
    }

    #[test]
    fn what_has_no_value_has_none() {
        let zero = constant(0, Scalar::U32);
        let min = constant(1 << 63, Scalar::I64);
        let minus_one = constant(u64::MAX, Scalar::I64);
        assert_eq!(compute(Op::UDiv, &[zero, zero]), None);
        assert_eq!(compute(Op::SDiv, &[min, minus_one]), None);
        assert_eq!(compute(Op::SMod, &[min, minus_one]), None);
        let far = constant(32, Scalar::U32);
        assert_eq!(compute(Op::ShiftLeftLogical, &[far, far]), None);
        assert_eq!(compute(Op::FAdd, &[zero, zero]), None);
        assert_eq!(compute(Op::IAdd, &[]), None);
    }
}
