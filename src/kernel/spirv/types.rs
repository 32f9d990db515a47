//! A module's types, by id.

use std::collections::{HashMap, HashSet};

use spirv::{Op, StorageClass};

use super::{Instruction, Module, damaged};
use crate::error::Result;
use crate::kernel::interface::Scalar;

/// A type. What it is made of is given by id, and every id was checked to come before it, but for
/// pointers; so only pointers can lead in a ring.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    /// A number or a truth value.
    Scalar(Scalar),
    /// 2 to 4 scalars.
    Vector {
        /// What it holds.
        component: Scalar,
        /// How many.
        len: u32,
    },
    /// 2 to 4 columns.
    Matrix {
        /// The type of a column, a vector.
        column: u32,
        /// How many.
        columns: u32,
    },
    /// A sized array.
    Array {
        /// The type of what it holds.
        element: u32,
        /// The constant that says how many.
        len: u32,
    },
    /// An array whose length the buffer decides.
    RuntimeArray {
        /// The type of what it holds.
        element: u32,
    },
    /// A struct.
    Struct {
        /// The types of its members.
        members: Vec<u32>,
    },
    /// A pointer.
    Pointer {
        /// Where it points.
        class: StorageClass,
        /// To what.
        pointee: u32,
    },
    /// Anything else: images, samplers, functions, void.
    Other(Op),
}

/// A module's types.
#[derive(Debug, Default)]
pub(crate) struct Types(HashMap<u32, Ty>);

impl Types {
    /// Reads the types of a module.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where a type is made of what does not come before it, or has sizes that
    /// SPIR-V does not know.
    pub(crate) fn read(module: &Module) -> Result<Self> {
        let mut types = Self::default();
        let mut forward = HashSet::new();
        for instruction in module.globals() {
            if instruction.op == Op::TypeForwardPointer {
                forward.insert(instruction.operand(0)?);
                continue;
            }
            let Some(ty) = types.one(&instruction, &forward)? else {
                continue;
            };
            let id = instruction.result();
            if forward.contains(&id) && !matches!(ty, Ty::Pointer { .. }) {
                return Err(damaged(format_args!(
                    "%{id} is announced as a pointer and is none"
                )));
            }
            types.0.insert(id, ty);
        }
        Ok(types)
    }

    /// A type, if the id is one.
    pub(crate) fn find(&self, id: u32) -> Option<&Ty> {
        self.0.get(&id)
    }

    /// A type.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where the id is none.
    pub(crate) fn get(&self, id: u32) -> Result<&Ty> {
        self.0
            .get(&id)
            .ok_or_else(|| damaged(format_args!("%{id} is used as a type and is none")))
    }

    /// The type of what an id holds.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where it has none.
    pub(crate) fn of(&self, module: &Module, id: u32) -> Result<(u32, &Ty)> {
        let ty = module.definition(id)?.result_type();
        Ok((ty, self.get(ty)?))
    }

    /// The scalar that an id holds, if it holds one.
    pub(crate) fn scalar_of(&self, module: &Module, id: u32) -> Option<Scalar> {
        match self.0.get(&module.find(id)?.result_type())? {
            Ty::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    fn one(&self, instruction: &Instruction<'_>, forward: &HashSet<u32>) -> Result<Option<Ty>> {
        let known = |id: u32| {
            if self.0.contains_key(&id) || forward.contains(&id) {
                Ok(id)
            } else {
                Err(damaged(format_args!(
                    "the type %{} is made of %{id}, which is no type that comes before it",
                    instruction.result()
                )))
            }
        };
        let odd =
            |what: &str| damaged(format_args!("the type %{} is {what}", instruction.result()));
        Ok(Some(match instruction.op {
            Op::TypeBool => Ty::Scalar(Scalar::Bool),
            Op::TypeInt => {
                let signed = instruction.operand(1)? != 0;
                Ty::Scalar(match (instruction.operand(0)?, signed) {
                    (8, false) => Scalar::U8,
                    (8, true) => Scalar::I8,
                    (16, false) => Scalar::U16,
                    (16, true) => Scalar::I16,
                    (32, false) => Scalar::U32,
                    (32, true) => Scalar::I32,
                    (64, false) => Scalar::U64,
                    (64, true) => Scalar::I64,
                    _ => return Err(odd("an integer of an unknown width")),
                })
            }
            Op::TypeFloat => Ty::Scalar(
                match (instruction.operand(0)?, instruction.operands().len()) {
                    (16, 1) => Scalar::F16,
                    (32, 1) => Scalar::F32,
                    (64, 1) => Scalar::F64,
                    _ => return Err(odd("a float of an unknown width or encoding")),
                },
            ),
            Op::TypeVector => {
                let component = match self.0.get(&instruction.operand(0)?) {
                    Some(Ty::Scalar(scalar)) => *scalar,
                    _ => return Err(odd("a vector of what is no number")),
                };
                match instruction.operand(1)? {
                    len @ 2..=4 => Ty::Vector { component, len },
                    _ => return Err(odd("a vector of less than 2 or more than 4 components")),
                }
            }
            Op::TypeMatrix => {
                let column = instruction.operand(0)?;
                if !matches!(self.0.get(&column), Some(Ty::Vector { .. })) {
                    return Err(odd("a matrix of what is no vector"));
                }
                match instruction.operand(1)? {
                    columns @ 2..=4 => Ty::Matrix { column, columns },
                    _ => return Err(odd("a matrix of less than 2 or more than 4 columns")),
                }
            }
            Op::TypeArray => Ty::Array {
                element: known(instruction.operand(0)?)?,
                len: instruction.operand(1)?,
            },
            Op::TypeRuntimeArray => Ty::RuntimeArray {
                element: known(instruction.operand(0)?)?,
            },
            Op::TypeStruct => Ty::Struct {
                members: instruction
                    .operands()
                    .iter()
                    .map(|&id| known(id))
                    .collect::<Result<_>>()?,
            },
            Op::TypePointer => {
                let class = instruction.operand(0)?;
                Ty::Pointer {
                    class: StorageClass::from_u32(class)
                        .ok_or_else(|| odd("a pointer into an unknown storage class"))?,
                    pointee: known(instruction.operand(1)?)?,
                }
            }
            Op::TypeVoid
            | Op::TypeImage
            | Op::TypeSampler
            | Op::TypeSampledImage
            | Op::TypeOpaque
            | Op::TypeFunction => Ty::Other(instruction.op),
            _ => return Ok(None),
        }))
    }
}
