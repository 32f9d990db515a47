//! Kernels, limits and memory without a driver, for the tests of the checks.

mod arguments;
mod memory;
#[cfg(test_data)]
mod modules;
mod program;

use crate::device::{DeviceLimits, FeatureSet};
use crate::error::{Error, Result};
use crate::kernel::grid::Grid;
use crate::kernel::interface::{
    Access, Binding, BindingKind, Interface, Member, PushBlock, Scalar, Type,
};
use crate::kernel::value::{ArgValue, MemoryArg, Owner};

use super::Plan;

/// Memory of nobody, at a place in its `VkBuffer`.
#[derive(Debug)]
struct Fake {
    start_bytes: u64,
}

impl Owner for Fake {
    fn start_bytes(&self) -> u64 {
        self.start_bytes
    }
}

static FAKE: Fake = Fake { start_bytes: 1024 };

type Value = ArgValue<'static, Fake>;

/// A view of so many bytes, from a byte of a buffer.
fn view(start: u64, len_bytes: u64) -> Value {
    let offset = FAKE.start_bytes + start;
    ArgValue::Memory(MemoryArg::new(
        &FAKE,
        0x10_0000 + offset,
        offset,
        len_bytes,
        4,
    ))
}

/// A buffer of so many bytes.
fn buffer(len_bytes: u64) -> Value {
    view(0, len_bytes)
}

/// The limits of lavapipe.
fn limits() -> DeviceLimits {
    DeviceLimits {
        max_storage_buffer_range: 134_217_728,
        max_uniform_buffer_range: 65536,
        max_buffer_size: 2 << 30,
        max_memory_allocation_size: 2 << 30,
        max_memory_allocation_count: 4096,
        max_compute_work_group_count: [65535; 3],
        max_compute_work_group_size: [1024, 1024, 64],
        max_compute_work_group_invocations: 1024,
        max_compute_shared_memory_size: 32768,
        max_push_constants_size: 128,
        max_bound_descriptor_sets: 8,
        max_per_stage_resources: 128,
        max_per_stage_descriptor_storage_buffers: 32,
        max_per_stage_descriptor_uniform_buffers: 15,
        min_storage_buffer_offset_alignment: 16,
        min_uniform_buffer_offset_alignment: 64,
        non_coherent_atom_size: 64,
        optimal_buffer_copy_offset_alignment: 128,
        timestamp_period: 1.0,
        subgroup_size: 8,
        min_subgroup_size: 8,
        max_subgroup_size: 8,
        max_compute_workgroup_subgroups: 32,
    }
}

fn kernel(bindings: Vec<Binding>, members: Vec<Member>) -> Interface {
    let ends = members.iter().map(|m| m.offset_bytes + m.size_bytes);
    Interface {
        entry: "main".into(),
        local_size: [64, 1, 1],
        bindings,
        push_constants: ends.max().map(|size_bytes| PushBlock {
            size_bytes,
            members: members.clone(),
        }),
        spec_constants: Vec::new(),
        required_features: FeatureSet::EMPTY,
        shared_memory_bytes: 0,
        uses_addresses: members
            .iter()
            .any(|member| matches!(member.ty, Type::Address { .. })),
        follows_stored_addresses: false,
    }
}

/// `buffer Name { float name[]; }`.
fn storage(binding: u32, name: &str, access: Access) -> Binding {
    Binding {
        set: 0,
        binding,
        name: name.into(),
        block_name: String::new(),
        members: Vec::new(),
        kind: BindingKind::Storage,
        access,
        count: 1,
        fixed_bytes: 0,
        stride_bytes: 4,
        atomic_bytes: 0,
    }
}

/// A uniform block, or a storage block of a fixed size.
fn fixed(binding: u32, name: &str, kind: BindingKind, fixed_bytes: u64) -> Binding {
    Binding {
        kind,
        fixed_bytes,
        stride_bytes: 0,
        atomic_bytes: 0,
        ..storage(binding, name, Access::Read)
    }
}

fn member(name: &str, offset_bytes: u32, size_bytes: u32, ty: Type) -> Member {
    Member {
        name: name.into(),
        offset_bytes,
        size_bytes,
        ty,
        access: None,
    }
}

fn scalar(name: &str, offset_bytes: u32, scalar: Scalar) -> Member {
    member(
        name,
        offset_bytes,
        scalar.size_bytes(),
        Type::Scalar(scalar),
    )
}

fn vector(name: &str, offset_bytes: u32, len: u32) -> Member {
    let scalar = Scalar::F32;
    member(name, offset_bytes, 4 * len, Type::Vector { scalar, len })
}

/// `buffer_reference` of a block with so many fixed bytes.
fn address(name: &str, offset_bytes: u32, fixed_bytes: u32, access: Access) -> Member {
    let pointed = vec![vector("head", 0, fixed_bytes / 4)];
    let ty = Type::Address {
        block_name: "Data".into(),
        members: pointed,
        align_bytes: 16,
    };
    Member {
        access: Some(access),
        ..member(name, offset_bytes, 8, ty)
    }
}

/// y = alpha * x + y.
fn saxpy() -> Interface {
    let mut kernel = kernel(
        vec![
            storage(0, "x", Access::Read),
            storage(1, "y", Access::ReadWrite),
        ],
        vec![scalar("alpha", 0, Scalar::F32), scalar("n", 4, Scalar::U32)],
    );
    kernel.entry = "saxpy".into();
    kernel
}

fn plan_of(interface: &Interface, grid: Grid, args: &[Value]) -> Result<Plan> {
    let mut plan = Plan::default();
    super::plan(interface, &limits(), grid, args, &mut plan).map(|()| plan)
}

/// A launch of one workgroup.
fn launch(interface: &Interface, args: &[Value]) -> Result<Plan> {
    plan_of(interface, Grid::groups(1), args)
}

fn refused(interface: &Interface, args: &[Value]) -> Error {
    launch(interface, args).unwrap_err()
}

/// Sees that the text has all these parts.
fn says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}
