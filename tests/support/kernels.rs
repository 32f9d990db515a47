//! Kernels from the committed modules.
//!
//! # Safety
//!
//! The modules of `tests/data/spirv` are this repository's own: valid, held to their sources by a
//! test, and staying inside the buffers that the tests launch them with; their loops end. Damaged
//! copies of them are refused by the reader, before any driver sees them: that is what tests show.
#![allow(unsafe_code)]

use vkaccel::{Kernel, KernelBuilder, Result, Source, Spirv};

/// A committed module, as the source of a kernel.
pub fn module(name: &str) -> Source<'static> {
    Source::from(Spirv::from(super::spirv(name)))
}

/// Builds without checks, for the committed modules.
pub fn build(builder: KernelBuilder<'_>) -> Result<Kernel> {
    // SAFETY: see the top of the file.
    unsafe { builder.build_unchecked() }
}

/// The kernel of a committed module with one entry point.
#[track_caller]
pub fn kernel(name: &str) -> Kernel {
    build(Kernel::builder(module(name))).unwrap_or_else(|error| panic!("{name}: {error}"))
}
