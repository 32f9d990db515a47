//! Owns the way from GLSL text to SPIR-V words.

#[cfg(feature = "glsl")]
mod compiler;
#[cfg(feature = "glsl")]
mod include;

use std::path::{Path, PathBuf};

use crate::error::Result;

/// A compute shader to compile.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(
    not(feature = "glsl"),
    expect(dead_code, reason = "read by the compiler alone")
)]
pub(crate) struct GlslRequest<'a> {
    /// The text.
    pub(crate) source: &'a str,
    /// The file that the text came from: its name stands in messages, and its folder is the first
    /// place where `#include "..."` looks. `None` for text that is in no file.
    pub(crate) file: Option<&'a Path>,
    /// Macros, as `#define NAME VALUE` before the first line.
    pub(crate) defines: &'a [(String, String)],
    /// Where `#include` looks, in this order.
    pub(crate) include_dirs: &'a [PathBuf],
}

/// What a shader was compiled to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiled {
    pub(crate) words: Vec<u32>,
    /// Whether the shader puts instructions into the module that the compiler does not check.
    pub(crate) has_any_instruction: bool,
}

/// The extension of GLSL by which a shader does so.
pub(crate) const ANY_INSTRUCTION: &str = "GL_EXT_spirv_intrinsics";

/// Compiles GLSL to SPIR-V 1.5 for Vulkan 1.2, without optimization, so that names and unused
/// bindings are kept. The entry point is `main`, as GLSL has no other.
///
/// # Errors
///
/// `ShaderCompile` with the compiler's own text; `InvalidArgument` for a macro that is none;
/// `CompilerUnavailable` without the feature `glsl`.
#[cfg(feature = "glsl")]
pub(crate) fn compile(request: &GlslRequest<'_>) -> Result<Compiled> {
    compiler::compile(request)
}

/// Says that this build has no compiler.
///
/// # Errors
///
/// `CompilerUnavailable`, always.
#[cfg(not(feature = "glsl"))]
pub(crate) fn compile(_request: &GlslRequest<'_>) -> Result<Compiled> {
    Err(crate::error::Error::new(
        crate::error::ErrorKind::CompilerUnavailable,
        "GLSL was given, and vkaccel was built without its feature `glsl`, which brings the \
         compiler; turn the feature on, or compile the shader to SPIR-V beforehand (glslc \
         --target-env=vulkan1.2 shader.comp -o shader.spv) and load that",
    ))
}

#[cfg(all(test, not(feature = "glsl")))]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn without_the_compiler_the_error_names_the_feature_and_the_other_way() {
        let error = compile(&GlslRequest::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompilerUnavailable);
        let text = error.to_string();
        assert!(text.contains("feature `glsl`"), "{text}");
        assert!(text.contains("SPIR-V"), "{text}");
    }
}
