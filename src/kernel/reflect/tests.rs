//! The interfaces of the committed modules, and what is refused.

use super::*;
use crate::error::{Details, ErrorKind};
use crate::kernel::interface::{Member, Scalar};
use crate::kernel::spirv::test_data::module;

fn interface(name: &str) -> Interface {
    reflect(&module(name), None, &[]).unwrap()
}

fn features(name: &str) -> Vec<&'static str> {
    let features = interface(name).required_features;
    features.iter().map(Feature::name).collect()
}

fn offsets(members: &[Member]) -> Vec<u32> {
    members.iter().map(|member| member.offset_bytes).collect()
}

/// The members of the struct in the array that a block is.
fn element(binding: &Binding) -> &Type {
    match &binding.members.last().unwrap().ty {
        Type::Array { element, .. } => element,
        other => panic!("{other:?} is no array"),
    }
}

#[test]
fn a_push_block_has_the_shaders_padding() {
    let push = interface("push_block").push_constants.unwrap();
    assert_eq!(offsets(&push.members), [0, 16, 28]);
    assert_eq!(push.size_bytes, 32);
    let names: Vec<&str> = push.members.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let vector = Type::Vector {
        scalar: Scalar::F32,
        len: 3,
    };
    assert_eq!(push.members[1].ty, vector);
}

