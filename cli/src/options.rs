//! The options of the program: what it takes and says about itself.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};

use crate::memory::options::{self as memory, MemoryRequest};
use crate::values::{self, BufferOption, ConstOption, DefineOption, OutOption, PushOption};

/// What the program was asked to do.
#[derive(Debug)]
pub enum Request {
    /// `vkaccel info`.
    Info(InfoOptions),
    /// `vkaccel run`.
    Run(Box<RunOptions>),
    /// `vkaccel memory`.
    Memory(MemoryRequest),
}

/// The options of `vkaccel info`.
#[derive(Debug)]
pub struct InfoOptions {
    /// Also tell what was left out.
    pub all: bool,
    /// For programs.
    pub json: bool,
}

/// The options of `vkaccel run`.
#[derive(Debug)]
pub struct RunOptions {
    pub shader: PathBuf,
    pub entry: Option<String>,
    pub defines: Vec<DefineOption>,
    pub includes: Vec<PathBuf>,
    pub constants: Vec<ConstOption>,
    pub buffers: Vec<BufferOption>,
    pub push: Vec<PushOption>,
    pub size: LaunchSize,
    pub outs: Vec<OutOption>,
    pub device: Option<String>,
    pub repeat: u32,
    pub time: bool,
    pub validate: bool,
}

/// How much to launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaunchSize {
    /// So many workgroups an axis.
    Groups([u32; 3]),
    /// Workgroups enough for so many invocations an axis.
    Elements([u32; 3]),
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 2 malformed options, missing or unreadable files; 1 whatever fails after that.";

const RUN_HELP: &str = "\
Buffers are named by the variable's name, the block's name, the name of a block's only member, or
SET.BINDING, as 0.1; for a kernel that takes addresses, by the name of the push-constant member.
Arrays reach the shader in C order, little-endian; an output has its input's shape and dtype.
Push constants are given in the order of members, vectors, matrices and arrays element by element.
DTYPE and TYPE are f16, f32, f64, i8, i16, i32, i64, u8, u16, u32 or u64; SHAPE is as 480,640.
A .npy file may hold bool, too: the shader sees a byte each, 0 or 1, as of u8.

A GLSL shader without device addresses can do no harm: its accesses are checked. A SPIR-V file, and
GLSL with buffer references, run without these checks: to run one is to trust it as a program.

--time tells the wall time from the first of N launches until all have finished, divided by N. No
launch comes before to warm up, since each one works on the buffers: raise N to see past the first.

Example:
  vkaccel run saxpy.comp --buffer x=x.npy --buffer y=y.npy --push f32=2 --elements 1000 --out y=y.npy
";

fn command() -> Command {
    Command::new("vkaccel")
        .about("Vulkan compute devices: what is there, run a shader on NumPy arrays, replay memory traces")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(EXIT_CODES)
        .subcommand(info_command())
        .subcommand(run_command())
        .subcommand(memory::command())
}

fn info_command() -> Command {
    Command::new("info")
        .about("Shows the devices, which one is chosen and why, what they can do, and their memory")
        .arg(flag(
            "all",
            "Also show the devices that were left out, with the reasons",
        ))
        .arg(flag("json", "Print JSON"))
}

fn run_command() -> Command {
    Command::new("run")
        .about("Runs a compute shader, GLSL or SPIR-V, on NumPy arrays")
        .override_usage(
            "vkaccel run [OPTIONS] <SHADER> (--groups <X[,Y[,Z]]> | --elements <X[,Y[,Z]]>)",
        )
        .arg(
            Arg::new("shader")
                .value_name("SHADER")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The shader: GLSL or SPIR-V, told by its content"),
        )
        .arg(option("buffer", "NAME=FILE.npy|NAME=zeros:DTYPE:SHAPE", "Binds an array to a buffer of the shader").action(ArgAction::Append).value_parser(values::buffer))
        .arg(option("push", "TYPE=V", "Gives the next push constant its value").action(ArgAction::Append).value_parser(values::push))
        .arg(option("groups", "X[,Y[,Z]]", "Launches so many workgroups").value_parser(values::extent))
        .arg(option("elements", "X[,Y[,Z]]", "Launches workgroups enough for so many invocations").value_parser(values::extent))
        .group(ArgGroup::new("size").args(["groups", "elements"]).required(true))
        .arg(option("out", "NAME=FILE.npy", "Writes a buffer when all launches are done").action(ArgAction::Append).value_parser(values::out))
        .arg(option("entry", "NAME", "The entry point; `main` if not given"))
        .arg(option("define", "K[=V]", "Defines a macro for GLSL; without a value it is 1").action(ArgAction::Append).value_parser(values::define))
        .arg(option("include", "DIR", "Looks for files that GLSL includes in this folder, after the including file's own").action(ArgAction::Append).value_parser(value_parser!(PathBuf)))
        .arg(option("const", "ID=V", "Gives a specialization constant its value").action(ArgAction::Append).value_parser(values::constant))
        .arg(option("device", "D", "The device: an index, or as vulkan:1; the first if not given"))
        .arg(option("repeat", "N", "Launches N times, on the same buffers").default_value("1").value_parser(values::repeat))
        .arg(flag("time", "Prints milliseconds per launch on stderr"))
        .arg(flag("validate", "Runs under the Vulkan validation layer; fails if it has anything to say, or is not installed"))
        .after_help(format!("{RUN_HELP}\n{EXIT_CODES}"))
}

