//! Number, kind, value and size of arguments.

use super::*;
use crate::error::{Details, ErrorKind};
use crate::kernel::scalar::Number;

fn number(value: impl Into<Number>) -> Value {
    ArgValue::Number(value.into())
}

fn float(value: f32) -> Value {
    ArgValue::Number(Number::F32(value))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// push { float a; vec3 b; uint c; }
fn padded() -> Interface {
    kernel(
        Vec::new(),
        vec![
            scalar("a", 0, Scalar::F32),
            vector("b", 16, 3),
            scalar("c", 28, Scalar::U32),
        ],
    )
}

#[test]
fn arguments_fill_slots_in_order() {
    let plan = plan_of(
        &saxpy(),
        Grid::elements(1000),
        &[buffer(4000), buffer(4000), float(2.0), number(1000usize)],
    )
    .unwrap();
    assert_eq!(plan.groups, [16, 1, 1]);
    assert_eq!(words(&plan.push), [0x4000_0000, 1000]);
    let bound: Vec<_> = plan
        .descriptors
        .iter()
        .map(|d| (d.binding, d.arg))
        .collect();
    assert_eq!(bound, [(0, 0), (1, 1)]);
    let touched: Vec<_> = plan.memory.iter().map(|m| (m.arg, m.access)).collect();
    assert_eq!(touched, [(0, Access::Read), (1, Access::ReadWrite)]);
}

#[test]
fn a_plan_that_is_used_again_keeps_nothing_of_the_last_launch() {
    let mut plan = Plan::default();
    let args = [buffer(16), buffer(16), float(2.0), number(4)];
    super::super::plan(&saxpy(), &limits(), Grid::groups(1), &args, &mut plan).unwrap();
    let empty = kernel(Vec::new(), Vec::new());
    super::super::plan::<Value>(&empty, &limits(), Grid::groups(2), &[], &mut plan).unwrap();
    let expected = Plan {
        groups: [2, 1, 1],
        ..Plan::default()
    };
    assert_eq!(plan, expected);
}

#[test]
fn a_wrong_number_of_arguments_lists_what_the_kernel_takes() {
    let error = refused(&saxpy(), &[buffer(16), buffer(16), float(2.0)]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    assert_eq!(
        error.details(),
        Some(&Details::Count {
            expected: 4,
            given: 3
        })
    );
    assert_eq!(
        error.to_string(),
        "it takes 4 arguments (0 `x`: a storage buffer that it reads; 1 `y`: a \
         storage buffer that it reads and writes; 2 `alpha`: an f32; 3 `n`: a u32), and 3 were \
         given"
    );
    let empty = kernel(Vec::new(), Vec::new());
    says(
        &refused(&empty, &[float(2.0)]),
        &["takes no arguments, and 1 was given"],
    );
    says(&refused(&saxpy(), &[]), &["and none was given"]);
    let five = [buffer(4), buffer(4), float(2.0), number(1), number(2)];
    says(&refused(&saxpy(), &five), &["and 5 were given"]);
}

#[test]
fn an_argument_of_the_wrong_kind_names_slot_and_both_kinds() {
    let error = refused(&saxpy(), &[buffer(16), buffer(16), buffer(16), number(1)]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    assert_eq!(
        error.details(),
        Some(&Details::Argument {
            index: 2,
            name: "alpha".into(),
            expected: "an f32".into(),
            given: "a buffer of 16 bytes (4 elements of 4)".into(),
        })
    );
    says(&error, &["argument 2 (`alpha`)", "an f32"]);
    let error = refused(&saxpy(), &[buffer(16), float(1.0), float(1.0), number(1)]);
    says(
        &error,
        &["argument 1 (`y`)", "f32 1.0", "pass a buffer or a view"],
    );
    let error = refused(&padded(), &[float(1.0), float(2.0), number(1)]);
    says(&error, &["`b`", "a vector of 3 f32", "Arg::block"]);
}

#[test]
fn a_slot_without_a_name_is_told_by_its_place() {
    let mut nameless = saxpy();
    nameless.bindings[1].name = String::new();
    let error = refused(&nameless, &[buffer(4), number(0), float(1.0), number(1)]);
    says(&error, &["argument 1 (set 0, binding 1)"]);
    nameless.bindings[1].block_name = "Y".into();
    let error = refused(&nameless, &[buffer(4), number(0), float(1.0), number(1)]);
    says(&error, &["argument 1 (`Y`)"]);
    nameless.push_constants.as_mut().unwrap().members[1].name = String::new();
    let error = refused(&nameless, &[buffer(4), buffer(4), float(1.0), float(1.0)]);
    says(&error, &["argument 3 (push constant at byte 4)"]);
}

#[test]
fn a_number_that_its_slot_cannot_hold_is_shown() {
    let with = |value| refused(&saxpy(), &[buffer(4), buffer(4), float(1.0), value]);
    says(&with(number(-1)), &["i32 -1", "`n`", "does not fit u32"]);
    says(&with(number(1u64 << 32)), &["u64 4294967296"]);
    says(&with(float(1.0)), &["f32 1.0", "pass an integer"]);
    let with = |value| refused(&saxpy(), &[buffer(4), buffer(4), value, number(1)]);
    says(&with(number(2)), &["i32 2", "`alpha`", "pass a float"]);
    says(&with(ArgValue::Number(Number::F64(2.0))), &["bare `f32`"]);
    let doubles = kernel(Vec::new(), vec![scalar("d", 0, Scalar::F64)]);
    says(&refused(&doubles, &[float(0.1)]), &["Arg::f64"]);
    let halves = kernel(Vec::new(), vec![scalar("h", 0, Scalar::F16)]);
    says(&refused(&halves, &[float(0.1)]), &["Arg::f16"]);
}

#[test]
fn every_scalar_type_is_stored_little_endian_at_its_offset() {
    let every = kernel(
        Vec::new(),
        vec![
            scalar("a", 0, Scalar::U8),
            scalar("b", 2, Scalar::I16),
            scalar("c", 4, Scalar::F16),
            scalar("d", 8, Scalar::I64),
            scalar("e", 16, Scalar::F64),
            scalar("f", 24, Scalar::I8),
        ],
    );
    let args = [
        number(200),
        number(-2),
        ArgValue::Number(Number::F16(1.5)),
        number(-3),
        ArgValue::Number(Number::F64(0.5)),
        number(-1),
    ];
    let plan = launch(&every, &args).unwrap();
    let mut expected = [0; 28];
    expected[0] = 200;
    expected[2..4].copy_from_slice(&(-2i16).to_le_bytes());
    expected[4..6].copy_from_slice(&0x3e00u16.to_le_bytes());
    expected[8..16].copy_from_slice(&(-3i64).to_le_bytes());
    expected[16..24].copy_from_slice(&0.5f64.to_le_bytes());
    expected[24] = 0xff;
    // The block ends at byte 25; Vulkan takes multiples of 4.
    assert_eq!(plan.push, expected);
}

#[test]
fn one_struct_fills_the_whole_block_when_it_has_the_shaders_padding() {
    let image: [u32; 8] = [
        0x3f80_0000,
        0,
        0,
        0,
        0x4000_0000,
        0x4040_0000,
        0x4080_0000,
        42,
    ];
    let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
    let bytes: &'static [u8] = bytes.leak();
    let plan = launch(&padded(), &[ArgValue::Block(bytes)]).unwrap();
    assert_eq!(words(&plan.push), image);

    let error = refused(&padded(), &[ArgValue::Block(&bytes[..20])]);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    assert_eq!(
        error.details(),
        Some(&Details::Size {
            expected: 32,
            given: 20
        })
    );
    says(
        &error,
        &[
            "argument 0 (`a`)",
            "byte 0 to byte 32",
            "32 bytes",
            "20 bytes",
        ],
    );
}

#[test]
fn a_block_before_others_fills_its_member_and_the_last_one_fills_the_rest() {
    static VEC3: [u8; 12] = [7; 12];
    static REST: [u8; 16] = [9; 16];
    let block = |bytes| ArgValue::Block(bytes);
    let plan = launch(&padded(), &[float(1.0), block(&VEC3), number(5)]).unwrap();
    assert_eq!(plan.push[16..28], VEC3);
    assert_eq!(plan.push[4..16], [0; 12]);
    assert_eq!(words(&plan.push)[7], 5);
    let plan = launch(&padded(), &[float(1.0), block(&REST)]).unwrap();
    assert_eq!(plan.push[16..], REST);
    // A vec3 as the last argument does not reach the end of the block.
    let error = refused(&padded(), &[float(1.0), block(&VEC3)]);
    says(&error, &["byte 16 to byte 32", "16 bytes", "12 bytes"]);
    // A block among the descriptors is not the rest of anything.
    let error = refused(&saxpy(), &[block(&VEC3)]);
    assert!(matches!(error.details(), Some(Details::Count { .. })));
}

#[test]
fn padding_at_the_end_of_a_block_is_optional() {
    static BYTES: [u8; 48] = [3; 48];
    let block = kernel(
        Vec::new(),
        vec![vector("v", 0, 4), scalar("n", 16, Scalar::U32)],
    );
    for len in [20, 24, 32] {
        let plan = launch(&block, &[ArgValue::Block(&BYTES[..len])]).unwrap();
        assert_eq!(plan.push, BYTES[..20]);
    }
    for len in [0, 16, 19, 21, 28, 33, 48] {
        let error = refused(&block, &[ArgValue::Block(&BYTES[..len])]);
        assert!(matches!(
            error.details(),
            Some(Details::Size { expected: 20, .. })
        ));
    }
}

#[test]
fn the_grid_is_checked() {
    let args = [buffer(4), buffer(4), float(1.0), number(1)];
    let error = plan_of(&saxpy(), Grid::groups([1, 65536]), &args).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    says(&error, &["along y", "65536", "65535"]);
    let plan = plan_of(&saxpy(), Grid::groups([1, 0]), &args).unwrap();
    assert_eq!(plan.groups, [0; 3]);
    // A launch that runs nothing is checked all the same.
    assert!(plan_of(&saxpy(), Grid::elements(0), &args[..3]).is_err());
}

#[test]
fn methods_for_memory_on_something_else_are_told() {
    let args = [buffer(4), buffer(4), float(1.0).read(), number(1)];
    let error = refused(&saxpy(), &args);
    assert_eq!(error.kind(), ErrorKind::ArgumentMismatch);
    says(&error, &["argument 2", "`Arg::read`", "a number"]);
    let args = [buffer(4), buffer(4).read().write(), float(1.0), number(1)];
    says(&refused(&saxpy(), &args), &["argument 1", "neither"]);
}
