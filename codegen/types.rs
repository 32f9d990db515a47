//! The types that a row of the spec may have: a small part of Rust's, read and written again.

use std::collections::BTreeSet;
use std::fmt;

use super::names::RESERVED;
use super::similar;

/// Types of the language and its library: name, number of parameters, path to import.
const LIBRARY: &[(&str, usize, Option<&str>)] = &[
    ("Duration", 0, Some("core::time::Duration")),
    ("Option", 1, None),
    ("Path", 0, Some("std::path::Path")),
    ("PathBuf", 0, Some("std::path::PathBuf")),
    ("String", 0, None),
    ("Vec", 1, None),
    ("bool", 0, None),
    ("char", 0, None),
    ("f32", 0, None),
    ("f64", 0, None),
    ("i128", 0, None),
    ("i16", 0, None),
    ("i32", 0, None),
    ("i64", 0, None),
    ("i8", 0, None),
    ("isize", 0, None),
    ("str", 0, None),
    ("u128", 0, None),
    ("u16", 0, None),
    ("u32", 0, None),
    ("u64", 0, None),
    ("u8", 0, None),
    ("usize", 0, None),
];

/// Whether the library has a type of this name.
pub fn is_library(name: &str) -> bool {
    LIBRARY.iter().any(|row| row.0 == name)
}

/// The path to import a library type by, if it needs one.
pub fn library_import(name: &str) -> Option<&'static str> {
    LIBRARY.iter().find(|row| row.0 == name)?.2
}

/// A type as the spec may write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Ref(Box<Type>),
    Tuple(Vec<Type>),
    Slice(Box<Type>),
    Array(Box<Type>, u32),
    Named(String, Vec<Type>),
    /// `impl Into<T>` or `impl AsRef<T>`.
    Impl(String, Box<Type>),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[Type]| {
            let texts: Vec<String> = types.iter().map(Type::to_string).collect();
            texts.join(", ")
        };
        match self {
            Self::Ref(inner) => write!(f, "&{inner}"),
            Self::Tuple(types) if types.len() == 1 => write!(f, "({},)", types[0]),
            Self::Tuple(types) => write!(f, "({})", list(types)),
            Self::Slice(inner) => write!(f, "[{inner}]"),
            Self::Array(inner, len) => write!(f, "[{inner}; {len}]"),
            Self::Named(name, types) if types.is_empty() => f.write_str(name),
            Self::Named(name, types) => write!(f, "{name}<{}>", list(types)),
            Self::Impl(name, inner) => write!(f, "impl {name}<{inner}>"),
        }
    }
}

