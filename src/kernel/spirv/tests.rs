//! What the reader refuses, and how it says it.

use spirv::StorageClass;

use super::test_data::{names, words};
use super::*;

fn refusal(words: &[u32]) -> Error {
    Module::parse(words).unwrap_err()
}

#[test]
fn every_committed_module_is_read() {
    for name in names() {
        let module = Module::parse(&words(&name)).unwrap();
        assert_eq!(module.version().0, 1, "{name}");
        assert!(!module.entry_points().is_empty(), "{name}");
        if name != "address_table" {
            // That one declares a capability which it does not use.
            assert_eq!(module.words(), words(&name), "{name}");
        }
    }
}

#[test]
fn a_module_cut_anywhere_is_cut_off_or_damaged() {
    let whole = words("arrays");
    for len in 0..whole.len() {
        let error = refusal(&whole[..len]);
        assert_eq!(error.kind(), ErrorKind::InvalidModule, "{len}: {error}");
        let text = error.to_string();
        let said = text.contains("cut off") || text.contains("not one byte");
        assert!(said, "{len}: {text}");
    }
}

#[test]
fn words_in_the_other_order_are_told_apart() {
    let swapped: Vec<u32> = words("half").iter().map(|w| w.swap_bytes()).collect();
    let error = refusal(&swapped);
    assert_eq!(error.kind(), ErrorKind::InvalidModule);
    assert!(error.to_string().contains("word order"), "{error}");
}

#[test]
fn text_given_as_words_is_text() {
    let text: Vec<u32> = b"#version 450\nvoid main() { }    "
        .as_chunks::<4>()
        .0
        .iter()
        .map(|chunk| u32::from_ne_bytes(*chunk))
        .collect();
    let error = refusal(&text);
    assert!(error.to_string().contains("GLSL"), "{error}");
}

#[test]
fn a_newer_version_is_refused_with_the_newest_that_can_be_read() {
    let mut module = words("half");
    module[1] = 0x0001_0700;
    let error = refusal(&module);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("1.7"), "{error}");
}

#[test]
fn a_capability_that_kernels_cannot_have_is_named() {
    let mut module = words("two_entries");
    let refused = [
        (2, "Geometry"),
        (6, "Kernel"),
        (4472, "RayQueryKHR"),
        (9999, "9999"),
    ];
    for (capability, name) in refused {
        // The first instruction is OpCapability.
        module[6] = capability;
        let error = refusal(&module);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// glslang declares them for an array of addresses, too.
#[test]
fn arrays_of_descriptors_without_a_size_are_refused_where_there_are_some() {
    let declared = words("address_table");
    let array = [(2 << 16) | Op::Capability as u32, 5302];
    let holds = |words: &[u32]| words.windows(2).any(|pair| pair == array);
    assert!(holds(&declared));
    let module = Module::parse(&declared).unwrap();
    assert!(!holds(module.words()), "a driver would want the feature");
    assert_eq!(module.words().len(), declared.len());

    // The same, where a block's variable is made one of an array of blocks.
    let kept = |op| module.globals().filter(move |i| i.op == op);
    let pointer = kept(Op::TypePointer).find(|pointer| {
        let class = StorageClass::StorageBuffer as u32;
        let is_block = |id| module.find(id).is_some_and(|i| i.op == Op::TypeStruct);
        pointer.operand(0).unwrap() == class && is_block(pointer.operand(1).unwrap())
    });
    let mut arrayed = declared.clone();
    arrayed[pointer.unwrap().start + 3] = kept(Op::TypeRuntimeArray).next().unwrap().result();
    let error = refusal(&arrayed);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("RuntimeDescriptorArray"),
        "{error}"
    );
}

#[test]
fn ids_outside_of_the_bound_or_given_twice_are_damage() {
    let mut module = words("half");
    module[3] = 3;
    assert_eq!(refusal(&module).kind(), ErrorKind::InvalidModule);
    module[3] = u32::MAX;
    assert!(refusal(&module).to_string().contains("bound"));
    module[3] = 0;
    assert!(refusal(&module).to_string().contains("bound"));
}

#[test]
fn the_shapes_of_instructions_are_those_of_the_specification() {
    let grammar = "/usr/include/spirv/unified1/spirv.core.grammar.json";
    let Ok(text) = std::fs::read_to_string(grammar) else {
        println!("SKIP the_shapes_of_instructions: {grammar} is not installed");
        return;
    };
    let mut checked = 0;
    for block in text.split("\"opname\" : ").skip(1) {
        let number = block.split("\"opcode\"").nth(1).unwrap();
        let number = number.split([',', '\n']).next().unwrap();
        let number: u32 = number.trim_matches([' ', ':']).parse().unwrap();
        let Some(shape) = Op::from_u32(number).and_then(super::shape::shape) else {
            continue;
        };
        let expected = match (
            block.contains("IdResultType"),
            block.contains("\"IdResult\""),
        ) {
            (true, _) => Shape::Typed,
            (false, true) => Shape::Id,
            (false, false) => Shape::Bare,
        };
        assert_eq!(shape, expected, "{}", block.lines().next().unwrap());
        checked += 1;
    }
    assert!(checked > 200, "{checked}");
}
