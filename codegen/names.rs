//! Which words can name what in Rust.

use super::types;

/// Words that can't be names in edition 2024, now or one day, and those that read like keywords.
pub const RESERVED: &[&str] = &[
    "Self",
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "macro_rules",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "raw",
    "ref",
    "return",
    "safe",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Plain words that one YAML reader or another takes for a boolean or for nothing.
const YAML_WORDS: &[&str] = &["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// What generated code means by these names, whatever the spec says; `Root` would give a second
/// `RootBodies`.
const TAKEN: &[&str] = &["AsRef", "Into", "Result", "Root", "Runtime"];

/// Crates that a module of that name would hide.
const CRATES: &[&str] = &["alloc", "core", "std", "vkaccel"];

/// Whether YAML readers disagree about the word.
pub fn is_yaml_word(word: &str) -> bool {
    YAML_WORDS.contains(&word.to_ascii_lowercase().as_str()) || word == "~"
}

/// Why the word can't name a function, a method, an argument or a module; `None` if it can.
pub fn refuse_snake_name(word: &str) -> Option<String> {
    refuse_word(word).or_else(|| {
        let first = word.starts_with(|c: char| c.is_ascii_lowercase());
        let rest = word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let underscores = word.contains("__") || word.ends_with('_');
        (!first || !rest || underscores)
            .then(|| format!("`{word}` is no snake_case Rust name, as `memory_stats` is"))
    })
}

/// Why the word can't name a module; `None` if it can.
pub fn refuse_module_name(word: &str) -> Option<String> {
    let hidden = CRATES.contains(&word);
    let fault = || format!("a module `{word}` would hide the crate of that name");
    refuse_snake_name(word).or_else(|| hidden.then(fault))
}

/// Why the word can't name a type of the crate; `None` if it can.
pub fn refuse_type_name(word: &str) -> Option<String> {
    refuse_word(word).or_else(|| {
        let library = types::is_library(word);
        if library || TAKEN.contains(&word) || word.ends_with("Bodies") {
            return Some(format!("`{word}` means something else in generated code"));
        }
        let first = word.starts_with(|c: char| c.is_ascii_uppercase());
        let rest = word.chars().all(|c| c.is_ascii_alphanumeric());
        (!first || !rest).then(|| format!("`{word}` is no CamelCase Rust name, as `MemoryInfo` is"))
    })
}

fn refuse_word(word: &str) -> Option<String> {
    if is_yaml_word(word) {
        return Some(format!(
            "`{word}` can't be a name: YAML readers disagree about what it is"
        ));
    }
    RESERVED
        .contains(&word)
        .then(|| format!("`{word}` is a reserved word of Rust"))
}

/// `snake` as `Snake`, `rng_state` as `RngState`.
pub fn camel(snake: &str) -> String {
    let mut out = String::new();
    for part in snake.split('_') {
        let mut chars = part.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}
