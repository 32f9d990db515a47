//! Turns a checked spec into what the templates take: lists of finished lines.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use super::docs;
use super::layout::{self, INDENT};
use super::model::{Body, Call, Entry, ErrorText, Module, Object, ROOT, Spec, TypeRow};
use super::names;
use super::template::{FunctionView, ModuleView, ObjectView, Surface, fill};
use super::types::{self, Type};

/// Renders the surface with the templates, each given as its name and its text.
pub fn render(spec: &Spec, templates: &[(&str, &str)]) -> Result<String, String> {
    let rows = spec.types.iter().map(|row| (row.name.as_str(), row));
    let renderer = Renderer {
        spec,
        rows: rows.collect(),
    };
    let surface = Surface {
        modules: spec.modules.iter().map(|m| renderer.module(m)).collect(),
        objects: spec.objects.iter().map(|o| renderer.object(o)).collect(),
    };
    fill(&surface, templates).map_err(|error| {
        // The place in an included template is in the error's source.
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        text
    })
}

struct Renderer<'a> {
    spec: &'a Spec,
    rows: BTreeMap<&'a str, &'a TypeRow>,
}

/// Where an entry stands, as far as its text depends on it.
struct Place<'a> {
    /// The name in torch of what holds it.
    torch: &'a str,
    bodies: &'a str,
    /// The columns its lines are moved to the right.
    indent: usize,
    method: bool,
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
        let errors = self.errors(call);
        let result = self.result(call);
        // An alias calls the body that it shares, so that it warns of nothing itself.
        let name = target.name.as_str();
        let is_alias = name != entry.name.as_str();
        let head = format!("pub fn {}", entry.name.as_str());
        let args = self.args(call, place);
        let body = format!("{}::{name}", place.bodies);
        let declaration = if is_alias {
            Vec::new()
        } else {
            // The trait of an object stands at the edge, that of a module inside it.
            let indent = if place.method { 0 } else { place.indent } + INDENT;
            let tracked = (!errors.is_empty()).then(|| TRACK_CALLER.to_string());
            let signature =
                layout::signature(&format!("fn {name}"), &args.body, &result, ";", indent);
            tracked.into_iter().chain(signature).collect()
        };
        Some(FunctionView {
            docs: if is_alias {
                docs::alias(entry, target, call, &errors, place.torch, place.indent)
            } else {
                docs::call(entry, call, &errors, place.torch, place.indent)
            },
            attributes: attributes(entry, entry.lasting(list).ok()?, !errors.is_empty(), place),
            signature: layout::signature(&head, &args.given, &result, " {", place.indent),
            call: layout::call(&body, &args.passed, place.indent + INDENT),
            declaration,
        })
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
        !self.errors(call).is_empty()
    }

    fn take(&self, row: &str) -> Option<Type> {
        Type::parse(self.rows.get(row)?.take.as_ref()?.as_str()).ok()
    }

    fn returned(&self, row: &str) -> Option<Type> {
        Type::parse(self.rows.get(row)?.returns.as_ref()?.as_str()).ok()
    }

    /// ` -> T` with what the call returns, or nothing.
    fn result(&self, call: &Call) -> String {
        let returned = call
            .returns
            .as_ref()
            .and_then(|row| self.returned(row.as_str()));
        match (self.is_fallible(call), returned) {
            (true, Some(returned)) => format!(" -> Result<{returned}>"),
            (true, None) => " -> Result<()>".into(),
            (false, Some(returned)) => format!(" -> {returned}"),
            (false, None) => String::new(),
        }
    }
}

/// The arguments of a function: as it takes them, as it passes them on, and as the body takes them.
struct Args {
    given: Vec<String>,
    passed: Vec<String>,
    body: Vec<String>,
}

const TRACK_CALLER: &str = "#[track_caller]";

/// How an argument is given to the body, and the type it has there.
fn handed_down(name: &str, take: &Type) -> (String, String) {
    match take {
        Type::Impl(bound, inner) if bound == "Into" => {
            (format!("{name}.into()"), inner.to_string())
        }
        Type::Impl(_, inner) => (format!("{name}.as_ref()"), format!("&{inner}")),
        other => (name.into(), other.to_string()),
    }
}

fn attributes(entry: &Entry, lasting: &Entry, fallible: bool, place: &Place<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(name) = docs::torch_name(entry, place.torch) {
        let alias = format!("alias = \"{name}\"");
        lines.extend(layout::attribute("doc", &[alias], place.indent));
    }
    if let Some(version) = &entry.deprecated {
        let since = format!("since = \"{}\"", version.as_str());
        let note = format!("note = \"use `{}`\"", lasting.name.as_str());
        let items = [since, note];
        lines.extend(layout::attribute("deprecated", &items, place.indent));
    }
    // The place of a call is of use only where something can go wrong.
    if fallible {
        lines.push(TRACK_CALLER.into());
    }
    lines
}
