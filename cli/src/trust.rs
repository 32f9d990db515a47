//! Where trust is given: the one place that loads shaders whose accesses nobody checks.
//!
//! # Safety
//! To run a shader on the command line is to run a program: who names a file that is not checked
//! trusts it. The help of `vkaccel run` says so.
#![allow(unsafe_code)]

use vkaccel::{Details, Kernel, KernelBuilder, Result};

/// Builds GLSL with all checks, or without where safety alone forbids it, as with addresses.
pub fn build_glsl(builder: &KernelBuilder<'_>) -> Result<Kernel> {
    match builder.clone().build() {
        Err(error) if matches!(error.details(), Some(Details::NotCheckable { .. })) => {
            unchecked(builder.clone())
        }
        other => other,
    }
}

/// Builds SPIR-V, which nothing here can validate.
pub fn build_spirv(builder: KernelBuilder<'_>) -> Result<Kernel> {
    unchecked(builder)
}

fn unchecked(builder: KernelBuilder<'_>) -> Result<Kernel> {
    // SAFETY: that the module is valid, stays inside the buffers it is given and ends is the claim
    // of the person who named its file, as the help says; this program adds nothing to it.
    unsafe { builder.build_unchecked() }
}
