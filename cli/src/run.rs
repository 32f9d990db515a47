//! `vkaccel run`: a shader on arrays.

use std::path::Path;
use std::time::Instant;

use vkaccel::{Arg, Buffer, Device, Grid, Interface, Kernel, Runtime, Severity, Stream, Type};

use crate::bind::{self, Slot};
use crate::exit::{Failure, let_stderr};
use crate::npy::{self, Array, ArrayType};
use crate::options::{LaunchSize, RunOptions};
use crate::push;
use crate::shader::Shader;
use crate::values::{BufferOption, BufferSource};

/// Runs the shader and writes what was asked for.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    // Whatever is wrong with the options and the files is said before a device is touched.
    let device = device(options)?;
    let shader = Shader::read(options)?;
    check_folders(options)?;
    let inputs: Vec<Input> = options
        .buffers
        .iter()
        .map(Input::read)
        .collect::<Result<_, _>>()?;

    let runtime = Runtime::builder().validation(options.validate).build();
    let done = {
        let _entered = runtime.enter();
        launch(options, &shader, device, &inputs)
    };
    let closed = runtime.shutdown();
    // What the layer had to say may be why something failed, so it comes first.
    let validated = match options.validate {
        true => tell_messages(&runtime),
        false => Ok(()),
    };
    done?;
    closed?;
    validated
}

/// An array for a buffer.
struct Input {
    name: String,
    ty: ArrayType,
    /// Its numbers; nothing where it starts as zeros.
    data: Option<Vec<u8>>,
}

impl Input {
    fn read(option: &BufferOption) -> Result<Self, Failure> {
        let name = option.name.clone();
        match &option.source {
            BufferSource::Zeros(ty) => Ok(Self {
                name,
                ty: ty.clone(),
                data: None,
            }),
            BufferSource::File(path) => {
                let Array { ty, data } = npy::read_file(path).map_err(|error| {
                    Failure::usage(format!("cannot read {}: {error}", path.display()))
                })?;
                Ok(Self {
                    name,
                    ty,
                    data: Some(data),
                })
            }
        }
    }

    fn upload(&self, stream: &Stream) -> vkaccel::Result<Buffer<u8>> {
        match &self.data {
            Some(data) => stream.upload(data),
            None => stream.zeroed(self.ty.bytes),
        }
    }

    /// Says it where the shader reads another type than the array holds: the bytes go as they are.
    fn warn_of_type(&self, slot: &Slot) {
        if let Some(scalar) = slot.scalar
            && self.ty.dtype.is_unlike(scalar)
        {
            let_stderr(format_args!(
                "warning: the array for {} holds {}, and the shader reads it as {}",
                slot.label(),
                self.ty.dtype,
                scalar.name()
            ));
        }
    }
}

fn device(options: &RunOptions) -> Result<Device, Failure> {
    let Some(text) = &options.device else {
        return Ok(Device::new(0));
    };
    if let Ok(index) = text.parse::<u32>() {
        return Ok(Device::new(index));
    }
    text.parse()
        .map_err(|error| Failure::usage(format!("--device {text}: {error}, or an index alone")))
}

/// Folders to read from and to write to, before anything is computed for nothing.
fn check_folders(options: &RunOptions) -> Result<(), Failure> {
    for folder in &options.includes {
        if !folder.is_dir() {
            return Err(Failure::usage(format!(
                "--include {}: there is no such folder",
                folder.display()
            )));
        }
    }
    for out in &options.outs {
        let folder = match out.file.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let why = if out.file.is_dir() {
            "it is a folder".to_owned()
        } else {
            match folder.metadata() {
                Ok(folder) if folder.is_dir() => continue,
                Ok(_) => format!("{} is no folder", folder.display()),
                Err(error) => format!("{}: {error}", folder.display()),
            }
        };
        return Err(Failure::usage(format!(
            "--out {}: cannot write a file there: {why}",
            out.file.display()
        )));
    }
    Ok(())
}

