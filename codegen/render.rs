//! Turns a checked spec into what the templates take: lists of finished lines.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use super::fields::Word;
use super::layout::{self, INDENT};
use super::model::{
    Body, Call, Derived, Entry, ErrorText, FAILS_AS, Module, Object, ROOT, STATS, Spec, TypeRow,
};
use super::parts::{Args, Failures, Place, attributes, declared, handed_down, result};
use super::stats::{self, Place as StatPlace, StatsSpec};
use super::template::{FunctionView, ModuleView, ObjectView, Surface, Templates};
use super::types::{self, Type};
use super::{Generated, TEMPLATES, at_root, derived, docs, names};

/// Renders the surface with the templates, each given as its name and its text.
pub fn render(
    spec: &Spec,
    stats: &StatsSpec,
    templates: &[(&str, &str)],
) -> Result<Generated, String> {
    let rows = spec.types.iter().map(|row| (row.name.as_str(), row));
    let renderer = Renderer {
        spec,
        stats,
        rows: rows.collect(),
    };
    let surface = Surface {
        modules: spec.modules.iter().map(|m| renderer.module(m)).collect(),
        objects: spec.objects.iter().map(|o| renderer.object(o)).collect(),
    };
    let templates = Templates::new(templates).map_err(tell)?;
    let (first, last) = (TEMPLATES.1.first(), TEMPLATES.1.last());
    let (first, last) = first.zip(last).ok_or("there are no templates")?;
    let view = stats::render(stats).ok_or("the statistics are not checked")?;
    Ok(Generated {
        api: templates.fill(first, &surface).map_err(tell)?,
        stats: templates.fill(last, &view).map_err(tell)?,
    })
}

/// The text of a template's fault. The place in an included template is in the error's source.
fn tell(error: minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

struct Renderer<'a> {
    spec: &'a Spec,
    stats: &'a StatsSpec,
    rows: BTreeMap<&'a str, &'a TypeRow>,
}

