//! What an entry point does with the memory it is given: which variables it uses, which buffers it
//! reads and writes, and where the addresses come from that it follows.

use std::collections::{HashMap, HashSet};

use spirv::Op;

use super::flow::Flow;
use crate::error::Result;
use crate::kernel::interface::Access;
use crate::kernel::spirv::{Function, Module, Types, damaged};

/// How many times the functions are gone through until nothing new is found.
const MAX_ROUNDS: usize = 12;

/// What is done with some memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Whether it may be read.
    pub(super) read: bool,
    /// Whether it may be written.
    pub(super) written: bool,
}

impl Effect {
    /// All there is.
    pub(super) const BOTH: Self = Self {
        read: true,
        written: true,
    };
    /// Reading.
    pub(super) const READ: Self = Self {
        read: true,
        written: false,
    };
    /// Writing.
    pub(super) const WRITTEN: Self = Self {
        read: false,
        written: true,
    };

    /// Adds what else is done.
    pub(super) fn add(&mut self, other: Self) {
        self.read |= other.read;
        self.written |= other.written;
    }

    /// As an access; memory that is not touched counts as read.
    pub(super) fn access(self) -> Access {
        match (self.read, self.written) {
            (true, true) => Access::ReadWrite,
            (false, true) => Access::Write,
            (_, false) => Access::Read,
        }
    }
}

/// What an entry point does.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The variables outside of functions that it names.
    pub(super) variables: HashSet<u32>,
    /// Whether it follows addresses that it finds in memory or computes.
    pub(super) follows_stored_addresses: bool,
    /// By variable: what is done with the buffer.
    pub(super) buffers: HashMap<u32, Effect>,
    /// By member of the push-constant block: what is done behind its addresses.
    pub(super) addresses: HashMap<u32, Effect>,
    /// By member of the push-constant block: the alignment that accesses behind it state.
    pub(super) aligns: HashMap<u32, u32>,
    /// Whether it is unclear, so that anything may be done with everything.
    pub(super) everything: bool,
}

impl Usage {
    /// Follows an entry point's function.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where a function is called that is not there, or an instruction is cut short.
    pub(super) fn read(module: &Module, types: &Types, entry: u32) -> Result<Self> {
        let functions = reach(module, entry)?;
        let mut flow = Flow::new(module, types);
        for round in 0.. {
            flow.changed = false;
            for &function in &functions {
                for instruction in module.body(function) {
                    flow.follow(function.id, &instruction)?;
                }
            }
            if !flow.changed {
                break;
            }
            if round == MAX_ROUNDS {
                flow.usage.everything = true;
                break;
            }
        }
        Ok(flow.usage)
    }

    /// What is done with a variable that is bound to a buffer.
    pub(super) fn buffer(&self, variable: u32) -> Effect {
        self.effect(self.buffers.get(&variable))
    }

    /// What is done behind the addresses in a member of the push-constant block.
    pub(super) fn address(&self, member: u32) -> Effect {
        self.effect(self.addresses.get(&member))
    }

    /// The alignment that accesses behind such an address rely on.
    pub(super) fn align(&self, member: u32) -> u32 {
        self.aligns.get(&member).copied().unwrap_or(1)
    }

    fn effect(&self, found: Option<&Effect>) -> Effect {
        if self.everything {
            Effect::BOTH
        } else {
            found.copied().unwrap_or_default()
        }
    }
}

/// The functions that a function calls, itself among them.
fn reach(module: &Module, entry: u32) -> Result<Vec<Function>> {
    let all: HashMap<u32, Function> = module.functions().iter().map(|f| (f.id, *f)).collect();
    let mut seen = HashSet::from([entry]);
    let mut open = vec![entry];
    let mut reached = Vec::new();
    while let Some(id) = open.pop() {
        let function = *all
            .get(&id)
            .ok_or_else(|| damaged(format_args!("the function %{id} is not there")))?;
        reached.push(function);
        for instruction in module.body(function) {
            if instruction.op == Op::FunctionCall {
                let callee = instruction.operand(0)?;
                if seen.insert(callee) {
                    open.push(callee);
                }
            }
        }
    }
    Ok(reached)
}
