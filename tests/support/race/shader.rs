//! Which memory a shader touches, read from its words: through which descriptors, and through addresses
//! from where among its push constants. Pure.
//!
//! It shares nothing with the crate's own reader. Every result of an instruction gets the places that it
//! may stand for, whatever the order of the instructions and whichever branches are taken, until no
//! more come up.

use std::collections::{BTreeMap, BTreeSet};

use spirv::{Decoration, ExecutionModel, Op, StorageClass};

/// Whether something is read, and whether it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub reads: bool,
    pub writes: bool,
}

/// What an entry point does with memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// By set and binding.
    pub descriptors: BTreeMap<(u32, u32), Access>,
    /// By the place among the push constants that the address stands at.
    pub addresses: BTreeMap<u32, Access>,
    /// The bytes of what the address there leads to, where its type says it.
    pub bytes: BTreeMap<u32, u64>,
    /// Through addresses that come from elsewhere, as from memory.
    pub far: Access,
}

/// What an id may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A pointer into what is bound there.
    Descriptor(u32, u32),
    /// A pointer to this byte of the push constants.
    Push(u32),
    /// A pointer to somewhere among them.
    AnyPush,
    /// What stands at this byte of the push constants, an address perhaps.
    At(u32),
    /// A pointer into a variable of the shader's own.
    Own(u32),
    /// An address from elsewhere.
    Far,
}

type Origins = BTreeSet<Origin>;

struct Instruction<'a> {
    op: Option<Op>,
    /// Without the first word.
    words: &'a [u32],
}

impl Instruction<'_> {
    fn word(&self, at: usize) -> u32 {
        self.words.get(at).copied().unwrap_or(0)
    }
}

/// A module's declarations.
#[derive(Default)]
struct Module<'a> {
    /// Set and binding of a variable.
    places: BTreeMap<u32, (u32, u32)>,
    /// Where the members of a struct are.
    members: BTreeMap<(u32, u32), u32>,
    structs: BTreeMap<u32, &'a [u32]>,
    /// The bytes of types that have them, but for structs.
    sizes: BTreeMap<u32, u64>,
    /// From one element of an array to the next.
    strides: BTreeMap<u32, u64>,
    constants: BTreeMap<u32, u32>,
    /// What a pointer's type points to.
    pointees: BTreeMap<u32, u32>,
    /// The types of pointers.
    types: BTreeMap<u32, u32>,
    functions: BTreeMap<u32, Function<'a>>,
    entries: Vec<(u32, String)>,
}

#[derive(Default)]
struct Function<'a> {
    parameters: Vec<u32>,
    body: Vec<Instruction<'a>>,
}

/// What the entry point of that name does, in all functions that it may come to.
pub fn uses(words: &[u32], entry: &str) -> Uses {
    let (module, origins) = Module::read(words);
    let named = |(_, name): &&(u32, String)| name == entry;
    let start = module.entries.iter().find(named).map(|(id, _)| *id);
    let start = start.unwrap_or_else(|| panic!("the module has no entry point {entry}"));
    let mut tracer = Tracer {
        module: &module,
        origins,
        held: BTreeMap::new(),
        returned: BTreeMap::new(),
        uses: Uses::default(),
        is_new: true,
    };
    let reached = module.reached_from(start);
    while core::mem::take(&mut tracer.is_new) {
        for id in &reached {
            for instruction in &module.functions[id].body {
                tracer.step(*id, instruction);
            }
        }
    }
    tracer.uses
}

fn instructions(words: &[u32]) -> Vec<Instruction<'_>> {
    let mut rest = words.get(5..).unwrap_or(&[]);
    let mut all = Vec::new();
    while let Some(first) = rest.first() {
        let (len, op) = ((first >> 16) as usize, first & 0xFFFF);
        assert!(len > 0 && len <= rest.len(), "a damaged module");
        all.push(Instruction {
            op: Op::from_u32(op),
            words: &rest[1..len],
        });
        rest = &rest[len..];
    }
    all
}

