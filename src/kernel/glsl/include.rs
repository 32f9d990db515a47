//! Where `#include` finds files.

use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Includes may nest this deep; more is a file that includes itself.
const MAX_DEPTH: usize = 32;
/// One shader may include this many files, counted each time: files that include each other twice
/// double with each level.
const MAX_INCLUDES: u32 = 2000;

/// The files that a shader includes.
#[derive(Debug)]
pub(super) struct Includes<'a> {
    /// The name of the shader's own text in messages, where it is in no file.
    nowhere: Option<&'static str>,
    dirs: &'a [PathBuf],
    left: Cell<u32>,
}

/// A file that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) content: String,
}

impl<'a> Includes<'a> {
    /// Includes of a text that messages call `nowhere`, or of one in a file where that is `None`.
    pub(super) const fn new(nowhere: Option<&'static str>, dirs: &'a [PathBuf]) -> Self {
        Self {
            nowhere,
            dirs,
            left: Cell::new(MAX_INCLUDES),
        }
    }

    /// Finds `requested` for the text called `requesting`; beside it first where it stands in
    /// quotes.
    ///
    /// # Errors
    ///
    /// The text for the compiler's message.
    pub(super) fn find(
        &self,
        requested: &str,
        in_quotes: bool,
        requesting: &str,
        depth: usize,
    ) -> Result<Found, String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "includes nest deeper than {MAX_DEPTH}; does a file include itself?"
            ));
        }
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(format!(
                "more than {MAX_INCLUDES} includes; do files include each other?"
            ));
        };
        self.left.set(left);

        let beside = Path::new(requesting).parent();
        let beside = beside.filter(|_| in_quotes && self.nowhere != Some(requesting));
        let dirs = beside
            .into_iter()
            .chain(self.dirs.iter().map(PathBuf::as_path));
        let mut looked_in = Vec::new();
        for dir in dirs {
            let path = dir.join(requested);
            if path.is_file() {
                return read(&path);
            }
            looked_in.push(match dir.as_os_str().is_empty() {
                true => "the current folder".to_owned(),
                false => dir.display().to_string(),
            });
        }
        Err(match looked_in.is_empty() {
            true => format!(
                "there is no {requested}, as no include folder was given (`KernelBuilder::include_dir`, or `file` for those beside the shader)"
            ),
            false => format!("there is no {requested} in {}", looked_in.join(", ")),
        })
    }
}

fn read(path: &Path) -> Result<Found, String> {
    let name = path.display().to_string();
    let content = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let content = String::from_utf8(content).map_err(|_| format!("{name} is not UTF-8 text"))?;
    if content.contains('\0') {
        return Err(format!("{name} has a NUL character, so it is not text"));
    }
    Ok(Found { name, content })
}
