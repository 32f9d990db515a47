//! GLSL through shaderc.

use std::sync::OnceLock;

use shaderc::{
    CompileOptions, Compiler, EnvVersion, IncludeType, Limit, OptimizationLevel, ResolvedInclude,
    ShaderKind, SpirvVersion, TargetEnv,
};

use super::include::Includes;
use super::{ANY_INSTRUCTION, Compiled, GlslRequest};
use crate::base::gate;
use crate::error::{Error, ErrorKind, Result};

/// What messages call a text that is in no file.
const NOWHERE: &str = "shader.comp";

/// A message shows so many lines of the compiler's; a fault in a macro can give thousands.
const MAX_LINES: usize = 40;

/// The one compiler: it takes milliseconds to make, and may be used by many threads at once.
static COMPILER: OnceLock<Result<Compiler, shaderc::Error>> = OnceLock::new();

/// The stack that every text gets, and what it gets on top for each byte: the compiler calls itself
/// for every level that a text nests expressions, statements or types.
const STACK: usize = 32 << 20;
const STACK_PER_BYTE: usize = 4 << 10;
/// The most stack that is asked for. It is taken from the system only as far as it is used.
const STACK_MAX: usize = 1 << 30;

/// Compiles on a thread of its own, whose stack is as large as the text may need: to run out of it
/// would end the process.
pub(super) fn compile(request: &GlslRequest<'_>) -> Result<Compiled> {
    // The compiler has locks of its own.
    let _inside = gate::enter();
    let wanted = request.source.len().saturating_mul(STACK_PER_BYTE);
    let stack = wanted.saturating_add(STACK).min(STACK_MAX);
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("vkaccel-glsl".to_owned());
        let thread = builder
            .stack_size(stack)
            .spawn_scoped(scope, || compile_here(request));
        let thread = thread.map_err(|cause| {
            let text = format!("no thread with a stack of {stack} bytes could be made: {cause}");
            Error::new(ErrorKind::OutOfHostMemory, text)
        })?;
        thread.join().unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::ShaderCompile,
                "the compiler's thread panicked",
            ))
        })
    })
}

fn compile_here(request: &GlslRequest<'_>) -> Result<Compiled> {
    let name = match request.file {
        Some(file) => file.display().to_string(),
        None => NOWHERE.to_owned(),
    };
    let source = without_bom(request.source);
    // The compiler takes C strings.
    if let Some(line) = line_of_nul(source) {
        return Err(refused(&format!(
            "{name}:{line}: error: a NUL character: this is not GLSL text"
        )));
    }
    check_version(source).map_err(|text| refused(&format!("{name}:1: error: {text}")))?;
    let compiler = COMPILER.get_or_init(Compiler::new);
    let compiler = compiler.as_ref().map_err(failed)?;
    let includes = Includes::new(
        request.file.is_none().then_some(NOWHERE),
        request.include_dirs,
    );
    let mut options = CompileOptions::new().map_err(|error| failed(&error))?;
    options.set_target_env(TargetEnv::Vulkan, EnvVersion::Vulkan1_2 as u32);
    options.set_target_spirv(SpirvVersion::V1_5);
    options.set_optimization_level(OptimizationLevel::Zero);
    // The device has the say, when the kernel is built. These are also what `gl_MaxCompute...` gives.
    for limit in [
        Limit::MaxComputeWorkGroupSizeX,
        Limit::MaxComputeWorkGroupSizeY,
        Limit::MaxComputeWorkGroupSizeZ,
    ] {
        options.set_limit(limit, i32::MAX);
    }
    for (macro_name, value) in request.defines {
        check_macro(macro_name, value)?;
        options.add_macro_definition(macro_name, Some(value));
    }
    options.set_include_callback(|requested, kind, requesting, depth| {
        let in_quotes = kind == IncludeType::Relative;
        let found = includes.find(requested, in_quotes, requesting, depth)?;
        Ok(ResolvedInclude {
            resolved_name: found.name,
            content: without_bom(&found.content).to_owned(),
        })
    });
    let compiled =
        compiler.compile_into_spirv(source, ShaderKind::Compute, &name, "main", Some(&options));
    match compiled {
        // The module names the extensions that were turned on by name. Those that
        // `#extension all : warn` turns on are named only in the warnings about their use.
        Ok(module) => Ok(Compiled {
            words: module.as_binary().to_vec(),
            has_any_instruction: module.get_warning_messages().contains(ANY_INSTRUCTION),
        }),
        Err(shaderc::Error::CompilationError(_, text)) => Err(refused(&text)),
        Err(error) => Err(failed(&error)),
    }
}

