//! Promises of kernels: what is read from a module, and what is refused before any driver sees it.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic anywhere, and its numbers are small"
)]

mod support;

use support::kernels::{build, kernel, module};
use support::{builder, on_each_device, on_each_device_with, spirv};
use vkaccel::{
    Buffer, Details, Error, ErrorKind, Feature, Grid, Kernel, Result, Spirv, get_device_capability,
};

/// The error of building a kernel, which must have this kind.
#[track_caller]
fn refused(result: Result<Kernel>, kind: ErrorKind) -> Error {
    let error = result.map(|kernel| kernel.interface().clone()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}

fn from_bytes(bytes: &[u8]) -> Result<Kernel> {
    build(Kernel::builder(Spirv::from(bytes)))
}

/// A workgroup's size comes from a constant without a name, of any value.
#[test]
fn a_workgroup_is_as_large_as_its_specialization_constant_says() {
    on_each_device("a_workgroup_is_as_large", |_| {
        let sevens = build(Kernel::builder(module("local_size")).specialize(3, 7)).unwrap();
        assert_eq!(sevens.interface().local_size, [7, 1, 1]);
        let words = Buffer::from_slice(&[u32::MAX; 24]).unwrap();
        sevens.launch(Grid::groups(3), (&words,)).unwrap();
        let mut expected: Vec<u32> = (0..21).map(|i| 700 + i % 7).collect();
        expected.extend([u32::MAX; 3]);
        assert_eq!(words.to_vec().unwrap(), expected);

        let ones = kernel("local_size");
        assert_eq!(ones.interface().local_size, [1, 1, 1]);
        let words = Buffer::from_slice(&[u32::MAX; 24]).unwrap();
        ones.launch(Grid::groups(3), (&words,)).unwrap();
        let mut expected = vec![100; 3];
        expected.extend([u32::MAX; 21]);
        assert_eq!(words.to_vec().unwrap(), expected);
    });
}

#[test]
fn a_workgroup_larger_than_the_devices_is_refused_with_both_numbers() {
    on_each_device("a_workgroup_larger", |_| {
        let capability = get_device_capability(None).unwrap();
        let most = capability.limits().max_compute_work_group_size[0];
        let largest = most.min(capability.limits().max_compute_work_group_invocations);
        let specialized =
            |size: u32| build(Kernel::builder(module("local_size")).specialize(3, size));
        assert_eq!(
            specialized(largest).unwrap().interface().local_size[0],
            largest
        );
        let error = refused(specialized(largest + 1), ErrorKind::LimitExceeded);
        assert!(
            matches!(
                error.details(),
                Some(Details::Limit { asked, limit, .. })
                    if (*asked, *limit) == (u64::from(largest) + 1, u64::from(largest))
            ),
            "{error}"
        );
        refused(specialized(u32::MAX), ErrorKind::LimitExceeded);
        refused(specialized(0), ErrorKind::InvalidArgument);
    });
}

#[test]
fn specialization_values_that_no_constant_can_hold_are_refused() {
    on_each_device("specialization_values", |_| {
        let unspecialized = || Kernel::builder(module("local_size"));
        let unknown = refused(
            build(unspecialized().specialize(4, 7)),
            ErrorKind::InvalidArgument,
        );
        assert!(unknown.to_string().contains('4'), "{unknown}");
        assert!(unknown.to_string().contains('3'), "{unknown}");
        let wrong = [
            build(unspecialized().specialize(3, -1)),
            build(unspecialized().specialize(3, 0.5)),
            build(unspecialized().specialize(3, 1u64 << 32)),
        ];
        for wrong in wrong {
            let error = refused(wrong, ErrorKind::InvalidArgument);
            assert!(error.to_string().contains("constant 3"), "{error}");
        }
    });
}

/// Entry points have any name, and the one that is meant is chosen by it.
#[test]
fn an_entry_point_is_chosen_by_its_name() {
    on_each_device("an_entry_point_is_chosen", |_| {
        let entry = |name: &str| build(Kernel::builder(module("two_entries")).entry(name));
        for (name, result) in [("add_three", 7), ("times_ten", 40)] {
            let word = Buffer::from_slice(&[4u32]).unwrap();
            let kernel = entry(name).unwrap();
            assert_eq!(kernel.interface().entry, name);
            kernel.launch(Grid::groups(1), (&word,)).unwrap();
            assert_eq!(word.to_vec().unwrap(), [result], "{name}");
        }
        let unnamed = build(Kernel::builder(module("two_entries")));
        for missing in [entry("main"), unnamed] {
            let error = refused(missing, ErrorKind::EntryPointNotFound);
            let Some(Details::EntryPoint {
                asked, available, ..
            }) = error.details()
            else {
                panic!("no details: {error}");
            };
            assert_eq!(asked, "main");
            assert_eq!(available, &["add_three", "times_ten"]);
        }
        refused(entry(""), ErrorKind::InvalidArgument);
        refused(entry("a\0b"), ErrorKind::InvalidArgument);

        let vertex = build(Kernel::builder(module("vertex_main")).entry("main"));
        let error = refused(vertex, ErrorKind::EntryPointNotFound);
        assert!(error.to_string().contains("Vertex"), "{error}");
    });
}

#[test]
fn bytes_that_are_no_module_are_told_for_what_they_are() {
    on_each_device("bytes_that_are_no_module", |_| {
        let good = spirv("affine");
        let swapped: Vec<u8> = good
            .chunks(4)
            .flat_map(|word| word.iter().rev().copied())
            .collect();
        let text = support::data("spirv/affine.comp");
        let cases: [(&str, &[u8]); 7] = [
            ("empty", &[]),
            ("less than the magic number", &good[..3]),
            ("cut off", &good[..18]),
            ("cut off", &good[..good.len() / 8 * 4]),
            ("no whole number", &good[..good.len() - 2]),
            ("other word order", &swapped),
            ("text", &text),
        ];
        for (said, bytes) in cases {
            let error = refused(from_bytes(bytes), ErrorKind::InvalidModule);
            assert!(error.to_string().contains(said), "{said}: {error}");
        }
        let random: Vec<u8> = (0..400u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        refused(from_bytes(&random), ErrorKind::InvalidModule);
    });
}

#[test]
fn every_beginning_of_a_module_is_refused_and_none_reaches_the_driver() {
    on_each_device("every_beginning_of_a_module", |_| {
        let good = spirv("push_block");
        for end in (0..good.len()).step_by(4) {
            let error = refused(from_bytes(&good[..end]), ErrorKind::InvalidModule);
            assert!(error.raw().is_none(), "{end} bytes: {error}");
        }
    });
}

#[test]
fn a_module_of_a_newer_version_is_refused_by_its_version() {
    on_each_device("a_module_of_a_newer_version", |_| {
        let mut newer = spirv("affine");
        newer[5] = 7;
        let error = refused(from_bytes(&newer), ErrorKind::Unsupported);
        assert!(error.to_string().contains("1.7"), "{error}");

        // This one is of version 1.6, which came with Vulkan 1.3.
        let built = build(Kernel::builder(module("local_size_id")));
        if get_device_capability(None).unwrap().api_version().minor < 3 {
            refused(built, ErrorKind::Unsupported);
        } else {
            assert_eq!(built.unwrap().interface().local_size, [6, 3, 1]);
        }
    });
}

#[test]
fn a_module_that_kernels_cannot_be_made_of_is_unsupported() {
    on_each_device("a_module_that_kernels_cannot_be_made_of", |_| {
        let error = refused(
            build(Kernel::builder(module("image"))),
            ErrorKind::Unsupported,
        );
        assert!(error.to_string().contains("picture"), "{error}");
        refused(
            build(Kernel::builder(module("access"))),
            ErrorKind::Unsupported,
        );
    });
}

/// The names in the details of an error.
#[track_caller]
fn missing(error: &Error) -> &[String] {
    match error.details() {
        Some(Details::Features { missing, .. }) => missing,
        _ => panic!("no features: {error}"),
    }
}

/// The crate finds out what a module needs, since drivers run it anyway.
#[test]
fn a_module_that_needs_a_feature_is_refused_on_a_device_that_was_opened_without() {
    let without = || {
        builder().without_features([
            Feature::ScalarBlockLayout,
            Feature::ShaderFloat16,
            Feature::StorageBuffer16BitAccess,
        ])
    };
    on_each_device_with("a_module_that_needs_a_feature", without, |_| {
        let scalar = build(Kernel::builder(module("strides_scalar")));
        let error = refused(scalar, ErrorKind::Unsupported);
        assert_eq!(missing(&error), ["scalarBlockLayout"]);
        let half = build(Kernel::builder(module("half")));
        let error = refused(half, ErrorKind::Unsupported);
        assert!(
            missing(&error).iter().any(|name| name == "shaderFloat16"),
            "{error}"
        );
        assert!(
            missing(&error)
                .iter()
                .any(|name| name == "storageBuffer16BitAccess"),
            "{error}"
        );
        // What needs none of them is there still.
        kernel("affine");
    });
}

#[test]
fn storage_of_16_bits_alone_does_not_bring_arithmetic() {
    let without = || builder().without_features([Feature::ShaderFloat16]);
    on_each_device_with("storage_of_16_bits_alone", without, |_| {
        let features = get_device_capability(None).unwrap().features();
        let error = refused(
            build(Kernel::builder(module("half"))),
            ErrorKind::Unsupported,
        );
        if features.contains(Feature::StorageBuffer16BitAccess) {
            assert_eq!(missing(&error), ["shaderFloat16"]);
        }
    });
}

#[test]
fn halves_are_added_and_multiplied_where_the_device_can() {
    on_each_device("halves_are_added", |_| {
        let needed = [Feature::ShaderFloat16, Feature::StorageBuffer16BitAccess];
        let features = get_device_capability(None).unwrap().features();
        if needed.iter().any(|&feature| !features.contains(feature)) {
            refused(
                build(Kernel::builder(module("half"))),
                ErrorKind::Unsupported,
            );
            return;
        }
        let a = Buffer::from_slice(&[0x3E00u16, 0x4080]).unwrap();
        let r = Buffer::<u16>::zeroed(2).unwrap();
        kernel("half").launch(Grid::groups(1), (&a, &r)).unwrap();
        assert_eq!(r.to_vec().unwrap(), [0x4380, 0x42C0]);
    });
}

#[cfg(not(feature = "spirv-val"))]
#[test]
fn a_checked_kernel_is_not_made_of_foreign_words_or_of_addresses() {
    on_each_device("a_checked_kernel_is_not_made_of_foreign_words", |_| {
        for name in ["affine", "affine_at", "linked_list"] {
            let error = refused(
                Kernel::builder(module(name)).build(),
                ErrorKind::Unsupported,
            );
            assert!(error.to_string().contains("build_unchecked"), "{error}");
        }
    });
}

#[test]
fn macros_are_refused_for_modules_that_are_compiled_already() {
    on_each_device("macros_are_refused", |_| {
        let defined = build(Kernel::builder(module("affine")).define("N", "1"));
        let error = refused(defined, ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("specialization"), "{error}");
    });
}

#[test]
fn kernels_are_built_for_the_device_that_is_named() {
    on_each_device("kernels_are_built_for_the_device", |_| {
        build(Kernel::builder(module("affine")).device("vulkan:0")).unwrap();
        for device in ["vulkan:1", "cuda:0", "vulkan:x"] {
            let built = build(Kernel::builder(module("affine")).device(device));
            refused(built, ErrorKind::InvalidDevice);
        }
    });
}

/// Without a compiler the rest works, and GLSL says what is missing.
#[cfg(not(feature = "glsl"))]
#[test]
fn glsl_without_a_compiler_is_refused_as_such() {
    on_each_device("glsl_without_a_compiler", |_| {
        let text = "#version 450\nvoid main() {}";
        let error = refused(Kernel::from_glsl(text), ErrorKind::CompilerUnavailable);
        assert!(error.to_string().contains("glsl"), "{error}");
        let error = refused(build(Kernel::builder(text)), ErrorKind::CompilerUnavailable);
        assert!(error.to_string().contains("glsl"), "{error}");
    });
}

/// With the validator, SPIR-V from elsewhere needs no trust.
#[cfg(feature = "spirv-val")]
#[test]
fn validated_spirv_loads_safely_and_invalid_spirv_is_refused_with_the_reason() {
    on_each_device("validated_spirv_loads_safely", |_| {
        let bytes = support::spirv("two_entries");
        let kernel = Kernel::builder(Spirv::from(&bytes))
            .entry("add_three")
            .build()
            .unwrap();
        let word = Buffer::from_slice(&[4u32]).unwrap();
        kernel.launch(Grid::groups(1), (&word,)).unwrap();
        assert_eq!(word.to_vec().unwrap(), [7]);
        // Without its memory model the module is whole, and invalid.
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let model = words.iter().position(|&word| word == 3 << 16 | 14).unwrap();
        let without = [&words[..model], &words[model + 3..]].concat();
        let built = Kernel::builder(Spirv::from(&without))
            .entry("add_three")
            .build();
        assert_eq!(built.unwrap_err().kind(), ErrorKind::InvalidModule);
    });
}
