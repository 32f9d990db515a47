//! Reads YAML into a tree that forgets nothing a check needs: keys that occur twice, and whether a
//! word was text. The only file that speaks to the YAML crate.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

/// A piece of YAML.
#[derive(Clone, Debug)]
pub enum Node {
    Text(String),
    /// What the reader took for a boolean or a number, as a phrase for an error.
    Other(String),
    Nothing,
    List(Vec<Node>),
    /// In the order of the file; a key may occur more than once.
    Map(Vec<(String, Node)>),
}

/// The way to a node: which child to take at each level, counted from 0.
pub type Path = Vec<usize>;

/// What the YAML reader refused.
#[derive(Debug)]
pub struct Refusal {
    pub line: Option<usize>,
    pub text: String,
}

/// Reads a file. `Err` is a fault in the YAML itself, of which the reader tells one at a time.
pub fn load(text: &str) -> Result<Node, Refusal> {
    let refuse = |error: serde_yaml::Error| Refusal {
        line: error.location().map(|place| place.line()),
        text: error.to_string(),
    };
    let mut documents = serde_yaml::Deserializer::from_str(text);
    let Some(first) = documents.next() else {
        return Ok(Node::Nothing);
    };
    let node = Node::deserialize(first).map_err(refuse)?;
    if let Some(second) = documents.next() {
        // What the reader takes for a second document mostly is none, and it says why.
        IgnoredAny::deserialize(second).map_err(refuse)?;
        let marks = text.lines().zip(1..);
        let last = marks.filter(|(line, _)| line.starts_with("---")).last();
        return Err(Refusal {
            line: last.map(|(_, number)| number),
            text: "a file holds one document".into(),
        });
    }
    Ok(node)
}

/// What mostly is behind a refusal of the reader's, where its own words don't say.
pub fn hint(refusal: &str) -> &'static str {
    const HINTS: &[(&str, &str)] = &[
        (
            "did not find expected key",
            "; does this line, or one above it, begin in another column than its neighbours, or does a text with \
             `: ` in it lack quotes?",
        ),
        (
            "mapping values are not allowed",
            "; a text with `: ` in it needs quotes or a `|` block, and a key stands in the column of its neighbours",
        ),
        (
            "did not find expected '-' indicator",
            "; does this line begin in another column than the entries around it?",
        ),
        (
            "cannot start any token",
            "; a text that starts with a character of YAML's own needs quotes or a `|` block",
        ),
        ("tab character", "; indent with blanks"),
    ];
    let found = HINTS.iter().find(|(words, _)| refusal.contains(words));
    found.map_or("", |(_, hint)| hint)
}

/// The line of a node, from 1. For a child of a map it is the line of the key.
///
/// The reader tells lines in errors only, so the file is read once more with a visitor that fails
/// at the node. That happens for faults alone.
pub fn line_of(text: &str, path: &[usize]) -> Option<usize> {
    let error = Finder(path)
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .err()?;
    error.location().map(|place| place.line())
}

/// The lines on which a text of several words ends at a comment: ` #` in it, and no quotes.
///
/// The reader drops the rest of such a line without a word. It is found in the plain text of the
/// file, since the tree no longer shows it; comments on lines of their own are never taken for one.
pub fn cut_lines(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    // The column of the key whose block of text (`|` or `>`) is being passed over.
    let mut block = None;
    for (number, line) in text.lines().enumerate() {
        let mut content = line.trim_start();
        let mut column = line.len() - content.len();
        if content.is_empty() || block.is_some_and(|key| column > key) {
            continue;
        }
        block = None;
        while let Some(rest) = content.strip_prefix("- ") {
            let rest = rest.trim_start();
            column += content.len() - rest.len();
            content = rest;
        }
        let value = match content.split_once(": ") {
            Some((key, value)) if !key.contains(['"', '\'']) => value.trim_start(),
            _ => content,
        };
        match value.chars().next() {
            Some('|' | '>') => block = Some(column),
            Some('"' | '\'' | '{' | '[' | '#') | None => {}
            Some(_) => {
                if let Some((kept, _)) = value.split_once(" #")
                    && kept.trim_end().contains(' ')
                {
                    found.push(number + 1);
                }
            }
        }
    }
    found
}

impl Node {
    /// What it is, for «expected .., found ..».
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("the text `{text}`"),
            Self::Other(phrase) => phrase.clone(),
            Self::Nothing => "nothing".into(),
            Self::List(_) => "a list".into(),
            Self::Map(_) => "a map".into(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list or a map without tags")
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.into()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Other(format!("the boolean {value}")))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Other(format!("the number {value}")))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Other(format!("the number {value}")))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Other(format!("the number {value}")))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(Node::Other(format!("the number {value}")))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Other(format!("the number {value}")))
    }

    // What a file without any YAML is.
    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = access.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(Key(key)) = access.next_key()? {
            map.push((key, access.next_value()?));
        }
        Ok(Node::Map(map))
    }
}

/// A key, which must be a text; another fails at its place.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor).map(Self)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text as key; quotes make it one")
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.into())
    }
}

/// Walks to a node and fails there, so that the error carries the node's line.
struct Finder<'a>(&'a [usize]);

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Finder<'_> {
    // Every `visit_` that is not here fails already, by type, at the node.
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("something else")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Some((&child, below)) = self.0.split_first() else {
            return Err(A::Error::custom("here"));
        };
        for _ in 0..child {
            access.next_element::<IgnoredAny>()?;
        }
        access.next_element_seed(Finder(below))?;
        while access.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Some((&child, below)) = self.0.split_first() else {
            return Err(A::Error::custom("here"));
        };
        for _ in 0..child {
            access.next_entry::<IgnoredAny, IgnoredAny>()?;
        }
        if below.is_empty() {
            access.next_key_seed(Finder(below))?;
        } else {
            access.next_key::<IgnoredAny>()?;
        }
        access.next_value_seed(Finder(below))?;
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
