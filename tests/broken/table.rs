//! What each layer says to each program, as committed, and how far that is what it says now.

use core::fmt::Write as _;
use std::collections::BTreeSet;

use ash::vk;

use crate::lab::{By, LAYER};
use crate::support;

/// The layers that the table knows, as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The one that distributions ship.
    Distribution,
    Current,
}

/// What a layer has said to a program and to its good twin: the ids of its messages.
pub struct Seen {
    pub broken: BTreeSet<String>,
    pub good: BTreeSet<String>,
}

/// What a comparison finds.
#[derive(Default)]
pub struct Told {
    pub faults: Vec<String>,
    /// Where the layer has become better than the table.
    pub notes: Vec<String>,
}

/// The ids that a layer says to a program and to its good twin; nothing where nobody has tried it.
type Cells = Option<[BTreeSet<String>; 2]>;

struct Row {
    program: String,
    by: Option<By>,
    /// By [`Column`].
    cells: [Cells; 2],
}

pub struct Table {
    /// The text above the rows.
    head: String,
    rows: Vec<Row>,
}

const FILE: &str = "broken.txt";

/// The version of the layer, and its column.
pub fn layer(entry: &ash::Entry) -> Option<(Column, String)> {
    // SAFETY: the loader is loaded.
    #[allow(unsafe_code)]
    let layers = unsafe { entry.enumerate_instance_layer_properties() }.ok()?;
    let layer = layers
        .iter()
        .find(|layer| layer.layer_name_as_c_str() == Ok(LAYER))?;
    let version = layer.spec_version;
    let [major, minor, patch] = [
        vk::api_version_major(version),
        vk::api_version_minor(version),
        vk::api_version_patch(version),
    ];
    // The switch for shader accesses came with the versions after these.
    let column = match (major, minor, patch) < (1, 3, 280) {
        true => Column::Distribution,
        false => Column::Current,
    };
    Some((column, format!("{major}.{minor}.{patch}")))
}

/// The short names of hazards, and what the layers write.
const HAZARDS: &[(&str, &str)] = &[
    ("RAW", "SYNC-HAZARD-READ-AFTER-WRITE"),
    ("WAW", "SYNC-HAZARD-WRITE-AFTER-WRITE"),
    ("WAR", "SYNC-HAZARD-WRITE-AFTER-READ"),
    ("RRW", "SYNC-HAZARD-READ-RACING-WRITE"),
    ("WRW", "SYNC-HAZARD-WRITE-RACING-WRITE"),
    ("WRR", "SYNC-HAZARD-WRITE-RACING-READ"),
];

pub fn long(short: &str) -> String {
    let known = HAZARDS.iter().find(|hazard| hazard.0 == short);
    known.map_or(short, |hazard| hazard.1).to_owned()
}

fn short(long: &str) -> &str {
    let known = HAZARDS.iter().find(|hazard| hazard.1 == long);
    known.map_or(long, |hazard| hazard.0)
}

fn parse_ids(cell: &str) -> Option<BTreeSet<String>> {
    match cell {
        "?" => None,
        "-" => Some(BTreeSet::new()),
        ids => Some(ids.split(',').map(long).collect()),
    }
}

fn show_ids(ids: &BTreeSet<String>) -> String {
    if ids.is_empty() {
        return "-".to_owned();
    }
    let ids: Vec<_> = ids.iter().map(|id| short(id)).collect();
    ids.join(",")
}

fn by_name(by: Option<By>) -> &'static str {
    by.map_or("-", By::name)
}

impl Row {
    fn parse(line: &str) -> Self {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [program, by, cells @ ..] = fields.as_slice() else {
            panic!("{FILE}: {line}");
        };
        let pair = |at: usize| {
            let ids = |at: usize| parse_ids(cells.get(at).expect("four cells"));
            Some([ids(at)?, ids(at + 1)?])
        };
        let ways = [None, Some(By::Descriptors), Some(By::Addresses)];
        let by = ways.into_iter().find(|way| by_name(*way) == *by);
        Self {
            program: (*program).to_owned(),
            by: by.unwrap_or_else(|| panic!("{FILE}: {line}")),
            cells: [pair(0), pair(2)],
        }
    }

