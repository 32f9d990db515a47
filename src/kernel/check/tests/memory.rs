//! Buffers and views: ranges, alignment, access, addresses.

use super::*;
use crate::error::{Details, ErrorKind};
use crate::kernel::args::Address;
use crate::kernel::check::plan::{DescriptorUse, MemoryUse};

const ADDRESS: u64 = 0x10_0000 + 1024;

fn reader(fixed_bytes: u64) -> Interface {
    let mut binding = storage(0, "data", Access::Read);
    binding.fixed_bytes = fixed_bytes;
    kernel(vec![binding], Vec::new())
}

#[test]
fn a_view_is_bound_where_it_lies_in_its_vulkan_buffer() {
    let plan = launch(&reader(0), &[view(256, 32)]).unwrap();
    assert_eq!(
        plan.descriptors,
        [DescriptorUse {
            set: 0,
            binding: 0,
            kind: BindingKind::Storage,
            arg: 0,
            offset_bytes: 1280,
            len_bytes: 32,
            is_stand_in: false,
        }]
    );
    assert_eq!(
        plan.memory,
        [MemoryUse {
            arg: 0,
            offset_bytes: 1280,
            len_bytes: 32,
            access: Access::Read,
            kind: BindingKind::Storage,
        }]
    );
}

#[test]
fn a_view_that_the_device_cannot_bind_says_where_it_starts_in_its_buffer() {
    for (start, fits) in [(0, true), (4, false), (16, true), (60, false), (256, true)] {
        let result = launch(&reader(0), &[view(start, 32)]);
        if fits {
            assert!(result.is_ok());
            continue;
        }
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.details(),
            Some(&Details::Alignment {
                name: "minStorageBufferOffsetAlignment".into(),
                offset: start,
                alignment: 16,
            })
        );
        says(&error, &["argument 0 (`data`)", &format!("byte {start}")]);
    }
    let uniform = fixed(0, "params", BindingKind::Uniform, 16);
    let error = refused(&kernel(vec![uniform], Vec::new()), &[view(16, 32)]);
    says(&error, &["minUniformBufferOffsetAlignment", "64"]);
}

