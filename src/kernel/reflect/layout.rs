//! The members of blocks: offsets, sizes, strides.

use spirv::{Decoration, StorageClass};

use super::lengths::array_len;
use crate::error::Result;
use crate::kernel::interface::{Access, Member, Scalar, Type};
use crate::kernel::spirv::{Constants, Module, Ty, Types, damaged, unsupported};

/// How many members and types the blocks of a module may be made of.
const MAX_NODES: u32 = 1 << 16;

/// How deep types may lie in each other.
const MAX_DEPTH: u32 = 32;

/// Reads blocks of a module.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) module: &'a Module,
    pub(super) types: &'a Types,
    pub(super) constants: &'a Constants<'a>,
    /// What may still be built; a struct of structs of structs is small in words and huge as a tree.
    nodes: u32,
    /// The blocks whose members are being read, each pointing to the next.
    pointees: Vec<u32>,
}

/// How a matrix lies in a member.
#[derive(Clone, Copy, Debug, Default)]
struct MatrixLayout {
    stride: Option<u32>,
    row_major: bool,
}

impl<'a> Layout<'a> {
    pub(super) fn new(module: &'a Module, types: &'a Types, constants: &'a Constants<'a>) -> Self {
        Self {
            module,
            types,
            constants,
            nodes: MAX_NODES,
            pointees: Vec::new(),
        }
    }

    /// The members of a block, by offset.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where a member has no place in the block; `Unsupported` where the block is
    /// too large to describe.
    pub(super) fn block(&mut self, block: u32) -> Result<Vec<Member>> {
        self.pointees.clear();
        self.members(block, 0)
    }

    fn members(&mut self, id: u32, depth: u32) -> Result<Vec<Member>> {
        let types = self.types;
        let Ty::Struct { members } = types.get(id)? else {
            return Err(damaged(format_args!("the block %{id} is no struct")));
        };
        let mut read = Vec::new();
        for (index, &ty) in (0..).zip(members) {
            read.push(self.member(id, index, ty, depth)?);
        }
        read.sort_by_key(|member| member.offset_bytes);
        Ok(read)
    }

    fn member(&mut self, id: u32, index: u32, ty: u32, depth: u32) -> Result<Member> {
        let module = self.module;
        let offset_bytes = module
            .member_decoration(id, index, Decoration::Offset)
            .ok_or_else(|| {
                damaged(format_args!(
                    "member {index} of the block %{id} has no offset"
                ))
            })?;
        let matrix = MatrixLayout {
            stride: module.member_decoration(id, index, Decoration::MatrixStride),
            row_major: module.member_has(id, index, Decoration::RowMajor),
        };
        let ty = self.ty(ty, matrix, depth + 1)?;
        let access = match &ty {
            Type::Address { .. } => Some(Access::ReadWrite),
            _ => None,
        };
        Ok(Member {
            name: module.member_name(id, index).to_owned(),
            offset_bytes,
            size_bytes: bytes(size_of_type(&ty))?,
            ty,
            access,
        })
    }

    fn ty(&mut self, id: u32, matrix: MatrixLayout, depth: u32) -> Result<Type> {
        self.nodes = match self.nodes.checked_sub(1) {
            Some(left) if depth <= MAX_DEPTH => left,
            _ => {
                return Err(unsupported(format!(
                    "the blocks of the module have more than {MAX_NODES} members, or types more \
                     than {MAX_DEPTH} deep in each other"
                )));
            }
        };
        let types = self.types;
        Ok(match types.get(id)? {
            Ty::Scalar(Scalar::Bool) => {
                return Err(damaged("a block has a member that is a truth value"));
            }
            Ty::Scalar(scalar) => Type::Scalar(*scalar),
            Ty::Vector { component, len } => Type::Vector {
                scalar: *component,
                len: *len,
            },
            Ty::Matrix { column, columns } => {
                let Ty::Vector { component, len } = types.get(*column)? else {
                    return Err(damaged(format_args!("%{column} is no column")));
                };
                Type::Matrix {
                    scalar: *component,
                    columns: *columns,
                    rows: *len,
                    stride_bytes: matrix
                        .stride
                        .ok_or_else(|| damaged("a matrix in a block has no stride"))?,
                    row_major: matrix.row_major,
                }
            }
            Ty::Array { element, len } => {
                let len = array_len(self.constants, *len)?;
                let len = u32::try_from(len)
                    .map_err(|_| damaged(format_args!("an array in a block has {len} elements")))?;
                self.array(id, *element, Some(len), matrix, depth)?
            }
            Ty::RuntimeArray { element } => self.array(id, *element, None, matrix, depth)?,
            Ty::Struct { .. } => {
                let members = self.members(id, depth)?;
                Type::Struct {
                    name: self.module.name(id).to_owned(),
                    size_bytes: bytes(end_of(&members))?,
                    members,
                }
            }
            Ty::Pointer {
                class: StorageClass::PhysicalStorageBuffer,
                pointee,
            } => self.address(*pointee, depth)?,
            Ty::Pointer { .. } | Ty::Other(_) => {
                return Err(unsupported(format!(
                    "a block of the module has a member of the type %{id}, which is neither a \
                     number nor an address"
                )));
            }
        })
    }