impl Renderer<'_> {
    fn module(&self, module: &Module) -> ModuleView {
        let name = module.name.as_str();
        let is_root = name == ROOT;
        let bodies = format!("{}Bodies", names::camel(name));
        let place = Place {
            torch: module.torch.as_str(),
            bodies: &bodies,
            indent: if is_root { 0 } else { INDENT },
            method: false,
        };
        ModuleView {
            name: name.into(),
            is_root,
            docs: docs::module(module),
            imports: self.imports(module, place.indent),
            functions: self.functions(&module.functions, &place),
            bodies,
        }
    }

    fn object(&self, object: &Object) -> ObjectView {
        let bodies = format!("{}Bodies", object.name.as_str());
        let place = Place {
            torch: object.torch.as_str(),
            bodies: &bodies,
            indent: INDENT,
            method: true,
        };
        ObjectView {
            name: object.name.text.clone(),
            functions: self.functions(&object.methods, &place),
            bodies,
        }
    }

    /// The imports of a module. The root also holds the objects, so it imports for them.
    fn imports(&self, module: &Module, indent: usize) -> Vec<Vec<String>> {
        let mut names = BTreeSet::from(["Runtime"]);
        let mut types = Vec::new();
        let mut entries: Vec<&Entry> = module.functions.iter().collect();
        let is_root = module.name.as_str() == ROOT;
        if is_root {
            for object in &self.spec.objects {
                names.insert(object.name.as_str());
                entries.extend(&object.methods);
            }
        }
        for entry in entries {
            if let Body::Call(call) = &entry.body {
                if self.is_fallible(call) {
                    names.insert("Result");
                }
                types.extend(
                    call.args
                        .iter()
                        .filter_map(|arg| self.take(arg.row.as_str())),
                );
                types.extend(
                    call.returns
                        .iter()
                        .filter_map(|row| self.returned(row.as_str())),
                );
            }
        }
        let mut used = BTreeSet::new();
        for parsed in &types {
            parsed.names(&mut used);
        }
        let library: Vec<String> = used
            .iter()
            .filter_map(|name| types::library_import(name))
            .map(|path| format!("use {path};"))
            .collect();
        let declared = self
            .spec
            .uses
            .iter()
            .chain(self.spec.objects.iter().map(|o| &o.name));
        names.extend(
            declared
                .map(|word| word.as_str())
                .filter(|name| used.contains(name)),
        );
        let names: Vec<&str> = names.into_iter().collect();

        let mut groups = vec![library, layout::import("use crate::", &names, indent)];
        let holder = module.name.as_str();
        let written = self.spec.handwritten.iter().map(|written| written.split());
        let mut written: Vec<&str> = written
            .filter(|(held_by, _)| *held_by == holder)
            .map(|(_, name)| name)
            .collect();
        written.sort_unstable();
        if !written.is_empty() {
            let path = format!("pub use crate::api::{holder}::");
            groups.push(layout::import(&path, &written, indent));
        }
        if is_root {
            let others = self.spec.modules.iter();
            groups.extend(others.map(|module| at_root::lines(self.spec, module)));
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    fn functions(&self, list: &[Entry], place: &Place<'_>) -> Vec<FunctionView> {
        let view = |entry| self.function(entry, list, place);
        list.iter().filter_map(view).collect()
    }

    /// A function or method. `None` is for what a checked spec has not: a successor that is nowhere.
    fn function(&self, entry: &Entry, list: &[Entry], place: &Place<'_>) -> Option<FunctionView> {
        let target = entry.target(list).ok()?;
        let Body::Call(call) = &target.body else {
            return None;
        };
        // What is made of the statistics takes and refuses what the entry does that returns them.
        let source = self.spec.sources(list).next();
        let shape = match (&call.derived, source) {
            (None, _) => call,
            (Some(_), source) => source?.1,
        };
        let failures = self.failures(shape);
        let fallible = !failures.is_empty();
        let returns = result(fallible, self.returned_by(call));
        let is_alias = target.name.text != entry.name.text;
        let head = format!("pub fn {}", entry.name.as_str());
        let args = self.args(shape, place);
        let mut declaration = Vec::new();
        // An alias and what is made of the statistics call the body of another entry.
        if !is_alias && call.derived.is_none() {
            declaration = declared(target.name.as_str(), &args.body, &returns, fallible, place);
            if source.is_some_and(|(source, _)| source.name.text == entry.name.text)
                && derived::has_resets(list)
            {
                let mut takes = args.body.clone();
                takes.push(format!("{}: fn(&mut {STATS})", derived::CHANGE));
                let name = derived::change_body(entry);
                let nothing = result(fallible, None);
                declaration.extend(declared(&name, &takes, &nothing, fallible, place));
            }
        }
        Some(FunctionView {
            docs: if is_alias {
                docs::alias(entry, target, call, &failures, place.torch, place.indent)
            } else {
                let source = source.map(|(source, _)| source);
                docs::call(entry, call, source, &failures, place.torch, place.indent)
            },
            attributes: attributes(entry, entry.lasting(list).ok()?, fallible, place),
            signature: layout::signature(&head, &args.given, &returns, " {", place.indent),
            call: self.body(target, call, source.map(|(source, _)| source), args, place)?,
            declaration,
        })
    }

    /// The lines inside of a function: a call of the body, which is written by hand.
    fn body(
        &self,
        target: &Entry,
        call: &Call,
        source: Option<&Entry>,
        mut args: Args,
        place: &Place<'_>,
    ) -> Option<Vec<String>> {
        let indent = place.indent + INDENT;
        let bodies = place.bodies;
        Some(match &call.derived {
            None => {
                let path = format!("{bodies}::{}", target.name.as_str());
                layout::call(&path, &args.passed, indent)
            }
            Some(Derived::Reads(key)) => {
                let (field, source) = match derived::place(self.stats, key.as_str())? {
                    StatPlace::Number(field) | StatPlace::Setting(field) => (field, source?),
                };
                let path = format!("let stats = {bodies}::{}", source.name.as_str());
                // Two columns are left for what ends the line.
                let mut lines = layout::call(&path, &args.passed, indent + 2);
                let fallible = self.is_fallible_entry(source);
                if let Some(last) = lines.last_mut() {
                    last.push_str(if fallible { "?;" } else { ";" });
                }
                let value = format!("stats.{field}");
                lines.push(if fallible {
                    format!("Ok({value})")
                } else {
                    value
                });
                lines
            }
            Some(Derived::Resets(reset)) => {
                args.passed
                    .push(format!("{STATS}::reset_{}", reset.as_str()));
                let path = format!("{bodies}::{}", derived::change_body(source?));
                layout::call(&path, &args.passed, indent)
            }
        })
    }

    /// What a call returns where it does not fail.
    fn returned_by(&self, call: &Call) -> Option<Type> {
        match &call.derived {
            None => self.returned(call.returns.as_ref()?.as_str()),
            Some(Derived::Resets(_)) => None,
            Some(Derived::Reads(key)) => match derived::place(self.stats, key.as_str())? {
                StatPlace::Number(_) => Type::parse("u64").ok(),
                StatPlace::Setting(_) => Type::parse("Option<u64>").ok(),
            },
        }
    }

    fn args(&self, call: &Call, place: &Place<'_>) -> Args {
        let receiver = call.receiver.as_ref().map(|word| match word.as_str() {
            "mut" => "&mut self",
            _ => "&self",
        });
        let passed = if place.method {
            "self"
        } else {
            "&Runtime::current()"
        };
        let mut args = Args {
            given: receiver.map(String::from).into_iter().collect(),
            passed: vec![passed.into()],
            body: vec![receiver.unwrap_or("&self").into()],
        };
        for arg in &call.args {
            let name = arg.name.as_str();
            if let Some(take) = self.take(arg.row.as_str()) {
                let (passed, body) = handed_down(name, &take);
                args.given.push(format!("{name}: {take}"));
                args.passed.push(passed);
                args.body.push(format!("{name}: {body}"));
            }
        }
        args
    }

    /// The errors of a call: those of its arguments, then its own, which may say more of the same.
    fn failures(&self, call: &Call) -> Failures {
        let rows = call.args.iter();
        let rows = rows.filter_map(|arg| self.rows.get(arg.row.as_str()));
        let words = rows.map(|row| &row.fails_as).chain([&call.fails_as]);
        let word = |word: &Word| FAILS_AS.iter().position(|known| *known == word.as_str());
        let widest = words.flatten().filter_map(word).max();
        Failures {
            kinds: self.errors(call),
            shared: widest.map(|word| FAILS_AS[word].into()),
        }
    }

    /// Their kinds.
    fn errors(&self, call: &Call) -> Vec<(String, String)> {
        let mut out: Vec<(String, String)> = Vec::new();
        let mut add = |error: &ErrorText, text: String| {
            let kind = error.kind.as_str();
            match out.iter_mut().find(|(known, _)| known == kind) {
                Some((_, known)) => *known = text,
                None => out.push((kind.into(), text)),
            }
        };
        for arg in &call.args {
            for error in self
                .rows
                .get(arg.row.as_str())
                .into_iter()
                .flat_map(|row| &row.errors)
            {
                add(
                    error,
                    error
                        .text
                        .text
                        .replace("{}", &format!("`{}`", arg.name.as_str())),
                );
            }
        }
        for error in &call.errors {
            add(error, error.text.text.clone());
        }
        out
    }

    fn is_fallible(&self, call: &Call) -> bool {
        !self.failures(call).is_empty()
    }

    fn take(&self, row: &str) -> Option<Type> {
        Type::parse(self.rows.get(row)?.take.as_ref()?.as_str()).ok()
    }

    fn returned(&self, row: &str) -> Option<Type> {
        Type::parse(self.rows.get(row)?.returns.as_ref()?.as_str()).ok()
    }

    fn is_fallible_entry(&self, entry: &Entry) -> bool {
        matches!(&entry.body, Body::Call(call) if self.is_fallible(call))
    }
}
