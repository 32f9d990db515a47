//! Features that a module needs and a device was opened without are found, one by one: drivers run
//! such modules anyway.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

mod support;

use core::fmt::Write as _;

use spirv::Capability as C;
use support::kernels::{build, kernel, module};
use support::{TestRuntime, builder, on_each_device};
use vkaccel::Feature as F;
use vkaccel::{
    Buffer, Details, Error, ErrorKind, FeatureSet, Grid, Kernel, Source, Spirv,
    get_device_capability,
};

/// A module, with the features that it needs.
struct Case {
    name: String,
    source: Source<'static>,
    needs: Vec<F>,
    /// Whether it is a module of `affine`, which can be run to see that nothing else changed.
    runs: bool,
}

/// Capabilities, with the extension that old SPIR-V has them from, and the features that they need.
const CAPABILITIES: &[(C, &str, &[F])] = &[
    (C::Float64, "", &[F::ShaderFloat64]),
    (C::Int64, "", &[F::ShaderInt64]),
    (C::Int16, "", &[F::ShaderInt16]),
    (C::Int8, "", &[F::ShaderInt8]),
    (C::Float16, "", &[F::ShaderFloat16]),
    (
        C::StorageBufferArrayDynamicIndexing,
        "",
        &[F::ShaderStorageBufferArrayDynamicIndexing],
    ),
    (
        C::UniformBufferArrayDynamicIndexing,
        "",
        &[F::ShaderUniformBufferArrayDynamicIndexing],
    ),
    (
        C::StorageBuffer16BitAccess,
        "SPV_KHR_16bit_storage",
        &[F::StorageBuffer16BitAccess],
    ),
    (
        C::UniformAndStorageBuffer16BitAccess,
        "SPV_KHR_16bit_storage",
        &[F::UniformAndStorageBuffer16BitAccess],
    ),
    (
        C::StoragePushConstant16,
        "SPV_KHR_16bit_storage",
        &[F::StoragePushConstant16],
    ),
    (
        C::StorageBuffer8BitAccess,
        "SPV_KHR_8bit_storage",
        &[F::StorageBuffer8BitAccess],
    ),
    (
        C::UniformAndStorageBuffer8BitAccess,
        "SPV_KHR_8bit_storage",
        &[F::UniformAndStorageBuffer8BitAccess],
    ),
    (
        C::StoragePushConstant8,
        "SPV_KHR_8bit_storage",
        &[F::StoragePushConstant8],
    ),
    (
        C::VariablePointersStorageBuffer,
        "SPV_KHR_variable_pointers",
        &[F::VariablePointersStorageBuffer],
    ),
    (
        C::VariablePointers,
        "SPV_KHR_variable_pointers",
        &[F::VariablePointers],
    ),
    (
        C::DotProduct,
        "SPV_KHR_integer_dot_product",
        &[F::ShaderIntegerDotProduct],
    ),
    (C::Int64Atomics, "", &[F::ShaderBufferInt64Atomics]),
    (
        C::AtomicFloat32AddEXT,
        "SPV_EXT_shader_atomic_float_add",
        &[F::ShaderBufferFloat32AtomicAdd],
    ),
    (
        C::VulkanMemoryModel,
        "SPV_KHR_vulkan_memory_model",
        &[F::VulkanMemoryModel],
    ),
];

/// Committed modules that need features for more than a capability.
const MODULES: &[(&str, &[F])] = &[
    ("half", &[F::StorageBuffer16BitAccess, F::ShaderFloat16]),
    ("strides_scalar", &[F::ScalarBlockLayout]),
    ("uniform_std430", &[F::UniformBufferStandardLayout]),
    ("local_size_id", &[F::Maintenance4]),
    (
        "subgroups",
        &[
            F::ShaderInt64,
            F::ShaderBufferInt64Atomics,
            F::ShaderSharedInt64Atomics,
            F::ShaderFloat16,
            F::ShaderSubgroupExtendedTypes,
            F::ShaderBufferFloat32AtomicAdd,
            F::ShaderSharedFloat32Atomics,
            F::SubgroupBasic,
            F::SubgroupArithmetic,
        ],
    ),
];

/// The bytes of `affine`, which declares the capability but makes no use of it.
fn affine_with(capability: C, extension: &str) -> Vec<u8> {
    let bytes = support::spirv("affine");
    let words = bytes.chunks_exact(4);
    let mut words: Vec<u32> = words
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    // Behind the header and `OpCapability Shader`.
    let mut more = vec![2 << 16 | spirv::Op::Capability as u32, capability as u32];
    if !extension.is_empty() {
        let mut text = extension.as_bytes().to_vec();
        text.push(0);
        text.resize(text.len().next_multiple_of(4), 0);
        let count = u32::try_from(text.len() / 4 + 1).unwrap();
        more.push(count << 16 | spirv::Op::Extension as u32);
        more.extend(
            text.chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().unwrap())),
        );
    }
    if capability == C::VulkanMemoryModel {
        // Its extension is one of SPIR-V 1.3, and the capability asks for the model.
        words[1] = 0x0001_0300;
        let model = [
            3 << 16 | spirv::Op::MemoryModel as u32,
            spirv::AddressingModel::Logical as u32,
        ];
        let at = words.windows(2).position(|pair| pair == model).unwrap();
        words[at + 2] = spirv::MemoryModel::Vulkan as u32;
    }
    words.splice(7..7, more);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn cases() -> Vec<Case> {
    let declared = CAPABILITIES
        .iter()
        .map(|&(capability, extension, needs)| Case {
            name: format!("affine with {capability:?}"),
            source: Source::from(Spirv::from(affine_with(capability, extension))),
            needs: needs.to_vec(),
            runs: true,
        });
    let committed = MODULES.iter().map(|&(name, needs)| Case {
        name: name.to_owned(),
        source: module(name),
        needs: needs.to_vec(),
        runs: false,
    });
    declared.chain(committed).collect()
}

