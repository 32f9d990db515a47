//! What differs between two surfaces.

use std::collections::BTreeSet;
use std::fmt;

use crate::surface::Surface;

/// How alike two names must be to count as one that was renamed, from 0 to 1.
const ALIKE: f64 = 0.7;

/// What differs. Every list holds lines to print.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What only the new one has.
    pub added: Vec<String>,
    /// What only the old one has.
    pub removed: Vec<String>,
    /// What has another name in the new one, as far as that can be guessed.
    pub renamed: Vec<String>,
    /// What is deprecated in the new one only, or no longer.
    pub deprecated: Vec<String>,
    /// What is described in other words.
    pub described: Vec<String>,
}

impl Difference {
    /// Whether both are the same.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn sort_out(&mut self, removed: &[String], added: &[String], pairs: &[Pair]) {
        for &(gone, came, why) in pairs {
            let line = format!("{} -> {} ({why})", removed[gone], added[came]);
            self.renamed.push(line);
        }
        let is_left = |place: &usize, taken: fn(&Pair) -> usize| {
            !pairs.iter().any(|pair| taken(pair) == *place)
        };
        let gone = (0..removed.len()).filter(|place| is_left(place, |pair| pair.0));
        self.removed
            .extend(gone.map(|place| removed[place].clone()));
        let came = (0..added.len()).filter(|place| is_left(place, |pair| pair.1));
        self.added.extend(came.map(|place| added[place].clone()));
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, lines) in [
            ("added", &self.added),
            ("removed", &self.removed),
            ("renamed, perhaps", &self.renamed),
            ("deprecated", &self.deprecated),
            ("described anew", &self.described),
        ] {
            write!(f, "\n{title}: {}", lines.len())?;
            for line in lines {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

/// Compares two surfaces. With one of PyTorch's, what is ours alone is left out, and so are docs.
pub fn compare(old: &Surface, new: &Surface) -> Difference {
    let mut difference = Difference::default();
    names(old, new, &mut difference);
    keys(old, new, &mut difference);
    difference
}

fn names(old: &Surface, new: &Surface, difference: &mut Difference) {
    let with_torch = old.is_torch != new.is_torch;
    let compared = |surface: &Surface| -> BTreeSet<String> {
        let names = surface.names.iter();
        let names = names.filter(|(_, item)| !(with_torch && item.extension));
        names.map(|(name, _)| name.clone()).collect()
    };
    let (old_names, new_names) = (compared(old), compared(new));
    let removed: Vec<String> = old_names.difference(&new_names).cloned().collect();
    let added: Vec<String> = new_names.difference(&old_names).cloned().collect();
    let pairs = renamed(&removed, &added, |gone, came| {
        let docs = &old.names[gone].docs;
        if !with_torch && !docs.is_empty() && *docs == new.names[came].docs {
            return Some((1.0, "same docs"));
        }
        let (gone_in, gone) = gone.rsplit_once('.').unwrap_or(("", gone));
        let (came_in, came) = came.rsplit_once('.').unwrap_or(("", came));
        if gone == came && gone_in != came_in {
            return Some((0.99, "same name elsewhere"));
        }
        let alike = likeness(gone, came);
        (gone_in == came_in && alike >= ALIKE).then_some((alike, "similar name"))
    });
    for name in old_names.intersection(&new_names) {
        let (was, is) = (&old.names[name], &new.names[name]);
        match (was.deprecated, is.deprecated) {
            (false, true) => difference.deprecated.push(name.clone()),
            (true, false) => difference.deprecated.push(format!("{name}, no longer")),
            _ => {}
        }
        if !with_torch && was.docs != is.docs {
            difference.described.push(name.clone());
        }
    }
    let deprecated = added.iter().filter(|name| new.names[*name].deprecated);
    difference.deprecated.extend(deprecated.cloned());
    difference.sort_out(&removed, &added, &pairs);
}

fn keys(old: &Surface, new: &Surface, difference: &mut Difference) {
    let with_torch = old.is_torch != new.is_torch;
    let compared = |surface: &Surface| -> BTreeSet<String> {
        let keys = surface.keys.keys();
        let keys = keys.filter(|key| !(with_torch && surface.own_keys.contains(*key)));
        keys.cloned().collect()
    };
    let (old_keys, new_keys) = (compared(old), compared(new));
    for key in old_keys.intersection(&new_keys) {
        let (was, is) = (&old.keys[key], &new.keys[key]);
        let line = |end: &String| {
            let line = format!("key {key}.{end}");
            line.trim_end_matches('.').to_owned()
        };
        difference.added.extend(is.difference(was).map(line));
        difference.removed.extend(was.difference(is).map(line));
    }
    let removed: Vec<String> = old_keys.difference(&new_keys).cloned().collect();
    let added: Vec<String> = new_keys.difference(&old_keys).cloned().collect();
    let pairs = renamed(&removed, &added, |gone, came| {
        let alike = likeness(gone, came);
        let same_ends = old.keys[gone] == new.keys[came];
        (same_ends && alike >= ALIKE).then_some((alike, "similar name"))
    });
    let titles = |surface: &Surface, keys: &[String]| -> Vec<String> {
        let title = |key: &String| match surface.keys[key].len() {
            1 => format!("key {key}"),
            count => format!("keys {key}.* ({count})"),
        };
        keys.iter().map(title).collect()
    };
    difference.sort_out(&titles(old, &removed), &titles(new, &added), &pairs);
}

/// Places in the lists of what went and what came, and why they are taken for one.
type Pair = (usize, usize, &'static str);

/// Pairs what went with what came, the most alike first, each once.
fn renamed(
    removed: &[String],
    added: &[String],
    alike: impl Fn(&str, &str) -> Option<(f64, &'static str)>,
) -> Vec<Pair> {
    let mut candidates = Vec::new();
    for (gone, gone_name) in removed.iter().enumerate() {
        for (came, came_name) in added.iter().enumerate() {
            if let Some((likeness, why)) = alike(gone_name, came_name) {
                candidates.push((likeness, gone, came, why));
            }
        }
    }
    candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut pairs: Vec<Pair> = Vec::new();
    for (_, gone, came, why) in candidates {
        if !pairs.iter().any(|pair| pair.0 == gone || pair.1 == came) {
            pairs.push((gone, came, why));
        }
    }
    pairs
}

/// How alike two words are: 1 for the same, 0 for words without anything in common.
fn likeness(one: &str, other: &str) -> f64 {
    let longer = one.chars().count().max(other.chars().count()).max(1);
    1.0 - distance(one, other) as f64 / longer as f64
}

/// The least number of characters to put in, take out or replace (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, from) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = place + 1;
        for (column, to) in other.iter().enumerate() {
            let replaced = before + usize::from(from != *to);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Item;

    fn surface(names: &[(&str, &str)], keys: &[&str]) -> Surface {
        let mut surface = Surface::default();
        for (name, docs) in names {
            let docs = (*docs).to_string();
            let item = Item {
                docs,
                ..Item::default()
            };
            surface.names.insert((*name).into(), item);
        }
        keys.iter().for_each(|key| surface.add_key(key));
        surface
    }

    #[test]
    fn a_surface_does_not_differ_from_itself() {
        let one = surface(&[("torch.a.wait", "Waits.")], &["blocks.peak", "num_ooms"]);
        assert!(compare(&one, &one).is_empty());
    }

    #[test]
    fn names_that_came_and_went_are_told() {
        let old = surface(
            &[("torch.a.wait", "Waits."), ("torch.a.stay", "")],
            &["num_ooms"],
        );
        let new = surface(
            &[("torch.a.graph", "Draws."), ("torch.a.stay", "")],
            &["frees"],
        );
        let difference = compare(&old, &new);
        assert_eq!(difference.added, ["torch.a.graph", "key frees"]);
        assert_eq!(difference.removed, ["torch.a.wait", "key num_ooms"]);
        assert!(difference.renamed.is_empty());
    }

    #[test]
    fn a_new_name_for_the_same_is_found_by_docs_place_or_letters() {
        let old = surface(
            &[
                ("torch.a.wait", "Waits."),
                ("torch.a.device_idx", "Old."),
                ("torch.a.seed", "1."),
            ],
            &["allocation.peak"],
        );
        let new = surface(
            &[
                ("torch.a.join", "Waits."),
                ("torch.a.device_index", "New."),
                ("torch.b.seed", "2."),
            ],
            &["allocations.peak"],
        );
        let difference = compare(&old, &new);
        assert_eq!(
            difference.renamed,
            [
                "torch.a.wait -> torch.a.join (same docs)",
                "torch.a.seed -> torch.b.seed (same name elsewhere)",
                "torch.a.device_idx -> torch.a.device_index (similar name)",
                "key allocation -> key allocations (similar name)",
            ]
        );
        assert!(difference.added.is_empty() && difference.removed.is_empty());
    }

    #[test]
    fn what_became_deprecated_or_is_described_anew_is_told() {
        let old = surface(
            &[("torch.a.wait", "Waits."), ("torch.a.stay", "Stays.")],
            &[],
        );
        let mut new = surface(
            &[("torch.a.wait", "Waits."), ("torch.a.stay", "Remains.")],
            &[],
        );
        new.names
            .entry("torch.a.wait".into())
            .or_default()
            .deprecated = true;
        let difference = compare(&old, &new);
        assert_eq!(difference.deprecated, ["torch.a.wait"]);
        assert_eq!(difference.described, ["torch.a.stay"]);
        assert_eq!(compare(&new, &old).deprecated, ["torch.a.wait, no longer"]);
    }

    #[test]
    fn a_key_that_one_family_lacks_is_told_by_itself() {
        let old = surface(&[], &["blocks.all.now", "blocks.all.peak"]);
        let new = surface(&[], &["blocks.all.now", "blocks.all.mean"]);
        let difference = compare(&old, &new);
        assert_eq!(difference.added, ["key blocks.all.mean"]);
        assert_eq!(difference.removed, ["key blocks.all.peak"]);
    }

    #[test]
    fn with_pytorch_our_own_names_and_words_are_left_out() {
        let names = [("torch.a.wait", "Waits."), ("torch.a.own", "Ours.")];
        let mut spec = surface(&names, &["own"]);
        spec.names
            .entry("torch.a.own".into())
            .or_default()
            .extension = true;
        spec.own_keys.insert("own".into());
        let mut torch = surface(&[("torch.a.wait", "0123")], &[]);
        torch.is_torch = true;
        assert!(compare(&spec, &torch).is_empty());
    }

    #[test]
    fn distances_count_single_characters() {
        for (one, other, expected) in [
            ("", "", 0),
            ("idx", "index", 2),
            ("abc", "", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
