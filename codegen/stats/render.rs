//! Turns checked statistics into what their template takes.

use super::super::layout::{self, INDENT};
use super::super::names;
use super::super::text::wrap;
use super::model::{Column, Family, Place, Single, StatsSpec};
use super::view::{FieldView, PartView, ResetView, SampleView, StatsView};

/// What the template of the statistics takes. `None` is for what checked ones have not.
pub fn render(spec: &StatsSpec) -> Option<StatsView> {
    let total = spec.pools.iter().find(|pool| pool.is.as_str() == "total")?;
    let keys = spec.keys();
    let family = spec.families.first()?;
    let sample = format!("{}.{}", with_total(family, total), spec.metric("level")?);
    let rows = rows(spec);
    let singles: Vec<(&str, String)> = singles(spec).collect();
    let names = rows.iter().map(|row| row.0.len());
    let names = names.chain(singles.iter().map(|single| single.0.len()));
    Some(StatsView {
        level: spec.metric("level")?.into(),
        highest: spec.metric("highest")?.into(),
        increases: spec.metric("increases")?.into(),
        decreases: spec.metric("decreases")?.into(),
        metrics: spec
            .metrics
            .iter()
            .map(|metric| column(metric, "u64"))
            .collect(),
        resets: spec
            .resets()
            .into_iter()
            .map(|reset| reset_view(spec, reset))
            .collect(),
        total: total.name.text.clone(),
        pools: spec.pools.iter().map(|pool| column(pool, "Stat")).collect(),
        parts: parts(spec).collect(),
        fields: fields(spec).collect(),
        aliases: tuples(
            spec.aliases()
                .iter()
                .map(|(alias, key)| [quoted(alias), quoted(key)]),
            8,
        ),
        sample: SampleView {
            key: sample.clone(),
            field: sample,
        },
        since_stat: since_stat(spec),
        since_all: since_all(spec),
        row_count: rows.len(),
        name_width: names.max().unwrap_or(0),
        rows: tuples(
            rows.into_iter()
                .map(|(name, unit, field)| [quoted(&name), quoted(unit), format!("self.{field}")]),
            12,
        ),
        single_count: singles.len(),
        singles: tuples(
            singles
                .into_iter()
                .map(|(name, value)| [quoted(name), value]),
            12,
        ),
        stat_delta: stat_delta(spec),
        delta: delta(spec).collect(),
        values: values(&keys),
        keys: keys.into_iter().map(|(key, _)| key).collect(),
    })
}

