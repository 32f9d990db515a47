//! The table of names: what PyTorch documents, where it is in Rust, and which test proves it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::codegen::fields::Word;
use super::codegen::model::{Body, Entry, ROOT, Spec};
use super::codegen::stats::StatsSpec;
use super::golden::hold;
use super::{Real, codegen, expect, path};

/// What the documentation of PyTorch names, one a line.
const NAMES: &str = include_str!("../data/torch/documented-2.14.txt");
const TABLE: &str = "docs/conformance.md";
/// What a cell says where there is nothing to name.
const NONE: &str = "none";

/// One declared function, method or constructor.
struct Row {
    torch: String,
    rust: String,
    origin: String,
    since: String,
    upstream: String,
    elsewhere: String,
    note: String,
    proof: String,
}

/// The functions and methods that PyTorch documents.
fn documented() -> impl Iterator<Item = &'static str> {
    lines().filter(|name| name.starts_with("torch."))
}

/// The keys of statistics that PyTorch documents.
fn documented_keys() -> BTreeSet<&'static str> {
    lines().filter(|name| !name.starts_with("torch.")).collect()
}

fn lines() -> impl Iterator<Item = &'static str> {
    NAMES.lines().filter(|line| !line.starts_with('#'))
}

fn proof(word: Option<&Word>) -> String {
    word.map_or("not yet".into(), |word| quoted(Some(word)))
}

fn quoted(word: Option<&Word>) -> String {
    word.map_or(NONE.into(), |word| format!("`{}`", word.as_str()))
}

fn request(word: Option<&Word>) -> String {
    let link = |word: &Word| {
        let (repository, number) = word.as_str().split_once('#').unwrap_or_default();
        format!("[{repository}#{number}](https://github.com/{repository}/issues/{number})")
    };
    word.map_or(NONE.into(), link)
}

/// The names in Rust and in PyTorch of what is called `name` in a module or an object.
fn names(spec: &Spec, holder: &str, name: &str) -> (String, String) {
    let modules = spec.modules.iter().map(|m| (&m.name, &m.torch));
    let objects = spec.objects.iter().map(|o| (&o.name, &o.torch));
    let found = modules
        .chain(objects)
        .find(|(held_by, _)| held_by.as_str() == holder);
    let torch = found.map_or("", |(_, torch)| torch.as_str());
    let rust = match holder {
        ROOT => format!("vkaccel::{name}"),
        _ => format!("vkaccel::{holder}::{name}"),
    };
    let torch = match name {
        // A constructor is the class.
        "new" => torch.into(),
        _ => format!("{torch}.{name}"),
    };
    (rust, torch)
}

fn declared(spec: &Spec) -> Vec<Row> {
    let mut rows = Vec::new();
    for (holder, entries) in spec.lists() {
        for entry in entries {
            let (rust, torch) = names(spec, holder, entry.name.as_str());
            rows.push(Row {
                torch,
                rust,
                origin: entry.origin.text.clone(),
                since: entry.since.text.clone(),
                upstream: request(entry.upstream.as_ref()),
                elsewhere: quoted(entry.elsewhere.as_ref()),
                note: note(entry),
                proof: proof(entry.proved_by.as_ref()),
            });
        }
    }
    for written in &spec.handwritten {
        let (holder, name) = written.split();
        let (rust, torch) = names(spec, holder, name);
        rows.push(Row {
            torch,
            rust,
            origin: written.origin.text.clone(),
            since: written.since.text.clone(),
            upstream: request(written.upstream.as_ref()),
            elsewhere: quoted(written.elsewhere.as_ref()),
            note: String::new(),
            proof: proof(written.proved_by.as_ref()),
        });
    }
    rows
}

/// What the table adds to the Rust name of an entry.
fn note(entry: &Entry) -> String {
    match (&entry.body, entry.successor()) {
        (_, Some(next)) => format!(", deprecated for `{}`", next.as_str()),
        (Body::Call(call), None) => match &call.derived {
            Some(derived) => format!(", made of `{}`", derived.word().as_str()),
            None => String::new(),
        },
        (Body::Alias(_), None) => String::new(),
    }
}