/// A string in words.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl<'a> Module<'a> {
    /// The declarations, and what variables stand for.
    fn read(words: &'a [u32]) -> (Self, BTreeMap<u32, Origins>) {
        let mut module = Self::default();
        let mut variables = Vec::new();
        let mut current = None;
        for one in instructions(words) {
            let (first, second, third) = (one.word(0), one.word(1), one.word(2));
            match one.op {
                Some(Op::EntryPoint) if first == ExecutionModel::GLCompute as u32 => {
                    module.entries.push((second, text(&one.words[2..])));
                }
                Some(Op::Decorate) if second == Decoration::DescriptorSet as u32 => {
                    module.places.entry(first).or_default().0 = third;
                }
                Some(Op::Decorate) if second == Decoration::Binding as u32 => {
                    module.places.entry(first).or_default().1 = third;
                }
                Some(Op::MemberDecorate) if third == Decoration::Offset as u32 => {
                    module.members.insert((first, second), one.word(3));
                }
                Some(Op::TypeStruct) => {
                    module.structs.insert(first, &one.words[1..]);
                }
                Some(Op::Decorate) if second == Decoration::ArrayStride as u32 => {
                    module.strides.insert(first, u64::from(third));
                }
                Some(Op::TypePointer) => {
                    module.pointees.insert(first, third);
                    module.sizes.insert(first, 8);
                }
                Some(Op::TypeInt | Op::TypeFloat) => {
                    module.sizes.insert(first, u64::from(second / 8));
                }
                Some(Op::TypeVector) => {
                    let one = module.sizes.get(&second).copied().unwrap_or(0);
                    module.sizes.insert(first, one * u64::from(third));
                }
                Some(Op::TypeArray) => {
                    let stride = module.strides.get(&first);
                    let len = module.constants.get(&third);
                    if let (Some(stride), Some(len)) = (stride, len) {
                        module.sizes.insert(first, stride * u64::from(*len));
                    }
                }
                Some(Op::Constant) => {
                    module.constants.insert(second, third);
                }
                Some(Op::Function) => {
                    current = Some(second);
                    module.functions.entry(second).or_default();
                }
                Some(Op::FunctionParameter) => {
                    let function = current.and_then(|id| module.functions.get_mut(&id));
                    function
                        .expect("a parameter of a function")
                        .parameters
                        .push(second);
                    module.types.insert(second, first);
                }
                _ => {}
            }
            if one.op == Some(Op::Variable) {
                variables.push((second, third));
            }
            if let Some(Op::Variable | Op::AccessChain | Op::InBoundsAccessChain) = one.op {
                module.types.insert(second, first);
            }
            if let Some(function) = current.and_then(|id| module.functions.get_mut(&id)) {
                function.body.push(one);
            }
        }
        let origin = |(id, class): (u32, u32)| {
            let origin = match StorageClass::from_u32(class) {
                Some(StorageClass::StorageBuffer | StorageClass::Uniform) => {
                    let (set, binding) = module.places.get(&id).copied().unwrap_or_default();
                    Origin::Descriptor(set, binding)
                }
                Some(StorageClass::PushConstant) => Origin::Push(0),
                _ => Origin::Own(id),
            };
            (id, Origins::from([origin]))
        };
        let origins = variables.into_iter().map(origin).collect();
        (module, origins)
    }

    fn reached_from(&self, start: u32) -> BTreeSet<u32> {
        let mut reached = BTreeSet::from([start]);
        let mut left = vec![start];
        while let Some(id) = left.pop() {
            for one in &self.functions[&id].body {
                if one.op == Some(Op::FunctionCall) && reached.insert(one.word(2)) {
                    left.push(one.word(2));
                }
            }
        }
        reached
    }

    /// The bytes of a type; nothing where they are not counted in it.
    fn bytes(&self, kind: u32) -> Option<u64> {
        let Some(members) = self.structs.get(&kind) else {
            return self.sizes.get(&kind).copied();
        };
        let mut bytes = 0;
        for (place, member) in (0..).zip(*members) {
            let start = u64::from(*self.members.get(&(kind, place))?);
            bytes = bytes.max(start + self.bytes(*member)?);
        }
        Some(bytes)
    }

    /// Where a member of the push constants is, from the type that the indices start in; nothing where
    /// it is a part of a vector, or the shader counts it out itself.
    fn member(&self, mut kind: u32, mut at: u32, indices: &[u32]) -> Option<u32> {
        for index in indices {
            let index = *self.constants.get(index)?;
            at += self.members.get(&(kind, index))?;
            kind = self.structs[&kind][index as usize];
        }
        Some(at)
    }
}

struct Tracer<'a> {
    module: &'a Module<'a>,
    origins: BTreeMap<u32, Origins>,
    /// What variables of the shader's own may hold.
    held: BTreeMap<u32, Origins>,
    returned: BTreeMap<u32, Origins>,
    uses: Uses,
    /// Whether something has come up since this was last asked.
    is_new: bool,
}

