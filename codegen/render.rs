//! Turns a checked spec into views, lists of finished lines, and fills the templates with them.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::TEMPLATES;
use super::check::resolve;
use super::docs;
use super::layout::{self, INDENT};
use super::model::{Body, Call, Entry, ErrorText, Module, Object, ROOT, Spec, TypeRow};
use super::rust::{self, Type};

/// Everything a template may speak of.
#[derive(Serialize)]
struct Surface {
    modules: Vec<ModuleView>,
    objects: Vec<ObjectView>,
}

#[derive(Serialize)]
struct ModuleView {
    name: String,
    is_root: bool,
    docs: Vec<String>,
    /// Groups of lines, with a blank line between two groups.
    imports: Vec<Vec<String>>,
    bodies: String,
    functions: Vec<FunctionView>,
}

#[derive(Serialize)]
struct ObjectView {
    name: String,
    bodies: String,
    functions: Vec<FunctionView>,
}

/// A function or method; every text is a list of finished lines without their indentation.
#[derive(Serialize)]
struct FunctionView {
    docs: Vec<String>,
    attributes: Vec<String>,
    signature: Vec<String>,
    call: Vec<String>,
    /// What the bodies trait declares; nothing for an alias, which has no body.
    declaration: Vec<String>,
}

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
    fill(&surface, templates).map_err(|error| format!("{error:#}"))
}

fn fill(surface: &Surface, templates: &[(&str, &str)]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true);
    environment.set_syntax(syntax.build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Both let an undefined value pass, which strictness is there to refuse.
    environment.remove_filter("default");
    environment.remove_test("defined");
    // Strictness says nothing about these, and their printed form is no Rust.
    environment.set_formatter(|out, state, value: &Value| match value.kind() {
        ValueKind::None | ValueKind::Bool => Err(minijinja::Error::new(
            minijinja::ErrorKind::BadSerialization,
            format!("a template prints `{value}`"),
        )),
        _ => minijinja::escape_formatter(out, state, value),
    });
    for (name, text) in templates {
        environment.add_template(name, text)?;
    }
    environment
        .get_template(TEMPLATES.1[0])?
        .render(Serde(surface))
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
        let bodies = format!("{}Bodies", rust::camel(name));
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
            .filter_map(|name| rust::library_import(name))
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
        let view = |entry: &Entry| match (&entry.body, resolve(entry, list)) {
            (Body::Call(call), target) => Some(self.function(entry, call, target.ok(), place)),
            (Body::Alias(_), Ok(target)) => self.alias(entry, target, place),
            // A checked spec has none.
            (Body::Alias(_), Err(_)) => None,
        };
        list.iter().filter_map(view).collect()
    }

    fn function(
        &self,
        entry: &Entry,
        call: &Call,
        target: Option<&Entry>,
        place: &Place<'_>,
    ) -> FunctionView {
        let mut given = Vec::new();
        let mut passed = vec![
            if place.method {
                "self"
            } else {
                "&Runtime::current()"
            }
            .into(),
        ];
        let mut body_args = Vec::new();
        match call.receiver.as_ref().map(|word| word.as_str()) {
            Some("mut") => given.push("&mut self".to_string()),
            Some(_) => given.push("&self".to_string()),
            None => {}
        }
        body_args.push(given.first().cloned().unwrap_or_else(|| "&self".into()));
        for arg in &call.args {
            let name = arg.name.as_str();
            if let Some(take) = self.take(arg.row.as_str()) {
                given.push(format!("{name}: {take}"));
                let (pass, body) = handed_down(name, &take);
                passed.push(pass);
                body_args.push(format!("{name}: {body}"));
            }
        }
        let result = self.result(call);
        let name = entry.name.as_str();
        let mut declaration = Vec::new();
        if self.is_fallible(call) {
            declaration.push(TRACK_CALLER.to_string());
        }
        let head = format!("fn {name}");
        // The trait of a module is as far in as its functions; that of an object stands at the edge.
        let inside = if place.method { 0 } else { place.indent } + INDENT;
        declaration.extend(layout::signature(&head, &body_args, &result, ";", inside));
        let successor = target.filter(|target| target.name.as_str() != name);
        FunctionView {
            docs: docs::call(entry, call, &self.errors(call), place.torch, place.indent),
            attributes: self.attributes(entry, call, successor, place),
            signature: layout::signature(
                &format!("pub {head}"),
                &given,
                &result,
                " {",
                place.indent,
            ),
            call: layout::call(
                &format!("{}::{name}", place.bodies),
                &passed,
                place.indent + INDENT,
            ),
            declaration,
        }
    }

    fn alias(&self, entry: &Entry, target: &Entry, place: &Place<'_>) -> Option<FunctionView> {
        let Body::Call(call) = &target.body else {
            return None;
        };
        let mut view = self.function(target, call, None, place);
        let name = entry.name.as_str();
        let successor = target.name.as_str();
        let mut given: Vec<String> = Vec::new();
        let mut passed = Vec::new();
        if let Some(receiver) = &call.receiver {
            given.push(
                if receiver.as_str() == "mut" {
                    "&mut self"
                } else {
                    "&self"
                }
                .into(),
            );
        }
        for arg in &call.args {
            if let Some(take) = self.take(arg.row.as_str()) {
                given.push(format!("{}: {take}", arg.name.as_str()));
                passed.push(arg.name.text.clone());
            }
        }
        let path = if place.method {
            format!("self.{successor}")
        } else {
            successor.into()
        };
        let head = format!("pub fn {name}");
        let errors = self.errors(call);
        view.docs = docs::alias(entry, target, call, &errors, place.torch, place.indent);
        view.attributes = self.attributes(entry, call, Some(target), place);
        view.signature = layout::signature(&head, &given, &self.result(call), " {", place.indent);
        view.call = layout::call(&path, &passed, place.indent + INDENT);
        view.declaration.clear();
        Some(view)
    }

    fn attributes(
        &self,
        entry: &Entry,
        call: &Call,
        successor: Option<&Entry>,
        place: &Place<'_>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(name) = docs::torch_name(entry, place.torch) {
            let alias = format!("alias = \"{name}\"");
            lines.extend(layout::attribute("doc", &[alias], place.indent));
        }
        if let (Some(version), Some(successor)) = (&entry.deprecated, successor) {
            let since = format!("since = \"{}\"", version.as_str());
            let note = format!("note = \"use `{}`\"", successor.name.as_str());
            lines.extend(layout::attribute(
                "deprecated",
                &[since, note],
                place.indent,
            ));
        }
        // The place of a call is of use only where something can go wrong.
        if self.is_fallible(call) {
            lines.push(TRACK_CALLER.into());
        }
        lines
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
