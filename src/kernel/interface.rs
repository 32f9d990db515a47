//! What a kernel takes: bindings, push constants, specialization constants, workgroup size.

use crate::device::FeatureSet;

/// What a kernel's entry point takes, read from its SPIR-V.
///
/// Arguments of a launch come in this order: [`bindings`](Self::bindings), then the members of
/// [`push_constants`](Self::push_constants).
///
/// # Example
///
/// ```
/// # #[cfg(feature = "glsl")] {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Access, Kernel};
///
/// let kernel = Kernel::from_glsl(
///     "#version 450
///      layout(local_size_x = 64) in;
///      layout(set = 0, binding = 0) readonly buffer X { float x[]; };
///      layout(set = 0, binding = 1) buffer Y { float y[]; };
///      layout(push_constant) uniform Push { float a; };
///      void main() { y[gl_GlobalInvocationID.x] += a * x[gl_GlobalInvocationID.x]; }",
/// )?;
/// let interface = kernel.interface();
/// assert_eq!(interface.local_size, [64, 1, 1]);
/// assert_eq!(interface.argument_count(), 3);
/// for binding in &interface.bindings {
///     println!("binding {}: {} {:?}", binding.binding, binding.block_name, binding.access);
/// }
/// assert_eq!(interface.bindings[0].access, Access::Read);
/// # }
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Interface {
    /// The entry point's name.
    pub entry: String,
    /// The size of a workgroup, after specialization.
    pub local_size: [u32; 3],
    /// The descriptors that the entry point uses, by set, then binding.
    pub bindings: Vec<Binding>,
    /// The push-constant block, where the entry point has one.
    pub push_constants: Option<PushBlock>,
    /// The specialization constants, by id.
    pub spec_constants: Vec<SpecConstant>,
    /// The device features that the module needs.
    pub required_features: FeatureSet,
    /// Bytes of shared memory that a workgroup takes.
    pub shared_memory_bytes: u64,
    /// Whether the module follows device addresses at all.
    pub uses_addresses: bool,
    /// Whether the module follows addresses that it finds in memory, so that a launch must say
    /// which buffers those are.
    pub follows_stored_addresses: bool,
}

/// What a shader does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// It only reads.
    Read,
    /// It only writes.
    Write,
    /// It may do both.
    ReadWrite,
}

impl Access {
    /// Whether the memory may be read.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether the memory may be written.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// The kind of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BindingKind {
    /// A storage buffer.
    Storage,
    /// A uniform buffer.
    Uniform,
}

/// The bytes of the memory that a launch puts in the place of a buffer of no bytes: more than any
/// element that a shader may touch although it sees none.
pub(crate) const STAND_IN_BYTES: u64 = 512;

/// One descriptor of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Binding {
    /// The descriptor set.
    pub set: u32,
    /// The binding in the set.
    pub binding: u32,
    /// The variable's name; empty where the module has no names or the block has no instance name.
    pub name: String,
    /// The block's name; empty where the module has no names.
    pub block_name: String,
    /// The members of the block.
    pub members: Vec<Member>,
    /// The kind of buffer it takes.
    pub kind: BindingKind,
    /// What the shader does with it.
    pub access: Access,
    /// How many descriptors it takes; above 1 for an array of buffers.
    pub count: u32,
    /// The bytes before a runtime-sized tail: a buffer must have at least these.
    pub fixed_bytes: u64,
    /// The bytes from one element of the runtime-sized tail to the next; 0 without one.
    pub stride_bytes: u64,
    /// The bytes to the end of the tail's first element, where atomics work on the tail; else 0.
    /// An index of theirs is made that of an element, so that there must be one.
    pub(crate) atomic_bytes: u64,
}

/// The push-constant block of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PushBlock {
    /// The bytes from the start of the block's range to the end of the last member.
    pub size_bytes: u32,
    /// The members, by offset.
    pub members: Vec<Member>,
}

/// A member of a block.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Member {
    /// Its name; empty where the module has no names.
    pub name: String,
    /// The bytes from the start of the block.
    pub offset_bytes: u32,
    /// Its size in bytes, without padding after it; 0 for a runtime-sized array.
    pub size_bytes: u32,
    /// Its type.
    pub ty: Type,
    /// What the shader does with the memory that the addresses in this member lead to; `None` where there are none.
    /// What it does with the block itself is [`Binding::access`].
    pub access: Option<Access>,
}

/// The type of a member.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// A number.
    Scalar(Scalar),
    /// A vector of numbers.
    Vector {
        /// What it holds.
        scalar: Scalar,
        /// How many.
        len: u32,
    },
    /// A matrix.
    Matrix {
        /// What it holds.
        scalar: Scalar,
        /// How many columns.
        columns: u32,
        /// How many rows.
        rows: u32,
        /// The bytes from one column (or row, in row-major order) to the next.
        stride_bytes: u32,
        /// Whether rows are contiguous instead of columns.
        row_major: bool,
    },
    /// An array; `len` is `None` for a runtime-sized one.
    Array {
        /// What it holds.
        element: Box<Type>,
        /// How many, where that is fixed.
        len: Option<u32>,
        /// The bytes from one element to the next.
        stride_bytes: u32,
    },
    /// A struct.
    Struct {
        /// Its name; empty where the module has no names.
        name: String,
        /// Its members.
        members: Vec<Member>,
        /// The bytes to the end of its last member.
        size_bytes: u32,
    },
    /// A device address of a block.
    Address {
        /// The name of the block it points to; empty where the module has no names.
        block_name: String,
        /// The members of the block it points to. Empty where blocks point to each other in a ring.
        members: Vec<Member>,
        /// The alignment in bytes that the shader relies on.
        align_bytes: u32,
    },
}

/// A number type of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scalar {
    /// A truth value; only specialization constants have it.
    Bool,
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit unsigned integer.
    U16,
    /// 16-bit signed integer.
    I16,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// 64-bit unsigned integer.
    U64,
    /// 64-bit signed integer.
    I64,
    /// 16-bit float.
    F16,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

impl Scalar {
    /// Its size in bytes; that of a truth value is 4, as in a specialization constant.
    pub const fn size_bytes(self) -> u32 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::Bool | Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Its name in Rust, as `u32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// A specialization constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpecConstant {
    /// Its id.
    pub id: u32,
    /// Its name; empty for one without, as those of a workgroup's size often are.
    pub name: String,
    /// Its type.
    pub ty: Scalar,
    /// The bits of its default value, zero-extended.
    pub default_bits: u64,
}

impl Member {
    /// What the shader may do with the memory that an address leads to.
    pub(crate) fn reach(&self) -> Access {
        self.access.unwrap_or(Access::ReadWrite)
    }
}

impl Interface {
    /// How many arguments a launch takes: one a binding, and one a push-constant member.
    pub fn argument_count(&self) -> usize {
        self.bindings.len()
            + self
                .push_constants
                .as_ref()
                .map_or(0, |block| block.members.len())
    }
}
