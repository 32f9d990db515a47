//! Vulkan by hand, over the shim.
//!
//! # Safety
//!
//! Objects are of the one device that is passed along, and destroyed after it has been waited for.

#![allow(dead_code, reason = "each test program uses a part of it")]

mod process;
mod vulkan;

pub use process::over_the_shim;
#[allow(unused_imports, reason = "each test program uses a part of it")]
pub use vulkan::{Opened, Vulkan};
