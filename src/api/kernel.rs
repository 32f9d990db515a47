//! Kernels: where a module is loaded, and trust in it is given.
//!
//! # Safety
//!
//! A module that was compiled here is valid; with bounds checks of descriptors by the device and of
//! all other indices by the clamp pass it can do no harm. For every other module the user vouches
//! by calling an `unsafe fn`.
#![allow(unsafe_code)]

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::View;
use crate::device::{Device, DeviceArg, Feature};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::glsl::{self, GlslRequest};
use crate::kernel::program::Program;
use crate::kernel::reflect::{reflect, spec_constants};
use crate::kernel::source::{SourceKind, constant_bits};
use crate::kernel::spirv::Module;
use crate::kernel::{
    Args, Grid, Interface, Source, SpecValue, Spirv, check, clamp, safety, validate,
};
use crate::runtime::{Runtime, Slot, current_stream};
use crate::vk::pipeline::Specialization;

/// A compute shader, ready to launch on one device. A cheap handle: clones are the same kernel.
///
/// Trust is given here, once: GLSL that is compiled here and uses descriptors alone loads safely
/// and can do no harm, whatever it does with its indices. Everything else loads through an
/// `unsafe fn` whose `Safety` section is the whole contract. Launching is safe.
///
/// # Example
///
/// ```
/// # #[cfg(feature = "glsl")] {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// use vkaccel::{Buffer, Grid, Kernel};
///
/// let double = Kernel::from_glsl(
///     "#version 450
///      layout(local_size_x = 64) in;
///      layout(set = 0, binding = 0) buffer Data { uint data[]; };
///      void main() {
///          uint i = gl_GlobalInvocationID.x;
///          if (i < data.length()) data[i] *= 2;
///      }",
/// )?;
/// let numbers = Buffer::from_slice(&[1u32, 2, 3])?;
/// double.launch(Grid::elements(3), (&numbers,))?;
/// assert_eq!(numbers.to_vec()?, [2, 4, 6]);
/// # }
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    program: Program,
    slot: Arc<Slot>,
}

impl Kernel {
    /// Compiles a GLSL compute shader for the current device.
    ///
    /// Accesses are checked: the device keeps those through descriptors inside the buffer, and all
    /// other indices are clamped to their arrays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CompilerUnavailable`] without the feature `glsl`, [`ErrorKind::ShaderCompile`] with the
    /// compiler's text, [`ErrorKind::Unsupported`] if the shader uses addresses (the text names the way on)
    /// or the device lacks a feature that it needs, [`ErrorKind::LimitExceeded`] if it needs more than the
    /// device has; [`ErrorKind::NoDriver`], [`ErrorKind::NoDevice`] or [`ErrorKind::Config`] without a device.
    /// Also what [any command](crate#errors) may give.
    pub fn from_glsl(source: &str) -> Result<Self> {
        Self::builder(source).build()
    }

    /// Loads a SPIR-V module for the current device, unchecked.
    ///
    /// # Safety
    ///
    /// The module is valid SPIR-V for the device: `spirv-val --target-env vulkan1.2` accepts it. No
    /// invocation reads or writes outside the buffers and addresses that a launch gets, or indexes
    /// past the end of its own arrays. Every loop ends.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidModule`] if the reader finds it damaged, and as [`from_glsl`](Self::from_glsl).
    pub unsafe fn from_spirv<'a>(module: impl Into<Spirv<'a>>) -> Result<Self> {
        // SAFETY: the caller vouches for the module.
        unsafe { Self::builder(module.into()).build_unchecked() }
    }

    /// A builder, for an entry point, definitions, constants or another device.
    pub fn builder<'a>(source: impl Into<Source<'a>>) -> KernelBuilder<'a> {
        KernelBuilder {
            source: source.into(),
            file: None,
            entry: None,
            defines: Vec::new(),
            include_dirs: Vec::new(),
            specialization: Vec::new(),
            device: DeviceArg::CURRENT,
        }
    }

    /// What the kernel takes, as its module declares it.
    pub fn interface(&self) -> &Interface {
        self.0.program.interface()
    }

    /// The device that it was built for.
    pub fn device(&self) -> Device {
        self.0.slot.device()
    }

    /// Launches the kernel on the current stream of its device.
    ///
    /// # Errors
    ///
    /// As [`Stream::launch`](crate::Stream::launch).
    pub fn launch<'a>(&self, grid: Grid, args: impl Args<'a>) -> Result<()> {
        current_stream(&self.0.slot).launch(self, grid, args)
    }

    /// Launches the kernel on the current stream of its device, with as many workgroups as three
    /// words of device memory say when it runs.
    ///
    /// # Errors
    ///
    /// As [`Stream::launch_indirect`](crate::Stream::launch_indirect), which has an example.
    #[track_caller]
    pub fn launch_indirect<'a, 'b>(
        &self,
        counts: impl Into<View<'b, u32>>,
        args: impl Args<'a>,
    ) -> Result<()> {
        current_stream(&self.0.slot).launch_indirect(self, counts, args)
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.0.slot
    }

    pub(super) fn program(&self) -> &Program {
        &self.0.program
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("entry", &self.interface().entry)
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}

