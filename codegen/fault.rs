//! Faults of the spec: collected while reading and checking, told all at once.

use std::cell::RefCell;
use std::fmt;

use super::yaml::{self, Node, Path};

/// One thing that is wrong, as the maintainer reads it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, from the root of the package.
    pub file: String,
    /// Its line, from 1; 0 where none is known.
    pub line: usize,
    /// The entry, as `root.synchronize.args.device`; empty where the whole file is meant.
    pub entry: String,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.entry.is_empty() {
            write!(f, ": {}", self.entry)?;
        }
        // One fault is one line of the build's output.
        write!(f, ": {}", self.text.replace('\n', " "))
    }
}

/// What has been found wrong in a file so far. Shared, so that readers of parts can hold it.
#[derive(Debug, Default)]
pub struct Faults(RefCell<Vec<(Path, String)>>);

impl Faults {
    /// Notes a fault at a node.
    pub fn add(&self, at: &[usize], text: impl Into<String>) {
        self.0.borrow_mut().push((at.to_vec(), text.into()));
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Gives every fault its line and its entry; none, if nothing was wrong.
    pub fn resolve(self, file: &str, text: &str, root: &Node) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self
            .0
            .into_inner()
            .into_iter()
            .map(|(at, fault)| Fault {
                file: file.into(),
                line: yaml::line_of(text, &at).unwrap_or(0),
                entry: label(root, &at),
                text: fault,
            })
            .collect();
        faults.sort();
        faults.dedup();
        faults
    }
}

/// The names on the way to a node: keys, and for members of lists their `name` or their place.
fn label(root: &Node, at: &[usize]) -> String {
    let mut parts = Vec::new();
    let mut node = root;
    for &child in at {
        node = match node {
            Node::Map(map) => match map.get(child) {
                Some((key, below)) => {
                    parts.push(key.clone());
                    below
                }
                None => break,
            },
            Node::List(list) => match list.get(child) {
                Some(below) => {
                    parts.push(name_of(below).unwrap_or_else(|| format!("[{child}]")));
                    below
                }
                None => break,
            },
            _ => break,
        };
    }
    parts.join(".")
}

fn name_of(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        Node::Map(map) => map.iter().find_map(|(key, value)| match (&**key, value) {
            ("name", Node::Text(name)) if !name.is_empty() => Some(name.clone()),
            _ => None,
        }),
        _ => None,
    }
}
