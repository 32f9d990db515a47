//! Owns kernels: reading SPIR-V, compiling GLSL, the interface, the check of a launch's arguments.

pub(crate) mod interface;

pub use interface::{
    Access, Binding, BindingKind, Interface, Member, PushBlock, Scalar, SpecConstant, Type,
};
