//! The sources keep to the architecture: who may call Vulkan, who may be unsafe, who may use whom.

#![allow(clippy::unwrap_used, reason = "a test may panic anywhere")]

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `src/`, upper ones first. Each uses itself and those after it.
const LAYERS: &[&str] = &[
    "api", "runtime", "graph", "rng", "kernel", "mem", "exec", "vk",
];

/// Modules without a device in them: they are used at any level, and use only each other.
const PURE: &[&str] = &[
    "alloc",
    "base",
    "device",
    "error",
    "exec::branches",
    "exec::elapsed",
    "exec::hazard",
    "exec::order",
    "graph::plan",
    "kernel::interface",
    "kernel::scalar",
    "kernel::grid",
    "kernel::spirv",
    "kernel::reflect",
    "mem::fill",
    "mem::ring",
    "mem::strided",
    "rng::convert",
    "rng::element",
    "rng::generator",
    "rng::normal",
    "rng::parameters",
    "rng::philox",
    "rng::state",
];

/// The files that may say `unsafe`: each opens with a section `# Safety` that says why.
const UNSAFE_FILES: &[&str] = &[
    "cli/src/trust.rs",
    "src/api/kernel.rs",
    "src/base/fork.rs",
    "src/kernel/indirect/",
    "src/kernel/program.rs",
    "src/api/pinned.rs",
    "src/mem/pinned.rs",
    "src/mem/direct.rs",
    "src/mem/staging.rs",
    "src/rng/kernels.rs",
    "src/runtime/builder.rs",
    "src/runtime/fork.rs",
    "src/vk/",
];

/// The files that may name `ash`.
const ASH_FILES: &[&str] = &["src/raw.rs", "src/vk/"];

/// The most lines of a file.
const LONGEST: usize = 600;

/// A source file of the repository.
struct SourceFile {
    /// From the root of the repository, with `/`.
    path: String,
    text: String,
    /// The text without comments and what strings hold; its lines are the same.
    code: String,
}

impl SourceFile {
    /// The lines with code, without comments and what strings hold, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().zip(1..);
        lines.filter_map(|(line, number)| (!line.trim().is_empty()).then_some((number, line)))
    }

    /// The modules from the root of the crate, as `kernel::spirv::types`.
    fn module(&self) -> Option<String> {
        let inner = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        Some(inner.trim_end_matches("/mod").replace('/', "::"))
    }

    fn is_in(&self, places: &[&str]) -> bool {
        let matches = |place: &&str| match place.ends_with('/') {
            true => self.path.starts_with(*place),
            false => self.path == **place,
        };
        places.iter().any(matches)
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The Rust files in these folders of the repository, but for golden copies of generated ones.
fn sources(folders: &[&str]) -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let inner = path.strip_prefix(root).unwrap();
        let parts: Vec<_> = inner.iter().map(|part| part.to_str().unwrap()).collect();
        let text = fs::read_to_string(&path).unwrap();
        let file = SourceFile {
            path: parts.join("/"),
            code: bare(&text),
            text,
        };
        if !file.is_in(&["tests/golden/"]) {
            files.push(file);
        }
    }
    assert!(!files.is_empty());
    files
}

/// A text of Rust without comments and what strings hold, in the same lines.
fn bare(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("r#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            end_of_string(rest)
        } else {
            bare.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        bare.extend(rest[..skipped].chars().filter(|&c| c == '\n'));
        rest = &rest[skipped..];
    }
    bare
}

/// Where the string that a text starts with ends, behind its quote.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Panics with all faults, one a line.
fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn only_the_vulkan_layer_names_ash() {
    let mut faults = Vec::new();
    for file in sources(&["src"]) {
        for (number, code) in file.code() {
            if !file.is_in(ASH_FILES) && words(code).any(|word| word == "ash") {
                faults.push(format!("{}:{number}: {}", file.path, code.trim()));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn unsafe_code_is_in_the_listed_files_alone_and_each_says_why() {
    let mut faults = Vec::new();
    for file in sources(&["src", "codegen", "cli/src"]) {
        let is_unsafe = |(_, code): &(usize, &str)| words(code).any(|word| word == "unsafe");
        let Some((number, code)) = file.code().find(is_unsafe) else {
            continue;
        };
        if !file.is_in(UNSAFE_FILES) {
            faults.push(format!("{}:{number}: {}", file.path, code.trim()));
        } else if !file.text.contains("# Safety") {
            faults.push(format!("{}: no section `# Safety`", file.path));
        }
    }
    assert_none(&faults);
}

/// The paths that start with `crate::` in a line, as `kernel::spirv::types`, as far as they are
/// spelled out before a brace.
fn crate_paths(code: &str) -> impl Iterator<Item = &str> {
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        rest[..end.unwrap_or(rest.len())].trim_end_matches(':')
    })
}

fn is_pure(module: &str) -> bool {
    PURE.iter().any(|pure| {
        let rest = module.strip_prefix(pure);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

fn layer(module: &str) -> Option<usize> {
    let first = module.split("::").next()?;
    LAYERS.iter().position(|layer| *layer == first)
}

#[test]
fn modules_use_each_other_downwards_and_pure_ones_use_only_pure_ones() {
    let mut faults = Vec::new();
    for file in sources(&["src"]) {
        let Some(module) = file.module() else {
            continue;
        };
        if module == "lib" {
            continue;
        }
        let of_file = layer(&module);
        assert!(
            of_file.is_some() || is_pure(&module),
            "{module} is no layer"
        );
        for (number, code) in file.code() {
            for target in crate_paths(code) {
                let allowed = match (of_file, layer(target)) {
                    _ if is_pure(target) => true,
                    _ if is_pure(&module) => false,
                    (Some(of_file), Some(of_target)) => of_file <= of_target,
                    // Something at the root of the crate, which is the public surface.
                    _ => false,
                };
                if !allowed {
                    faults.push(format!("{}:{number}: crate::{target}", file.path));
                }
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut faults = Vec::new();
    for file in sources(&["src", "codegen", "cli", "tests", "examples", "tools"]) {
        let lines = file.text.lines().count();
        if lines > LONGEST {
            faults.push(format!("{}: {lines} lines", file.path));
        }
    }
    assert_none(&faults);
}

#[test]
fn nothing_is_left_to_be_done() {
    let marks = ["todo!", "unimplemented!", "dbg!"];
    let mut faults = Vec::new();
    for file in sources(&["src", "codegen", "cli", "tests", "examples", "tools"]) {
        // This file names them.
        if file.path == "tests/layering.rs" {
            continue;
        }
        for (number, code) in file.code() {
            if marks.iter().any(|mark| code.contains(mark)) {
                faults.push(format!("{}:{number}: {}", file.path, code.trim()));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn every_folder_of_the_sources_says_what_it_owns() {
    let mut faults = Vec::new();
    for file in sources(&["src"]) {
        if file.path.ends_with("/mod.rs")
            && !file.path.ends_with("/tests/mod.rs")
            && !file.text.starts_with("//! Owns ")
        {
            faults.push(format!("{}: does not open with `//! Owns `", file.path));
        }
    }
    assert_none(&faults);
}

#[test]
fn code_is_told_from_comments_and_strings() {
    let text = "let a = \"unsafe // \\\" in a string\n over lines\"; // unsafe\nlet b = '\"'; r#\"un\nsafe\"# c";
    assert_eq!(bare(text), "let a = \n; \nlet b = ; \n c");
}
