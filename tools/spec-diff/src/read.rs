//! Reads specs and lists. Lenient on purpose: another version of the spec may have other keys.

use std::fs;
use std::path::Path;

use serde_yaml::Value;

use crate::surface::{Item, Surface};

/// Reads a folder or a file.
pub fn surface(path: &Path) -> Result<Surface, String> {
    let mut surface = Surface {
        label: path.display().to_string(),
        ..Surface::default()
    };
    if path.is_dir() {
        let files = ["api.yaml", "memory_stats.yaml"].map(|name| path.join(name));
        let mut files = files.iter().filter(|file| file.exists()).peekable();
        if files.peek().is_none() {
            return Err(format!(
                "{}: no api.yaml and no memory_stats.yaml",
                path.display()
            ));
        }
        for file in files {
            add(&mut surface, file)?;
        }
    } else {
        add(&mut surface, path)?;
    }
    Ok(surface)
}

fn add(surface: &mut Surface, file: &Path) -> Result<(), String> {
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| fault(&error))?;
    // JSON is YAML too.
    let root: Value = serde_yaml::from_str(&text).map_err(|error| fault(&error))?;
    if root.get("torch").is_some() {
        add_torch(surface, &root);
    } else if root.get("modules").is_some() {
        add_api(surface, &root);
    } else if root.get("families").is_some() {
        add_stats(surface, &root);
    } else {
        return Err(fault(&"neither a spec nor a list of names"));
    }
    Ok(())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value
        .get(key)
        .and_then(Value::as_sequence)
        .into_iter()
        .flatten()
}

fn add_torch(surface: &mut Surface, root: &Value) {
    surface.is_torch = true;
    surface.label = format!("torch {}", text(root, "torch"));
    let rows = |key| {
        root.get(key)
            .and_then(Value::as_mapping)
            .into_iter()
            .flatten()
    };
    for (name, said) in rows("names") {
        let item = Item {
            docs: text(said, "docs").into(),
            deprecated: said
                .get("deprecated")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            extension: false,
        };
        surface
            .names
            .insert(name.as_str().unwrap_or_default().into(), item);
    }
    for (key, _) in rows("keys") {
        surface.add_key(key.as_str().unwrap_or_default());
    }
}

fn add_api(surface: &mut Surface, root: &Value) {
    let mut holders = Vec::new();
    for module in list(root, "modules") {
        let name = text(module, "name");
        holders.push((
            name,
            text(module, "torch"),
            list(root, name).collect::<Vec<_>>(),
        ));
    }
    for object in list(root, "objects") {
        let methods = list(object, "methods").collect();
        holders.push((text(object, "name"), text(object, "torch"), methods));
    }
    for (_, torch, entries) in &holders {
        for entry in entries {
            let item = Item {
                docs: docs(entry),
                deprecated: entry.get("deprecated").is_some(),
                extension: text(entry, "origin") == "extension",
            };
            surface
                .names
                .insert(format!("{torch}.{}", text(entry, "name")), item);
        }
    }
    for written in list(root, "handwritten") {
        let path = text(written, "name");
        let (holder, name) = path.rsplit_once("::").unwrap_or(("root", path));
        let found = holders.iter().find(|(known, _, _)| *known == holder);
        let torch = found.map_or(holder, |(_, torch, _)| torch);
        let item = Item {
            extension: text(written, "origin") == "extension",
            ..Item::default()
        };
        let name = match name {
            // A constructor is the class.
            "new" => torch.into(),
            _ => format!("{torch}.{name}"),
        };
        surface.names.insert(name, item);
    }
}

/// All that an entry says in words.
fn docs(entry: &Value) -> String {
    let texts = [
        text(entry, "alias_of"),
        text(entry, "summary"),
        text(entry, "docs"),
    ];
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

fn add_stats(surface: &mut Surface, root: &Value) {
    let names = |key| {
        list(root, key)
            .map(|row| text(row, "name"))
            .collect::<Vec<_>>()
    };
    let (pools, metrics) = (names("pools"), names("metrics"));
    for group in ["families", "counters", "settings"] {
        for row in list(root, group) {
            let name = text(row, "name");
            if text(row, "origin") == "extension" {
                surface.own_keys.insert(name.into());
            }
            if group != "families" {
                surface.add_key(name);
            } else if row.get("pools").is_some() {
                metrics
                    .iter()
                    .for_each(|metric| surface.add_key(&format!("{name}.{metric}")));
            } else {
                for pool in &pools {
                    for metric in &metrics {
                        surface.add_key(&format!("{name}.{pool}.{metric}"));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Surface {
        surface(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
    }

    /// What the spec calls PyTorch's is there, under the same name and with the same keys.
    #[test]
    fn nothing_is_called_pytorchs_that_it_has_not() {
        let (spec, torch) = (read("../../spec"), read("data/torch-2.14.0.json"));
        for (name, item) in &spec.names {
            assert!(item.extension || torch.names.contains_key(name), "{name}");
        }
        for (key, ends) in &spec.keys {
            assert!(
                spec.own_keys.contains(key) || torch.keys.get(key) == Some(ends),
                "{key}: {ends:?}"
            );
        }
    }

    #[test]
    fn a_deprecated_name_of_pytorch_is_deprecated_here() {
        let (spec, torch) = (read("../../spec"), read("data/torch-2.14.0.json"));
        let deprecated = torch.names.iter().filter(|(_, item)| item.deprecated);
        for (name, item) in deprecated {
            let ours = spec.names.get(name);
            assert!(ours.is_some_and(|ours| ours.deprecated), "{name}");
            assert!(!item.docs.is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_no_spec_is_refused_with_its_name() {
        for (name, fault) in [
            ("Cargo.toml", "Cargo.toml: "),
            ("src", "no api.yaml and no memory_stats.yaml"),
            ("nowhere.yaml", "nowhere.yaml: "),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let error = surface(&path).unwrap_err();
            assert!(error.contains(fault), "{error}");
        }
    }
}
