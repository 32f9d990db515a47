//! Takes a map of the spec apart, key by key; whatever is left over is a fault.

use std::collections::BTreeSet;

use super::fault::Faults;
use super::similar;
use super::yaml::{Node, Path};

/// A text of the spec, with its place.
#[derive(Clone, Debug, Default)]
pub struct Word {
    /// Without the blanks at its ends. Empty: it was missing or refused, and that is noted.
    pub text: String,
    pub at: Path,
}

impl Word {
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A map that is being read.
pub struct Fields<'a> {
    pub at: Path,
    /// Position, key and value of what has not been taken.
    rest: Vec<(usize, &'a str, &'a Node)>,
    known: Vec<String>,
    pub faults: &'a Faults,
}

impl<'a> Fields<'a> {
    /// Opens a node that must be a map; notes the keys that occur twice.
    pub fn open(node: &'a Node, at: Path, faults: &'a Faults) -> Option<Self> {
        let Node::Map(map) = node else {
            faults.add(&at, format!("expected a map, found {}", node.describe()));
            return None;
        };
        let mut seen = BTreeSet::new();
        let mut rest = Vec::new();
        for (position, (key, value)) in map.iter().enumerate() {
            if seen.insert(key) {
                rest.push((position, key.as_str(), value));
            } else {
                faults.add(
                    &child(&at, position),
                    format!("the key `{key}` occurs twice"),
                );
            }
        }
        Some(Self {
            at,
            rest,
            known: Vec::new(),
            faults,
        })
    }

    /// The value of a key, where it is there.
    pub fn take(&mut self, key: &str) -> Option<(Path, &'a Node)> {
        self.known.push(key.into());
        let found = self.rest.iter().position(|(_, name, _)| *name == key)?;
        let (position, _, node) = self.rest.remove(found);
        Some((child(&self.at, position), node))
    }

    /// The text of a key that may be missing.
    pub fn word(&mut self, key: &str) -> Option<Word> {
        let (at, node) = self.take(key)?;
        Some(word(node, at, self.faults))
    }

    /// The text of a key that must be there.
    pub fn needed(&mut self, key: &str) -> Word {
        self.word(key).unwrap_or_else(|| {
            self.faults.add(&self.at, format!("`{key}` is missing"));
            Word {
                text: String::new(),
                at: self.at.clone(),
            }
        })
    }

    /// The members of the list under a key; none where the key is missing.
    pub fn list(&mut self, key: &str) -> Vec<(Path, &'a Node)> {
        match self.take(key) {
            Some((at, node)) => items(node, at, self.faults),
            None => Vec::new(),
        }
    }

    /// The members of the list under a key, each a map, read by `read`.
    pub fn all<T>(&mut self, key: &str, read: impl Fn(&mut Fields<'a>) -> T) -> Vec<T> {
        let list = self.list(key);
        read_all(list, self.faults, read)
    }

    /// The texts of the list under a key; none where the key is missing.
    pub fn words(&mut self, key: &str) -> Vec<Word> {
        let faults = self.faults;
        let read = |(at, node)| word(node, at, faults);
        self.list(key).into_iter().map(read).collect()
    }

    /// The rows of the map under a key; none where the key is missing.
    pub fn rows(&mut self, key: &str) -> Vec<(Word, &'a Node)> {
        match self.take(key) {
            Some((at, node)) => rows(node, at, self.faults),
            None => Vec::new(),
        }
    }

    /// Notes every key that nobody took.
    pub fn close(self) {
        for (position, key, _) in &self.rest {
            let hint = similar::hint(key, self.known.iter().map(String::as_str));
            let known = self.known.join(", ");
            self.faults.add(
                &child(&self.at, *position),
                format!("unknown key `{key}`; expected one of {known}{hint}"),
            );
        }
    }
}

/// Reads maps with `read`, each to its end.
pub fn read_all<'a, T>(
    list: Vec<(Path, &'a Node)>,
    faults: &'a Faults,
    read: impl Fn(&mut Fields<'a>) -> T,
) -> Vec<T> {
    let mut out = Vec::new();
    for (at, node) in list {
        if let Some(mut fields) = Fields::open(node, at, faults) {
            out.push(read(&mut fields));
            fields.close();
        }
    }
    out
}

/// The members of a list; a list of none is a fault, since nothing says the same.
pub fn items<'a>(node: &'a Node, at: Path, faults: &Faults) -> Vec<(Path, &'a Node)> {
    match node {
        Node::List(list) if list.is_empty() => faults.add(&at, "is an empty list: leave it out"),
        Node::List(list) => {
            let place = |(position, node)| (child(&at, position), node);
            return list.iter().enumerate().map(place).collect();
        }
        other => faults.add(&at, format!("expected a list, found {}", other.describe())),
    }
    Vec::new()
}

/// The rows of a map in which the keys are the author's.
pub fn rows<'a>(node: &'a Node, at: Path, faults: &'a Faults) -> Vec<(Word, &'a Node)> {
    let Some(fields) = Fields::open(node, at, faults) else {
        return Vec::new();
    };
    if fields.rest.is_empty() {
        faults.add(&fields.at, "is an empty map: leave it out");
    }
    let row = |&(position, key, node): &(usize, &str, &'a Node)| {
        let at = child(&fields.at, position);
        let text = key.to_string();
        (Word { text, at }, node)
    };
    fields.rest.iter().map(row).collect()
}

/// A text that must be one and must not be empty.
pub fn word(node: &Node, at: Path, faults: &Faults) -> Word {
    let text = match node {
        Node::Text(text) => text.trim(),
        Node::Nothing => "",
        other => {
            let quotes = match other {
                Node::Other(_) => "; quotes make it one",
                _ => "",
            };
            let found = other.describe();
            faults.add(&at, format!("expected a text, found {found}{quotes}"));
            return Word {
                text: String::new(),
                at,
            };
        }
    };
    if text.is_empty() {
        faults.add(&at, "is empty");
    }
    if let Some(bad) = text.chars().find(|c| c.is_control() && *c != '\n') {
        faults.add(&at, format!("holds the control character {bad:?}"));
    }
    Word {
        text: text.into(),
        at,
    }
}

fn child(at: &[usize], position: usize) -> Path {
    let mut path = at.to_vec();
    path.push(position);
    path
}