/// The names of the missing features in the error of building the module, which must be one.
#[track_caller]
fn missing(case: &Case) -> Vec<String> {
    let built = build(Kernel::builder(case.source.clone()));
    let error: Error = match built {
        Ok(_) => panic!("{} was built", case.name),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    match error.details() {
        Some(Details::Features { missing, .. }) => {
            for name in missing {
                assert!(error.to_string().contains(name.as_str()), "{error}");
            }
            missing.clone()
        }
        _ => panic!("no features: {error}"),
    }
}

/// The list that makes the current runtime's device the only one.
fn this_device() -> String {
    let uuid = get_device_capability(None).unwrap().uuid();
    let mut list = String::from("uuid:");
    for byte in uuid {
        write!(list, "{byte:02x}").unwrap();
    }
    list
}

fn features() -> FeatureSet {
    get_device_capability(None).unwrap().features()
}

/// Every feature that a module can need, on a device with all that it has.
#[test]
fn a_module_is_built_if_and_only_if_the_device_has_what_it_needs() {
    on_each_device("a_module_is_built_if_and_only_if", |_| {
        let device = features();
        for case in cases() {
            let lacking: Vec<&str> = case
                .needs
                .iter()
                .filter(|&&feature| !device.contains(feature))
                .map(|feature| feature.name())
                .collect();
            if !lacking.is_empty() {
                assert_eq!(missing(&case), lacking, "{}", case.name);
                continue;
            }
            let kernel = build(Kernel::builder(case.source.clone()))
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let needs: FeatureSet = case.needs.iter().copied().collect();
            assert_eq!(kernel.interface().required_features, needs, "{}", case.name);
            if case.runs {
                let data = Buffer::from_slice(&[1u32, 2, 3]).unwrap();
                kernel.launch(Grid::elements(3), (&data, 10, 1, 3)).unwrap();
                assert_eq!(data.to_vec().unwrap(), [11, 21, 31], "{}", case.name);
            }
        }
    });
}

/// Each feature is left out alone, and found missing by its name where a module needs it.
#[test]
fn a_feature_that_was_left_out_is_missed_by_its_name() {
    on_each_device("a_feature_that_was_left_out", |_| {
        let device = features();
        let list = this_device();
        for &left_out in F::ALL.iter().filter(|&&feature| device.contains(feature)) {
            let cases: Vec<Case> = cases()
                .into_iter()
                .filter(|case| case.needs.contains(&left_out))
                .filter(|case| case.needs.iter().all(|&feature| device.contains(feature)))
                .collect();
            if cases.is_empty() {
                continue;
            }
            let without = builder()
                .visible_devices(list.clone())
                .without_features([left_out]);
            let _runtime = TestRuntime::new(without);
            assert!(!features().contains(left_out) || device.contains(left_out));
            for case in &cases {
                let found = missing(case);
                assert!(
                    found.iter().any(|name| name == left_out.name()),
                    "{found:?}"
                );
                // Others fall away only with what they lean on.
                for name in found.iter().filter(|name| **name != left_out.name()) {
                    let leaning = [
                        F::VariablePointers,
                        F::VulkanMemoryModelDeviceScope,
                        F::ComputeFullSubgroups,
                    ];
                    assert!(
                        leaning.iter().any(|feature| feature.name() == name),
                        "{name}"
                    );
                }
            }
            // What needs nothing is there still.
            let data = Buffer::from_slice(&[1u32]).unwrap();
            let affine = kernel("affine");
            affine.launch(Grid::elements(1), (&data, 2, 3, 1)).unwrap();
            assert_eq!(data.to_vec().unwrap(), [5]);
        }
    });
}

#[test]
fn what_leans_on_a_feature_that_was_left_out_is_missing_too() {
    on_each_device("what_leans_on_a_feature", |_| {
        if !features().contains(F::VariablePointers) {
            return support::skip("what_leans_on_a_feature", "no variablePointers");
        }
        let without = builder()
            .visible_devices(this_device())
            .without_features([F::VariablePointersStorageBuffer]);
        let _runtime = TestRuntime::new(without);
        let pointers = cases()
            .into_iter()
            .find(|case| case.needs == [F::VariablePointers])
            .unwrap();
        assert_eq!(missing(&pointers), ["variablePointers"]);
    });
}