/// An option with a value.
pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    // A number below zero is a wrong value, and not a wrong option.
    Arg::new(name)
        .long(name)
        .value_name(value)
        .help(help)
        .allow_negative_numbers(true)
}

/// An option without one.
pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .help(help)
        .action(ArgAction::SetTrue)
}

/// Reads the command line. An error knows what to print, and its exit code.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Request, clap::Error> {
    let mut matches = command().try_get_matches_from(args)?;
    Ok(match matches.remove_subcommand() {
        Some((name, matches)) if name == "info" => Request::Info(InfoOptions {
            all: matches.get_flag("all"),
            json: matches.get_flag("json"),
        }),
        Some((name, matches)) if name == "memory" => Request::Memory(memory::request(matches)?),
        Some((_, matches)) => Request::Run(Box::new(run_options(matches)?)),
        None => {
            return Err(command().error(
                clap::error::ErrorKind::MissingSubcommand,
                "say what to do: info, run or memory",
            ));
        }
    })
}

fn run_options(mut matches: ArgMatches) -> Result<RunOptions, clap::Error> {
    let fault = |text: String| run_command().error(clap::error::ErrorKind::ValueValidation, text);
    let size = match matches.remove_one("groups") {
        Some(groups) => LaunchSize::Groups(groups),
        None => LaunchSize::Elements(matches.remove_one("elements").unwrap_or([1; 3])),
    };
    let options = RunOptions {
        shader: matches.remove_one("shader").unwrap_or_default(),
        entry: matches.remove_one("entry"),
        defines: all(&mut matches, "define"),
        includes: all(&mut matches, "include"),
        constants: all(&mut matches, "const"),
        buffers: all(&mut matches, "buffer"),
        push: all(&mut matches, "push"),
        size,
        outs: all(&mut matches, "out"),
        device: matches.remove_one("device"),
        repeat: matches.remove_one("repeat").unwrap_or(1),
        time: matches.get_flag("time"),
        validate: matches.get_flag("validate"),
    };
    let twice = repeated(options.buffers.iter().map(|buffer| &buffer.name))
        .map(|name| format!("--buffer {name} is given twice"))
        .or_else(|| {
            repeated(options.constants.iter().map(|constant| constant.id))
                .map(|id| format!("--const {id} is given twice"))
        })
        .or_else(|| {
            repeated(options.defines.iter().map(|define| &define.name))
                .map(|name| format!("--define {name} is given twice"))
        })
        .or_else(|| {
            repeated(options.outs.iter().map(|out| &out.file))
                .map(|file| format!("two --out write the same file, {}", file.display()))
        });
    match twice {
        Some(text) => Err(fault(text)),
        None => Ok(options),
    }
}

fn all<T: Clone + Send + Sync + 'static>(matches: &mut ArgMatches, name: &str) -> Vec<T> {
    matches
        .remove_many(name)
        .map_or_else(Vec::new, Iterator::collect)
}

fn repeated<T: PartialEq>(items: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = Vec::new();
    for item in items {
        if seen.contains(&item) {
            return Some(item);
        }
        seen.push(item);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<RunOptions, clap::Error> {
        let args = ["vkaccel", "run"]
            .into_iter()
            .chain(text.split_whitespace());
        match parse(args.map(OsString::from))? {
            Request::Run(options) => Ok(*options),
            other => panic!("{other:?} is not run"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn options_keep_their_order() {
        let options =
            run("s --push f32=1 --push u32=2 --buffer b=b.npy --buffer a=a.npy --groups 2,3");
        let options = options.unwrap();
        let push: Vec<&str> = options.push.iter().map(|push| &*push.text).collect();
        let buffers: Vec<&str> = options.buffers.iter().map(|buffer| &*buffer.name).collect();
        assert_eq!((push, buffers), (vec!["1", "2"], vec!["b", "a"]));
        assert_eq!(options.size, LaunchSize::Groups([2, 3, 1]));
        assert_eq!(options.repeat, 1);
    }

    #[test]
    fn malformed_command_lines_end_with_code_2() {
        for text in [
            "",
            "s",
            "--groups 1",
            "s --groups 1 --elements 1",
            "s --groups x",
            "s --groups 1 --nonsense",
            "s t --groups 1",
            "s --groups 1 --buffer x",
            "s --groups 1 --buffer x=a --buffer x=b",
            "s --groups 1 --const 1=1 --const 1=2",
            "s --groups 1 --define A --define A=2",
            "s --groups 1 --out a=f --out b=f",
            "s --groups 1 --repeat 0",
            "s --groups 1 --push f32",
        ] {
            assert_eq!(run(text).unwrap_err().exit_code(), 2, "{text}");
        }
    }

    #[test]
    fn asking_for_help_is_no_failure() {
        for text in [
            "--help",
            "run --help",
            "info --help",
            "memory replay --help",
            "--version",
        ] {
            let args = ["vkaccel"].into_iter().chain(text.split_whitespace());
            let answer = parse(args.map(OsString::from)).unwrap_err();
            assert_eq!(answer.exit_code(), 0, "{text}");
        }
    }
}
