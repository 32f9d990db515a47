//! What statistics that have the right form can still get wrong. Every rule notes all it finds.

use std::collections::BTreeSet;

use super::super::fault::Faults;
use super::super::fields::Word;
use super::super::rules::{self, Names, refuse};
use super::super::{names, text};
use super::model::{Column, METRICS, POOLS, Single, StatsSpec};

/// Fields that `MemoryStats` has of its own.
const TAKEN: &[&str] = &["filled"];

/// Notes everything that is wrong with the statistics.
pub fn check(spec: &StatsSpec, faults: &Faults) {
    let check = Check { spec, faults };
    // Of a spec that could not be read whole, nobody knows what it lacks.
    if faults.is_empty() {
        check.whole();
    }
    check.columns(&spec.metrics, METRICS);
    check.columns(&spec.pools, POOLS);
    check.resets();
    check.variants();
    let mut names = Names::default();
    for single in spec.singles() {
        check.single(single);
        for name in std::iter::once(&single.name).chain(&single.aliases) {
            names.add(name, faults);
        }
    }
    for family in &spec.families {
        if let Some(pools) = &family.pools {
            let fault = format!(
                "`{}` is not none, the one thing to say here",
                pools.as_str()
            );
            let bad = pools.as_str() != "none";
            refuse(pools, bad.then_some(fault), faults);
        }
    }
}

struct Check<'a> {
    spec: &'a StatsSpec,
    faults: &'a Faults,
}

impl Check<'_> {
    /// What must be there at all.
    fn whole(&self) {
        for kind in METRICS {
            self.exactly_one(&self.spec.metrics, "metrics", kind);
        }
        self.exactly_one(&self.spec.pools, "pools", "total");
        let parts = self
            .spec
            .pools
            .iter()
            .any(|pool| pool.is.as_str() == "part");
        if !parts {
            self.faults.add(&[], "`pools` has none that `is: part`");
        }
        if self.spec.families.is_empty() {
            self.faults.add(&[], "`families` is missing");
        }
    }

    fn exactly_one(&self, columns: &[Column], key: &str, kind: &str) {
        let mut found = columns.iter().filter(|column| column.is.as_str() == kind);
        if found.next().is_none() {
            let fault = format!("`{key}` has none that `is: {kind}`");
            self.faults.add(&[], fault);
        }
        for second in found {
            let fault = format!("a second of `{key}` that `is: {kind}`");
            self.faults.add(&second.is.at, fault);
        }
    }

    fn columns(&self, columns: &[Column], kinds: &[&str]) {
        let mut names = Names::default();
        for column in columns {
            names.add(&column.name, self.faults);
            self.refuse(&column.name, names::refuse_snake_name(column.name.as_str()));
            let kind = column.is.as_str();
            let fault = format!("unknown `is: {kind}`; expected one of {}", kinds.join(", "));
            self.refuse(&column.is, (!kinds.contains(&kind)).then_some(fault));
            self.refuse(&column.docs, text::refuse_summary(&column.docs.text));
        }
    }

    fn resets(&self) {
        for metric in &self.spec.metrics {
            if let Some(reset) = &metric.reset_by {
                self.refuse(reset, names::refuse_snake_name(reset.as_str()));
                let fault = "the value now is what it is: no reset changes it".to_string();
                let level = metric.is.as_str() == "level";
                self.refuse(reset, level.then_some(fault));
            }
        }
    }

    /// Two pools whose variants in the generated enum would be one.
    fn variants(&self) {
        let mut seen = BTreeSet::new();
        for pool in self
            .spec
            .pools
            .iter()
            .filter(|pool| pool.is.as_str() == "part")
        {
            let variant = names::camel(pool.name.as_str());
            let fault = format!("a second pool that is `{variant}` in Rust");
            let again = !seen.insert(variant);
            // Two of one name are noted as such.
            let name = pool.name.as_str();
            let same = self
                .spec
                .pools
                .iter()
                .filter(|other| other.name.as_str() == name);
            self.refuse(&pool.name, (again && same.count() == 1).then_some(fault));
        }
    }

    fn single(&self, single: &Single) {
        let name = single.name.as_str();
        self.refuse(&single.name, names::refuse_snake_name(name));
        let fault = format!("`{name}` means something else in generated code");
        self.refuse(&single.name, TAKEN.contains(&name).then_some(fault));
        rules::check_origin(&single.origin, self.faults);
        for alias in &single.aliases {
            self.refuse(alias, names::refuse_snake_name(alias.as_str()));
        }
        if let Some(unit) = &single.unit {
            self.refuse(unit, names::refuse_snake_name(unit.as_str()));
        }
        self.refuse(&single.docs, text::refuse_sentence(&single.docs.text));
        rules::check_proof(single.proved_by.as_ref(), self.faults);
    }

    fn refuse(&self, word: &Word, fault: Option<String>) {
        refuse(word, fault, self.faults);
    }
}
