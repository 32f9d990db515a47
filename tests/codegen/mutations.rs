//! Random damage to the specs: the build says what is wrong, or the code it writes compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::{env, fs, panic};

use super::codegen::yaml::{self, Node};
use super::codegen::{self, Generated, Sources};
use super::{GOOD, Real, conformance, expect, generate};

/// How often each spec is damaged.
const SEEDS: u64 = 200;

/// A small generator of numbers (splitmix64), so that a seed always means the same damage.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }
}

/// The spec with one thing in it changed.
fn damage(spec: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = spec.lines().collect();
    let (here, there) = (random.below(lines.len()), random.below(lines.len()));
    let mut line = lines[here].to_string();
    let places: Vec<usize> = line.char_indices().map(|(place, _)| place).collect();
    let place = places.get(random.below(places.len())).copied();
    match random.below(9) {
        0 => drop(lines.remove(here)),
        1 => lines.insert(there, lines[here]),
        2 => lines.swap(here, there),
        3 => lines.truncate(here),
        4 => line.insert_str(0, "  "),
        5 => line = line.replacen("  ", "", 1),
        6 => {
            if let Some(place) = place {
                line.remove(place);
            }
        }
        7 => {
            let alphabet: Vec<char> = "aZ_09 \t:#'\"{}[],&*!|>%@`-~<()\u{e9}\u{0}"
                .chars()
                .collect();
            let new = alphabet[random.below(alphabet.len())];
            line.insert(place.unwrap_or(0), new);
        }
        _ => {
            let all: Vec<&str> = words(spec);
            let own: Vec<&str> = words(lines[here]);
            if !own.is_empty() {
                let (old, new) = (own[random.below(own.len())], all[random.below(all.len())]);
                line = lines[here].replacen(old, new, 1);
            }
        }
    }
    if let Some(kept) = lines.get_mut(here)
        && line != spec.lines().nth(here).unwrap_or_default()
    {
        *kept = &line;
    }
    lines.join("\n") + "\n"
}

fn words(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.filter(|word| !word.is_empty()).collect()
}

/// The generated code without its docs: what the compiler sees, of the surface and the statistics.
fn code_of(generated: &Generated) -> (String, String) {
    let code = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    };
    (code(&generated.api), code(&generated.stats))
}

/// A crate around the code: its imports as empty types and functions, its bodies as panics.
fn crate_around((code, stats): &(String, String)) -> String {
    let mut surface = String::new();
    let mut types = BTreeSet::new();
    let mut functions = BTreeMap::<&str, BTreeSet<&str>>::new();
    let mut impls = String::new();
    let (mut module, mut in_trait, mut open) = ("", false, "");
    for line in code.lines() {
        let bare = line.trim();
        let start = if open.is_empty() { bare } else { open };
        if let Some(path) = start.strip_prefix("use crate::") {
            let list = if open.is_empty() { path } else { bare };
            types.extend(words(list));
        } else if let Some(path) = start.strip_prefix("pub use crate::api::") {
            let (holder, list) = path.split_once("::").unwrap_or_default();
            let list = if open.is_empty() { list } else { bare };
            functions.entry(holder).or_default().extend(words(list));
        }
        open = if bare.ends_with('{') && start.contains("use crate::") {
            start
        } else {
            open
        };
        if bare == "};" {
            open = "";
        }
        if let Some(name) = bare.strip_prefix("pub mod ") {
            module = name.trim_end_matches(" {");
        }
        if let Some(name) = bare.strip_prefix("pub(crate) trait ") {
            let name = name.trim_end_matches(" {");
            in_trait = true;
            let nested = line.starts_with(' ');
            let path = if nested {
                format!("{module}::{name}")
            } else {
                name.to_string()
            };
            let object = name.trim_end_matches("Bodies");
            let is_object = !nested && code.contains(&format!("\nimpl {object} {{"));
            let owner = if is_object { object } else { "Runtime" };
            impls += &format!("impl surface::{path} for {owner} {{}}\n");
        }
        if bare == "}" {
            in_trait = false;
        }
        match line.strip_suffix(';') {
            Some(declared) if in_trait => surface += &format!("{declared} {{ panic!() }}\n"),
            _ => surface += &format!("{line}\n"),
        }
    }
    types.extend(["Runtime", "Result"]);
    let mut out = String::from("pub type Result<T> = core::result::Result<T, ()>;\n");
    for name in types.iter().filter(|name| **name != "Result") {
        out += &match *name {
            "MemoryStats" => format!("pub use memory_stats::{name};\n"),
            _ => format!("pub struct {name};\n"),
        };
    }
    out += "impl Runtime { pub fn current() -> Self { Self } }\nmod api {\n";
    for (holder, names) in functions {
        out += &format!("pub mod {holder} {{\n");
        for name in names {
            out += &format!("pub fn {name}() {{}}\n");
        }
        out += "}\n";
    }
    out += &format!("}}\n{impls}pub mod surface {{\n{surface}}}\n");
    out + &format!("pub mod memory_stats {{\n{stats}}}\n")
}

