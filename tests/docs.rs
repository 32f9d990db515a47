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
