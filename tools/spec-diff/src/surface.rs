//! A surface as far as it is compared: names with what is said of them, and families of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The names of a version of the spec or of PyTorch.
#[derive(Debug, Default)]
pub struct Surface {
    /// Where it is from, for people.
    pub label: String,
    /// Whether it is PyTorch's, with which our own additions can't be compared.
    pub is_torch: bool,
    /// Functions and methods, by their names in PyTorch.
    pub names: BTreeMap<String, Item>,
    /// The first parts of keys of statistics, with what may follow; nothing for a key of one part.
    pub keys: BTreeMap<String, BTreeSet<String>>,
    /// Keys that we have beyond those of PyTorch.
    pub own_keys: BTreeSet<String>,
}

/// What is said of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The docs, or a digest of them; empty where there are none.
    pub docs: String,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// Whether it is ours alone.
    pub extension: bool,
}

impl Surface {
    /// Adds a key, as `allocated.all.peak`.
    pub fn add_key(&mut self, key: &str) {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        self.keys
            .entry(first.into())
            .or_default()
            .insert(rest.into());
    }

    /// How many keys there are.
    pub fn key_count(&self) -> usize {
        self.keys.values().map(BTreeSet::len).sum()
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, keys) = (self.names.len(), self.key_count());
        write!(f, "{} ({names} names, {keys} keys)", self.label)
    }
}
