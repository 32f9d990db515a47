//! What the pass changes, held against SPIRV-Tools where that is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use spirv::Capability;

use super::*;
use crate::kernel::reflect::atomics::is_atomic;
use crate::kernel::safety;
use crate::kernel::spirv::test_data::{module, names, words};
use crate::kernel::spirv::{Ty, Types};

/// A file in the folder for tests' own files.
fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("vkaccel-clamp-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn write(name: &str, words: &[u32]) -> PathBuf {
    let path = scratch(name);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(&path, bytes).unwrap();
    path
}

fn installed(test: &str, tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok();
    if !there {
        println!("SKIP {test}: {tool} is not installed");
    }
    there
}

/// The access chains whose operands differ between two forms of a module: by id, and by which.
fn changed(before: &Module, after: &Module) -> BTreeSet<(u32, usize)> {
    let mut all = BTreeSet::new();
    for old in before.instructions() {
        if !matches!(old.op, Op::AccessChain | Op::InBoundsAccessChain) {
            continue;
        }
        let new = after.definition(old.result()).unwrap();
        assert_eq!(old.operands().len(), new.operands().len());
        for (at, (a, b)) in old.operands().iter().zip(new.operands()).enumerate() {
            if a != b {
                all.insert((old.result(), at));
            }
        }
    }
    all
}

/// The operands of access chains that SPIRV-Tools limits and we do not: into arrays that the
/// buffer bounds, which we leave to robust buffer access but for atomics, and the first place of
/// any array.
fn left_alone(module: &Module) -> BTreeSet<(u32, usize)> {
    let types = Types::read(module).unwrap();
    let constants = crate::kernel::spirv::Constants::read(module, &types, &[]).unwrap();
    let atomics: Vec<_> = module.instructions().filter(|i| is_atomic(i.op)).collect();
    let is_atomic = |id| {
        atomics
            .iter()
            .any(|atomic| atomic.operand(0).unwrap() == id)
    };
    let mut all = BTreeSet::new();
    for chain in module.instructions() {
        if !matches!(chain.op, Op::AccessChain | Op::InBoundsAccessChain) {
            continue;
        }
        let (_, pointer) = types.of(module, chain.operand(0).unwrap()).unwrap();
        let Ty::Pointer { pointee, .. } = pointer else {
            panic!("a base is a pointer");
        };
        let mut ty = *pointee;
        for (at, &index) in chain.operands().iter().enumerate().skip(1) {
            if constants
                .get(index)
                .is_some_and(|c| !c.specialized && c.bits == 0)
            {
                all.insert((chain.result(), at));
            }
            ty = match types.get(ty).unwrap() {
                Ty::Struct { members } => {
                    let member = constants.get(index).unwrap().bits;
                    members[usize::try_from(member).unwrap()]
                }
                Ty::Array { element, .. } => *element,
                Ty::RuntimeArray { element } => {
                    if !is_atomic(chain.result()) {
                        all.insert((chain.result(), at));
                    }
                    *element
                }
                Ty::Matrix { column, .. } => *column,
                _ => break,
            };
        }
    }
    all
}

fn safe_names() -> Vec<String> {
    let names = names();
    names
        .into_iter()
        .filter(|name| safety::check(&module(name), &[]).is_ok())
        .collect()
}

#[test]
fn the_safe_modules_are_those_without_addresses() {
    let safe = safe_names();
    for name in names() {
        let module = module(&name);
        let mut capabilities = module.capabilities().iter();
        let addresses = capabilities.any(|c| *c == Capability::PhysicalStorageBufferAddresses);
        assert_eq!(safe.contains(&name), !addresses, "{name}");
    }
    assert!(safe.len() > 10 && safe.len() < names().len());
}

#[test]
fn the_result_is_valid() {
    if !installed("the_result_is_valid", "spirv-val") {
        return;
    }
    for name in safe_names() {
        let path = write(
            &format!("{name}.valid.spv"),
            &clamp(&module(&name)).unwrap(),
        );
        let output = Command::new("spirv-val")
            .args(["--target-env", "vulkan1.3", "--scalar-block-layout"])
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {text}");
    }
}