    fn array(
        &mut self,
        id: u32,
        element: u32,
        len: Option<u32>,
        matrix: MatrixLayout,
        depth: u32,
    ) -> Result<Type> {
        let stride_bytes = self
            .module
            .decoration(id, Decoration::ArrayStride)
            .ok_or_else(|| damaged(format_args!("the array %{id} in a block has no stride")))?;
        Ok(Type::Array {
            element: Box::new(self.ty(element, matrix, depth + 1)?),
            len,
            stride_bytes,
        })
    }

    fn address(&mut self, pointee: u32, depth: u32) -> Result<Type> {
        let block_name = self.module.name(pointee).to_owned();
        let ring = self.pointees.contains(&pointee);
        let members = if ring {
            Vec::new()
        } else if let Ty::Struct { .. } = self.types.get(pointee)? {
            self.pointees.push(pointee);
            let members = self.members(pointee, depth)?;
            self.pointees.pop();
            members
        } else {
            // A pointer to a plain value is a block with that as its only member.
            let ty = self.ty(pointee, MatrixLayout::default(), depth + 1)?;
            vec![Member {
                name: String::new(),
                offset_bytes: 0,
                size_bytes: bytes(size_of_type(&ty))?,
                ty,
                access: None,
            }]
        };
        let align = members.iter().map(|m| natural_align(&m.ty)).max();
        Ok(Type::Address {
            block_name,
            align_bytes: align.unwrap_or(1),
            members,
        })
    }
}

/// The bytes that a type takes in a block; 0 for an array without a length.
pub(super) fn size_of_type(ty: &Type) -> u64 {
    match ty {
        Type::Scalar(scalar) => u64::from(scalar.size_bytes()),
        Type::Vector { scalar, len } => u64::from(scalar.size_bytes()) * u64::from(*len),
        Type::Matrix {
            columns,
            rows,
            stride_bytes,
            row_major,
            ..
        } => u64::from(*stride_bytes) * u64::from(if *row_major { *rows } else { *columns }),
        Type::Array {
            len, stride_bytes, ..
        } => u64::from(*stride_bytes) * u64::from(len.unwrap_or(0)),
        Type::Struct { size_bytes, .. } => u64::from(*size_bytes),
        Type::Address { .. } => 8,
    }
}

/// The bytes to the end of the last member.
pub(super) fn end_of(members: &[Member]) -> u64 {
    members
        .iter()
        .map(|member| u64::from(member.offset_bytes) + u64::from(member.size_bytes))
        .max()
        .unwrap_or(0)
}

/// The alignment that the numbers in a type have of themselves.
fn natural_align(ty: &Type) -> u32 {
    match ty {
        Type::Scalar(scalar) | Type::Vector { scalar, .. } | Type::Matrix { scalar, .. } => {
            scalar.size_bytes()
        }
        Type::Array { element, .. } => natural_align(element),
        Type::Struct { members, .. } => {
            let all = members.iter().map(|member| natural_align(&member.ty));
            all.max().unwrap_or(1)
        }
        Type::Address { .. } => 8,
    }
}

/// A size that a block may have.
pub(super) fn bytes(size: u64) -> Result<u32> {
    u32::try_from(size).map_err(|_| {
        unsupported(format!(
            "a block of the module takes {size} bytes; members must lie within 4 GiB"
        ))
    })
}
