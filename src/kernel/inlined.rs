//! What a module comes to once every call is replaced by what it calls, as drivers do.

use std::collections::{HashMap, HashSet};

use spirv::{Op, StorageClass};

use crate::error::Result;
use crate::kernel::reflect::shared;
use crate::kernel::spirv::{Constants, Function, Module, Types, damaged};

/// The size of the largest entry point with all that it calls, each call counted on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inlined {
    /// The bytes of the private variables of an invocation.
    pub(crate) private_bytes: u64,
    /// How many instructions there are.
    pub(crate) instructions: u64,
}

impl Inlined {
    fn add(&mut self, other: Self) {
        self.private_bytes = self.private_bytes.saturating_add(other.private_bytes);
        self.instructions = self.instructions.saturating_add(other.instructions);
    }
}

/// Measures a module after specialization.
///
/// # Errors
///
/// `InvalidModule` where functions call each other in a ring; `Unsupported` where the length of an
/// array cannot be computed.
pub(crate) fn measure(module: &Module, specialization: &[(u32, u64)]) -> Result<Inlined> {
    let types = Types::read(module)?;
    let constants = Constants::read(module, &types, specialization)?;
    let private = |class: StorageClass, instructions: &mut dyn Iterator<Item = (Op, u32, u32)>| {
        let of_class =
            |&(op, operand, _): &(Op, u32, u32)| op == Op::Variable && operand == class as u32;
        let variables: Vec<u32> = instructions.filter(of_class).map(|(_, _, id)| id).collect();
        shared::bytes(module, &types, &constants, &variables)
    };
    let mut globals = module
        .globals()
        .map(|i| (i.op, i.operand(0).unwrap_or(0), i.result()));
    let mut calls = Calls::default();
    for &function in module.functions() {
        let body = || module.body(function);
        let mut parts = body().map(|i| (i.op, i.operand(0).unwrap_or(0), i.result()));
        let own = Inlined {
            private_bytes: private(StorageClass::Function, &mut parts)?,
            instructions: body().count() as u64,
        };
        let callees = body().filter(|instruction| instruction.op == Op::FunctionCall);
        let callees = callees
            .map(|instruction| instruction.operand(0))
            .collect::<Result<_>>()?;
        calls.add(function, own, callees);
    }
    let mut largest = Inlined::default();
    for entry in module.entries() {
        let whole = calls.total(entry.function)?;
        largest.private_bytes = largest.private_bytes.max(whole.private_bytes);
        largest.instructions = largest.instructions.max(whole.instructions);
    }
    let globals = private(StorageClass::Private, &mut globals)?;
    largest.private_bytes = largest.private_bytes.saturating_add(globals);
    Ok(largest)
}

/// Who calls whom.
#[derive(Debug, Default)]
struct Calls {
    own: HashMap<u32, (Inlined, Vec<u32>)>,
    known: HashMap<u32, Inlined>,
}

impl Calls {
    fn add(&mut self, function: Function, own: Inlined, callees: Vec<u32>) {
        self.own.insert(function.id, (own, callees));
    }

    /// A function with all that it calls; walks without calling itself, since chains may be long.
    fn total(&mut self, root: u32) -> Result<Inlined> {
        let mut path = vec![(root, 0)];
        let mut open = HashSet::from([root]);
        while let Some((function, next)) = path.last_mut() {
            let function = *function;
            let Some((own, callees)) = self.own.get(&function) else {
                return Err(damaged(format_args!(
                    "%{function} is called and is no function"
                )));
            };
            if let Some(&callee) = callees.get(*next) {
                *next += 1;
                if open.contains(&callee) {
                    return Err(damaged(format_args!("%{callee} calls itself")));
                }
                if !self.known.contains_key(&callee) {
                    open.insert(callee);
                    path.push((callee, 0));
                }
                continue;
            }
            let mut total = *own;
            for callee in callees {
                total.add(self.known.get(callee).copied().unwrap_or_default());
            }
            self.known.insert(function, total);
            open.remove(&function);
            path.pop();
        }
        Ok(self.known.get(&root).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn calls(list: &[(u32, &[u32])]) -> Calls {
        let mut calls = Calls::default();
        for (id, callees) in list {
            let function = Function {
                id: *id,
                first: 0,
                last: 0,
            };
            let own = Inlined {
                private_bytes: 4,
                instructions: 1,
            };
            calls.add(function, own, callees.to_vec());
        }
        calls
    }

    #[test]
    fn each_call_counts_on_its_own() {
        // 1 calls 2 twice, which calls 3 twice.
        let mut calls = calls(&[(1, &[2, 2]), (2, &[3, 3]), (3, &[])]);
        let total = calls.total(1).unwrap();
        assert_eq!(
            total,
            Inlined {
                private_bytes: 28,
                instructions: 7
            }
        );
    }

    #[test]
    fn doubling_chains_saturate_and_long_ones_need_no_stack() {
        let doubling: Vec<(u32, Vec<u32>)> = (1..100).map(|id| (id, vec![id + 1; 2])).collect();
        let mut list: Vec<(u32, &[u32])> = doubling.iter().map(|(id, c)| (*id, &c[..])).collect();
        list.push((100, &[]));
        assert_eq!(calls(&list).total(1).unwrap().instructions, u64::MAX);
        let long: Vec<(u32, Vec<u32>)> = (1..20_000).map(|id| (id, vec![id + 1])).collect();
        let mut list: Vec<(u32, &[u32])> = long.iter().map(|(id, c)| (*id, &c[..])).collect();
        list.push((20_000, &[]));
        assert_eq!(calls(&list).total(1).unwrap().instructions, 20_000);
    }

    #[test]
    fn rings_and_holes_are_damage() {
        let error = calls(&[(1, &[2]), (2, &[1])]).total(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
        let error = calls(&[(1, &[9])]).total(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModule);
    }
}
