//! What a kernel needs of its device.

use super::*;
use crate::device::Feature;
use crate::error::{Details, ErrorKind};
use crate::kernel::check::check_program;

fn check(interface: &Interface) -> Result<()> {
    check_program(interface, &limits(), FeatureSet::EMPTY)
}

/// Sees that the kernel is refused for this limit.
fn exceeds(interface: &Interface, name: &str, asked: u64, limit: u64) {
    let error = check(interface).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(
        error.details(),
        Some(&Details::Limit {
            name: name.into(),
            asked,
            limit,
        })
    );
    says(&error, &[name, &asked.to_string(), &limit.to_string()]);
}

#[test]
fn every_missing_feature_is_listed_by_its_vulkan_name() {
    let mut kernel = saxpy();
    let needed = [
        Feature::StorageBuffer16BitAccess,
        Feature::ShaderFloat16,
        Feature::ShaderInt64,
    ];
    kernel.required_features = needed.into_iter().collect();
    let enabled: FeatureSet = [Feature::ShaderInt64].into_iter().collect();
    let error = check_program(&kernel, &limits(), enabled).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.details(),
        Some(&Details::Features {
            missing: vec!["storageBuffer16BitAccess".into(), "shaderFloat16".into()],
        })
    );
    says(&error, &["storageBuffer16BitAccess, shaderFloat16"]);
    assert!(check_program(&kernel, &limits(), needed.into_iter().collect()).is_ok());
}

#[test]
fn the_workgroup_is_held_to_each_limit() {
    let mut kernel = saxpy();
    kernel.local_size = [1024, 1, 1];
    check(&kernel).unwrap();
    kernel.local_size = [1025, 1, 1];
    exceeds(&kernel, "maxComputeWorkGroupSize[0]", 1025, 1024);
    kernel.local_size = [1, 1, 65];
    exceeds(&kernel, "maxComputeWorkGroupSize[2]", 65, 64);
    kernel.local_size = [32, 33, 1];
    exceeds(&kernel, "maxComputeWorkGroupInvocations", 1056, 1024);
    kernel.local_size = [64, 0, 1];
    assert_eq!(check(&kernel).unwrap_err().kind(), ErrorKind::InvalidModule);
    kernel.local_size = [64, 1, 1];
    kernel.shared_memory_bytes = 32772;
    exceeds(&kernel, "maxComputeSharedMemorySize", 32772, 32768);
}

#[test]
fn buffers_and_push_constants_are_held_to_each_limit() {
    let mut kernel = saxpy();
    kernel.push_constants.as_mut().unwrap().size_bytes = 132;
    exceeds(&kernel, "maxPushConstantsSize", 132, 128);
    let mut kernel = saxpy();
    kernel.bindings[1].set = 8;
    exceeds(&kernel, "maxBoundDescriptorSets", 9, 8);
    let mut kernel = saxpy();
    kernel.bindings = (0..33).map(|b| storage(b, "x", Access::Read)).collect();
    exceeds(&kernel, "maxPerStageDescriptorStorageBuffers", 33, 32);
    let uniform = |binding| fixed(binding, "u", BindingKind::Uniform, 16);
    kernel.bindings = (0..16).map(uniform).collect();
    exceeds(&kernel, "maxPerStageDescriptorUniformBuffers", 16, 15);
}

#[test]
fn an_array_of_buffers_is_refused_by_name() {
    let mut kernel = saxpy();
    kernel.bindings[1].count = 4;
    let error = check(&kernel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    says(&error, &["`y`", "array of buffers"]);
}

#[test]
fn a_member_past_the_end_of_its_block_is_refused() {
    let mut kernel = saxpy();
    kernel.push_constants.as_mut().unwrap().size_bytes = 4;
    assert_eq!(check(&kernel).unwrap_err().kind(), ErrorKind::InvalidModule);
}