#[test]
fn spirv_tools_limits_the_same_indices() {
    if !installed("spirv_tools_limits_the_same_indices", "spirv-opt") {
        return;
    }
    for name in safe_names() {
        let before = module(&name);
        let input = write(&format!("{name}.in.spv"), &words(&name));
        let output = scratch(&format!("{name}.opt.spv"));
        let status = Command::new("spirv-opt")
            .arg("--graphics-robust-access")
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
        let theirs = crate::kernel::spirv::words_from_bytes(&fs::read(&output).unwrap()).unwrap();
        let theirs = changed(&before, &Module::parse(&theirs).unwrap());
        let left_alone = left_alone(&before);
        let theirs: BTreeSet<_> = theirs.difference(&left_alone).copied().collect();
        let ours = Module::parse(&clamp(&before).unwrap()).unwrap();
        assert_eq!(changed(&before, &ours), theirs, "{name}");
    }
}

#[test]
fn what_needs_nothing_stays_as_it_is() {
    for name in ["push_block", "half", "two_entries", "local_size"] {
        assert_eq!(clamp(&module(name)).unwrap(), words(name), "{name}");
    }
}

#[test]
fn a_second_pass_adds_limits_but_changes_no_constant() {
    // Constants are in range after the first pass, so a second only repeats the minimums.
    let once = Module::parse(&clamp(&module("wide_index")).unwrap()).unwrap();
    let constants = plan::plan(&once).unwrap();
    let constants = constants
        .iter()
        .filter(|c| matches!(c.to, To::Constant { .. }));
    assert_eq!(constants.count(), 0);
}

#[test]
fn every_kind_of_limit_is_planned() {
    let plan = plan::plan(&module("wide_index")).unwrap();
    let of = |to: &To| match *to {
        To::Constant { scalar, bits, .. } => format!("{} = {bits}", scalar.name()),
        To::AtMost { scalar, limit, .. } => format!("{} <= {limit}", scalar.name()),
        To::Inside {
            scalar, len_scalar, ..
        } => format!("{} in {}", scalar.name(), len_scalar.name()),
        To::InsideBuffer { member, .. } => format!("in member {member}"),
    };
    let found: Vec<String> = plan.iter().map(|change| of(&change.to)).collect();
    assert_eq!(
        found,
        [
            "u64 in u32",
            "i64 in u32",
            "u16 in u32",
            "i8 in u32",
            "i64 <= 199",
            "u16 <= 199",
            // 199 is no signed number of 8 bits.
            "i8 <= 127",
            "i8 = 127",
            "i64 = 199",
            "u32 in u32",
        ]
    );
}

#[test]
fn atomics_are_kept_inside_of_their_buffer() {
    let plan = plan::plan(&module("atomics")).unwrap();
    let members = plan.iter().map(|change| match change.to {
        To::InsideBuffer { member, .. } => member,
        other => panic!("{other:?}"),
    });
    // Two by variable index and one by a fixed one into `words`, one into `pairs`; the last access
    // is no atomic.
    assert_eq!(members.collect::<Vec<_>>(), [1, 1, 1, 0]);
}

#[test]
fn components_in_registers_are_limited_and_the_import_is_added() {
    let before = module("dynamic_vectors");
    let after = Module::parse(&clamp(&before).unwrap()).unwrap();
    let imports = |module: &Module| {
        module
            .globals()
            .filter(|i| i.op == Op::ExtInstImport)
            .count()
    };
    assert_eq!((imports(&before), imports(&after)), (0, 1));
    let minimums = after.instructions().filter(|i| i.op == Op::ExtInst).count();
    // The extraction, the insertion and the computed index of the chain; 9 of 4 is a constant.
    assert_eq!(minimums, 3);
    assert_eq!(plan::plan(&before).unwrap().len(), 4);
}
