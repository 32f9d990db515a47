//! Owns the way from `spec/*.yaml` to Rust: read, check, render. No files, no environment: texts in,
//! text out, so that the build script and the tests run the same code.

mod check;
mod docs;
mod fault;
mod fields;
mod layout;
mod model;
mod names;
mod render;
mod template;
mod text;
mod types;
pub mod yaml;

pub use fault::Fault;

/// The spec, from the root of the package.
pub const SPEC: &str = "spec/api.yaml";

/// The folder of the templates, and the templates in it; the first includes the others.
pub const TEMPLATES: (&str, &[&str]) = (
    "templates",
    &[
        "api.rs.j2",
        "module.rs.j2",
        "bodies.rs.j2",
        "function.rs.j2",
    ],
);

/// Generates the surface from the text of the spec and the templates, given by name and text.
///
/// The same texts always give the same surface. `Err` has every fault that was found.
pub fn generate(spec: &str, templates: &[(&str, &str)]) -> Result<String, Vec<Fault>> {
    let fault = |line: Option<usize>, text: &str| Fault {
        file: SPEC.into(),
        line: line.unwrap_or(0),
        entry: String::new(),
        text: text.into(),
    };
    let mut found: Vec<Fault> = yaml::cut_lines(spec)
        .into_iter()
        .map(|line| fault(Some(line), "the text is cut off at ` #`: put it in quotes"))
        .collect();
    let root = match yaml::load(spec) {
        Ok(root) => root,
        Err(refusal) => {
            found.push(fault(refusal.line, &refusal.text));
            found.sort();
            return Err(found);
        }
    };
    let faults = fault::Faults::default();
    let model = model::Spec::read(&root, &faults);
    if let Some(model) = &model {
        check::check(model, &faults);
    }
    found.extend(faults.resolve(SPEC, spec, &root));
    let Some(model) = model.filter(|_| found.is_empty()) else {
        found.sort();
        return Err(found);
    };
    render::render(&model, templates).map_err(|text| {
        vec![Fault {
            file: TEMPLATES.0.into(),
            line: 0,
            entry: String::new(),
            text,
        }]
    })
}