    fn fields(&self) -> [String; 6] {
        let cells = |cells: &Cells| match cells {
            Some(cells) => cells.each_ref().map(show_ids),
            None => ["?".to_owned(), "?".to_owned()],
        };
        let [[a, b], [c, d]] = [cells(&self.cells[0]), cells(&self.cells[1])];
        [
            self.program.clone(),
            by_name(self.by).to_owned(),
            a,
            b,
            c,
            d,
        ]
    }
}

impl Table {
    pub fn read() -> Self {
        Self::parse(&String::from_utf8(support::data(FILE)).unwrap())
    }

    pub fn parse(text: &str) -> Self {
        let is_head = |line: &&str| line.starts_with('#') || line.trim().is_empty();
        let (head, rows): (Vec<_>, Vec<_>) = text.lines().partition(is_head);
        Self {
            head: head.join("\n"),
            rows: rows.into_iter().map(Row::parse).collect(),
        }
    }

    pub fn names(&self) -> Vec<(String, Option<By>)> {
        let names = self.rows.iter().map(|row| (row.program.clone(), row.by));
        names.collect()
    }

    /// Takes what was seen for right.
    pub fn accept(&mut self, program: &str, by: Option<By>, column: Column, seen: &Seen) {
        let of_program = |row: &Row| row.program == program && row.by == by;
        let at = self.rows.iter().position(of_program);
        let at = at.unwrap_or_else(|| {
            self.rows.push(Row {
                program: program.to_owned(),
                by,
                cells: [None, None],
            });
            self.rows.len() - 1
        });
        self.rows[at].cells[column as usize] = Some([seen.broken.clone(), seen.good.clone()]);
    }

    /// Writes the rows in this order, and no others.
    pub fn write(&self, order: &[(String, Option<By>)]) {
        let is =
            |row: &&Row, name: &(String, Option<By>)| (&row.program, &row.by) == (&name.0, &name.1);
        let find = |name| self.rows.iter().find(|row| is(row, name)).map(Row::fields);
        let rows: Vec<_> = order.iter().filter_map(find).collect();
        let width = |at: usize| rows.iter().map(|row| row[at].len()).max().unwrap_or(0);
        let widths: Vec<_> = (0..6).map(width).collect();
        let mut text = format!("{}\n", self.head.trim_end());
        for row in &rows {
            let mut line = String::new();
            for (field, width) in row.iter().zip(&widths) {
                write!(line, "{field:width$}  ").unwrap();
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let path = format!("{}/tests/data/{FILE}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, text).unwrap();
    }

    pub fn compare(&self, program: &str, by: Option<By>, column: Column, seen: &Seen) -> Told {
        let mut told = Told::default();
        let name = format!("{program} ({})", by_name(by));
        let row = self
            .rows
            .iter()
            .find(|row| row.program == program && row.by == by);
        let cells = row.and_then(|row| row.cells[column as usize].as_ref());
        let Some([broken, good]) = cells else {
            told.faults
                .push(format!("{name}: {FILE} does not say what this layer sees"));
            return told;
        };
        if broken.is_empty() && !seen.broken.is_empty() {
            let ids = show_ids(&seen.broken);
            told.notes
                .push(format!("{name}: the layer sees it by now: {ids}"));
        } else if !broken.is_empty() && broken.is_disjoint(&seen.broken) {
            told.faults.push(format!(
                "{name}: the layer has to say one of {}; it says {}",
                show_ids(broken),
                show_ids(&seen.broken)
            ));
        }
        let alarms: BTreeSet<_> = seen.good.difference(good).cloned().collect();
        if !alarms.is_empty() {
            told.faults.push(format!(
                "{name}: the layer says {} to the good twin",
                show_ids(&alarms)
            ));
        } else if seen.good.is_empty() && !good.is_empty() {
            told.notes.push(format!("{name}: no false alarm any more"));
        }
        told
    }
}
