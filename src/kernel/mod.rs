//! Owns kernels: reading SPIR-V, compiling GLSL, the interface, the check of a launch's arguments.

pub(crate) mod args;
pub(crate) mod check;
pub(crate) mod clamp;
#[cfg(test)]
#[cfg(test_data)]
mod damage_tests;
pub(crate) mod glsl;
pub(crate) mod grid;
pub(crate) mod indirect;
mod inlined;
pub(crate) mod interface;
pub(crate) mod program;
pub(crate) mod reflect;
pub(crate) mod safety;
mod scalar;
pub(crate) mod source;
pub(crate) mod spirv;
pub(crate) mod validate;
pub(crate) mod value;

pub use args::{Address, Arg, Args};
pub use grid::{Extent, Grid};
pub use interface::{
    Access, Binding, BindingKind, Interface, Member, PushBlock, Scalar, SpecConstant, Type,
};
pub use source::{Source, SpecValue, Spirv};