#[test]
fn a_range_past_the_devices_is_refused_with_both_numbers() {
    let error = refused(&reader(0), &[buffer(134_217_732)]);
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(
        error.details(),
        Some(&Details::Limit {
            name: "maxStorageBufferRange".into(),
            asked: 134_217_732,
            limit: 134_217_728,
        })
    );
    assert!(launch(&reader(0), &[buffer(134_217_728)]).is_ok());
    let error = refused(&reader(0), &[view(4, 134_217_728)]);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_uniform_block_binds_no_more_than_itself() {
    let params = fixed(0, "params", BindingKind::Uniform, 20);
    let params = kernel(vec![params], Vec::new());
    let plan = launch(&params, &[buffer(1 << 30)]).unwrap();
    assert_eq!(plan.descriptors[0].len_bytes, 32);
    assert_eq!(plan.memory[0].len_bytes, 32);
    let plan = launch(&params, &[buffer(20)]).unwrap();
    assert_eq!(plan.descriptors[0].len_bytes, 20);
    let large = fixed(0, "table", BindingKind::Uniform, 65540);
    let error = refused(&kernel(vec![large], Vec::new()), &[buffer(1 << 20)]);
    says(&error, &["maxUniformBufferRange", "65536"]);
}

#[test]
fn a_buffer_smaller_than_the_fixed_part_is_refused() {
    let error = refused(&reader(32), &[buffer(28)]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    assert_eq!(
        error.details(),
        Some(&Details::Size {
            expected: 32,
            given: 28
        })
    );
    says(
        &error,
        &["`data`", "32 bytes", "28 bytes (7 elements of 4)"],
    );
    assert!(launch(&reader(32), &[buffer(32)]).is_ok());
}

#[test]
fn an_empty_buffer_shows_an_empty_array_and_is_told_where_the_block_holds_more() {
    let plan = plan_of(&reader(0), Grid::elements(0), &[buffer(0)]).unwrap();
    assert_eq!((plan.descriptors.len(), plan.memory.len()), (0, 0));
    assert!(plan_of(&reader(32), Grid::elements(0), &[buffer(0)]).is_ok());
    let plan = launch(&reader(0), &[buffer(0)]).unwrap();
    assert!(plan.memory.is_empty());
    // Less than an element, so that the shader sees none.
    assert_eq!(
        (
            plan.descriptors[0].len_bytes,
            plan.descriptors[0].is_stand_in
        ),
        (1, true)
    );

    let mut bytes = reader(0);
    bytes.bindings[0].stride_bytes = 1;
    for kernel in [reader(32), bytes] {
        let error = refused(&kernel, &[buffer(0)]);
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
        says(&error, &["argument 0 (`data`)", "an empty buffer"]);
    }
}

#[test]
fn access_is_narrowed_within_what_the_shader_declares() {
    let with = |declared, value: Value| {
        let kernel = kernel(vec![storage(0, "data", declared)], Vec::new());
        launch(&kernel, &[value]).map(|plan| plan.memory[0].access)
    };
    let both = Access::ReadWrite;
    assert_eq!(with(both, buffer(4)).unwrap(), both);
    assert_eq!(with(both, buffer(4).read()).unwrap(), Access::Read);
    assert_eq!(with(both, buffer(4).write()).unwrap(), Access::Write);
    assert_eq!(with(Access::Read, buffer(4).read()).unwrap(), Access::Read);
    for (declared, value) in [
        (Access::Read, buffer(4).write()),
        (Access::Write, buffer(4).read()),
    ] {
        let error = with(declared, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
        says(&error, &["`data`", "only reads", "only writes"]);
    }
}

/// push { Data src; Data dst; uint n; }
fn copier() -> Interface {
    kernel(
        Vec::new(),
        vec![
            address("src", 0, 16, Access::Read),
            address("dst", 8, 16, Access::Write),
            scalar("n", 16, Scalar::U32),
        ],
    )
}

#[test]
fn addresses_are_pushed_and_their_ranges_are_touched() {
    let n = ArgValue::Number(5.into());
    let plan = launch(&copier(), &[view(16, 64), view(128, 32), n]).unwrap();
    assert_eq!(plan.push[..8], (ADDRESS + 16).to_le_bytes());
    assert_eq!(plan.push[8..16], (ADDRESS + 128).to_le_bytes());
    assert_eq!(plan.push[16..20], 5u32.to_le_bytes());
    assert!(plan.descriptors.is_empty());
    let touched: Vec<_> = plan
        .memory
        .iter()
        .map(|m| (m.offset_bytes, m.len_bytes, m.access))
        .collect();
    assert_eq!(
        touched,
        [(1040, 64, Access::Read), (1152, 32, Access::Write)]
    );
}

#[test]
fn an_address_keeps_the_shaders_alignment_and_fixed_part() {
    let n = ArgValue::Number(5.into());
    let error = refused(&copier(), &[view(0, 64), view(8, 64), n]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    assert_eq!(
        error.details(),
        Some(&Details::Alignment {
            name: "buffer_reference_align".into(),
            offset: ADDRESS + 8,
            alignment: 16,
        })
    );
    says(&error, &["argument 1 (`dst`)", "16 bytes"]);
    let error = refused(&copier(), &[view(0, 12), view(0, 64), n]);
    assert!(matches!(
        error.details(),
        Some(Details::Size {
            expected: 16,
            given: 12
        })
    ));
    // The address of nothing may be passed, since the shader need not follow it.
    let plan = launch(&copier(), &[view(0, 0), view(0, 64), n]).unwrap();
    assert_eq!(plan.memory.len(), 1);
}

#[test]
fn an_address_slot_takes_no_number() {
    let n = ArgValue::Number(5.into());
    let error = refused(&copier(), &[view(0, 64), n, n]);
    says(
        &error,
        &["argument 1 (`dst`)", "`Data` by address", "i32 5"],
    );
}

#[test]
fn stored_addresses_need_their_memory_declared() {
    let mut list = reader(0);
    list.uses_addresses = true;
    list.follows_stored_addresses = true;
    let error = refused(&list, &[buffer(64)]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    says(&error, &["finds in memory", "Arg::uses"]);
    let nodes = view(256, 128).uses(Access::ReadWrite);
    for args in [[buffer(64), nodes], [nodes, buffer(64)]] {
        let plan = launch(&list, &args).unwrap();
        assert_eq!(plan.descriptors.len(), 1);
        let declared = plan.memory.iter().find(|m| m.offset_bytes == 1280).unwrap();
        assert_eq!(
            (declared.len_bytes, declared.access),
            (128, Access::ReadWrite)
        );
    }
    let error = refused(&reader(0), &[buffer(64), nodes]);
    says(&error, &["argument 1", "follows no addresses"]);
    // It is no argument of the shader's, so it does not count as one.
    let error = refused(&list, &[nodes]);
    assert!(matches!(
        error.details(),
        Some(Details::Count {
            expected: 1,
            given: 0
        })
    ));
}

#[test]
fn bare_addresses_need_their_memory_declared() {
    static BLOCK: [u8; 20] = [16; 20];
    let n = ArgValue::Number(5.into());
    let bare = ArgValue::Address(Address::new(ADDRESS));
    let uses = view(0, 64).uses(Access::Read);
    says(
        &refused(&copier(), &[bare, view(0, 64), n]),
        &["argument 0 (`src`)", "pass the buffer itself", "Arg::uses"],
    );
    let plan = launch(&copier(), &[bare, view(0, 64), n, uses]).unwrap();
    assert_eq!(plan.push[..8], ADDRESS.to_le_bytes());
    let block = ArgValue::Block(&BLOCK);
    says(&refused(&copier(), &[block]), &["addresses as plain bytes"]);
    assert_eq!(launch(&copier(), &[uses, block]).unwrap().push, BLOCK);
    // The rest of the block after the addresses carries none.
    let rest = ArgValue::Block(&BLOCK[..4]);
    assert!(launch(&copier(), &[view(0, 64), view(0, 64), rest]).is_ok());
}
