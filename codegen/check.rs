//! What a spec that has the right form can still get wrong. Every rule notes all it finds.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::Faults;
use super::fields::Word;
use super::model::{
    Arg, Body, Call, Entry, ErrorText, FAILS_AS, Handwritten, ROOT, Spec, TypeRow, Unresolved,
};
use super::names;
use super::rules::{self, Names};
use super::similar;
use super::stats::StatsSpec;
use super::text;
use super::types::{self, Type};
use super::{at_root, derived};

/// Notes everything that is wrong with the spec. The statistics are those of the other file; none
/// where it has faults of its own, since then nobody knows what they are. `version` is the crate's.
pub fn check(spec: &Spec, stats: Option<&StatsSpec>, version: &str, faults: &Faults) {
    let check = Check::new(spec, version, faults);
    let has_form = faults.is_empty();
    check.declarations();
    for row in &spec.types {
        check.type_row(row);
    }
    check.holders();
    for (holder, entries) in spec.lists() {
        let mut names = Names::default();
        for entry in entries {
            names.add(&entry.name, faults);
            check.entry(entry, entries);
        }
        check.handwritten_names(holder, &mut names);
        derived::check(spec, entries, stats, faults);
    }
    for written in &spec.handwritten {
        check.handwritten(written);
    }
    at_root::check(spec, faults);
    // Of a spec that could not be read whole, nobody knows what it uses.
    if has_form {
        check.unused();
    }
}

struct Check<'a> {
    spec: &'a Spec,
    /// The version of the crate.
    version: &'a str,
    faults: &'a Faults,
    kinds: BTreeSet<&'a str>,
    /// Types of the crate that rows may speak of.
    types: BTreeSet<&'a str>,
    rows: BTreeMap<&'a str, &'a TypeRow>,
}

impl<'a> Check<'a> {
    fn new(spec: &'a Spec, version: &'a str, faults: &'a Faults) -> Self {
        let objects = spec.objects.iter().map(|object| object.name.as_str());
        Self {
            spec,
            version,
            faults,
            kinds: spec.kinds.iter().map(Word::as_str).collect(),
            types: spec.uses.iter().map(Word::as_str).chain(objects).collect(),
            rows: spec
                .types
                .iter()
                .map(|row| (row.name.as_str(), row))
                .collect(),
        }
    }

    fn refuse(&self, word: &Word, fault: Option<String>) {
        rules::refuse(word, fault, self.faults);
    }

    fn declarations(&self) {
        let mut names = Names::default();
        for kind in &self.spec.kinds {
            names.add(kind, self.faults);
            self.refuse(kind, names::refuse_type_name(kind.as_str()));
        }
        let mut names = Names::default();
        let objects = self.spec.objects.iter().map(|object| &object.name);
        for name in self.spec.uses.iter().chain(objects) {
            names.add(name, self.faults);
            self.refuse(name, names::refuse_type_name(name.as_str()));
        }
    }

    fn type_row(&self, row: &TypeRow) {
        self.refuse(&row.name, names::refuse_snake_name(row.name.as_str()));
        if row.take.is_none() && row.returns.is_none() {
            self.faults
                .add(&row.name.at, "needs `take`, `returns` or both");
        }
        if row.take.is_none() {
            let errors = row.errors.iter().map(|error| &error.kind);
            for word in errors.take(1).chain(&row.fails_as) {
                let fault = "only a type with `take` has `errors` and `fails_as`: they are those of the argument";
                self.faults.add(&word.at, fault);
            }
        }
        self.fails_as(row.fails_as.as_ref());
        if let Some(take) = &row.take {
            self.rust_type(take);
        }
        if let Some(returns) = &row.returns
            && let Some(parsed) = self.rust_type(returns)
            && (parsed.has_ref() || matches!(parsed, Type::Impl(..)))
        {
            let fault = "a result neither borrows nor is `impl`";
            self.faults.add(&returns.at, fault);
        }
        self.errors(&row.errors);
    }

