//! The spec as plain data, and how it is read out of YAML.
//!
//! Reading finds what a form can tell: unknown and missing keys, keys that occur twice, things that
//! are no texts. What the texts say is for `check`.

use super::fault::Faults;
use super::fields::{Fields, Word, word};
use super::yaml::Node;

/// The module that is the root of the crate.
pub const ROOT: &str = "root";

/// What calls can fail as, each with all that the one before it can give: words of `docs` and the crate's.
pub const FAILS_AS: &[&str] = &["call", "command", "wait"];

/// The type of the statistics, generated from the other file.
pub const STATS: &str = "MemoryStats";

/// `spec/api.yaml`.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    pub uses: Vec<Word>,
    pub kinds: Vec<Word>,
    pub types: Vec<TypeRow>,
    pub modules: Vec<Module>,
    pub objects: Vec<Object>,
    pub handwritten: Vec<Handwritten>,
}

/// A type that an entry may name, for an argument, a result or both.
#[derive(Clone, Debug)]
pub struct TypeRow {
    pub name: Word,
    pub take: Option<Word>,
    pub returns: Option<Word>,
    /// What can be wrong with such an argument; every entry that takes one inherits it.
    pub errors: Vec<ErrorText>,
    /// Which of the errors that many calls have in common it brings.
    pub fails_as: Option<Word>,
}

/// When an error of a kind is returned.
#[derive(Clone, Debug)]
pub struct ErrorText {
    pub kind: Word,
    pub text: Word,
}

/// A module of the crate with its functions.
#[derive(Clone, Debug)]
pub struct Module {
    pub name: Word,
    pub torch: Word,
    /// What the module is; the crate's root has docs of its own.
    pub summary: Option<Word>,
    pub docs: Option<Word>,
    /// `none`: its functions don't stand at the crate's root too.
    pub at_root: Option<Word>,
    pub functions: Vec<Entry>,
}

/// A type whose methods are declared; the type itself is written by hand.
#[derive(Clone, Debug)]
pub struct Object {
    pub name: Word,
    pub torch: Word,
    pub methods: Vec<Entry>,
}

/// A function or a method.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Word,
    pub origin: Word,
    pub since: Word,
    pub deprecated: Option<Word>,
    pub proved_by: Option<Word>,
    pub upstream: Option<Word>,
    pub elsewhere: Option<Word>,
    pub body: Body,
}

/// What an entry stands for.
#[derive(Clone, Debug)]
pub enum Body {
    Call(Box<Call>),
    /// Another name for an entry of the same list: all else follows that one.
    Alias(Word),
}

/// What is declared of a function or method that has a body.
#[derive(Clone, Debug)]
pub struct Call {
    pub receiver: Option<Word>,
    pub args: Vec<Arg>,
    pub returns: Option<Word>,
    pub summary: Word,
    pub docs: Option<Word>,
    pub differs: Option<Word>,
    pub errors: Vec<ErrorText>,
    pub fails_as: Option<Word>,
    pub example: Word,
    pub successor: Option<Word>,
    /// For a function made of the statistics: arguments, result, errors and body follow from them.
    pub derived: Option<Derived>,
}

/// What a function does with the statistics of memory that another entry returns.
#[derive(Clone, Debug)]
pub enum Derived {
    /// It returns the value of this key.
    Reads(Word),
    /// It does this reset.
    Resets(Word),
}

/// An argument and the row of its type.
#[derive(Clone, Debug)]
pub struct Arg {
    pub name: Word,
    pub row: Word,
}

/// A public function or method that is not generated: generic, or a constructor.
#[derive(Clone, Debug)]
pub struct Handwritten {
    /// `with_device`, `memory::on_pressure`, `Stream::new`.
    pub name: Word,
    pub origin: Word,
    pub since: Word,
    pub upstream: Option<Word>,
    pub elsewhere: Option<Word>,
    pub proved_by: Option<Word>,
}

/// Why an entry has no successor that lasts.
pub enum Unresolved {
    Unknown(String),
    /// The names on the way, the first one again at the end.
    Circle(Vec<String>),
}

impl Entry {
    /// The entry that comes after this one, if it is an alias or goes out of use.
    pub fn successor(&self) -> Option<&Word> {
        match &self.body {
            Body::Alias(target) => Some(target),
            Body::Call(call) => call.successor.as_ref(),
        }
    }

    /// The entry whose signature and body this one has: the end of its aliases, or itself.
    pub fn target<'a>(&'a self, list: &'a [Self]) -> Result<&'a Self, Unresolved> {
        self.follow(list, |entry| match &entry.body {
            Body::Alias(target) => Some(target),
            Body::Call(_) => None,
        })
    }

    /// The entry to use instead of this one: the end of its successors, or itself.
    pub fn lasting<'a>(&'a self, list: &'a [Self]) -> Result<&'a Self, Unresolved> {
        self.follow(list, Self::successor)
    }

    fn follow<'a>(
        &'a self,
        list: &'a [Self],
        next: impl Fn(&Self) -> Option<&Word>,
    ) -> Result<&'a Self, Unresolved> {
        let mut way = vec![self.name.as_str()];
        let mut current = self;
        while let Some(name) = next(current) {
            let name = name.as_str();
            let found = list.iter().find(|other| other.name.as_str() == name);
            current = found.ok_or_else(|| Unresolved::Unknown(name.into()))?;
            let seen = way.contains(&name);
            way.push(current.name.as_str());
            if seen {
                return Err(Unresolved::Circle(
                    way.into_iter().map(String::from).collect(),
                ));
            }
        }
        Ok(current)
    }
}