fn launch(
    options: &RunOptions,
    shader: &Shader,
    device: Device,
    inputs: &[Input],
) -> Result<(), Failure> {
    let stream = Stream::new(device)?;
    let kernel = shader.build(options, device)?;
    let interface = kernel.interface();

    let slots = bind::slots(interface);
    let names: Vec<&str> = inputs.iter().map(|input| &*input.name).collect();
    let assigned = bind::assign(&slots, &names).map_err(Failure::run)?;
    let outs = options
        .outs
        .iter()
        .map(|out| {
            bind::find(&slots, &out.name)
                .map_err(|text| Failure::run(format!("--out {}: {text}", out.name)))
        })
        .collect::<Result<Vec<usize>, _>>()?;
    let block =
        push::fill(interface.push_constants.as_ref(), &options.push).map_err(Failure::run)?;

    let mut buffers = Vec::with_capacity(slots.len());
    for (slot, &input) in slots.iter().zip(&assigned) {
        inputs[input].warn_of_type(slot);
        buffers.push(inputs[input].upload(&stream)?);
    }
    let args = arguments(interface, &buffers, &block);
    repeat(options, &stream, &kernel, &args)?;

    for (out, &slot) in options.outs.iter().zip(&outs) {
        let data = buffers[slot].to_vec()?;
        npy::write_file(&out.file, &inputs[assigned[slot]].ty, &data).map_err(|error| {
            Failure::run(format!("cannot write {}: {error}", out.file.display()))
        })?;
    }
    Ok(())
}

/// The arguments of a launch, in the interface's order: descriptors, then push constants, a member
/// each, of which the addresses are buffers again.
fn arguments<'a>(
    interface: &Interface,
    buffers: &'a [Buffer<u8>],
    block: &'a [u8],
) -> Vec<Arg<'a>> {
    let (descriptors, mut addresses) = buffers.split_at(interface.bindings.len());
    let mut args: Vec<Arg<'a>> = descriptors.iter().map(Arg::from).collect();
    for member in interface
        .push_constants
        .iter()
        .flat_map(|block| &block.members)
    {
        if let Type::Address { .. } = member.ty
            && let [buffer, rest @ ..] = addresses
        {
            args.push(Arg::from(buffer));
            addresses = rest;
        } else {
            let start = usize::try_from(member.offset_bytes).unwrap_or(usize::MAX);
            let size = usize::try_from(member.size_bytes).unwrap_or(usize::MAX);
            let end = start.saturating_add(size);
            args.push(Arg::bytes(block.get(start..end).unwrap_or(&[])));
        }
    }
    args
}

fn repeat(
    options: &RunOptions,
    stream: &Stream,
    kernel: &Kernel,
    args: &[Arg<'_>],
) -> Result<(), Failure> {
    let grid = match options.size {
        LaunchSize::Groups(groups) => Grid::groups(groups),
        LaunchSize::Elements(elements) => Grid::elements(elements),
    };
    // Uploads are not what is timed.
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..options.repeat {
        stream.launch(kernel, grid, args)?;
    }
    stream.synchronize()?;
    let elapsed = start.elapsed();
    if options.time {
        let each = elapsed.as_secs_f64() * 1e3 / f64::from(options.repeat);
        let_stderr(format_args!(
            "{each:.4} ms per launch ({} in {:.4} ms)",
            options.repeat,
            elapsed.as_secs_f64() * 1e3
        ));
    }
    Ok(())
}

/// Prints what the validation layer had to say, and fails if that is anything.
fn tell_messages(runtime: &Runtime) -> Result<(), Failure> {
    let messages = runtime.take_validation_messages();
    for message in &messages {
        let severity = match message.severity {
            Severity::Error => "error",
            _ => "warning",
        };
        let_stderr(format_args!("validation {severity}: {}", message.text));
    }
    match messages.len() {
        0 => Ok(()),
        1 => Err(Failure::run("the validation layer has 1 message")),
        n => Err(Failure::run(format!(
            "the validation layer has {n} messages"
        ))),
    }
}
