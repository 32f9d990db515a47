//! What the documents say is what the repository holds.

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

#[test]
fn links_of_the_documents_lead_somewhere() {
    for document in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        for part in text(document).split("](").skip(1) {
            let (link, _) = part.split_once(')').unwrap();
            if !link.contains("://") {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(link);
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
