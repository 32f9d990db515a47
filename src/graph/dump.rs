//! Graphs in the language of graphviz.

use core::fmt::Write;

use super::recorded::Source;
use crate::exec::hazard::Use;
use crate::exec::node::{Command, KeptGroups, Node};

/// The nodes with what they run, by stream, and an edge for each memory that one hands to another.
pub(super) fn dot(source: &Source) -> String {
    let (nodes, levels) = (source.nodes.len(), source.plan.levels);
    let mut text =
        String::from("digraph graph_of_commands {\n  node [shape=box, fontname=monospace];\n");
    push(
        &mut text,
        format_args!("  label=\"{nodes} nodes in {levels} levels\";\n"),
    );
    for (branch, stream) in source.streams.iter().enumerate() {
        push(
            &mut text,
            format_args!("  subgraph cluster_{branch} {{\n    label=\"stream {stream}\";\n"),
        );
        let nodes = source.nodes.iter().enumerate();
        for (number, node) in nodes.filter(|(_, node)| node.branch == branch) {
            let label = escape(&label(number, node));
            push(
                &mut text,
                format_args!("    n{number} [label=\"{label}\"];\n"),
            );
        }
        text.push_str("  }\n");
    }
    for (from, to, memory) in edges(&source.nodes) {
        let label = escape(&memory);
        push(
            &mut text,
            format_args!("  n{from} -> n{to} [label=\"{label}\"];\n"),
        );
    }
    text.push_str("}\n");
    text
}

fn push(text: &mut String, line: core::fmt::Arguments<'_>) {
    // A string takes all that is written.
    let _ = text.write_fmt(line);
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn label(number: usize, node: &Node) -> String {
    let mut lines = vec![format!("#{number}")];
    for command in &node.commands {
        lines.push(match command {
            Command::Copy { regions, .. } => {
                let bytes: u64 = regions.iter().map(|region| region.len).sum();
                format!("copy of {bytes} bytes")
            }
            Command::Fill { len, word, .. } => format!("fill of {len} bytes with {word:#010x}"),
            Command::Launch(launch) => match &launch.groups {
                KeptGroups::Counts([x, y, z]) => format!("{} [{x}, {y}, {z}]", launch.name),
                KeptGroups::Indirect { .. } => format!("{} [from memory]", launch.name),
            },
        });
    }
    if node.commands.is_empty() && !node.uses.is_empty() {
        lines.push("seen by the host".to_owned());
    }
    lines.join("\n")
}

/// From each node to the later ones that need it and have no way to it through others.
fn edges(nodes: &[Node]) -> Vec<(usize, usize, String)> {
    let mut edges = Vec::new();
    // For each node, those that come before it by the edges so far.
    let mut before: Vec<Vec<bool>> = Vec::with_capacity(nodes.len());
    for (to, node) in nodes.iter().enumerate() {
        let mut reached = vec![false; to];
        for from in (0..to).rev() {
            if reached[from] {
                continue;
            }
            let Some(memory) = between(&nodes[from], node) else {
                continue;
            };
            edges.push((from, to, memory));
            reached[from] = true;
            for (earlier, is_before) in before[from].iter().enumerate() {
                reached[earlier] |= is_before;
            }
        }
        before.push(reached);
    }
    edges
}

/// The memory that orders two nodes, in words.
fn between(first: &Node, second: &Node) -> Option<String> {
    let pairs = first.uses.iter().flat_map(|one| {
        let others = second.uses.iter();
        others.map(move |other| (one, other))
    });
    let shared = pairs.filter(|(one, other)| one.conflicts(other));
    let shared = shared.map(|(one, other)| overlap(one, other));
    let mut shared: Vec<_> = shared.collect();
    shared.dedup();
    (!shared.is_empty()).then(|| shared.join("\n"))
}

fn overlap(one: &Use, other: &Use) -> String {
    let (lo, hi) = (one.lo.max(other.lo), one.hi.min(other.hi));
    format!("segment {}: {lo}..{hi} ({} bytes)", one.segment, hi - lo)
}