    fn rust_type(&self, word: &Word) -> Option<Type> {
        if word.text.is_empty() {
            return None;
        }
        match Type::parse(word.as_str()) {
            Ok(parsed) => {
                for fault in parsed.faults(&self.types) {
                    self.faults.add(&word.at, fault);
                }
                let outer = parsed.outer_fault();
                self.refuse(word, outer);
                Some(parsed)
            }
            Err(fault) => {
                let fault = format!("`{}` is no type: {fault}", word.as_str());
                self.faults.add(&word.at, fault);
                None
            }
        }
    }

    /// Modules and objects themselves.
    fn holders(&self) {
        let mut names = Names::default();
        for module in &self.spec.modules {
            names.add(&module.name, self.faults);
            self.refuse(
                &module.name,
                names::refuse_module_name(module.name.as_str()),
            );
            self.refuse(&module.torch, text::refuse_dotted(module.torch.as_str()));
            if !module.name.text.is_empty() && module.functions.is_empty() {
                let name = module.name.as_str();
                self.faults
                    .add(&module.name.at, format!("has no functions under `{name}:`"));
            }
            let is_root = module.name.as_str() == ROOT;
            match &module.summary {
                Some(summary) if is_root => {
                    let fault = "the docs of the crate's root are in src/crate_docs.md";
                    self.faults.add(&summary.at, fault);
                }
                Some(summary) => self.refuse(summary, text::refuse_summary(&summary.text)),
                None if is_root => {}
                None => self.faults.add(&module.name.at, "`summary` is missing"),
            }
            if let Some(docs) = &module.docs {
                self.refuse(docs, text::refuse_docs(&docs.text));
            }
            if let Some(at_root) = &module.at_root {
                self.refuse(at_root, at_root::refuse(at_root.as_str(), is_root));
            }
        }
        if !self
            .spec
            .modules
            .iter()
            .any(|module| module.name.as_str() == ROOT)
        {
            self.faults.add(
                &[],
                format!("`modules` lacks `{ROOT}`, the root of the crate"),
            );
        }
        for object in &self.spec.objects {
            self.refuse(&object.torch, text::refuse_dotted(object.torch.as_str()));
            if object.methods.is_empty() {
                self.faults.add(&object.name.at, "has no `methods`");
            }
        }
    }

    fn entry(&self, entry: &Entry, list: &[Entry]) {
        self.refuse(&entry.name, names::refuse_snake_name(entry.name.as_str()));
        self.origin(&entry.origin, [&entry.upstream, &entry.elsewhere]);
        self.version(&entry.since);
        rules::check_proof(entry.proved_by.as_ref(), self.faults);
        self.deprecation(entry, list);
        if let Body::Call(call) = &entry.body {
            self.call(entry, call);
        }
    }

    fn origin(&self, origin: &Word, [upstream, elsewhere]: [&Option<Word>; 2]) {
        let known = rules::check_origin(origin, self.faults);
        let of_torch = known && origin.as_str() != "extension";
        if let Some(upstream) = upstream {
            let fault = "only an extension has an upstream request behind it".to_string();
            self.refuse(upstream, of_torch.then_some(fault));
            self.refuse(upstream, text::refuse_request(upstream.as_str()));
        }
        if let Some(elsewhere) = elsewhere {
            let fault =
                "only an extension is elsewhere in torch: `name` is torch's own else".to_string();
            self.refuse(elsewhere, of_torch.then_some(fault));
            self.refuse(elsewhere, text::refuse_elsewhere(elsewhere.as_str()));
        }
    }

    fn version(&self, version: &Word) {
        let fault = format!("`{}` is no version, as 0.1.0 is", version.as_str());
        let Some(parsed) = text::version(version.as_str()) else {
            return self.refuse(version, Some(fault));
        };
        let later = text::version(self.version).is_some_and(|own| parsed > own);
        let fault = format!(
            "`{}` is later than the crate's own version, {}",
            version.as_str(),
            self.version
        );
        self.refuse(version, later.then_some(fault));
    }