impl Spec {
    /// Reads the tree of `spec/api.yaml`, noting every fault of form. `None`: it is no map at all.
    pub fn read(root: &Node, faults: &Faults) -> Option<Self> {
        let mut spec = Self::default();
        let mut fields = Fields::open(root, Vec::new(), faults)?;
        spec.uses = fields.words("uses");
        spec.kinds = fields.words("kinds");
        for (name, node) in fields.rows("types") {
            if let Some(mut row) = Fields::open(node, name.at.clone(), faults) {
                spec.types.push(TypeRow::read(name, &mut row));
                row.close();
            }
        }
        spec.modules = fields.all("modules", Module::read);
        for module in &mut spec.modules {
            let name = module.name.as_str();
            module.functions = fields.all(name, Entry::read_function);
        }
        spec.objects = fields.all("objects", Object::read);
        spec.handwritten = fields.all("handwritten", Handwritten::read);
        fields.close();
        Some(spec)
    }

    /// The entries of a list that return the statistics of memory, with what is declared of them.
    pub fn sources<'a>(&'a self, list: &'a [Entry]) -> impl Iterator<Item = (&'a Entry, &'a Call)> {
        let is_stats = |row: &Word| {
            let row = self.types.iter().find(|known| known.name.text == row.text);
            let returned = row.and_then(|row| row.returns.as_ref());
            returned.is_some_and(|returned| returned.as_str() == STATS)
        };
        list.iter().filter_map(move |entry| match &entry.body {
            Body::Call(call) if call.returns.as_ref().is_some_and(is_stats) => {
                Some((entry, &**call))
            }
            _ => None,
        })
    }

    /// Every list of entries with the name of what holds it.
    pub fn lists(&self) -> impl Iterator<Item = (&str, &[Entry])> {
        let modules = self.modules.iter();
        let modules = modules.map(|module| (module.name.as_str(), &*module.functions));
        let objects = self.objects.iter();
        modules.chain(objects.map(|object| (object.name.as_str(), &*object.methods)))
    }
}

impl TypeRow {
    fn read(name: Word, fields: &mut Fields<'_>) -> Self {
        Self {
            name,
            take: fields.word("take"),
            returns: fields.word("returns"),
            errors: errors(fields),
            fails_as: fields.word("fails_as"),
        }
    }
}

impl Module {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            name: fields.needed("name"),
            torch: fields.needed("torch"),
            summary: fields.word("summary"),
            docs: fields.word("docs"),
            at_root: fields.word("at_root"),
            functions: Vec::new(),
        }
    }
}

impl Object {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            name: fields.needed("name"),
            torch: fields.needed("torch"),
            methods: fields.all("methods", Entry::read_method),
        }
    }
}

impl Entry {
    fn read_function(fields: &mut Fields<'_>) -> Self {
        Self::read(fields, false)
    }

    fn read_method(fields: &mut Fields<'_>) -> Self {
        Self::read(fields, true)
    }

    fn read(fields: &mut Fields<'_>, method: bool) -> Self {
        Self {
            name: fields.needed("name"),
            origin: fields.needed("origin"),
            since: fields.needed("since"),
            deprecated: fields.word("deprecated"),
            proved_by: fields.word("proved_by"),
            upstream: fields.word("upstream"),
            elsewhere: fields.word("elsewhere"),
            body: match fields.word("alias_of") {
                Some(target) => Body::Alias(target),
                None => Body::Call(Box::new(Call::read(fields, method))),
            },
        }
    }
}

impl Call {
    fn read(fields: &mut Fields<'_>, method: bool) -> Self {
        let derived = match method {
            true => None,
            false => Derived::read(fields),
        };
        let own = derived.is_none();
        Self {
            receiver: method.then(|| fields.needed("self")),
            args: match own {
                true => fields.all("args", |arg| Arg {
                    name: arg.needed("name"),
                    row: arg.needed("type"),
                }),
                false => Vec::new(),
            },
            returns: if own { fields.word("returns") } else { None },
            summary: fields.needed("summary"),
            docs: fields.word("docs"),
            differs: fields.word("differs"),
            errors: if own { errors(fields) } else { Vec::new() },
            fails_as: if own { fields.word("fails_as") } else { None },
            example: fields.needed("example"),
            successor: fields.word("successor"),
            derived,
        }
    }
}

impl Derived {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let reads = fields.word("reads").map(Self::Reads);
        reads.or_else(|| fields.word("resets").map(Self::Resets))
    }

    /// The key or the reset.
    pub fn word(&self) -> &Word {
        match self {
            Self::Reads(word) | Self::Resets(word) => word,
        }
    }
}

impl Handwritten {
    /// What holds it, a module or an object, and its name there.
    pub fn split(&self) -> (&str, &str) {
        let name = self.name.as_str();
        name.rsplit_once("::").unwrap_or((ROOT, name))
    }

    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            name: fields.needed("name"),
            origin: fields.needed("origin"),
            since: fields.needed("since"),
            upstream: fields.word("upstream"),
            elsewhere: fields.word("elsewhere"),
            proved_by: fields.word("proved_by"),
        }
    }
}

fn errors(fields: &mut Fields<'_>) -> Vec<ErrorText> {
    let faults = fields.faults;
    let read = |(kind, node): (Word, &Node)| ErrorText {
        text: word(node, kind.at.clone(), faults),
        kind,
    };
    fields.rows("errors").into_iter().map(read).collect()
}