/// What the compiler says against the code; nothing if it takes it.
fn compile(code: &(String, String), name: &str) -> Option<String> {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let source = format!("{folder}/{name}.rs");
    fs::write(&source, crate_around(code)).expect("the folder for tests can be written");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "--cap-lints=allow",
        ])
        .args(["--out-dir", folder, &source])
        .output()
        .expect("rustc starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

/// What the damage was done to.
#[derive(Clone, Copy)]
enum File {
    Api,
    Stats,
}

/// Damages a file again and again; every surface that comes out is compiled, once for each code.
fn survive(name: &str, spec: Sources<'_>, file: File) {
    let undamaged = expect(generate(spec));
    let good_table = conformance::table(&expect(codegen::read(spec)));
    let good = code_of(&undamaged);
    assert_eq!(compile(&good, &format!("{name}_good")), None);
    let mut codes = BTreeMap::new();
    let mut refused = 0;
    for seed in 0..SEEDS {
        let text = match file {
            File::Api => spec.api,
            File::Stats => spec.stats,
        };
        let damaged = &damage(text, &mut Random(seed));
        let sources = match file {
            File::Api => Sources {
                api: damaged,
                ..spec
            },
            File::Stats => Sources {
                stats: damaged,
                ..spec
            },
        };
        match panic::catch_unwind(|| generate(sources)) {
            Ok(Ok(generated)) => {
                let table = conformance::table(&expect(codegen::read(sources)));
                let same = generated == undamaged && table == good_table;
                assert!(
                    !same || says_the_same(text, damaged),
                    "{name}, seed {seed}: a change of the spec changed nothing"
                );
                codes.entry(code_of(&generated)).or_insert(seed);
            }
            Ok(Err(faults)) => {
                refused += 1;
                assert!(!faults.is_empty(), "{name}, seed {seed}");
                for fault in faults {
                    let placed = fault.line > 0 && fault.file.starts_with("spec/");
                    assert!(
                        placed && !fault.text.is_empty(),
                        "{name}, seed {seed}: {fault}"
                    );
                }
            }
            Err(_) => panic!("{name}, seed {seed}: the generator panicked"),
        }
    }
    codes.remove(&good);
    println!(
        "{name}: {refused} of {SEEDS} refused, {} other surfaces",
        codes.len()
    );
    assert!(refused > SEEDS / 4, "the damage is too gentle");
    for (code, seed) in codes {
        if let Some(said) = compile(&code, &format!("{name}_{seed}")) {
            panic!("{name}, seed {seed}: the generated code does not compile\n{said}");
        }
    }
}

/// What shows neither in code nor in the table of names: a test compares it with the crate.
const UNSEEN: &[&str] = &["kinds"];

/// Whether two files say the same to whoever reads what is made of them: only comments, quotes, blanks, the
/// order of declarations, or something unseen differ.
fn says_the_same(one: &str, other: &str) -> bool {
    fn sorted(node: Node) -> Vec<String> {
        match node {
            Node::Map(map) => {
                let rows = map.into_iter().filter(|(key, _)| !UNSEEN.contains(&&**key));
                let mut rows: Vec<String> = rows
                    .map(|(key, below)| format!("{key}: {:?}", sorted(below)))
                    .collect();
                rows.sort();
                rows
            }
            Node::List(list) => {
                let mut rows: Vec<String> = list
                    .into_iter()
                    .map(|below| format!("{:?}", sorted(below)))
                    .collect();
                rows.sort();
                rows
            }
            Node::Text(text) => text.split_whitespace().map(String::from).collect(),
            other => vec![other.describe()],
        }
    }
    let tree = |text| yaml::load(text).map(sorted).ok();
    tree(one) == tree(other)
}

#[test]
fn damaged_spec_is_refused_or_gives_code_that_compiles() {
    survive("real", Real::read().sources(), File::Api);
}

#[test]
fn damaged_statistics_are_refused_or_give_code_that_compiles() {
    survive("real_stats", Real::read().sources(), File::Stats);
}

#[test]
fn damaged_spec_with_every_key_is_refused_or_gives_code_that_compiles() {
    survive("good", GOOD, File::Api);
}

#[test]
fn damaged_statistics_with_every_key_are_refused_or_give_code_that_compiles() {
    survive("good_stats", GOOD, File::Stats);
}
