//! What a device must have for a kernel to be built on it.

use crate::device::{DeviceLimits, Feature, FeatureSet};
use crate::error::{Details, Error, ErrorKind, Result};
use crate::kernel::interface::{BindingKind, Interface, Member};

use super::describe::Slot;

/// Checks once that the device can run the kernel at all.
///
/// `features` are those that are enabled on the device.
///
/// # Errors
///
/// `Unsupported` with every feature that is missing, and for arrays of buffers; `LimitExceeded` with
/// the limit; `InvalidModule` for a workgroup without invocations.
pub(crate) fn check_program(
    interface: &Interface,
    limits: &DeviceLimits,
    features: FeatureSet,
) -> Result<()> {
    features_are_there(interface.required_features, features)
        .and_then(|()| workgroup_fits(interface, limits))
        .and_then(|()| resources_fit(interface, limits))
}

fn features_are_there(required: FeatureSet, enabled: FeatureSet) -> Result<()> {
    let missing: Vec<String> = required
        .iter()
        .filter(|&feature| !enabled.contains(feature))
        .map(|feature| Feature::name(feature).to_owned())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!(
            "the module needs device features that the device lacks or that were left out when the \
             runtime was built: {}; use a device that has them, or a shader that does without",
            missing.join(", ")
        ),
    )
    .with_details(Details::Features { missing }))
}

fn workgroup_fits(interface: &Interface, limits: &DeviceLimits) -> Result<()> {
    let size = interface.local_size;
    let [x, y, z] = size;
    if size.contains(&0) {
        return Err(Error::new(
            ErrorKind::InvalidModule,
            format!("the local size is {x} x {y} x {z}; each axis needs at least 1 invocation"),
        ));
    }
    for (axis, letter) in ['x', 'y', 'z'].into_iter().enumerate() {
        within(
            || format!("maxComputeWorkGroupSize[{axis}]"),
            u64::from(size[axis]),
            u64::from(limits.max_compute_work_group_size[axis]),
            || format!("invocations of a workgroup along {letter}"),
            "make the local size smaller; specialization constants can set it, where the shader \
             declares it so",
        )?;
    }
    within(
        || "maxComputeWorkGroupInvocations".into(),
        size.map(u64::from).into_iter().fold(1, u64::saturating_mul),
        u64::from(limits.max_compute_work_group_invocations),
        || format!("invocations of a workgroup ({x} x {y} x {z})"),
        "make the local size smaller",
    )?;
    within(
        || "maxComputeSharedMemorySize".into(),
        interface.shared_memory_bytes,
        u64::from(limits.max_compute_shared_memory_size),
        || "bytes of shared memory".into(),
        "use smaller shared arrays",
    )
}

fn resources_fit(interface: &Interface, limits: &DeviceLimits) -> Result<()> {
    if let Some(array) = interface.bindings.iter().find(|b| b.count != 1) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "{} is an array of buffers, which launches have no arguments for; declare one \
                 buffer a binding, or take the buffers by address",
                Slot::Binding(array).label(),
            ),
        ));
    }
    if let Some(block) = &interface.push_constants {
        within(
            || "maxPushConstantsSize".into(),
            u64::from(block.size_bytes),
            u64::from(limits.max_push_constants_size),
            || "bytes of push constants".into(),
            "move members into a uniform buffer",
        )?;
        let sticks_out = |member: &&Member| {
            u64::from(member.offset_bytes) + u64::from(member.size_bytes)
                > u64::from(block.size_bytes)
        };
        if let Some(member) = block.members.iter().find(sticks_out) {
            return Err(Error::new(
                ErrorKind::InvalidModule,
                format!(
                    "{} ends past the push-constant block's {} bytes",
                    Slot::Member(member).label(),
                    block.size_bytes
                ),
            ));
        }
    }
    let sets = interface.bindings.iter().map(|b| u64::from(b.set) + 1);
    within(
        || "maxBoundDescriptorSets".into(),
        sets.max().unwrap_or(0),
        u64::from(limits.max_bound_descriptor_sets),
        || "descriptor sets".into(),
        "number the sets from 0 without gaps, or use fewer",
    )?;
    let count = |kind| interface.bindings.iter().filter(|b| b.kind == kind).count() as u64;
    let (storage, uniform) = (count(BindingKind::Storage), count(BindingKind::Uniform));
    let advice = "put several arrays into one buffer, or take buffers by address";
    within(
        || "maxPerStageDescriptorStorageBuffers".into(),
        storage,
        u64::from(limits.max_per_stage_descriptor_storage_buffers),
        || "storage buffers".into(),
        advice,
    )?;
    within(
        || "maxPerStageDescriptorUniformBuffers".into(),
        uniform,
        u64::from(limits.max_per_stage_descriptor_uniform_buffers),
        || "uniform buffers".into(),
        advice,
    )?;
    within(
        || "maxPerStageResources".into(),
        storage + uniform,
        u64::from(limits.max_per_stage_resources),
        || "buffers".into(),
        advice,
    )
}

fn within(
    name: impl FnOnce() -> String,
    asked: u64,
    limit: u64,
    what: impl FnOnce() -> String,
    advice: &str,
) -> Result<()> {
    if asked <= limit {
        return Ok(());
    }
    let (name, what) = (name(), what());
    Err(Error::new(
        ErrorKind::LimitExceeded,
        format!("it needs {asked} {what}, and the device has {limit} ({name}); {advice}"),
    )
    .with_details(Details::Limit { name, asked, limit }))
}
