//! The statistics as plain data, and how they are read out of YAML.

use super::super::fault::Faults;
use super::super::fields::{Fields, Word};
use super::super::yaml::Node;

/// `spec/memory_stats.yaml`.
#[derive(Clone, Debug, Default)]
pub struct StatsSpec {
    pub metrics: Vec<Column>,
    pub pools: Vec<Column>,
    pub families: Vec<Family>,
    pub counters: Vec<Single>,
    pub settings: Vec<Single>,
}

/// A metric or a pool: what every family is kept by.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: Word,
    /// What it means to the generator: one of `METRICS` or `POOLS`.
    pub is: Word,
    /// The reset that a metric takes part in.
    pub reset_by: Option<Word>,
    pub docs: Word,
}

/// What goes up and down.
#[derive(Clone, Debug)]
pub struct Family {
    pub single: Single,
    /// `none`, where it is kept as one.
    pub pools: Option<Word>,
}

/// Something with a name, a meaning and a place of its own in the table.
#[derive(Clone, Debug)]
pub struct Single {
    pub name: Word,
    pub origin: Word,
    pub unit: Option<Word>,
    pub aliases: Vec<Word>,
    pub docs: Word,
    pub proved_by: Option<Word>,
}

/// What a metric can be.
pub const METRICS: &[&str] = &["level", "highest", "increases", "decreases"];

/// What a pool can be.
pub const POOLS: &[&str] = &["total", "part"];

/// Where the value of a key is kept in `MemoryStats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The path of fields to a number.
    Number(String),
    /// The field of a number that may be missing.
    Setting(String),
}

impl StatsSpec {
    /// Reads the tree of `spec/memory_stats.yaml`, noting every fault of form. `None`: no map.
    pub fn read(root: &Node, faults: &Faults) -> Option<Self> {
        let mut fields = Fields::open(root, Vec::new(), faults)?;
        let spec = Self {
            metrics: fields.all("metrics", |row| Column::read(row, true)),
            pools: fields.all("pools", |row| Column::read(row, false)),
            families: fields.all("families", |row| Family {
                single: Single::read(row, true),
                pools: row.word("pools"),
            }),
            counters: fields.all("counters", |row| Single::read(row, false)),
            settings: fields.all("settings", |row| Single::read(row, true)),
        };
        fields.close();
        Some(spec)
    }

    /// Families, counters and settings, in this order.
    pub fn singles(&self) -> impl Iterator<Item = &Single> {
        let families = self.families.iter().map(|family| &family.single);
        families.chain(&self.counters).chain(&self.settings)
    }

    /// The metric that is `kind`.
    pub fn metric(&self, kind: &str) -> Option<&str> {
        let found = self
            .metrics
            .iter()
            .find(|metric| metric.is.as_str() == kind);
        found.map(|metric| metric.name.as_str())
    }

    /// The names of the resets, in the order of the metrics.
    pub fn resets(&self) -> Vec<&str> {
        let mut resets = Vec::new();
        for reset in self.metrics.iter().filter_map(|m| m.reset_by.as_ref()) {
            if !resets.contains(&reset.as_str()) {
                resets.push(reset.as_str());
            }
        }
        resets
    }

    /// Every key of the flat table with the place of its value, sorted by key.
    pub fn keys(&self) -> Vec<(String, Place)> {
        let mut keys = Vec::new();
        for family in &self.families {
            let name = family.single.name.as_str();
            for end in self.ends(family) {
                keys.push((
                    format!("{name}.{end}"),
                    Place::Number(format!("{name}.{end}")),
                ));
            }
        }
        for counter in &self.counters {
            let name = counter.name.text.clone();
            keys.push((name.clone(), Place::Number(name)));
        }
        for setting in &self.settings {
            let name = setting.name.text.clone();
            keys.push((name.clone(), Place::Setting(name)));
        }
        keys.sort_by(|(one, _), (other, _)| one.cmp(other));
        keys
    }

    /// Every other spelling of a key with the key it means, sorted.
    pub fn aliases(&self) -> Vec<(String, String)> {
        let mut aliases = Vec::new();
        for family in &self.families {
            let name = family.single.name.as_str();
            for alias in &family.single.aliases {
                let alias = alias.as_str();
                let ends = self.ends(family).into_iter();
                aliases.extend(ends.map(|end| (format!("{alias}.{end}"), format!("{name}.{end}"))));
            }
        }
        for single in self.counters.iter().chain(&self.settings) {
            let name = &single.name.text;
            let pairs = single
                .aliases
                .iter()
                .map(|a| (a.text.clone(), name.clone()));
            aliases.extend(pairs);
        }
        aliases.sort();
        aliases
    }

    /// What follows the name of a family in its keys: `all.current`, or `current` without pools.
    fn ends(&self, family: &Family) -> Vec<String> {
        let metrics = || self.metrics.iter().map(|metric| metric.name.as_str());
        if family.pools.is_some() {
            return metrics().map(String::from).collect();
        }
        let pools = self.pools.iter().map(|pool| pool.name.as_str());
        pools
            .flat_map(|pool| metrics().map(move |metric| format!("{pool}.{metric}")))
            .collect()
    }
}

impl Column {
    fn read(fields: &mut Fields<'_>, metric: bool) -> Self {
        Self {
            name: fields.needed("name"),
            is: fields.needed("is"),
            reset_by: if metric {
                fields.word("reset_by")
            } else {
                None
            },
            docs: fields.needed("docs"),
        }
    }
}

impl Single {
    fn read(fields: &mut Fields<'_>, with_unit: bool) -> Self {
        Self {
            name: fields.needed("name"),
            origin: fields.needed("origin"),
            unit: with_unit.then(|| fields.needed("unit")),
            aliases: fields.words("aliases"),
            docs: fields.needed("docs"),
            proved_by: fields.word("proved_by"),
        }
    }
}
