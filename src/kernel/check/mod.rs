//! Owns the checks that come before anything is recorded: of a kernel against its device, once, and
//! of each launch's arguments against the kernel's interface. Pure.

mod describe;
mod mismatch;
mod plan;
mod program;
#[cfg(test)]
mod tests;

pub(crate) use describe::kernel_name;
pub(crate) use plan::{DescriptorUse, Plan, plan};
pub(crate) use program::check_program;