impl Type {
    /// Reads a type. `Err` says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Deeper nesting than fits here is no type, and the parser calls itself.
        if text.len() > 200 {
            return Err("longer than 200 bytes".into());
        }
        let mut parser = Parser { rest: text.trim() };
        let parsed = parser.outer()?;
        if parser.rest.is_empty() {
            Ok(parsed)
        } else {
            Err(format!("`{}` is left over", parser.rest))
        }
    }

    /// Whether the size of its values is known, as for arguments and results it must be.
    pub fn is_sized(&self) -> bool {
        match self {
            Self::Slice(_) => false,
            Self::Named(name, _) => name != "str" && name != "Path",
            _ => true,
        }
    }

    /// Why it can't be the whole type of an argument or a result.
    pub fn outer_fault(&self) -> Option<String> {
        match self {
            Self::Tuple(types) if types.is_empty() => {
                Some("`()` is what is meant by leaving it out".into())
            }
            // Rust has no `impl Into<&T>` without a named lifetime.
            Self::Impl(_, inner) if inner.has_ref() => {
                Some(format!("`{self}` borrows inside `impl`"))
            }
            _ => (!self.is_sized()).then(|| format!("`{self}` has no size: borrow it")),
        }
    }

    /// Whether it borrows.
    pub fn has_ref(&self) -> bool {
        match self {
            Self::Ref(_) => true,
            Self::Slice(inner) | Self::Array(inner, _) | Self::Impl(_, inner) => inner.has_ref(),
            Self::Tuple(types) | Self::Named(_, types) => types.iter().any(Self::has_ref),
        }
    }

    /// Faults that only show when the names are known: undeclared names, wrong numbers of
    /// parameters, parts without a size.
    pub fn faults(&self, declared: &BTreeSet<&str>) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_faults(declared, &mut found);
        found
    }

    fn collect_faults(&self, declared: &BTreeSet<&str>, found: &mut Vec<String>) {
        let mut sized = |part: &Type| {
            if !part.is_sized() {
                found.push(format!("`{part}` has no size: borrow it"));
            }
        };
        match self {
            Self::Ref(_) => {}
            Self::Impl(bound, inner) => {
                if bound == "Into" {
                    sized(inner);
                }
            }
            Self::Slice(inner) | Self::Array(inner, _) => sized(inner),
            Self::Tuple(types) | Self::Named(_, types) => types.iter().for_each(&mut sized),
        }
        if let Self::Named(name, types) = self {
            let wanted = match LIBRARY.iter().find(|row| row.0 == name) {
                Some(row) => Some(row.1),
                None => declared.contains(name.as_str()).then_some(0),
            };
            match wanted {
                None => {
                    let library = LIBRARY.iter().map(|row| row.0);
                    let hint = similar::hint(name, library.chain(declared.iter().copied()));
                    found.push(format!(
                        "unknown Rust type `{name}`; a type of the crate is declared under `uses`{hint}"
                    ));
                }
                Some(wanted) if wanted != types.len() => found.push(format!(
                    "`{name}` takes {wanted} type parameters, {} given",
                    types.len()
                )),
                Some(_) => {}
            }
        }
        for part in self.parts() {
            part.collect_faults(declared, found);
        }
    }

    /// Adds the names of which it is made.
    pub fn names<'a>(&'a self, names: &mut BTreeSet<&'a str>) {
        if let Self::Named(name, _) = self {
            names.insert(name);
        }
        for part in self.parts() {
            part.names(names);
        }
    }

    fn parts(&self) -> &[Type] {
        match self {
            Self::Ref(inner)
            | Self::Slice(inner)
            | Self::Array(inner, _)
            | Self::Impl(_, inner) => std::slice::from_ref(inner),
            Self::Tuple(types) | Self::Named(_, types) => types,
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn outer(&mut self) -> Result<Type, String> {
        let Some(rest) = self.rest.strip_prefix("impl ") else {
            return self.inner();
        };
        self.rest = rest.trim_start();
        match self.inner()? {
            Type::Named(name, types) if types.len() == 1 && (name == "Into" || name == "AsRef") => {
                Ok(Type::Impl(name, Box::new(types[0].clone())))
            }
            other => Err(format!(
                "`impl` takes `Into<..>` or `AsRef<..>`, not `{other}`"
            )),
        }
    }

    fn inner(&mut self) -> Result<Type, String> {
        if self.eat('&') {
            return Ok(Type::Ref(Box::new(self.inner()?)));
        }
        if self.eat('(') {
            return Ok(Type::Tuple(self.list(')')?));
        }
        if self.eat('[') {
            let inner = Box::new(self.inner()?);
            if !self.eat(';') {
                self.expect(']')?;
                return Ok(Type::Slice(inner));
            }
            let len = self.word(|c| c.is_ascii_digit());
            let len = len
                .parse()
                .map_err(|_| "an array needs its length".to_string())?;
            self.expect(']')?;
            return Ok(Type::Array(inner, len));
        }
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("a type is missing before `{}`", self.rest));
        }
        if RESERVED.contains(&name.as_str()) {
            return Err(format!("`{name}` has no place here"));
        }
        let types = if self.eat('<') {
            self.list('>')?
        } else {
            Vec::new()
        };
        Ok(Type::Named(name, types))
    }

    fn list(&mut self, end: char) -> Result<Vec<Type>, String> {
        let mut types = Vec::new();
        while !self.eat(end) {
            types.push(self.inner()?);
            if !self.eat(',') {
                self.expect(end)?;
                // `(T)` is `T` in brackets; as a tuple it would not be what was written.
                if end == ')' && types.len() == 1 {
                    return Err("a tuple of one needs its comma".into());
                }
                break;
            }
        }
        Ok(types)
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word.into()
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(format!("`{wanted}` is missing before `{}`", self.rest))
        }
    }
}