/// Makes a [`Kernel`] with settings.
///
/// # Example
///
/// ```
/// # #[cfg(feature = "glsl")] {
/// # if vkaccel::device_count() == 0 { return Ok(()); }
/// let kernel = vkaccel::Kernel::builder(
///     "#version 450
///      layout(local_size_x_id = 3) in;
///      layout(set = 0, binding = 0) buffer Out { uint word[]; };
///      void main() { word[gl_GlobalInvocationID.x] = VALUE; }",
/// )
/// .define("VALUE", "7")
/// .specialize(3, 32)
/// .build()?;
/// assert_eq!(kernel.interface().local_size, [32, 1, 1]);
/// # }
/// # Ok::<(), vkaccel::Error>(())
/// ```
#[must_use = "nothing happens before `build`"]
#[derive(Clone, Debug)]
pub struct KernelBuilder<'a> {
    source: Source<'a>,
    file: Option<PathBuf>,
    entry: Option<String>,
    defines: Vec<(String, String)>,
    include_dirs: Vec<PathBuf>,
    specialization: Vec<(u32, SpecValue)>,
    device: DeviceArg,
}

/// A module that was read and fits the device, and what its pipeline is made from.
struct Loaded {
    slot: Arc<Slot>,
    module: Module,
    interface: Interface,
    /// Where the source came from.
    file: Option<PathBuf>,
    /// The bits of the specialization constants that were set, by id.
    specialization: Vec<(u32, u64)>,
    origin: Origin,
}

/// Where a module comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// It was compiled here, and so is valid.
    Compiled,
    /// It was compiled here, from a shader that holds instructions of its author's.
    CompiledUnchecked,
    /// It was given as SPIR-V.
    Elsewhere,
}

impl KernelBuilder<'_> {
    /// Chooses the entry point. Without, it is `main`, or the only one there is.
    ///
    /// GLSL has the one entry point `main`; a SPIR-V module may have several, which
    /// [`Spirv::entry_points`](crate::Spirv::entry_points) lists.
    ///
    /// # Example
    ///
    /// ```
    /// # #[cfg(feature = "glsl")] {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let kernel = vkaccel::Kernel::builder("#version 450\nvoid main() {}").entry("main").build()?;
    /// assert_eq!(kernel.interface().entry, "main");
    /// # }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn entry(mut self, name: &str) -> Self {
        self.entry = Some(name.to_owned());
        self
    }

    /// Defines a macro for GLSL, as `#define NAME VALUE`.
    pub fn define(mut self, name: &str, value: &str) -> Self {
        self.defines.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a folder in which `#include` looks; the first one added is the first one searched.
    ///
    /// # Example
    ///
    /// ```
    /// # #[cfg(feature = "glsl")] {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let folder = std::env::temp_dir().join("vkaccel_include_example");
    /// std::fs::create_dir_all(&folder).expect("a folder");
    /// std::fs::write(folder.join("twice.glsl"), "uint twice(uint x) { return 2 * x; }").expect("a file");
    /// let kernel = vkaccel::Kernel::builder(
    ///     "#version 450
    ///      #extension GL_GOOGLE_include_directive : require
    ///      #include \"twice.glsl\"
    ///      layout(set = 0, binding = 0) buffer Data { uint data[]; };
    ///      void main() { data[0] = twice(data[0]); }",
    /// )
    /// .include_dir(&folder)
    /// .build()?;
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # let _ = kernel;
    /// # }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn include_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.include_dirs.push(path.as_ref().to_owned());
        self
    }

    /// Says which file the source came from: messages name it, and `#include "..."` starts there.
    ///
    /// # Example
    ///
    /// ```
    /// # #[cfg(feature = "glsl")] {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let kernel = vkaccel::Kernel::builder("#version 450\nvoid main() { x = 1; }").file("shaders/broken.comp");
    /// assert!(kernel.build().unwrap_err().to_string().contains("shaders/broken.comp:2"));
    /// # }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.file = Some(path.as_ref().to_owned());
        self
    }

    /// Sets a specialization constant.
    pub fn specialize(mut self, id: u32, value: impl Into<SpecValue>) -> Self {
        self.specialization.push((id, value.into()));
        self
    }

    /// Builds the kernel for this device instead of the thread's current one.
    ///
    /// # Example
    ///
    /// ```
    /// # #[cfg(feature = "glsl")] {
    /// # if vkaccel::device_count() == 0 { return Ok(()); }
    /// let kernel = vkaccel::Kernel::builder("#version 450\nvoid main() {}").device("vulkan:0").build()?;
    /// assert_eq!(kernel.device(), "vulkan:0".parse()?);
    /// # }
    /// # Ok::<(), vkaccel::Error>(())
    /// ```
    pub fn device(mut self, device: impl Into<DeviceArg>) -> Self {
        self.device = device.into();
        self
    }

    /// Builds a checked kernel: from GLSL that uses descriptors alone, or, with the feature
    /// `spirv-val`, from such SPIR-V too, which is validated first.
    ///
    /// # Errors
    ///
    /// As [`Kernel::from_glsl`]; [`ErrorKind::Unsupported`] with
    /// [`Details::NotCheckable`](crate::Details::NotCheckable) for what cannot be checked, naming
    /// [`build_unchecked`](Self::build_unchecked); [`ErrorKind::EntryPointNotFound`],
    /// [`ErrorKind::InvalidArgument`] for a constant that the shader does not have; [`ErrorKind::InvalidDevice`]
    /// if [`device`](Self::device) names no visible device.
    pub fn build(self) -> Result<Kernel> {
        let loaded = self.load()?;
        let words = loaded.checked_words()?;
        // SAFETY: the module is valid, uses descriptors alone, whose accesses the device checks, and
        // its other indices were clamped; `checked_words` has found all of that.
        unsafe { loaded.finish(&words) }
    }

    /// Builds a kernel without bounds checks of its own.
    ///
    /// # Safety
    ///
    /// As [`Kernel::from_spirv`]. For GLSL, the module is valid, and the rest is to be kept.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub unsafe fn build_unchecked(self) -> Result<Kernel> {
        let loaded = self.load()?;
        // SAFETY: the caller vouches for the module.
        unsafe { loaded.finish(loaded.module.words()) }
    }

    fn load(self) -> Result<Loaded> {
        let runtime = Runtime::current();
        let slot = Arc::clone(runtime.slot(&self.device)?);
        let (words, origin) = self.words()?;
        let module = Module::parse(&words)?;
        // The constants' defaults need not be of use: they may be there to be replaced.
        let bits = constant_bits(&spec_constants(&module)?, &self.specialization)?;
        let interface = reflect(&module, self.entry.as_deref(), &bits)?;
        Ok(Loaded {
            slot,
            module,
            interface,
            file: self.file,
            specialization: bits,
            origin,
        })
    }

    /// The words, and where they come from.
    fn words(&self) -> Result<(Vec<u32>, Origin)> {
        match &self.source.0 {
            SourceKind::Glsl(text) => {
                let request = GlslRequest {
                    source: text,
                    file: self.file.as_deref(),
                    defines: &self.defines,
                    include_dirs: &self.include_dirs,
                };
                let compiled = glsl::compile(&request)?;
                let origin = match compiled.has_any_instruction {
                    true => Origin::CompiledUnchecked,
                    false => Origin::Compiled,
                };
                Ok((compiled.words, origin))
            }
            SourceKind::Spirv(_) if !self.defines.is_empty() => Err(Error::new(
                ErrorKind::InvalidArgument,
                "a macro was defined for a SPIR-V module, which is compiled already; use \
                 specialization constants instead",
            )),
            SourceKind::Spirv(module) => Ok((module.words()?.into_owned(), Origin::Elsewhere)),
        }
    }
}