impl Tracer<'_> {
    fn of(&self, id: u32) -> Origins {
        self.origins.get(&id).cloned().unwrap_or_default()
    }

    fn add(&mut self, id: u32, more: Origins) {
        let known = self.origins.entry(id).or_default();
        let before = known.len();
        known.extend(more);
        self.is_new |= known.len() > before;
    }

    fn hold(&mut self, variable: u32, more: &Origins) {
        let known = self.held.entry(variable).or_default();
        let before = known.len();
        known.extend(more);
        self.is_new |= known.len() > before;
    }

    /// Memory is touched through a pointer.
    fn touch(&mut self, pointer: u32, reads: bool, writes: bool) {
        for origin in self.of(pointer) {
            let access = match origin {
                Origin::Descriptor(set, binding) => {
                    self.uses.descriptors.entry((set, binding)).or_default()
                }
                Origin::At(place) => self.uses.addresses.entry(place).or_default(),
                Origin::Far => &mut self.uses.far,
                Origin::Push(_) | Origin::AnyPush | Origin::Own(_) => continue,
            };
            access.reads |= reads;
            access.writes |= writes;
        }
    }

    fn step(&mut self, function: u32, one: &Instruction<'_>) {
        let (result, first) = (one.word(1), one.word(2));
        match one.op {
            Some(Op::AccessChain | Op::InBoundsAccessChain) => {
                self.chain(result, first, &one.words[3..]);
            }
            Some(Op::PtrAccessChain | Op::InBoundsPtrAccessChain) => {
                self.chain(result, first, &one.words[4..]);
            }
            Some(Op::Load) => self.load(one.word(0), result, first),
            Some(Op::Store) => self.store(one.word(0), one.word(1)),
            Some(Op::CopyMemory) => {
                let value = self.loaded(one.word(1));
                self.touch(one.word(1), true, false);
                self.put(one.word(0), &value);
            }
            Some(Op::AtomicLoad) => self.touch(first, true, false),
            Some(Op::AtomicStore) => self.touch(one.word(0), false, true),
            Some(op) if is_atomic(op) => self.touch(first, true, true),
            Some(Op::FunctionCall) => self.call(result, first, &one.words[3..]),
            Some(Op::ReturnValue) => {
                let value = self.of(one.word(0));
                let known = self.returned.entry(function).or_default();
                let before = known.len();
                known.extend(value);
                self.is_new |= known.len() > before;
            }
            // A function of an extended set may write through a pointer.
            Some(Op::ExtInst) => {
                for operand in &one.words[4..] {
                    self.touch(*operand, true, true);
                }
            }
            Some(Op::Select) => self.join(result, &one.words[3..]),
            Some(Op::Phi | Op::CompositeConstruct | Op::IAdd | Op::ISub) => {
                self.join(result, &one.words[2..]);
            }
            Some(
                Op::Bitcast
                | Op::CopyObject
                | Op::CopyLogical
                | Op::ConvertUToPtr
                | Op::ConvertPtrToU
                | Op::CompositeExtract
                | Op::UConvert,
            ) => self.join(result, &[first]),
            _ => {}
        }
    }

    fn join(&mut self, result: u32, operands: &[u32]) {
        for operand in operands {
            let origins = self.of(*operand);
            self.add(result, origins);
        }
    }

    fn chain(&mut self, result: u32, base: u32, indices: &[u32]) {
        let module = self.module;
        let pointee = (module.types.get(&base)).and_then(|kind| module.pointees.get(kind));
        let origins = self.of(base).into_iter().map(|origin| match origin {
            Origin::Push(at) => {
                let member = pointee.and_then(|kind| module.member(*kind, at, indices));
                member.map_or(Origin::AnyPush, Origin::Push)
            }
            other => other,
        });
        let origins = origins.collect();
        self.add(result, origins);
    }

    /// What is found behind a pointer.
    fn loaded(&self, pointer: u32) -> Origins {
        let mut found = Origins::new();
        for origin in self.of(pointer) {
            match origin {
                Origin::Own(variable) => {
                    found.extend(self.held.get(&variable).into_iter().flatten());
                }
                Origin::Push(at) => {
                    found.insert(Origin::At(at));
                }
                Origin::Descriptor(..) | Origin::At(_) | Origin::AnyPush | Origin::Far => {
                    found.insert(Origin::Far);
                }
            }
        }
        found
    }

    fn load(&mut self, kind: u32, result: u32, pointer: u32) {
        self.touch(pointer, true, false);
        let pointee = self.module.pointees.get(&kind);
        if let Some(bytes) = pointee.and_then(|kind| self.module.bytes(*kind)) {
            for origin in self.of(pointer) {
                if let Origin::Push(at) = origin {
                    self.uses.bytes.insert(at, bytes);
                }
            }
        }
        let value = self.loaded(pointer);
        self.add(result, value);
    }

    fn store(&mut self, pointer: u32, value: u32) {
        let value = self.of(value);
        self.put(pointer, &value);
    }

    fn put(&mut self, pointer: u32, value: &Origins) {
        self.touch(pointer, false, true);
        for origin in self.of(pointer) {
            if let Origin::Own(variable) = origin {
                self.hold(variable, value);
            }
        }
    }

    fn call(&mut self, result: u32, function: u32, arguments: &[u32]) {
        let module = self.module;
        let parameters = &module.functions[&function].parameters;
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let origins = self.of(*argument);
            self.add(*parameter, origins);
        }
        let value = self.returned.get(&function).cloned().unwrap_or_default();
        self.add(result, value);
    }
}

fn is_atomic(op: Op) -> bool {
    let first = Op::AtomicExchange as u32;
    let is_float = matches!(
        op,
        Op::AtomicFAddEXT | Op::AtomicFMinEXT | Op::AtomicFMaxEXT
    );
    is_float || (first..=Op::AtomicXor as u32).contains(&(op as u32))
}
