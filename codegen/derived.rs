//! Functions that are made of the statistics: `reads` gives one value of them, `resets` resets them.

use super::fault::Faults;
use super::fields::Word;
use super::model::{Body, Derived, Entry, STATS, Spec};
use super::rules::refuse;
use super::similar;
use super::stats::{Place, StatsSpec};

/// The argument of the body that resets, besides those of the entry that returns the statistics.
pub const CHANGE: &str = "change";

/// The name of the body that all resets of a list share, by the entry that returns the statistics.
pub fn change_body(source: &Entry) -> String {
    format!("{CHANGE}_{}", source.name.as_str())
}

/// Whether anything in the list is a reset.
pub fn has_resets(list: &[Entry]) -> bool {
    list.iter()
        .any(|entry| matches!(derived(entry), Some(Derived::Resets(_))))
}

/// Where the value of a key is kept; `None` for a key that is not listed.
pub fn place(stats: &StatsSpec, key: &str) -> Option<Place> {
    let mut keys = stats.keys().into_iter();
    keys.find(|(name, _)| name == key).map(|(_, place)| place)
}

/// Notes what is wrong with such entries of a list.
pub fn check(spec: &Spec, list: &[Entry], stats: Option<&StatsSpec>, faults: &Faults) {
    let mut found = list.iter().filter_map(derived).peekable();
    if found.peek().is_none() {
        return;
    }
    let sources: Vec<_> = spec.sources(list).collect();
    for derived in found {
        let word = derived.word();
        if sources.len() != 1 {
            let fault = format!(
                "needs one entry of this list that returns `{STATS}`; there are {}",
                sources.len()
            );
            refuse(word, Some(fault), faults);
        }
        if let Some(stats) = stats {
            refuse(word, refuse_target(derived, stats), faults);
        }
    }
    let [(source, call)] = sources.as_slice() else {
        return;
    };
    if !has_resets(list) {
        return;
    }
    let body = change_body(source);
    let taken = |word: &Word, name: &str| {
        let fault = format!("`{name}` is taken by the body that resets the statistics");
        refuse(word, (word.as_str() == name).then_some(fault), faults);
    };
    list.iter().for_each(|entry| taken(&entry.name, &body));
    call.args.iter().for_each(|arg| taken(&arg.name, CHANGE));
}

fn derived(entry: &Entry) -> Option<&Derived> {
    match &entry.body {
        Body::Call(call) => call.derived.as_ref(),
        Body::Alias(_) => None,
    }
}

/// Why there is nothing of that name to read or to reset; `None` if there is.
fn refuse_target(derived: &Derived, stats: &StatsSpec) -> Option<String> {
    match derived {
        Derived::Reads(key) => {
            let key = key.as_str();
            if place(stats, key).is_some() {
                return None;
            }
            let aliases = stats.aliases();
            let meant = aliases.iter().find(|(alias, _)| alias == key);
            Some(match meant {
                Some((_, meant)) => format!("`{key}` is another spelling of `{meant}`"),
                None => {
                    let keys = stats.keys();
                    let hint = similar::hint(key, keys.iter().map(|(key, _)| key.as_str()));
                    format!(
                        "unknown key `{key}`; they are made by {}{hint}",
                        super::STATS
                    )
                }
            })
        }
        Derived::Resets(reset) => {
            let known = stats.resets();
            let unknown = !known.contains(&reset.as_str());
            unknown.then(|| {
                format!(
                    "unknown reset `{}`; expected one of {}",
                    reset.as_str(),
                    known.join(", ")
                )
            })
        }
    }
}