/// The table, as it stands in the docs.
pub fn table((spec, stats): &(Spec, StatsSpec)) -> String {
    let rows = declared(spec);
    let by_torch: BTreeMap<&str, &Row> = rows
        .iter()
        .filter(|row| row.origin != "extension")
        .map(|row| (row.torch.as_str(), row))
        .collect();
    let mut out = String::from(
        "# What PyTorch documents, and what there is here\n\n\
         Generated from `spec/` and `tests/data/torch/documented-2.14.txt` by\n\
         `VKACCEL_BLESS=1 cargo test --test codegen`. `stream::waits` is the test `waits` in `tests/stream.rs`, or in \
         `src/stream.rs`.\n\n",
    );
    let all = documented().count();
    let there = documented()
        .filter(|name| by_torch.contains_key(name))
        .count();
    out += &format!(
        "## The names of `torch.accelerator`\n\n{there} of {all} are declared.\n\n\
         | PyTorch | Rust | origin | since | test |\n| --- | --- | --- | --- | --- |\n"
    );
    for name in documented() {
        out += &match by_torch.get(name) {
            Some(row) => line(row, &row.origin),
            None => format!("| `{name}` | not declared yet | documented | | |\n"),
        };
    }
    out += "\n## Names that other pages of PyTorch document, or none\n\n\
            | PyTorch | Rust | origin | since | test |\n| --- | --- | --- | --- | --- |\n";
    let listed: BTreeSet<&str> = documented().collect();
    for row in rows.iter().filter(|row| row.origin != "extension") {
        if !listed.contains(row.torch.as_str()) {
            out += &line(row, &row.origin);
        }
    }
    out += "\n## Extensions\n\nSome have a name elsewhere in PyTorch, outside of `torch.accelerator`.\n\n\
            | Rust | elsewhere in PyTorch | asked for in | since | test |\n| --- | --- | --- | --- | --- |\n";
    for row in rows.iter().filter(|row| row.origin == "extension") {
        let Row {
            rust,
            note,
            upstream,
            elsewhere,
            since,
            proof,
            ..
        } = row;
        out += &format!("| `{rust}`{note} | {elsewhere} | {upstream} | {since} | {proof} |\n");
    }
    out + &statistics(stats)
}

fn line(row: &Row, origin: &str) -> String {
    let Row {
        torch,
        rust,
        note,
        since,
        proof,
        ..
    } = row;
    format!("| `{torch}` | `{rust}`{note} | {origin} | {since} | {proof} |\n")
}

fn statistics(stats: &StatsSpec) -> String {
    let keys = stats.keys();
    let wanted = documented_keys();
    let there = keys
        .iter()
        .filter(|(key, _)| wanted.contains(&**key))
        .count();
    let mut out = format!(
        "\n## The keys of `memory_stats`\n\n{there} of {} documented keys are declared, and {} more. A test here is one of the \
         numbers that the allocator counts.\n\n\
         | keys | also looked up as | Rust | origin | test |\n| --- | --- | --- | --- | --- |\n",
        wanted.len(),
        keys.len() - there,
    );
    let metrics: Vec<&str> = stats.metrics.iter().map(|m| m.name.as_str()).collect();
    let pools: Vec<&str> = stats.pools.iter().map(|pool| pool.name.as_str()).collect();
    let (metrics, pools) = (metrics.join(","), pools.join(","));
    for single in stats.singles() {
        let name = single.name.as_str();
        let count = keys
            .iter()
            .filter(|(key, _)| key == name || key.starts_with(&format!("{name}.")))
            .count();
        let shape = match count {
            1 => name.into(),
            _ if keys
                .iter()
                .any(|(key, _)| *key == format!("{name}.{}", stats.metrics[0].name.as_str())) =>
            {
                format!("{name}.{{{metrics}}}")
            }
            _ => format!("{name}.{{{pools}}}.{{{metrics}}}"),
        };
        let aliases: Vec<String> = single
            .aliases
            .iter()
            .map(|a| format!("`{}`", a.as_str()))
            .collect();
        out += &format!(
            "| `{shape}` | {} | `MemoryStats::{name}` | {} | {} |\n",
            if aliases.is_empty() {
                NONE.into()
            } else {
                aliases.join(", ")
            },
            single.origin.as_str(),
            proof(single.proved_by.as_ref()),
        );
    }
    out
}

