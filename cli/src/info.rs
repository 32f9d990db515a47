//! `vkaccel info`: asks the library what there is. Opens no device.

use vkaccel::{Candidate, DType, DeviceCapability, ErrorKind, Feature, MemoryInfoSource, Runtime};

use crate::exit::{self, Failure};
use crate::options::InfoOptions;
use crate::report::{self, DeviceReport, LeftOut, Limit, LimitValue, MemoryReport, Report};

/// Prints what there is. Finding nothing is an answer, too; a setting that makes no sense is a failure.
pub fn run(options: &InfoOptions) -> Result<(), Failure> {
    let report = gather()?;
    exit::print(&match options.json {
        true => report::json(&report, options.all),
        false => report::text(&report, options.all),
    })
}

fn gather() -> Result<Report, Failure> {
    let candidates = match Runtime::current().selection() {
        Ok(candidates) => candidates,
        Err(error) if error.kind() == ErrorKind::Config => return Err(error.into()),
        Err(error) => {
            return Ok(Report {
                fault: Some(error.to_string()),
                ..Report::default()
            });
        }
    };
    let mut report = Report::default();
    // Those that are visible come first, by index.
    for candidate in &candidates {
        match candidate.index {
            Some(index) => report.devices.push(device(index, &candidate.capability)),
            None => report.left_out.push(left_out(candidate)),
        }
    }
    if report.devices.is_empty() {
        report.fault = Some(match candidates.len() {
            0 => "the Vulkan loader found no driver with a device".to_owned(),
            1 => "the only one there is was left out".to_owned(),
            n => format!("all {n} there are were left out"),
        });
    }
    report.reason = reason(&report.devices);
    Ok(report)
}

/// Why the first device comes first.
fn reason(devices: &[DeviceReport]) -> &'static str {
    match devices {
        [] => "",
        [_] => "it is the only one that is visible",
        _ if std::env::var_os("VKACCEL_VISIBLE_DEVICES").is_some() => {
            "VKACCEL_VISIBLE_DEVICES puts it first"
        }
        [first, second, ..] if first.kind == second.kind => {
            "the Vulkan loader lists it first among devices of its type"
        }
        _ => "discrete devices come first, then integrated, virtual and CPU ones",
    }
}

fn left_out(candidate: &Candidate) -> LeftOut {
    LeftOut {
        name: candidate.name.clone(),
        kind: kind(&candidate.capability),
        driver_name: candidate.capability.driver_name().to_owned(),
        uuid: candidate.uuid,
        reason: candidate.reason.clone(),
    }
}

fn device(index: u32, capability: &DeviceCapability) -> DeviceReport {
    let memory = match vkaccel::get_memory_info(index) {
        Ok(memory) => Ok(MemoryReport {
            free_bytes: memory.free,
            total_bytes: memory.total,
            source: source(memory.source).0,
            source_text: source(memory.source).1,
        }),
        Err(error) => Err(error.to_string()),
    };
    DeviceReport {
        name: capability.name().to_owned(),
        kind: kind(capability),
        driver_name: capability.driver_name().to_owned(),
        driver_version: capability.driver_version().to_owned(),
        api_version: capability.api_version().to_string(),
        uuid: capability.uuid(),
        memory,
        dtypes: capability
            .supported_dtypes()
            .iter()
            .map(DType::name)
            .collect(),
        features: capability.features().iter().map(Feature::name).collect(),
        limits: limits(capability),
    }
}

const fn source(source: MemoryInfoSource) -> (&'static str, &'static str) {
    match source {
        MemoryInfoSource::MemoryBudget => ("memory_budget", "the driver's budget"),
        MemoryInfoSource::OwnAccounting => (
            "own_accounting",
            "this process's own use; the driver tells no more",
        ),
        _ => ("other", "of unknown origin"),
    }
}

fn kind(capability: &DeviceCapability) -> &'static str {
    use vkaccel::DeviceType::{Cpu, Discrete, Integrated, Virtual};
    match capability.device_type() {
        Discrete => "discrete",
        Integrated => "integrated",
        Virtual => "virtual",
        Cpu => "cpu",
        _ => "other",
    }
}

/// The limits that a kernel or a buffer meets.
fn limits(capability: &DeviceCapability) -> Vec<Limit> {
    use LimitValue::{Axes, Bytes, Count};
    let limits = capability.limits();
    let limit = |key, label, value| Limit { key, label, value };
    let invocations = limits.max_compute_work_group_invocations;
    let shared = limits.max_compute_shared_memory_size;
    let count = limits.max_memory_allocation_count;
    let push = limits.max_push_constants_size;
    let subgroup = limits.subgroup_size;
    vec![
        limit(
            "max_compute_work_group_count",
            "workgroups of a launch",
            Axes(limits.max_compute_work_group_count),
        ),
        limit(
            "max_compute_work_group_size",
            "size of a workgroup",
            Axes(limits.max_compute_work_group_size),
        ),
        limit(
            "max_compute_work_group_invocations",
            "invocations of a workgroup",
            Count(invocations.into()),
        ),
        limit(
            "subgroup_size",
            "size of a subgroup",
            Count(subgroup.into()),
        ),
        limit(
            "max_compute_shared_memory_size",
            "shared memory",
            Bytes(shared.into()),
        ),
        limit(
            "max_push_constants_size",
            "push constants",
            Bytes(push.into()),
        ),
        limit(
            "max_storage_buffer_range",
            "reach of a descriptor",
            Bytes(limits.max_storage_buffer_range),
        ),
        limit(
            "max_buffer_size",
            "size of a buffer",
            Bytes(limits.max_buffer_size),
        ),
        limit(
            "max_memory_allocation_size",
            "size of an allocation",
            Bytes(limits.max_memory_allocation_size),
        ),
        limit(
            "max_memory_allocation_count",
            "allocations",
            Count(count.into()),
        ),
    ]
}
