//! Functions that are made of the statistics are written whole.

use super::{GOOD, Sources, expect, generate};

/// The lines of the generated code from one that starts so to the end of its block.
fn block(code: &str, start: &str) -> String {
    let code = code
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line));
    let from = code.skip_while(|line| !line.starts_with(start));
    let mut block = String::new();
    for line in from {
        block += line;
        block += "\n";
        if line == "}" {
            break;
        }
    }
    block
}

fn api() -> String {
    expect(generate(GOOD)).api
}

#[test]
fn a_reader_takes_its_value_out_of_the_statistics() {
    assert_eq!(
        block(&api(), "pub fn peak("),
        "pub fn peak(of: impl Into<DeviceArg>) -> Result<u64> {\n    \
             let stats = MemoryBodies::stats(&Runtime::current(), of.into())?;\n    \
             Ok(stats.blocks.all.top)\n\
         }\n"
    );
    assert_eq!(
        block(&api(), "pub fn limit("),
        "pub fn limit(of: impl Into<DeviceArg>) -> Result<Option<u64>> {\n    \
             let stats = MemoryBodies::stats(&Runtime::current(), of.into())?;\n    \
             Ok(stats.limit)\n\
         }\n"
    );
}

#[test]
fn a_reset_and_its_older_name_call_the_one_body_that_changes_the_statistics() {
    for name in ["reset_peak", "restart"] {
        assert_eq!(
            block(&api(), &format!("pub fn {name}(")),
            format!(
                "pub fn {name}(of: impl Into<DeviceArg>) -> Result<()> {{\n    \
                     MemoryBodies::change_stats(&Runtime::current(), of.into(), MemoryStats::reset_top)\n\
                 }}\n"
            )
        );
    }
}

#[test]
fn bodies_are_asked_for_what_is_not_derived() {
    let bodies = block(&api(), "pub(crate) trait MemoryBodies");
    for wanted in [
        "fn stats(&self, of: DeviceArg) -> Result<MemoryStats>;",
        "fn change_stats(&self, of: DeviceArg, change: fn(&mut MemoryStats)) -> Result<()>;",
    ] {
        assert!(bodies.contains(wanted), "{bodies}");
    }
    for derived in ["fn peak", "fn limit", "fn reset_peak", "fn restart"] {
        assert!(!bodies.contains(derived), "{bodies}");
    }
    let without_resets = GOOD.api.replace("resets: top", "reads: limit");
    let api = &without_resets;
    let bodies = block(
        &expect(generate(Sources { api, ..GOOD })).api,
        "pub(crate) trait MemoryBodies",
    );
    assert!(!bodies.contains("change_stats"), "{bodies}");
}

#[test]
fn functions_stand_at_the_root_unless_their_module_leaves_them_out() {
    let at_root = "pub use self::memory::";
    assert!(api().contains(at_root));
    let summary = "    summary: Device memory.\n";
    let left_out = GOOD
        .api
        .replace(summary, &format!("{summary}    at_root: none\n"));
    let sources = Sources {
        api: &left_out,
        ..GOOD
    };
    assert!(!expect(generate(sources)).api.contains(at_root));
}

#[test]
fn what_is_derived_has_the_errors_of_what_it_is_made_of() {
    let docs = api();
    let (_, docs) = docs
        .split_once("The most blocks that there were.")
        .expect("the docs of `peak`");
    let (docs, _) = docs.split_once("pub fn peak").expect("the function");
    for part in [
        "It is `blocks.all.top` of [`stats`].",
        "In PyTorch: `torch.accelerator.memory.peak`.",
        "# Errors",
        "InvalidDevice): `of` names no visible device.",
        "#[track_caller]",
    ] {
        assert!(docs.contains(part), "{part} is not in {docs}");
    }
}
