//! Owns the reading of SPIR-V: bounded, over untrusted words, without a driver or a compiler.
//!
//! It is a reader, not a validator: whatever it returns is in range, and what it does not need it
//! does not judge.

mod bytes;
mod capability;
mod constants;
mod parse;
mod shape;
#[cfg(test)]
#[cfg(test_data)]
pub(crate) mod test_data;
#[cfg(test)]
#[cfg(test_data)]
mod tests;
mod types;

use std::collections::HashMap;

use spirv::{AddressingModel, Capability, Decoration, ExecutionModel, Op};

use crate::error::{Error, ErrorKind, Result};

pub(crate) use bytes::words_from_bytes;
pub(crate) use capability::{Need, need};
pub(crate) use constants::{Constants, bits_of, literal, mask};
pub(crate) use parse::MAX_BOUND;
pub(crate) use shape::Shape;
pub(crate) use types::{Ty, Types};

/// The first word of every module.
pub(crate) const MAGIC: u32 = spirv::MAGIC_NUMBER;

/// The words before the first instruction.
pub(crate) const HEADER_WORDS: usize = 5;

/// A module's words, cut into instructions, with what is looked up by id.
#[derive(Debug)]
pub(crate) struct Module {
    words: Vec<u32>,
    spans: Vec<Span>,
    /// By id: the number of the instruction that gives it plus one; 0 for none.
    definitions: Vec<u32>,
    names: HashMap<u32, String>,
    member_names: HashMap<(u32, u32), String>,
    decorations: HashMap<u32, Vec<Decorated>>,
    member_decorations: HashMap<(u32, u32), Vec<Decorated>>,
    capabilities: Vec<Capability>,
    addressing: AddressingModel,
    entry_points: Vec<EntryPoint>,
    functions: Vec<Function>,
}

/// Where an instruction lies.
#[derive(Clone, Copy, Debug)]
struct Span {
    op: Op,
    shape: Shape,
    start: u32,
    len: u32,
}

/// A decoration and where its first operand lies.
#[derive(Clone, Copy, Debug)]
struct Decorated {
    decoration: u32,
    operand: Option<u32>,
}

/// An entry point of any stage.
#[derive(Clone, Debug)]
pub(crate) struct EntryPoint {
    /// Its name.
    pub(crate) name: String,
    /// Its stage.
    pub(crate) stage: ExecutionModel,
    /// The id of its function.
    pub(crate) function: u32,
    /// The variables that it names.
    pub(crate) interface: Vec<u32>,
}

/// A function's instructions, from `OpFunction` to `OpFunctionEnd`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// Its id.
    pub(crate) id: u32,
    /// The number of its first instruction.
    pub(crate) first: usize,
    /// The number of its last instruction.
    pub(crate) last: usize,
}

/// One instruction of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction<'a> {
    /// What it does.
    pub(crate) op: Op,
    /// Its number in the module.
    pub(crate) number: usize,
    /// The number of its first word in the module.
    pub(crate) start: usize,
    shape: Shape,
    words: &'a [u32],
}

impl<'a> Instruction<'a> {
    /// The id of its result; 0 where it has none.
    pub(crate) fn result(&self) -> u32 {
        match self.shape {
            Shape::Bare => 0,
            Shape::Id => self.words.get(1).copied().unwrap_or(0),
            Shape::Typed => self.words.get(2).copied().unwrap_or(0),
        }
    }

    /// The type of its result; 0 where it has none.
    pub(crate) fn result_type(&self) -> u32 {
        match self.shape {
            Shape::Typed => self.words.get(1).copied().unwrap_or(0),
            Shape::Bare | Shape::Id => 0,
        }
    }

    /// All of its words, the first with its length and number.
    pub(crate) fn words(&self) -> &'a [u32] {
        self.words
    }

    /// The words after the result.
    pub(crate) fn operands(&self) -> &'a [u32] {
        self.words.get(1 + self.shape.words()..).unwrap_or(&[])
    }

    /// One of the words after the result.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where the instruction is shorter.
    pub(crate) fn operand(&self, index: usize) -> Result<u32> {
        self.operands().get(index).copied().ok_or_else(|| {
            damaged(format_args!(
                "Op{:?} at word {} is too short",
                self.op, self.start
            ))
        })
    }

    /// The string that begins at an operand, and how many operands it takes.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where it does not end within the instruction or is not UTF-8.
    pub(crate) fn string(&self, index: usize) -> Result<(String, usize)> {
        let words = self.operands().get(index..).unwrap_or(&[]);
        let mut bytes = Vec::new();
        for (taken, word) in words.iter().enumerate() {
            for byte in word.to_le_bytes() {
                if byte == 0 {
                    let text = String::from_utf8(bytes).map_err(|_| {
                        damaged(format_args!(
                            "the string of Op{:?} at word {} is not UTF-8",
                            self.op, self.start
                        ))
                    })?;
                    return Ok((text, taken + 1));
                }
                bytes.push(byte);
            }
        }
        Err(damaged(format_args!(
            "the string of Op{:?} at word {} does not end",
            self.op, self.start
        )))
    }
}

