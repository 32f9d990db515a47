//! Launches of modules that a compiler made.

use super::*;
use crate::device::Feature;
use crate::error::{Details, ErrorKind};
use crate::kernel::check::check_program;
use crate::kernel::reflect::reflect;
use crate::kernel::spirv::test_data::module;

fn interface(name: &str) -> Interface {
    let interface = reflect(&module(name), None, &[]).unwrap();
    let every: FeatureSet = Feature::ALL.iter().copied().collect();
    check_program(&interface, &limits(), every).unwrap();
    interface
}

fn word(value: u32) -> Value {
    ArgValue::Number(value.into())
}

#[test]
fn a_block_with_padding_takes_its_image_and_refuses_a_packed_struct() {
    static IMAGE: [u8; 32] = [5; 32];
    let kernel = interface("push_block");
    let plan = launch(&kernel, &[buffer(20), ArgValue::Block(&IMAGE)]).unwrap();
    assert_eq!(plan.push, IMAGE);
    assert_eq!(plan.memory[0].access, Access::Write);
    let error = refused(&kernel, &[buffer(20), ArgValue::Block(&IMAGE[..20])]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    assert_eq!(
        error.details(),
        Some(&Details::Size {
            expected: 32,
            given: 20
        })
    );
}

#[test]
fn buffers_by_address_keep_the_access_that_the_shader_has() {
    let kernel = interface("addresses");
    let args = [view(16, 64), view(128, 64), view(256, 32), word(16)];
    let plan = launch(&kernel, &args).unwrap();
    assert_eq!(plan.push.len(), 28);
    let accesses: Vec<_> = plan.memory.iter().map(|m| m.access).collect();
    assert_eq!(
        accesses,
        [Access::Read, Access::Write, Access::ReadWrite],
        "{kernel:#?}"
    );
    let error = refused(&kernel, &[view(2, 64), args[1], args[2], args[3]]);
    says(&error, &["argument 0 (`source`)", "multiple of"]);
}

#[test]
fn a_list_in_memory_needs_its_nodes_declared() {
    let kernel = interface("linked_list");
    let args = [buffer(4), view(256, 16)];
    says(&refused(&kernel, &args), &["Arg::uses"]);
    let nodes = view(256, 160).uses(Access::ReadWrite);
    let plan = launch(&kernel, &[args[0], args[1], nodes]).unwrap();
    assert_eq!(plan.memory.len(), 3);
}

#[test]
fn an_array_of_buffers_is_refused_when_a_kernel_is_built() {
    let interface = reflect(&module("access"), None, &[]).unwrap();
    let every: FeatureSet = Feature::ALL.iter().copied().collect();
    let error = check_program(&interface, &limits(), every).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    says(&error, &["`many`"]);
}
