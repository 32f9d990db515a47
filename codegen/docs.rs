//! Puts the docs of entries together. A line has no `///` yet; it starts with a blank unless empty.

use super::fields::Word;
use super::layout;
use super::model::{Call, Derived, Entry, Module};
use super::parts::Failures;
use super::text::wrap;

/// The docs of a module; none for the root, whose docs are the crate's.
pub fn module(module: &Module) -> Vec<String> {
    let mut docs = Docs::new(0);
    if let Some(summary) = &module.summary {
        docs.prose(&summary.text);
    }
    if let Some(text) = &module.docs {
        docs.gap();
        docs.verbatim(&text.text);
    }
    docs.lines
}

/// The docs of a function or method; `source` is what returns the statistics it may be made of.
pub fn call(
    entry: &Entry,
    call: &Call,
    source: Option<&Entry>,
    failures: &Failures,
    torch: &str,
    indent: usize,
) -> Vec<String> {
    let mut docs = Docs::new(indent);
    docs.prose(&call.summary.text);
    if let Some(text) = &call.docs {
        docs.gap();
        docs.verbatim(&text.text);
    }
    if let (Some(Derived::Reads(key)), Some(source)) = (&call.derived, source) {
        docs.gap();
        let (key, source) = (key.as_str(), source.name.as_str());
        docs.prose(&format!("It is `{key}` of [`{source}`]."));
    }
    let differs = call.differs.as_ref().map_or("", |word| word.as_str());
    docs.origin(entry, torch, differs);
    docs.errors(failures);
    docs.example(call, !failures.is_empty());
    docs.lines
}

/// The docs of another name for `target`.
pub fn alias(
    entry: &Entry,
    target: &Entry,
    call: &Call,
    failures: &Failures,
    torch: &str,
    indent: usize,
) -> Vec<String> {
    let mut docs = Docs::new(indent);
    let name = target.name.as_str();
    let link = if call.receiver.is_some() {
        format!("(Self::{name})")
    } else {
        String::new()
    };
    docs.prose(&format!("An older name of [`{name}`]{link}."));
    docs.origin(entry, torch, "");
    docs.errors(failures);
    docs.example(call, !failures.is_empty());
    docs.lines
}

/// The name that torch has for an entry, in whatever place; none for one of our own.
pub fn torch_name(entry: &Entry, torch: &str) -> Option<String> {
    match &entry.elsewhere {
        Some(elsewhere) => Some(elsewhere.text.clone()),
        None if entry.origin.as_str() == "extension" => None,
        None => Some(format!("{torch}.{}", entry.name.as_str())),
    }
}

/// Where an extension was asked for.
fn request(word: &Word) -> Option<String> {
    let (repository, number) = word.as_str().split_once('#')?;
    Some(format!(
        "Asked for in [{repository}#{number}](https://github.com/{repository}/issues/{number})."
    ))
}

struct Docs {
    lines: Vec<String>,
    width: usize,
}

impl Docs {
    fn new(indent: usize) -> Self {
        Self {
            lines: Vec::new(),
            width: layout::docs_width(indent),
        }
    }

    fn line(&mut self, text: &str) {
        let text = text.trim_end();
        let blank = if text.is_empty() { "" } else { " " };
        self.lines.push(format!("{blank}{text}"));
    }

    /// An empty line between two parts.
    fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.line("");
        }
    }

    fn prose(&mut self, text: &str) {
        for line in wrap(text, self.width, "") {
            self.line(&line);
        }
    }

    fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            self.line(line);
        }
    }

    fn heading(&mut self, title: &str) {
        self.gap();
        self.line(&format!("# {title}"));
        self.line("");
    }

    fn origin(&mut self, entry: &Entry, torch: &str, differs: &str) {
        let text = match (torch_name(entry, torch), &entry.elsewhere) {
            (Some(name), None) => format!("In PyTorch: `{name}`. {differs}"),
            (Some(name), Some(_)) => format!("In PyTorch: `{name}`, not in `torch.accelerator`."),
            (None, _) => "An extension: `torch.accelerator` has nothing like it.".into(),
        };
        let asked = entry.upstream.as_ref().and_then(request);
        self.gap();
        self.prose(&format!("{text} {}", asked.unwrap_or_default()));
    }

    fn errors(&mut self, failures: &Failures) {
        if failures.is_empty() {
            return;
        }
        self.heading("Errors");
        for (kind, text) in &failures.kinds {
            let text = format!("- [`{kind}`](crate::ErrorKind::{kind}): {text}");
            for line in wrap(&text, self.width, "  ") {
                self.line(&line);
            }
        }
        if let Some(shared) = &failures.shared {
            let also = if failures.kinds.is_empty() {
                "What"
            } else {
                "Also what"
            };
            if !failures.kinds.is_empty() {
                self.line("");
            }
            self.prose(&format!("{also} [any {shared}](crate#errors) may give."));
        }
    }

    /// The example as a program that runs, also where there is no device.
    fn example(&mut self, call: &Call, fallible: bool) {
        self.heading("Example");
        self.line("```");
        self.line("# fn main() -> vkaccel::Result<()> {");
        if fallible {
            self.line("# if vkaccel::device_count() == 0 { return Ok(()); }");
        }
        self.verbatim(&call.example.text);
        self.line("# Ok(())");
        self.line("# }");
        self.line("```");
    }
}
