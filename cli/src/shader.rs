//! The shader file: read, told apart by its content, and built into a kernel.

use vkaccel::{Device, Kernel, KernelBuilder, SpecValue, Spirv};

use crate::exit::Failure;
use crate::options::RunOptions;
use crate::trust;
use crate::values::ConstValue;

/// The first word of every SPIR-V module.
const MAGIC: u32 = 0x0723_0203;

/// A shader as it was in its file.
#[derive(Debug, PartialEq)]
pub enum Shader {
    /// GLSL text.
    Glsl(String),
    /// A SPIR-V module, in either byte order.
    Spirv(Vec<u8>),
}

impl Shader {
    /// Reads a shader, and checks that the options fit its kind.
    pub fn read(options: &RunOptions) -> Result<Self, Failure> {
        let path = options.shader.display();
        let bytes = std::fs::read(&options.shader)
            .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
        let shader =
            Self::tell(bytes).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
        if matches!(&shader, Self::Glsl(text) if is_assembly(text)) {
            return Err(Failure::usage(format!(
                "{path}: this is SPIR-V assembly, which is text; assemble it with `spirv-as {path} \
                 -o SHADER.spv`, and run that"
            )));
        }
        let for_glsl = !options.defines.is_empty() || !options.includes.is_empty();
        if for_glsl && matches!(shader, Self::Spirv(_)) {
            return Err(Failure::usage(format!(
                "--define and --include are for GLSL, and {path} is SPIR-V"
            )));
        }
        Ok(shader)
    }

    fn tell(bytes: Vec<u8>) -> Result<Self, String> {
        if let Some(&first) = bytes.first_chunk()
            && (u32::from_le_bytes(first) == MAGIC || u32::from_be_bytes(first) == MAGIC)
        {
            return Ok(Self::Spirv(bytes));
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(Self::Glsl(text)),
            _ => Err("this is neither SPIR-V nor the text of a shader".to_owned()),
        }
    }

    /// Builds the kernel on `device`.
    pub fn build(&self, options: &RunOptions, device: Device) -> vkaccel::Result<Kernel> {
        match self {
            Self::Glsl(text) => {
                let mut builder = Kernel::builder(text).file(&options.shader);
                for define in &options.defines {
                    builder = builder.define(&define.name, &define.value);
                }
                for folder in &options.includes {
                    builder = builder.include_dir(folder);
                }
                trust::build_glsl(&configured(builder, options, device))
            }
            Self::Spirv(module) => {
                let builder = Kernel::builder(Spirv::from(module));
                trust::build_spirv(configured(builder, options, device))
            }
        }
    }
}

/// Whether text is SPIR-V assembly: its first line that is no comment is an instruction's, as no
/// line of GLSL begins.
fn is_assembly(text: &str) -> bool {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(';'));
    let first = lines.next().unwrap_or_default();
    let word = first.split_whitespace().next().unwrap_or_default();
    let rest = word.strip_prefix("Op");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn configured<'a>(
    mut builder: KernelBuilder<'a>,
    options: &RunOptions,
    device: Device,
) -> KernelBuilder<'a> {
    builder = builder.device(device);
    if let Some(entry) = &options.entry {
        builder = builder.entry(entry);
    }
    for constant in &options.constants {
        builder = builder.specialize(
            constant.id,
            match constant.value {
                ConstValue::Bool(value) => SpecValue::from(value),
                ConstValue::Signed(value) => SpecValue::from(value),
                ConstValue::Unsigned(value) => SpecValue::from(value),
                ConstValue::Float(value) => SpecValue::from(value),
            },
        );
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spirv_of_either_byte_order_is_told_by_its_first_word() {
        for bytes in [MAGIC.to_le_bytes(), MAGIC.to_be_bytes()] {
            let bytes = bytes.to_vec();
            assert_eq!(Shader::tell(bytes.clone()), Ok(Shader::Spirv(bytes)));
        }
    }

    #[test]
    fn text_is_glsl_and_other_bytes_are_nothing() {
        let text = "void main() {}";
        assert_eq!(Shader::tell(text.into()), Ok(Shader::Glsl(text.to_owned())));
        assert_eq!(Shader::tell(Vec::new()), Ok(Shader::Glsl(String::new())));
        assert!(Shader::tell(vec![0xff, 0xfe, 0, 0]).is_err());
        assert!(Shader::tell(vec![0; 64]).is_err());
    }

    #[test]
    fn assembly_is_told_from_glsl() {
        let assembly = "; SPIR-V\n; Version: 1.0\n\n  OpCapability Shader\n";
        assert!(is_assembly(assembly));
        for glsl in ["", "// Op\n#version 450\n", "Opaque x;", "OpenGL();", "Op"] {
            assert!(!is_assembly(glsl), "{glsl}");
        }
    }
}
