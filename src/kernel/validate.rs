//! The validator of SPIRV-Tools, which decides whether SPIR-V from elsewhere is valid.
//!
//! Vulkan leaves undefined what a driver makes of an invalid module, and only the validator can
//! tell. It takes minutes of C++ to build, so it stands behind the feature `spirv-val`.

use crate::error::{Error, ErrorKind, Result};

/// Whether a module is valid for a version of Vulkan 1, given by its minor number.
///
/// Layouts of blocks are judged by the loosest rules; which features they need is found by
/// reflection.
///
/// # Errors
///
/// `InvalidModule` with the validator's own words where it is not; `Unsupported` where the crate
/// was built without the feature `spirv-val`.
#[cfg(feature = "spirv-val")]
pub(crate) fn validate(words: &[u32], vulkan_minor: u32) -> Result<()> {
    use spirv_tools::TargetEnv;
    use spirv_tools::val::{Validator, ValidatorOptions, create};

    let environment = match vulkan_minor {
        0 => TargetEnv::Vulkan_1_0,
        1 => TargetEnv::Vulkan_1_1,
        2 => TargetEnv::Vulkan_1_2,
        3 => TargetEnv::Vulkan_1_3,
        _ => TargetEnv::Vulkan_1_4,
    };
    let options = ValidatorOptions {
        scalar_block_layout: true,
        uniform_buffer_standard_layout: true,
        ..ValidatorOptions::default()
    };
    create(Some(environment))
        .validate(words, Some(options))
        .map_err(|error| {
            let text = error.diagnostic.as_ref().map_or_else(
                || error.to_string(),
                |diagnostic| diagnostic.message.trim_end().to_owned(),
            );
            Error::new(
                ErrorKind::InvalidModule,
                format!(
                    "the SPIR-V validator refuses the module for Vulkan 1.{vulkan_minor}: {text}"
                ),
            )
        })
}

/// Whether a module is valid for a version of Vulkan 1, given by its minor number.
///
/// # Errors
///
/// Always `Unsupported`: the crate was built without the feature `spirv-val`.
#[cfg(not(feature = "spirv-val"))]
pub(crate) fn validate(_words: &[u32], _vulkan_minor: u32) -> Result<()> {
    let why = "it was compiled elsewhere and is not validated";
    Err(Error::new(
        ErrorKind::Unsupported,
        "SPIR-V that was compiled elsewhere loads safely only when it was validated, and the crate \
         was built without its validator; turn on the feature `spirv-val` (it builds SPIRV-Tools, \
         which takes a C++ compiler and about five minutes), or load the module with the unsafe \
         `KernelBuilder::build_unchecked`",
    )
    .with_details(crate::error::Details::NotCheckable {
        why: why.to_owned(),
    }))
}

#[cfg(test)]
#[cfg(test_data)]
mod tests {
    use super::*;
    use crate::kernel::spirv::test_data::words;

    #[cfg(feature = "spirv-val")]
    #[test]
    fn valid_modules_pass_and_broken_ones_come_with_the_reason() {
        for name in crate::kernel::spirv::test_data::names() {
            validate(&words(&name), 3).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        // A store whose value is its pointer.
        let mut broken = words("two_entries");
        let store = broken
            .iter()
            .position(|&word| word == 3 << 16 | 62)
            .unwrap();
        broken[store + 2] = broken[store + 1];
        let error = validate(&broken, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
        assert!(error.to_string().contains("OpStore"), "{error}");
    }

    #[cfg(feature = "spirv-val")]
    #[test]
    fn a_module_newer_than_the_version_of_vulkan_is_refused() {
        let error = validate(&words("local_size_id"), 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
    }

    #[cfg(not(feature = "spirv-val"))]
    #[test]
    fn without_the_validator_the_way_on_is_named() {
        let error = validate(&words("half"), 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(
            text.contains("`spirv-val`") && text.contains("build_unchecked"),
            "{text}"
        );
    }
}