impl Loaded {
    /// The module's words with all indices clamped, or why that cannot make it safe.
    fn checked_words(&self) -> Result<Vec<u32>> {
        let opened = self.slot.open()?;
        let plan = opened.device.plan();
        match self.origin {
            Origin::Compiled => {}
            Origin::CompiledUnchecked => return Err(safety::any_instruction()),
            Origin::Elsewhere => validate::validate(self.module.words(), plan.version.minor)?,
        }
        safety::check(&self.module, &self.specialization)?;
        if !plan.features.contains(Feature::RobustBufferAccess) {
            return Err(safety::refusal(format_args!(
                "the runtime was built without {}",
                Feature::RobustBufferAccess.name()
            )));
        }
        clamp::clamp(&self.module)
    }

    /// Makes the kernel.
    ///
    /// # Safety
    ///
    /// As [`Program::new`], for words that differ from the module's at most by clamped indices.
    unsafe fn finish(&self, words: &[u32]) -> Result<Kernel> {
        let opened = self.slot.open()?;
        let plan = opened.device.plan();
        let newest = (1, if plan.version.minor >= 3 { 6 } else { 5 });
        let version = self.module.version();
        if version > newest {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the module is SPIR-V {}.{}, but {} takes up to {}.{}; compile it for Vulkan {}",
                    version.0,
                    version.1,
                    opened.device.name(),
                    newest.0,
                    newest.1,
                    plan.version,
                ),
            ));
        }
        let interface = self.interface.clone();
        check::check_program(&interface, &plan.limits, plan.features).map_err(|error| {
            error.context(check::kernel_name(&interface.entry, self.file.as_deref()))
        })?;
        let constants = interface.spec_constants.iter();
        let specialization: Vec<_> = constants
            .filter_map(|constant| {
                let set = self
                    .specialization
                    .iter()
                    .rfind(|(id, _)| *id == constant.id)?;
                let size_bytes = constant.ty.size_bytes();
                Some(Specialization {
                    id: constant.id,
                    bits: set.1,
                    size_bytes,
                })
            })
            .collect();
        // SAFETY: the caller vouches for the words; the interface was read from them.
        let program = unsafe {
            Program::new(
                &opened.device,
                words,
                interface,
                self.file.as_deref(),
                &specialization,
            )
        }?;
        Ok(Kernel(Arc::new(Inner {
            program,
            slot: Arc::clone(&self.slot),
        })))
    }
}