impl Module {
    /// Cuts a module's words into instructions and notes what is looked up later.
    ///
    /// # Errors
    ///
    /// `InvalidModule` for words that are no module, are cut off or damaged; `Unsupported` for a
    /// version, a capability or an instruction that kernels cannot have.
    pub(crate) fn parse(words: &[u32]) -> Result<Self> {
        parse::parse(words)
    }

    /// The module's words.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The version of SPIR-V that it is written in: major, minor.
    pub(crate) fn version(&self) -> (u8, u8) {
        let [_, minor, major, _] = self.words.get(1).copied().unwrap_or(0).to_le_bytes();
        (major, minor)
    }

    /// The number that is above every id.
    pub(crate) fn bound(&self) -> u32 {
        self.words.get(3).copied().unwrap_or(0)
    }

    /// The names and stages of the entry points, in the module's order.
    pub(crate) fn entry_points(&self) -> Vec<(&str, ExecutionModel)> {
        self.entry_points
            .iter()
            .map(|entry| (entry.name.as_str(), entry.stage))
            .collect()
    }

    /// The entry points with all there is to know of them.
    pub(crate) fn entries(&self) -> &[EntryPoint] {
        &self.entry_points
    }

    /// The functions, in the module's order.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The capabilities that it declares.
    pub(crate) fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// How it addresses memory.
    pub(crate) fn addressing(&self) -> AddressingModel {
        self.addressing
    }

    /// The instructions, in order.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = Instruction<'_>> {
        self.numbered(0)
    }

    /// The instructions before the first function.
    pub(crate) fn globals(&self) -> impl Iterator<Item = Instruction<'_>> {
        self.instructions()
            .take_while(|instruction| instruction.op != Op::Function)
    }

    /// The instructions of a function.
    pub(crate) fn body(&self, function: Function) -> impl Iterator<Item = Instruction<'_>> {
        (function.first..=function.last).filter_map(|number| self.instruction(number))
    }

    /// The instructions from a number on.
    pub(crate) fn numbered(&self, first: usize) -> impl Iterator<Item = Instruction<'_>> {
        (first..self.spans.len()).filter_map(|number| self.instruction(number))
    }

    fn instruction(&self, number: usize) -> Option<Instruction<'_>> {
        let span = self.spans.get(number)?;
        let start = span.start as usize;
        Some(Instruction {
            op: span.op,
            number,
            start,
            shape: span.shape,
            words: self.words.get(start..start + span.len as usize)?,
        })
    }

    /// The instruction that gives an id.
    ///
    /// # Errors
    ///
    /// `InvalidModule` where none does.
    pub(crate) fn definition(&self, id: u32) -> Result<Instruction<'_>> {
        self.find(id)
            .ok_or_else(|| damaged(format_args!("the id %{id} is used, but nothing defines it")))
    }

    /// The instruction that gives an id, if one does.
    pub(crate) fn find(&self, id: u32) -> Option<Instruction<'_>> {
        let number = self.definitions.get(id as usize)?.checked_sub(1)?;
        self.instruction(number as usize)
    }

    /// The name of an id; empty where the module has none.
    pub(crate) fn name(&self, id: u32) -> &str {
        self.names.get(&id).map_or("", String::as_str)
    }

    /// The name of a member of a struct; empty where the module has none.
    pub(crate) fn member_name(&self, id: u32, member: u32) -> &str {
        self.member_names
            .get(&(id, member))
            .map_or("", String::as_str)
    }

    /// Whether an id has a decoration.
    pub(crate) fn has(&self, id: u32, decoration: Decoration) -> bool {
        self.decorations
            .get(&id)
            .is_some_and(|all| all.iter().any(|d| d.decoration == decoration as u32))
    }

    /// The first operand of an id's decoration, if it has that.
    pub(crate) fn decoration(&self, id: u32, decoration: Decoration) -> Option<u32> {
        operand_of(self.decorations.get(&id)?, decoration)
    }

    /// Whether a member of a struct has a decoration.
    pub(crate) fn member_has(&self, id: u32, member: u32, decoration: Decoration) -> bool {
        self.member_decorations
            .get(&(id, member))
            .is_some_and(|all| all.iter().any(|d| d.decoration == decoration as u32))
    }

    /// The first operand of a member's decoration, if it has that.
    pub(crate) fn member_decoration(
        &self,
        id: u32,
        member: u32,
        decoration: Decoration,
    ) -> Option<u32> {
        operand_of(self.member_decorations.get(&(id, member))?, decoration)
    }
}

fn operand_of(all: &[Decorated], decoration: Decoration) -> Option<u32> {
    all.iter()
        .find(|d| d.decoration == decoration as u32)
        .and_then(|d| d.operand)
}

/// The error for a module that breaks a rule which the reader relies on.
#[cold]
pub(crate) fn damaged(what: impl core::fmt::Display) -> Error {
    Error::new(
        ErrorKind::InvalidModule,
        format!("the SPIR-V module is damaged: {what}; compile it again, or ask spirv-val"),
    )
}

/// The error for a valid module that asks for what kernels cannot have.
#[cold]
pub(crate) fn unsupported(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, text)
}