fn real() -> (Spec, StatsSpec) {
    expect(codegen::read(Real::read().sources()))
}

#[test]
fn table_of_names_is_what_the_spec_gives() {
    let table = table(&real());
    assert!(!table.contains("|  |"), "a cell is empty");
    hold(TABLE, &table);
}

/// No name is called documented that is not, and a documented one is called so.
#[test]
fn origins_agree_with_the_list_of_documented_names() {
    let (spec, stats) = real();
    let listed: BTreeSet<&str> = documented().collect();
    for row in declared(&spec) {
        let is_listed = listed.contains(row.torch.as_str());
        let of_the_pages = row.torch.starts_with("torch.accelerator");
        let says_so = row.origin == "documented";
        assert!(
            is_listed == says_so || (says_so && !of_the_pages),
            "{}: origin {}",
            row.rust,
            row.origin
        );
    }
    let documented: Vec<&str> = stats
        .singles()
        .filter(|single| single.origin.as_str() == "documented")
        .map(|single| single.name.as_str())
        .collect();
    let keys = stats.keys();
    let found: BTreeSet<&str> = keys
        .iter()
        .map(|(key, _)| key.as_str())
        .filter(|key| documented.contains(&key.split('.').next().unwrap_or_default()))
        .collect();
    assert_eq!(found, documented_keys());
    assert_eq!(found.len(), 101);
}

/// What is written by hand says its name in PyTorch as what is generated does, and is found by it.
#[test]
fn names_of_torch_are_said_where_functions_are_written_by_hand() {
    let files = [
        "src/runtime/event.rs",
        "src/runtime/stream.rs",
        "src/api/graph.rs",
        "src/api/pool.rs",
    ];
    let sources = files.map(|file| fs::read_to_string(path(file)).expect("a file of the crate"));
    let (spec, _) = real();
    for row in declared(&spec).split_off(spec.lists().map(|(_, list)| list.len()).sum()) {
        let torch = match row.elsewhere == NONE {
            true if row.origin == "extension" => continue,
            true => format!("`{}`", row.torch),
            false => row.elsewhere,
        };
        let said = format!("In PyTorch: {torch}");
        let alias = format!("#[doc(alias = \"{}\")]", torch.trim_matches('`'));
        for words in [said, alias] {
            assert!(
                sources.iter().any(|source| source.contains(&words)),
                "{}: {words}",
                row.rust
            );
        }
    }
}

/// A test that the spec names is there.
#[test]
fn proofs_are_tests_that_exist() {
    let (spec, stats) = real();
    let entries = spec.lists().flat_map(|(_, entries)| entries);
    let proofs = entries.filter_map(|entry| entry.proved_by.as_ref());
    let proofs = proofs.chain(spec.handwritten.iter().filter_map(|w| w.proved_by.as_ref()));
    let proofs = proofs.chain(
        stats
            .singles()
            .filter_map(|single| single.proved_by.as_ref()),
    );
    let mut missing = Vec::new();
    for proof in proofs {
        let (file, test) = proof.as_str().rsplit_once("::").expect("it is checked");
        let file = file.replace("::", "/");
        let places = [
            "tests/F.rs",
            "tests/F/main.rs",
            "src/F.rs",
            "src/F/mod.rs",
            "src/F/tests.rs",
        ];
        let is_test = |place: &&str| {
            let text = fs::read_to_string(path(&place.replace('F', &file))).unwrap_or_default();
            let found = text.find(&format!("\nfn {test}("));
            // Attributes may stand between the two.
            found.is_some_and(|at| {
                text[..at]
                    .lines()
                    .rev()
                    .take(3)
                    .any(|line| line == "#[test]")
            })
        };
        if !places.iter().any(is_test) {
            missing.push(proof.as_str());
        }
    }
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}
