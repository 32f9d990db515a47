//! The shaders that fill memory, each loaded on a device when it is first used there.
//!
//! # Safety
//!
//! The modules are this crate's own, and a test holds them to their sources in `shaders/`: valid for
//! Vulkan 1.2, their loops end, and an invocation writes the words of its block alone, as far as the
//! count goes that it is given. `fill` passes the count of the memory whose address it passes. What is
//! read beside are the 16 bytes of a state, by a [`FromMemory`] alone, which `fill` passes them to.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use spirv::{Decoration, Op};

use crate::base::sync::Mutex;
use crate::error::Result;
use crate::kernel::check;
use crate::kernel::program::Program;
use crate::kernel::reflect::reflect;
use crate::kernel::spirv::{HEADER_WORDS, Module, words_from_bytes};
use crate::vk;

macro_rules! kernels {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A shader of random numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kernel {
            $($variant),*
        }

        impl Kernel {
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            const COUNT: usize = [$($name),*].len();

            /// Where its source is, and its module.
            const fn module(self) -> (&'static str, &'static [u8]) {
                match self {
                    $(Self::$variant => (
                        concat!("shaders/random_", $name, ".comp"),
                        include_bytes!(concat!("../../shaders/random_", $name, ".spv")),
                    )),*
                }
            }
        }
    };
}

kernels! {
    Bits = "bits",
    UniformF16 = "uniform_f16",
    UniformF32 = "uniform_f32",
    UniformF64 = "uniform_f64",
    Integers32 = "integers_32",
    Integers64 = "integers_64",
    NormalF32 = "normal_f32",
    NormalF64 = "normal_f64",
    Bernoulli8 = "bernoulli_8",
    Bernoulli32 = "bernoulli_32",
}

/// Those of one opened device.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    pushed: Loaded,
    from_memory: Loaded,
}

/// A program that takes seed and counter from memory, which [`Fill`](super::fill::Fill) alone launches.
#[derive(Clone, Debug)]
pub(crate) struct FromMemory(pub(super) Arc<Program>);

/// The programs that were used, by kernel.
#[derive(Debug, Default)]
struct Loaded(Mutex<[Option<Arc<Program>>; Kernel::COUNT]>);

impl Kernels {
    /// The program of a kernel on the device that these are of. A failure can be tried again.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the device lacks a feature that it needs.
    pub(crate) fn program(&self, device: &Arc<vk::Device>, kernel: Kernel) -> Result<Arc<Program>> {
        self.pushed.get(kernel, || load(device, kernel, false))
    }

    /// The same that takes seed and counter from memory.
    ///
    /// # Errors
    ///
    /// As [`program`](Self::program).
    pub(crate) fn program_from_memory(
        &self,
        device: &Arc<vk::Device>,
        kernel: Kernel,
    ) -> Result<FromMemory> {
        let program = self.from_memory.get(kernel, || load(device, kernel, true));
        program.map(FromMemory)
    }
}

impl Loaded {
    fn get(&self, kernel: Kernel, load: impl FnOnce() -> Result<Program>) -> Result<Arc<Program>> {
        let mut all = self.0.lock();
        if let Some(program) = &all[kernel as usize] {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(load()?);
        all[kernel as usize] = Some(Arc::clone(&program));
        Ok(program)
    }
}

fn load(device: &Arc<vk::Device>, kernel: Kernel, from_memory: bool) -> Result<Program> {
    let (name, bytes) = kernel.module();
    let words = settled(&Module::parse(&words_from_bytes(bytes)?)?, from_memory);
    let interface = reflect(&Module::parse(&words)?, None, &[])?;
    let plan = device.plan();
    check::check_program(&interface, &plan.limits, plan.features)
        .map_err(|error| error.context(name))?;
    // SAFETY: the module is this crate's own, as the top of the file says; the interface was read
    // from it.
    unsafe { Program::new(device, &words, interface, Some(Path::new(name)), &[]) }
}

/// The words of a module whose one specialization constant, whether seed and counter are in memory, is a
/// plain one with this value: SwiftShader keeps a branch on the former, which costs it a tenth.
fn settled(module: &Module, from_memory: bool) -> Vec<u32> {
    let constant = match from_memory {
        true => Op::ConstantTrue,
        false => Op::ConstantFalse,
    };
    let mut words = module.words()[..HEADER_WORDS].to_vec();
    for instruction in module.instructions() {
        match *instruction.words() {
            [_, _, decoration, ..]
                if instruction.op == Op::Decorate && decoration == Decoration::SpecId as u32 => {}
            [first, ref rest @ ..] if instruction.op == Op::SpecConstantFalse => {
                words.push(first & !0xFFFF | constant as u32);
                words.extend(rest);
            }
            ref all => words.extend(all),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Feature, FeatureSet};
    use crate::kernel::{Access, Interface};

    #[test]
    fn the_shaders_need_no_feature_but_addresses_and_one_of_them_64_bit_floats() {
        for &kernel in Kernel::ALL {
            let (name, bytes) = kernel.module();
            let words = words_from_bytes(bytes).unwrap();
            let module = Module::parse(&words).unwrap();
            let interface = reflect(&module, None, &[]).unwrap();
            assert_eq!(interface.spec_constants.len(), 1, "{name}");
            for value in [false, true] {
                let settled = Module::parse(&settled(&module, value)).unwrap();
                let settled = reflect(&settled, None, &[]).unwrap();
                let plain = Interface {
                    spec_constants: Vec::new(),
                    ..interface.clone()
                };
                assert_eq!(settled, plain, "{name}");
            }
            let mut needed = FeatureSet::default();
            needed.insert(Feature::BufferDeviceAddress);
            if kernel == Kernel::NormalF64 {
                needed.insert(Feature::ShaderFloat64);
            }
            assert_eq!(interface.required_features, needed, "{name}");
            assert!(!interface.follows_stored_addresses, "{name}");
            assert!(interface.bindings.is_empty(), "{name}");
            let [memory, _, state, ..] = &interface.push_constants.as_ref().unwrap().members[..]
            else {
                panic!("{name} takes no memory");
            };
            let merges = matches!(kernel, Kernel::UniformF16 | Kernel::Bernoulli8);
            let access = if merges {
                Access::ReadWrite
            } else {
                Access::Write
            };
            assert_eq!(memory.access, Some(access), "{name}");
            assert_eq!(state.access, Some(Access::Read), "{name}");
        }
    }
}