#[test]
fn the_workgroups_size_follows_an_unnamed_constant() {
    let module = module("local_size");
    let of = |given: &[(u32, u64)]| reflect(&module, None, given).unwrap().local_size;
    assert_eq!(of(&[(3, 7)]), [7, 1, 1]);
    assert_eq!(of(&[]), [1, 1, 1]);
    let error = reflect(&module, None, &[(3, 0)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn local_size_id_is_computed_and_needs_maintenance4() {
    let module = module("local_size_id");
    let interface = reflect(&module, None, &[(40, 10)]).unwrap();
    assert_eq!(interface.local_size, [10, 5, 1]);
    assert!(interface.required_features.contains(Feature::Maintenance4));
}

#[test]
fn a_variable_that_the_entry_point_does_not_name_is_none_of_its_own() {
    let bindings = interface("local_size_id").bindings;
    let names: Vec<&str> = bindings.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["used"]);
}

#[test]
fn strides_are_those_of_the_modules_rules() {
    for (name, vectors, b, structs) in [
        ("strides_std430", 16, 32, 48),
        ("strides_scalar", 12, 24, 28),
    ] {
        let bindings = interface(name).bindings;
        assert_eq!(bindings[0].stride_bytes, vectors, "{name}");
        assert_eq!(bindings[1].stride_bytes, structs, "{name}");
        let Type::Struct { members, .. } = element(&bindings[1]) else {
            panic!("{name} has structs");
        };
        assert_eq!(offsets(members), [0, b], "{name}");
    }
}

#[test]
fn layouts_outside_of_the_old_rules_need_their_feature() {
    assert_eq!(features("strides_std430"), [""; 0]);
    assert_eq!(features("strides_scalar"), ["scalarBlockLayout"]);
    assert_eq!(features("uniform_std430"), ["uniformBufferStandardLayout"]);
}

#[test]
fn storage_and_arithmetic_of_16_bits_are_two_features() {
    let both = ["storageBuffer16BitAccess", "shaderFloat16"];
    assert_eq!(features("half"), both);
}

#[test]
fn atomics_and_subgroups_need_features_by_memory_and_type() {
    assert_eq!(
        features("subgroups"),
        [
            "shaderInt64",
            "shaderBufferInt64Atomics",
            "shaderSharedInt64Atomics",
            "shaderFloat16",
            "shaderSubgroupExtendedTypes",
            "shaderBufferFloat32AtomicAdd",
            "shaderSharedFloat32Atomics",
            "VK_SUBGROUP_FEATURE_BASIC_BIT",
            "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT",
        ]
    );
}

#[test]
fn access_is_what_the_code_does_within_what_is_declared() {
    let interface = interface("access");
    let found: Vec<_> = interface
        .bindings
        .iter()
        .map(|b| (b.set, b.binding, b.block_name.as_str(), b.access, b.count))
        .collect();
    assert_eq!(
        found,
        [
            (0, 0, "Marked", Access::Read, 1),
            (0, 1, "OnlyRead", Access::Read, 1),
            (0, 2, "OnlyWritten", Access::Write, 1),
            (0, 3, "Both", Access::ReadWrite, 1),
            (0, 4, "Counter", Access::ReadWrite, 1),
            (0, 5, "Untouched", Access::Read, 1),
            (0, 6, "Measured", Access::Read, 1),
            (0, 7, "View32", Access::ReadWrite, 1),
            (1, 0, "Many", Access::Write, 3),
        ]
    );
    assert_eq!(interface.bindings[1].fixed_bytes, 4);
    assert_eq!(interface.bindings[1].stride_bytes, 4);
    assert_eq!(interface.bindings[1].name, "reads");
    assert_eq!(interface.bindings[4].fixed_bytes, 4);
    assert_eq!(interface.bindings[4].stride_bytes, 0);
}

#[test]
fn addresses_are_followed_through_copies_and_calls() {
    let interface = interface("addresses");
    assert!(interface.uses_addresses && !interface.follows_stored_addresses);
    let push = interface.push_constants.unwrap();
    let found: Vec<_> = push
        .members
        .iter()
        .map(|m| (m.name.as_str(), m.access))
        .collect();
    assert_eq!(
        found,
        [
            ("source", Some(Access::Read)),
            ("target", Some(Access::Write)),
            ("header", Some(Access::ReadWrite)),
            ("n", None),
        ]
    );
    let Type::Address {
        block_name,
        members,
        align_bytes,
    } = &push.members[2].ty
    else {
        panic!("header is an address");
    };
    assert_eq!((block_name.as_str(), *align_bytes), ("Header", 16));
    assert_eq!(offsets(members), [0, 16]);
}

#[test]
fn addresses_found_in_memory_or_made_are_told() {
    let list = interface("linked_list");
    assert!(list.uses_addresses && list.follows_stored_addresses);
    let push = list.push_constants.unwrap();
    let Type::Address { members, .. } = &push.members[0].ty else {
        panic!("head is an address");
    };
    let Type::Address { members, .. } = &members[1].ty else {
        panic!("next is an address");
    };
    assert!(members.is_empty(), "the ring is cut");
    assert!(interface("raw_address").follows_stored_addresses);
}

#[test]
fn entry_points_are_chosen_by_name() {
    let module = module("two_entries");
    let names: Vec<&str> = module.entry_points().iter().map(|e| e.0).collect();
    assert_eq!(names, ["add_three", "times_ten"]);
    for name in names {
        let interface = reflect(&module, Some(name), &[]).unwrap();
        assert_eq!(interface.entry, name);
        assert_eq!(interface.bindings.len(), 1);
        assert_eq!(interface.bindings[0].access, Access::ReadWrite);
    }
}

#[test]
fn a_missing_entry_point_lists_those_there_are() {
    let module = module("two_entries");
    let error = reflect(&module, Some("main"), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EntryPointNotFound);
    let Some(Details::EntryPoint { asked, available }) = error.details() else {
        panic!("{error:?} has no details");
    };
    assert_eq!(asked, "main");
    assert_eq!(available, &["add_three", "times_ten"]);
    // Without a name there is nothing to choose by.
    let error = reflect(&module, None, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EntryPointNotFound);
    assert!(error.to_string().contains("KernelBuilder::entry"));
}

#[test]
fn names_that_no_entry_point_can_have_are_refused() {
    for name in ["", "a\0b"] {
        let error = reflect(&module("two_entries"), Some(name), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn an_entry_point_of_another_stage_is_named_as_such() {
    let error = reflect(&module("vertex_main"), Some("main"), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EntryPointNotFound);
    assert!(error.to_string().contains("Vertex"), "{error}");
}

#[test]
fn images_are_refused_by_name() {
    let error = reflect(&module("image"), None, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`picture`"), "{error}");
}

#[test]
fn specialization_constants_have_names_types_and_defaults() {
    let module = module("specialized");
    let interface = reflect(&module, None, &[]).unwrap();
    let found: Vec<_> = interface
        .spec_constants
        .iter()
        .map(|c| (c.id, c.name.as_str(), c.ty, c.default_bits))
        .collect();
    assert_eq!(
        found,
        [
            (0, "", Scalar::U32, 1),
            (1, "", Scalar::U32, 1),
            (2, "FLAG", Scalar::Bool, 1),
            (3, "SIGNED", Scalar::I32, 0xffff_fffc),
            (4, "SCALE", Scalar::F32, u64::from(1.5_f32.to_bits())),
            (5, "PRECISE", Scalar::F64, 0.5_f64.to_bits()),
            (6, "BIG", Scalar::U64, 0x1_0000_0002),
            (8, "TILE", Scalar::U32, 8),
            (9, "NARROW", Scalar::I16, 0xfffe),
        ]
    );
    // tile[TILE * (TILE + 1)] of floats, then triples[FLAG ? 2 : 4] of vec3 at 16 bytes each.
    assert_eq!(interface.shared_memory_bytes, 8 * 9 * 4 + 2 * 16);
    let given = [(0, 4), (1, 5), (2, 0), (8, 3)];
    let specialized = reflect(&module, None, &given).unwrap();
    assert_eq!(specialized.local_size, [4, 2, 5]);
    assert_eq!(specialized.shared_memory_bytes, 3 * 4 * 4 + 4 * 16);
}

#[test]
fn the_constants_are_known_without_values_that_fit() {
    let module = module("arrays");
    let ids: Vec<u32> = spec_constants(&module)
        .unwrap()
        .iter()
        .map(|c| c.id)
        .collect();
    assert_eq!(ids, [0, 1]);
}

#[test]
fn unknown_specialization_ids_list_those_there_are() {
    let error = reflect(&module("arrays"), None, &[(1, 3), (77, 1)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    assert!(
        text.contains("77") && text.contains("0 (`LENGTH`, u32)"),
        "{text}"
    );
    let error = reflect(&module("half"), None, &[(0, 1)]).unwrap_err();
    assert!(error.to_string().contains("it has none"), "{error}");
}

#[test]
fn an_array_that_specialization_makes_empty_is_refused() {
    // ROWS is the length of a shared array.
    for rows in [0, 0xffff_ffff] {
        let error = reflect(&module("arrays"), None, &[(1, rows)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let text = error.to_string();
        for part in ["the array `cells`", "1 (`ROWS`)", "at least 1"] {
            assert!(text.contains(part), "no {part:?} in: {text}");
        }
    }
}

#[test]
fn an_address_with_an_offset_is_still_the_arguments() {
    let interface = interface("pointer_arithmetic");
    assert!(interface.uses_addresses && !interface.follows_stored_addresses);
    let push = interface.push_constants.unwrap();
    let found: Vec<_> = push
        .members
        .iter()
        .map(|m| (m.name.as_str(), m.access))
        .collect();
    // Members of structs are not told apart.
    let expected = [
        ("pair", Some(Access::ReadWrite)),
        ("n", None),
        ("rows", Some(Access::Write)),
    ];
    assert_eq!(found, expected);
}