/// Tuples as lines of a list, broken where rustfmt breaks them.
fn tuples<const N: usize>(rows: impl Iterator<Item = [String; N]>, indent: usize) -> Vec<String> {
    rows.flat_map(|row| listed(layout::call("", &row, indent)))
        .collect()
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn docs(text: &str, indent: usize) -> Vec<String> {
    let lines = wrap(text, layout::docs_width(indent), "").into_iter();
    lines.map(|line| format!(" {line}")).collect()
}

fn column(column: &Column, kind: &str) -> FieldView {
    FieldView {
        name: column.name.text.clone(),
        kind: kind.into(),
        docs: docs(&column.docs.text, INDENT),
    }
}

/// The values of keys as lines of a list.
fn values(keys: &[(String, Place)]) -> Vec<String> {
    let value = |(_, place): &(String, Place)| {
        let (way, field) = match place {
            Place::Number(field) => ("signed", field),
            Place::Setting(field) => ("signed_or_none", field),
        };
        listed(layout::call(way, &[format!("self.{field}")], 12))
    };
    keys.iter().flat_map(value).collect()
}

fn parts(spec: &StatsSpec) -> impl Iterator<Item = PartView> {
    let parts = spec.pools.iter().filter(|pool| pool.is.as_str() == "part");
    parts.map(|pool| PartView {
        name: pool.name.text.clone(),
        variant: names::camel(pool.name.as_str()),
        docs: docs(&pool.docs.text, INDENT),
    })
}

/// The path to the whole of a family.
fn with_total(family: &Family, total: &Column) -> String {
    let name = family.single.name.as_str();
    match family.pools {
        Some(_) => name.into(),
        None => format!("{name}.{}", total.name.as_str()),
    }
}

fn kind<'a>(family: &Family, with_pools: &'a str, without: &'a str) -> &'a str {
    if family.pools.is_some() {
        without
    } else {
        with_pools
    }
}

fn fields(spec: &StatsSpec) -> impl Iterator<Item = FieldView> {
    let families = spec.families.iter();
    let families = families.map(|family| (&family.single, kind(family, "PoolStat", "Stat"), ""));
    let counters = spec.counters.iter().map(|counter| (counter, "u64", ""));
    let settings = spec.settings.iter();
    let settings =
        settings.map(|setting| (setting, "Option<u64>", " As a flat value `None` is -1."));
    families
        .chain(counters)
        .chain(settings)
        .map(|(single, kind, more)| FieldView {
            name: single.name.text.clone(),
            kind: kind.into(),
            docs: single_docs(single, more),
        })
}

/// What a field is, what it counts in, and where PyTorch has it.
fn single_docs(single: &Single, more: &str) -> Vec<String> {
    let mut lines = docs(&single.docs.text, INDENT);
    let unit = single
        .unit
        .as_ref()
        .map(|unit| format!("In {}. ", unit.as_str()));
    let aliases: Vec<String> = single
        .aliases
        .iter()
        .map(|a| format!("`{}`", a.as_str()))
        .collect();
    let origin = match single.origin.as_str() {
        "documented" if aliases.is_empty() => "Documented by PyTorch.".into(),
        "documented" => format!(
            "Documented by PyTorch, which really says {}.",
            aliases.join(", ")
        ),
        "runtime" => "PyTorch has it, but its pages on accelerators do not say so.".into(),
        _ => "An extension: PyTorch's `memory_stats` has nothing like it.".to_string(),
    };
    lines.push(String::new());
    lines.extend(docs(
        &format!("{}{origin}{more}", unit.unwrap_or_default()),
        INDENT,
    ));
    lines
}

/// The lines of the table: name, unit and field.
fn rows(spec: &StatsSpec) -> Vec<(String, &str, String)> {
    let mut rows = Vec::new();
    for family in &spec.families {
        let name = family.single.name.as_str();
        let unit = family.single.unit.as_ref().map_or("", |unit| unit.as_str());
        if family.pools.is_some() {
            rows.push((name.into(), unit, name.into()));
            continue;
        }
        for pool in &spec.pools {
            let path = format!("{name}.{}", pool.name.as_str());
            rows.push((path.clone(), unit, path));
        }
    }
    rows
}

/// Counters and settings: name and value.
fn singles(spec: &StatsSpec) -> impl Iterator<Item = (&str, String)> {
    let counters = spec.counters.iter().map(|counter| counter.name.as_str());
    let settings = spec.settings.iter().map(|setting| setting.name.as_str());
    let counters = counters.map(|name| (name, format!("Some(self.{name})")));
    counters.chain(settings.map(|name| (name, format!("self.{name}"))))
}

fn reset_view(spec: &StatsSpec, reset: &str) -> ResetView {
    let method = format!("reset_{reset}");
    let level = spec.metric("level").unwrap_or_default();
    let mut of_stat = Vec::new();
    let mut names = Vec::new();
    let mut counters = false;
    for metric in &spec.metrics {
        if metric
            .reset_by
            .as_ref()
            .is_none_or(|by| by.as_str() != reset)
        {
            continue;
        }
        let name = metric.name.as_str();
        names.push(format!("`{name}`"));
        of_stat.push(match metric.is.as_str() {
            "highest" => format!("self.{name} = self.{level};"),
            _ => format!("self.{name} = 0;"),
        });
        counters |= metric.is.as_str() == "increases";
    }
    let mut of_all: Vec<String> = spec
        .families
        .iter()
        .map(|family| format!("self.{}.{method}();", family.single.name.as_str()))
        .collect();
    if counters {
        let zero = |counter: &Single| format!("self.{} = 0;", counter.name.as_str());
        of_all.extend(spec.counters.iter().map(zero));
    }
    let and_counters = if counters { ", and the counters" } else { "" };
    let text = format!("Starts anew with {}{and_counters}.", names.join(", "));
    ResetView {
        name: method,
        docs: docs(&text, INDENT),
        of_stat,
        of_all,
    }
}

fn since_stat(spec: &StatsSpec) -> Vec<String> {
    let metrics = spec.metrics.iter();
    let metrics = metrics.filter(|metric| metric.is.as_str() != "highest");
    let lines = metrics.map(|metric| {
        let name = metric.name.as_str();
        difference(
            name,
            if metric.is.as_str() == "level" {
                "change"
            } else {
                "growth"
            },
            "",
        )
    });
    lines.flatten().collect()
}

fn since_all(spec: &StatsSpec) -> Vec<String> {
    let families = spec.families.iter().map(|family| {
        let way = kind(family, "PoolStat::since", "Stat::since");
        difference(family.single.name.as_str(), way, "&")
    });
    let counters = spec.counters.iter();
    let counters = counters.map(|counter| difference(counter.name.as_str(), "growth", ""));
    families.chain(counters).flatten().collect()
}

/// The field of a difference: `NAME: WAY(self.NAME, earlier.NAME),`
fn difference(name: &str, way: &str, reference: &str) -> Vec<String> {
    let args = ["self", "earlier"].map(|from| format!("{reference}{from}.{name}"));
    listed(layout::call(&format!("{name}: {way}"), &args, 12))
}

/// Lines as a member of a list.
fn listed(mut lines: Vec<String>) -> Vec<String> {
    if let Some(last) = lines.last_mut() {
        last.push(',');
    }
    lines
}

fn stat_delta(spec: &StatsSpec) -> Vec<FieldView> {
    let metrics = spec
        .metrics
        .iter()
        .filter(|metric| metric.is.as_str() != "highest");
    let field = |metric: &Column| {
        let name = metric.name.as_str();
        let (kind, text) = match metric.is.as_str() {
            "level" => ("i64", format!("How far `{name}` moved, up or down.")),
            _ => ("u64", format!("How far `{name}` grew.")),
        };
        FieldView {
            name: name.into(),
            kind: kind.into(),
            docs: docs(&text, INDENT),
        }
    };
    metrics.map(field).collect()
}

fn delta(spec: &StatsSpec) -> impl Iterator<Item = FieldView> {
    let families = spec
        .families
        .iter()
        .map(|family| (&family.single, kind(family, "PoolStatDelta", "StatDelta")));
    let counters = spec.counters.iter().map(|counter| (counter, "u64"));
    families.chain(counters).map(|(single, kind)| {
        let name = &single.name.text;
        FieldView {
            name: name.clone(),
            kind: kind.into(),
            docs: docs(&format!("See [`MemoryStats::{name}`]."), INDENT),
        }
    })
}
