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

/// Kernels that do the same, with their buffers as descriptors and by address.
const TWINS: &[(&str, &str)] = &[
    ("add_at_index", "add_at_index_at"),
    ("affine", "affine_here_at"),
    ("affine_map", "affine_at"),
    ("slow", "slow_at"),
];

/// The kernel of a committed module, or its twin that takes addresses where it has one and the
/// environment asks for it: for tests of what does not depend on how a kernel gets its buffers.
#[track_caller]
pub fn chosen(name: &str) -> Kernel {
    let twin = TWINS.iter().find(|twin| twin.0 == name);
    match twin.filter(|_| super::is_set("VKACCEL_TEST_ADDRESSES")) {
        Some(twin) => kernel(twin.1),
        None => kernel(name),
    }
}

/// How many words lie between those that are launched on by streams that nothing orders: each has a
/// view of its own, which may start there on any device, since layers take a kernel to use all that it
/// is given.
pub const APART: usize = 64;