    fn deprecation(&self, entry: &Entry, list: &[Entry]) {
        let successor = entry.successor();
        match (&entry.deprecated, successor) {
            (Some(version), None) => {
                let fault = "is deprecated without successor: give `alias_of` or `successor`";
                self.faults.add(&version.at, fault);
            }
            (None, Some(target)) => {
                let fault = "has a successor, so it needs `deprecated: VERSION`";
                self.faults.add(&target.at, fault);
            }
            _ => {}
        }
        if let Some(version) = &entry.deprecated {
            self.version(version);
            let order = (
                text::version(version.as_str()),
                text::version(entry.since.as_str()),
            );
            if let (Some(version_number), Some(since)) = order
                && version_number < since
            {
                self.faults
                    .add(&version.at, "is deprecated before it exists");
            }
        }
        let Some(target) = successor.filter(|target| !target.text.is_empty()) else {
            return;
        };
        match entry.lasting(list) {
            Ok(_) => {}
            Err(Unresolved::Unknown(name)) if name == target.as_str() => {
                let hint = similar::hint(&name, list.iter().map(|entry| entry.name.as_str()));
                let fault = format!("unknown entry `{name}` in this list{hint}");
                self.faults.add(&target.at, fault);
            }
            // Noted at the entry that names it.
            Err(Unresolved::Unknown(_)) => {}
            Err(Unresolved::Circle(names)) => {
                let fault = format!("the successors go in a circle: {}", names.join(" -> "));
                self.faults.add(&target.at, fault);
            }
        }
    }

    fn call(&self, entry: &Entry, call: &Call) {
        if let Some(receiver) = &call.receiver {
            let good = ["ref", "mut"].contains(&receiver.as_str());
            let fault = format!("`{}` is neither ref nor mut", receiver.as_str());
            self.refuse(receiver, (!good).then_some(fault));
        }
        let mut names = Names::default();
        for arg in &call.args {
            names.add(&arg.name, self.faults);
            self.refuse(&arg.name, names::refuse_snake_name(arg.name.as_str()));
            self.row(&arg.row, "take", |row| row.take.is_some());
        }
        if let Some(returns) = &call.returns {
            self.row(returns, "returns", |row| row.returns.is_some());
        }
        self.errors(&call.errors);
        self.repeated_errors(call);
        self.fails_as(call.fails_as.as_ref());
        self.refuse(&call.summary, text::refuse_summary(&call.summary.text));
        if let Some(docs) = &call.docs {
            self.refuse(docs, text::refuse_docs(&docs.text));
        }
        if let Some(differs) = &call.differs {
            self.refuse(differs, text::refuse_sentence(&differs.text));
            let fault = "an extension has nothing in torch to differ from".to_string();
            let extension = entry.origin.as_str() == "extension";
            self.refuse(differs, extension.then_some(fault));
        }
        let example = text::refuse_example(&call.example.text, entry.name.as_str());
        self.refuse(&call.example, example);
    }

    fn row(&self, name: &Word, key: &str, has: impl Fn(&TypeRow) -> bool) {
        let fault = match self.rows.get(name.as_str()) {
            Some(row) if has(row) => None,
            Some(_) => Some(format!("the type `{}` has no `{key}`", name.as_str())),
            None => {
                let known = self.rows.iter().filter(|(_, row)| has(row));
                let known: Vec<&str> = known.map(|(name, _)| *name).collect();
                let hint = similar::hint(name.as_str(), known.iter().copied());
                Some(format!(
                    "unknown type `{}`; those with `{key}` are {}{hint}",
                    name.as_str(),
                    known.join(", ")
                ))
            }
        };
        self.refuse(name, fault);
    }