/// Some editors put a byte order mark first, which the compiler takes for a fault.
fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn line_of_nul(source: &str) -> Option<usize> {
    let nul = source.find('\0')?;
    Some(source[..nul].matches('\n').count() + 1)
}

/// Sees that the text says first which version of GLSL it is in, and that this one has compute
/// shaders: for others the compiler also prints its own built-in declarations, all of them.
fn check_version(source: &str) -> core::result::Result<(), String> {
    let version = after_comments(source)
        .strip_prefix('#')
        .and_then(|directive| {
            directive
                .trim_start_matches([' ', '\t'])
                .strip_prefix("version")
        })
        .ok_or("a compute shader starts with its version, as `#version 450`")?;
    let number = version.trim_start_matches([' ', '\t']);
    let end = number.find(|c: char| !c.is_ascii_digit());
    match number[..end.unwrap_or(number.len())].parse::<u64>() {
        Ok(number) if number >= 310 => Ok(()),
        _ => Err("`#version` must be 430 or later, or 310 es or later, for compute shaders".into()),
    }
}

/// The text from its first character that is neither blank nor in a comment.
fn after_comments(mut source: &str) -> &str {
    loop {
        source = source.trim_start();
        let comment_end = if source.starts_with("//") {
            source.find('\n')
        } else if source.starts_with("/*") {
            source.find("*/").map(|start| start + 2)
        } else {
            return source;
        };
        source = comment_end.map_or("", |end| &source[end..]);
    }
}

/// Sees that a macro is one line with a name of GLSL's.
fn check_macro(name: &str, value: &str) -> Result<()> {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name =
        name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    if !is_name {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{name:?} is not a name that GLSL can define; a name has letters, digits and \
                 underscores, and starts with no digit"
            ),
        ));
    }
    if value.contains(['\0', '\n', '\r']) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("the value of the macro {name} is {value:?}; a macro has one line"),
        ));
    }
    Ok(())
}

/// The compiler's messages, without its count of them.
fn refused(text: &str) -> Error {
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !is_count(line))
        // What the compiler adds to the texts of `Includes`.
        .map(|line| line.replace(" for header name: ", ", to include "))
        .collect();
    let shown = &lines[..lines.len().min(MAX_LINES)];
    let mut message = format!("the GLSL does not compile:\n{}", shown.join("\n"));
    if lines.len() > MAX_LINES {
        message.push_str(&format!("\n... and {} more lines", lines.len() - MAX_LINES));
    }
    if message.contains("Missing entry point") {
        message.push_str(
            "\nThe entry point of GLSL is always `void main()`; a macro can rename another function, \
             as `#define saxpy main`.",
        );
    }
    Error::new(ErrorKind::ShaderCompile, message)
}

/// Whether a line is the compiler's count, as `2 errors generated.`.
fn is_count(line: &str) -> bool {
    line.ends_with("generated.") && line.starts_with(|c: char| c.is_ascii_digit())
}

fn failed(error: &shaderc::Error) -> Error {
    Error::new(
        ErrorKind::ShaderCompile,
        format!("the GLSL compiler itself failed: {error}"),
    )
}

#[cfg(test)]
mod tests;
