//! What templates may speak of, and how strictly they are filled.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// Everything a template may speak of.
#[derive(Serialize)]
pub struct Surface {
    pub modules: Vec<ModuleView>,
    pub objects: Vec<ObjectView>,
}

#[derive(Serialize)]
pub struct ModuleView {
    pub name: String,
    pub is_root: bool,
    pub docs: Vec<String>,
    /// Groups of lines, with a blank line between two groups.
    pub imports: Vec<Vec<String>>,
    pub bodies: String,
    pub functions: Vec<FunctionView>,
}

#[derive(Serialize)]
pub struct ObjectView {
    pub name: String,
    pub bodies: String,
    pub functions: Vec<FunctionView>,
}

/// A function or method; every text is a list of finished lines without their indentation.
#[derive(Serialize)]
pub struct FunctionView {
    pub docs: Vec<String>,
    pub attributes: Vec<String>,
    pub signature: Vec<String>,
    pub call: Vec<String>,
    /// What the bodies trait declares; nothing for an alias, which has no body.
    pub declaration: Vec<String>,
}

/// The templates, ready to be filled.
pub struct Templates<'a>(Environment<'a>);

impl<'a> Templates<'a> {
    /// Takes templates by name and text.
    pub fn new(templates: &[(&'a str, &'a str)]) -> Result<Self, minijinja::Error> {
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
                minijinja::ErrorKind::InvalidOperation,
                format!("a template prints `{value}`"),
            )),
            _ => minijinja::escape_formatter(out, state, value),
        });
        for (name, text) in templates {
            environment.add_template(name, text)?;
        }
        Ok(Self(environment))
    }

    /// Fills the template of this name, which may include others.
    pub fn fill<T: Serialize>(&self, name: &str, view: &T) -> Result<String, minijinja::Error> {
        self.0.get_template(name)?.render(Serde(view))
    }
}
