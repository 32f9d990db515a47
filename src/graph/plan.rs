//! In which order the nodes of a graph run, and the barriers between them. Pure.
//!
//! What a node may build on comes before it in the order of the calls. So a node has to run behind those
//! earlier ones alone that touch the same memory, one of the two writing it. Each node gets the lowest level
//! above all of these; the nodes of one level run side by side, whichever streams they were captured on,
//! and one barrier stands before each level but the first.

use std::collections::BTreeMap;

use crate::exec::hazard::{Barrier, Planner, Scope, Stages, Use};

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) uses: &'a [Use],
    /// The scope of launches that the program declared to be independent of each other.
    pub(crate) scope: Option<u64>,
}

/// One node, with the barrier before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) barrier: Option<Barrier>,
    /// Which of the items it is.
    pub(crate) node: usize,
}

/// How a graph runs.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// What all of it does with memory, in ranges that do not overlap.
    pub(crate) uses: Vec<Use>,
    /// How many levels there are.
    pub(crate) levels: usize,
    /// A node that was declared to be independent of another, and is not.
    pub(crate) contradiction: Option<usize>,
}

/// Plans nodes that are given in the order of their calls.
pub(crate) fn plan(items: &[Item<'_>]) -> Plan {
    let mut memory = Memory::default();
    let mut contradiction = None;
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for (node, item) in items.iter().enumerate() {
        let level = memory.level(item);
        if memory.contradicts {
            contradiction = contradiction.or(Some(node));
            memory.contradicts = false;
        }
        memory.take(item, level);
        if levels.len() < level {
            levels.resize_with(level, Vec::new);
        }
        levels[level - 1].push(node);
    }
    let mut planner = Planner::new();
    let mut steps = Vec::with_capacity(items.len());
    let mut all = Vec::new();
    for nodes in &levels {
        all.clear();
        for &node in nodes {
            all.extend_from_slice(items[node].uses);
        }
        // The nodes of a level are as one command: none of them needs another.
        let mut barrier = planner.access(&all);
        steps.extend(nodes.iter().map(|&node| Step {
            barrier: barrier.take(),
            node,
        }));
    }
    Plan {
        steps,
        uses: memory.uses(),
        levels: levels.len(),
        contradiction,
    }
}

/// A level at which memory was used; 0 before the first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    level: usize,
    /// The scope of all that used it there.
    scope: Option<u64>,
}

/// A range of memory that was used alike.
#[derive(Clone, Copy, Debug)]
struct Span {
    hi: u64,
    written: Mark,
    read: Mark,
    done: Scope,
}

/// What was done with memory so far.
#[derive(Debug, Default)]
struct Memory {
    /// By segment and first byte.
    spans: BTreeMap<(u64, u64), Span>,
    /// Whether the last node that was looked at breaks its own scope's promise.
    contradicts: bool,
}

impl Memory {
    /// The lowest level for a node.
    fn level(&mut self, item: &Item<'_>) -> usize {
        let mut level = 1;
        for use_ in item.uses {
            let is_write = !use_.scope.writes.is_empty();
            for span in self.overlapping(use_) {
                let before = [Some(span.written), is_write.then_some(span.read)];
                for mark in before.into_iter().flatten().filter(|mark| mark.level > 0) {
                    let is_apart = item.scope.is_some() && mark.scope == item.scope;
                    self.contradicts |= is_apart;
                    level = level.max(mark.level + usize::from(!is_apart));
                }
            }
        }
        level
    }

    fn overlapping(&self, use_: &Use) -> Vec<Span> {
        let of = |lo| (use_.segment, lo);
        let reaching = self.spans.range(..of(use_.lo)).next_back();
        let reaching =
            reaching.filter(|((segment, _), span)| *segment == use_.segment && span.hi > use_.lo);
        let inside = self.spans.range(of(use_.lo)..of(use_.hi.max(use_.lo)));
        reaching
            .into_iter()
            .chain(inside)
            .map(|(_, span)| *span)
            .collect()
    }

    /// Takes note of a node at its level.
    fn take(&mut self, item: &Item<'_>, level: usize) {
        for use_ in item.uses.iter().filter(|use_| use_.lo < use_.hi) {
            self.split(use_.segment, use_.lo);
            self.split(use_.segment, use_.hi);
            self.fill_gaps(use_);
            let range = (use_.segment, use_.lo)..(use_.segment, use_.hi);
            for (_, span) in self.spans.range_mut(range) {
                span.add(use_, level, item.scope);
            }
        }
    }

    /// Has no span go over this byte's start.
    fn split(&mut self, segment: u64, at: u64) {
        let before = self.spans.range_mut(..(segment, at)).next_back();
        if let Some(((of, _), span)) = before
            && *of == segment
            && span.hi > at
        {
            let upper = *span;
            span.hi = at;
            self.spans.insert((segment, at), upper);
        }
    }

    /// Has spans everywhere in a range, at whose ends none goes over.
    fn fill_gaps(&mut self, use_: &Use) {
        let range = (use_.segment, use_.lo)..(use_.segment, use_.hi);
        let mut at = use_.lo;
        let mut gaps = Vec::new();
        for (&(_, lo), span) in self.spans.range(range) {
            if at < lo {
                gaps.push((at, lo));
            }
            at = span.hi;
        }
        if at < use_.hi {
            gaps.push((at, use_.hi));
        }
        for (lo, hi) in gaps {
            self.spans.insert((use_.segment, lo), Span::new(hi));
        }
    }

    /// What the device does with all of it.
    fn uses(&self) -> Vec<Use> {
        let mut uses: Vec<Use> = Vec::new();
        for (&(segment, lo), span) in &self.spans {
            match uses.last_mut() {
                Some(last)
                    if last.segment == segment && last.hi == lo && last.scope == span.done =>
                {
                    last.hi = span.hi;
                }
                _ => uses.push(Use {
                    segment,
                    lo,
                    hi: span.hi,
                    scope: span.done,
                }),
            }
        }
        uses
    }
}

impl Span {
    fn new(hi: u64) -> Self {
        Self {
            hi,
            written: Mark::default(),
            read: Mark::default(),
            done: Scope::default(),
        }
    }

    fn add(&mut self, use_: &Use, level: usize, scope: Option<u64>) {
        // The host's accesses are ordered by barriers and waits of their own.
        self.done.reads = self
            .done
            .reads
            .union(use_.scope.reads.without(Stages::HOST));
        self.done.writes = self.done.writes.union(use_.scope.writes);
        if !use_.scope.writes.is_empty() {
            self.written = Mark { level, scope };
            self.read = Mark::default();
        } else if self.read.level == 0 {
            self.read = Mark { level, scope };
        } else {
            self.read.level = self.read.level.max(level);
            self.read.scope = self.read.scope.filter(|&of| Some(of) == scope);
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
