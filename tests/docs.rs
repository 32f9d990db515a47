//! What the documents say is what the repository holds.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use std::fs;
use std::path::Path;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first block of code of this language.
fn code(markdown: &str, language: &str) -> String {
    let start = format!("```{language}\n");
    markdown
        .split_once(&start)
        .and_then(|(_, rest)| rest.split_once("```"))
        .map(|(code, _)| code.to_owned())
        .unwrap_or_default()
}

#[test]
fn the_readme_shows_the_quick_start_as_it_is() {
    let example = text("examples/quick_start.rs");
    let (_, example) = example.split_once("\n\n").unwrap();
    assert_eq!(code(&text("README.md"), "rust"), example);
    let lines = example.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 20, "{lines} lines");
}

/// All blocks of code, without the indentation of their lines.
fn blocks(markdown: &str) -> Vec<String> {
    let blocks = markdown.split("```").skip(1).step_by(2);
    let without_language = blocks.map(|block| block.split_once('\n').unwrap().1);
    without_language.map(unindented).collect()
}

fn unindented(code: &str) -> String {
    code.lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

#[test]
fn the_page_of_graphs_shows_code_that_runs() {
    let sources = [
        "src/crate_docs.md",
        "examples/training_step/network.rs",
        "examples/training_step/loss.comp",
    ];
    let sources = sources.map(|source| unindented(&text(source)));
    let blocks = blocks(&text("docs/graphs.md"));
    assert!(blocks.len() > 4, "{blocks:?}");
    for block in blocks {
        let is_shown = |source: &String| source.contains(&format!("\n{block}"));
        assert!(sources.iter().any(is_shown), "nowhere else:\n{block}");
    }
}

/// The documents at the top and those in `docs/`.
fn documents() -> Vec<String> {
    let top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let names = fs::read_dir(folder).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        format!("docs/{}", name.to_str().unwrap())
    });
    top.map(str::to_owned).into_iter().chain(names).collect()
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    for document in documents() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&document);
        for part in text(&document).split("](").skip(1) {
            let (link, _) = part.split_once(')').unwrap();
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            if !link.contains("://") && !file.is_empty() {
                let path = path.parent().unwrap().join(file);
                assert!(path.exists(), "{document} links to {link}");
            }
        }
    }
}

#[test]
fn commands_of_the_documents_name_scripts_that_exist() {
    for document in ["README.md", "CONTRIBUTING.md"] {
        for word in text(document).split(|c: char| c.is_whitespace() || "`()".contains(c)) {
            let is_file = word.starts_with("scripts/") && word.len() > "scripts/".len();
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(word);
            assert!(!is_file || path.exists(), "{document} names {word}");
        }
    }
}

/// Functions whose errors need no runtime: of plain data, files, and what starts anew after a fork.
const NEED_NO_RUNTIME: &[&str] = &[
    "alloc/export/html.rs write_html",
    "alloc/export/lines.rs write_json_lines",
    "alloc/export/pickle.rs write_pickle",
    "alloc/sim/mod.rs allocate",
    "alloc/sim/mod.rs free",
    "alloc/sim/mod.rs record",
    "alloc/sim/mod.rs set_fraction",
    "api/buffer.rs cast",
    "api/buffer.rs view",
    "api/random.rs parse_seed",
    "api/rows.rs rows",
    "api/view.rs view",
    "kernel/source.rs entry_points",
    "rng/philox.rs fill_bernoulli",
    "rng/philox.rs fill_bits",
    "rng/philox.rs fill_integers",
    "rng/philox.rs fill_normal",
    "rng/philox.rs fill_uniform",
    "rng/philox.rs fill_uniform_f16",
    "rng/philox.rs from_state",
    "rng/state.rs from_bytes",
    "runtime/fork.rs reinit_after_fork",
];

/// The public functions of a file that return a `Result`, each with its docs.
fn fallible(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut docs = String::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("///") {
            docs += &format!("{}\n", text.trim());
            continue;
        }
        let head = line.strip_prefix("pub ").unwrap_or_default();
        if let Some(rest) = head
            .strip_prefix("unsafe ")
            .unwrap_or(head)
            .strip_prefix("fn ")
        {
            let mut signature = rest.to_owned();
            while !signature.ends_with(['{', ';']) {
                signature += lines.next().unwrap();
            }
            if signature.contains("Result<") && signature.contains("-> ") {
                let name = signature.split(['(', '<']).next().unwrap();
                found.push((name.to_owned(), std::mem::take(&mut docs)));
            }
        }
        // Attributes stand between the docs and the function.
        if !line.starts_with('#') {
            docs.clear();
        }
    }
    found
}

fn sources(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, all),
            false => all.push(path),
        }
    }
}

/// Whether a section of errors leads to what many calls have in common, or to another that does.
fn leads_on(section: &str) -> bool {
    let section = section.replace('\n', " ");
    ["](crate#errors)", "As [`", " as [`"]
        .iter()
        .any(|link| section.contains(link))
}

#[test]
fn every_fallible_function_leads_to_the_errors_that_it_shares() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("tests/golden/api.rs")];
    sources(&root.join("src"), &mut files);
    files.retain(|file| file.extension().is_some_and(|end| end == "rs"));
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    for file in &files {
        let short = file.strip_prefix(root.join("src")).unwrap_or(file);
        let source = fs::read_to_string(file).unwrap();
        let (source, _) = source.split_once("#[cfg(test)]").unwrap_or((&source, ""));
        for (name, docs) in fallible(source) {
            let name = format!("{} {name}", short.display());
            let mut sections = docs.split("\n# ");
            let section = sections.find_map(|part| part.strip_prefix("Errors\n"));
            let needs_none = NEED_NO_RUNTIME.contains(&name.as_str());
            if !section.is_some_and(|section| needs_none || leads_on(section)) {
                wrong.push(name.clone());
            }
            seen.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "they don't say what they share: {wrong:#?}"
    );
    assert!(seen.len() > 150, "{seen:?}");
    let gone: Vec<_> = NEED_NO_RUNTIME
        .iter()
        .filter(|known| !seen.iter().any(|name| name == *known))
        .collect();
    assert!(gone.is_empty(), "no such functions: {gone:?}");
}

#[test]
fn the_crate_docs_say_what_calls_commands_and_waits_may_give() {
    let docs = text("src/crate_docs.md");
    let mut sections = docs.split("\n# ");
    let section = sections.find_map(|part| part.strip_prefix("Errors\n"));
    for words in ["**Any call**", "**Any command**", "**Any wait**"] {
        assert!(section.unwrap().contains(words), "{words}");
    }
}