    fn errors(&self, errors: &[ErrorText]) {
        for error in errors {
            let kind = error.kind.as_str();
            if !self.kinds.contains(kind) {
                let known: Vec<&str> = self.spec.kinds.iter().map(Word::as_str).collect();
                let hint = similar::hint(kind, known.iter().copied());
                let known = known.join(", ");
                let fault = format!("unknown error kind `{kind}`; `kinds` has {known}{hint}");
                self.faults.add(&error.kind.at, fault);
            }
            self.refuse(&error.text, text::refuse_sentence(&error.text.text));
        }
    }

    fn fails_as(&self, word: Option<&Word>) {
        if let Some(word) = word {
            let known = FAILS_AS.contains(&word.as_str());
            let (unknown, known_words) = (word.as_str(), FAILS_AS.join(", "));
            let fault = format!("unknown word `{unknown}`; expected one of {known_words}");
            self.refuse(word, (!known).then_some(fault));
        }
    }

    /// Errors that say nothing beyond those that come with an argument.
    fn repeated_errors(&self, call: &Call) {
        for arg in &call.args {
            let Some(row) = self.rows.get(arg.row.as_str()) else {
                continue;
            };
            let name = format!("`{}`", arg.name.as_str());
            for inherited in &row.errors {
                let text = inherited.text.text.replace("{}", &name);
                let repeats = |own: &&ErrorText| {
                    own.kind.as_str() == inherited.kind.as_str() && own.text.text == text
                };
                if let Some(own) = call.errors.iter().find(repeats) {
                    let fault = format!("the type of {name} says so already: leave it out");
                    self.faults.add(&own.kind.at, fault);
                }
            }
        }
    }

    fn handwritten(&self, written: &Handwritten) {
        self.origin(&written.origin, [&written.upstream, &written.elsewhere]);
        self.version(&written.since);
        rules::check_proof(written.proved_by.as_ref(), self.faults);
        let (holder, name) = written.split();
        self.refuse(&written.name, names::refuse_snake_name(name));
        if !self.spec.lists().any(|(known, _)| known == holder) {
            let fault = format!("`{holder}` is no module and no object of the spec");
            self.refuse(&written.name, Some(fault));
        }
    }

    /// Adds the handwritten names of a holder to its declared ones, so that two of one name show.
    fn handwritten_names(&self, holder: &str, names: &mut Names<'a>) {
        for written in &self.spec.handwritten {
            let (held_by, name) = written.split();
            if held_by == holder {
                names.add_as(name, &written.name, self.faults);
            }
        }
    }

    /// Rows that no entry uses, and types that no row uses, are left from something else.
    fn unused(&self) {
        let entries = self.spec.lists().flat_map(|(_, entries)| entries);
        let mut used = BTreeSet::new();
        for entry in entries {
            if let Body::Call(call) = &entry.body {
                used.extend(call.args.iter().map(|Arg { row, .. }| row.as_str()));
                used.extend(call.returns.iter().map(Word::as_str));
            }
        }
        let mut written = Vec::new();
        // A name that nobody knows may be a slip for the one that seems unused.
        let all_known = used.iter().all(|name| self.rows.contains_key(name));
        for row in &self.spec.types {
            let name = row.name.as_str();
            let fault = format!("no entry uses the type `{name}`: remove the row");
            self.refuse(
                &row.name,
                (all_known && !used.contains(name)).then_some(fault),
            );
            let texts = row.take.iter().chain(&row.returns);
            written.extend(texts.filter_map(|word| Type::parse(word.as_str()).ok()));
        }
        let mut names = BTreeSet::new();
        for parsed in &written {
            parsed.names(&mut names);
        }
        let known = |name: &&str| types::is_library(name) || self.types.contains(name);
        let all_known = names.iter().all(known);
        for name in self.spec.uses.iter().filter(|_| all_known) {
            let fault = format!("no row of `types` uses `{}`: remove it", name.as_str());
            self.refuse(name, (!names.contains(name.as_str())).then_some(fault));
        }
    }
}
