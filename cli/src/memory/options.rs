//! The options of `vkaccel memory`.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use vkaccel::alloc::AllocConf;

use crate::options::{flag, option};

/// What `vkaccel memory` was asked to do.
#[derive(Debug)]
pub enum MemoryRequest {
    /// `vkaccel memory replay`.
    Replay(Box<ReplayOptions>),
    /// `vkaccel memory export`.
    Export(ExportOptions),
}

/// The options of `vkaccel memory replay`.
#[derive(Debug)]
pub struct ReplayOptions {
    pub file: PathBuf,
    /// The settings to try, as spelled and as understood; none for the file's own.
    pub confs: Vec<(String, AllocConf)>,
    pub total: Option<u64>,
    pub no_limits: bool,
    pub device: Option<u32>,
    pub check: bool,
    pub json: bool,
    pub outs: Outs,
}

/// The options of `vkaccel memory export`.
#[derive(Debug)]
pub struct ExportOptions {
    pub file: PathBuf,
    pub device: Option<u32>,
    pub outs: Outs,
}

/// The files to write a snapshot to.
#[derive(Debug, Default)]
pub struct Outs {
    pub html: Option<PathBuf>,
    pub pickle: Option<PathBuf>,
    pub lines: Option<PathBuf>,
}

impl Outs {
    fn take(matches: &mut ArgMatches) -> Self {
        Self {
            html: matches.remove_one("html"),
            pickle: matches.remove_one("pickle"),
            lines: matches.remove_one("lines"),
        }
    }

    /// Each with its option.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let outs = [
            ("--html", &self.html),
            ("--pickle", &self.pickle),
            ("--lines", &self.lines),
        ];
        outs.into_iter()
            .filter_map(|(option, out)| Some((option, out.as_deref()?)))
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

const FILES_HELP: &str = "\
FILE is one of these, told by its content; - is the standard input:
  JSON lines, as `MemorySnapshot::write_json_lines` and `vkaccel memory export --lines` write them;
  a snapshot of PyTorch's: `torch.cuda.memory._dump_snapshot(FILE)`, or what it returns, pickled;
  a golden trace: a header, then an operation a line with what PyTorch's allocator made of it.";

const REPLAY_HELP: &str = "\
STRING is spelled as VKACCEL_ALLOC_CONF is: max_split_size_mb:64,garbage_collection_threshold:0.8;
'' stands for the defaults. With several --conf there is a column for each.
--html, --pickle and --lines write what happened on the simulated device, of one --conf at most.

A snapshot needs a history: what was recorded is done again on a device that is simulated, with the
allocator that vkaccel has, so that the figures are those of a run with these settings. Blocks from
before the history are allocated first. The limits of the program, `set_memory_limit` and
`set_per_process_memory_fraction`, hold here, too, unless --no-limits is given or, for the latter, the
settings have a share of their own. Blocks that stayed in use for a while after they were given
back are in use as long here.

Exit codes: 0 done, and with --check equal; 1 different; 2 malformed options or an unusable file.

Example:
  vkaccel memory replay snapshot.pickle --total 24GiB --conf '' --conf max_split_size_mb:128
";

/// The definition of `vkaccel memory`.
pub fn command() -> Command {
    Command::new("memory")
        .about("Replays what a program did with memory under other settings, and shows it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(replay_command())
        .subcommand(export_command())
}

fn replay_command() -> Command {
    Command::new("replay")
        .about("Does again, on a simulated device, what a program did with memory")
        .arg(file_arg())
        .arg(
            option(
                "conf",
                "STRING",
                "Tries these settings; the file's own if not given",
            )
            .action(ArgAction::Append)
            .value_parser(conf),
        )
        .arg(
            option(
                "total",
                "BYTES",
                "What the device has, as 8589934592 or 8GiB; what the file says if not given",
            )
            .value_parser(bytes),
        )
        .arg(flag(
            "no-limits",
            "Leaves out the limits that the program set when it was recorded",
        ))
        .arg(device_arg())
        .arg(
            flag(
                "check",
                "Compares every statistic and placement with those of a golden trace",
            )
            .conflicts_with_all([
                "conf",
                "total",
                "no-limits",
                "html",
                "pickle",
                "lines",
                "json",
                "device",
            ]),
        )
        .arg(flag("json", "Print JSON"))
        .args(out_args())
        .after_help(format!("{FILES_HELP}\n\n{REPLAY_HELP}"))
}

fn export_command() -> Command {
    Command::new("export")
        .about("Writes a snapshot in other formats")
        .arg(file_arg())
        .args(out_args())
        .group(
            ArgGroup::new("out")
                .args(["html", "pickle", "lines"])
                .multiple(true)
                .required(true),
        )
        .arg(device_arg())
        .after_help(FILES_HELP)
}

fn out_args() -> [Arg; 3] {
    let out = |name, help| option(name, "OUT", help).value_parser(value_parser!(PathBuf));
    [
        out("html", "Writes a page for browsers, which loads nothing"),
        out(
            "pickle",
            "Writes what PyTorch's _memory_viz.py and https://pytorch.org/memory_viz read",
        ),
        out("lines", "Writes JSON lines"),
    ]
}

fn file_arg() -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The file")
}

fn device_arg() -> Arg {
    option(
        "device",
        "N",
        "The device of a snapshot of PyTorch's that has several",
    )
    .value_parser(value_parser!(u32))
}

/// Reads the options of `vkaccel memory`.
pub fn request(mut matches: ArgMatches) -> Result<MemoryRequest, clap::Error> {
    match matches.remove_subcommand() {
        Some((name, matches)) if name == "replay" => replay_options(matches),
        Some((_, matches)) => Ok(MemoryRequest::Export(export_options(matches))),
        None => Err(command().error(
            clap::error::ErrorKind::MissingSubcommand,
            "say what to do: replay or export",
        )),
    }
}

fn replay_options(mut matches: ArgMatches) -> Result<MemoryRequest, clap::Error> {
    let confs = matches.remove_many("conf");
    let options = ReplayOptions {
        file: matches.remove_one("file").unwrap_or_default(),
        confs: confs.map_or_else(Vec::new, Iterator::collect),
        total: matches.remove_one("total"),
        no_limits: matches.get_flag("no-limits"),
        device: matches.remove_one("device"),
        check: matches.get_flag("check"),
        json: matches.get_flag("json"),
        outs: Outs::take(&mut matches),
    };
    if !options.outs.is_empty() && options.confs.len() > 1 {
        let text = "--html, --pickle and --lines tell of one run: give one --conf";
        // Made apart from the whole, the command does not know what it is called by.
        let mut command = replay_command().bin_name("vkaccel memory replay");
        return Err(command.error(clap::error::ErrorKind::ArgumentConflict, text));
    }
    Ok(MemoryRequest::Replay(Box::new(options)))
}

fn export_options(mut matches: ArgMatches) -> ExportOptions {
    ExportOptions {
        file: matches.remove_one("file").unwrap_or_default(),
        device: matches.remove_one("device"),
        outs: Outs::take(&mut matches),
    }
}

fn conf(text: &str) -> Result<(String, AllocConf), String> {
    let conf = text
        .parse()
        .map_err(|error: vkaccel::Error| error.to_string())?;
    Ok((text.to_owned(), conf))
}

/// A number of bytes, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a number of bytes: as 8589934592, 8192MiB or 8GiB");
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MemoryRequest, clap::Error> {
        let args = ["memory"].into_iter().chain(text.split_whitespace());
        request(command().try_get_matches_from(args)?)
    }

    #[test]
    fn settings_are_understood_and_keep_their_order() {
        let text = "replay f --conf max_split_size_mb:64 --conf garbage_collection_threshold:0.5";
        let Ok(MemoryRequest::Replay(options)) = read(text) else {
            panic!("not read");
        };
        assert_eq!(options.confs[0].1.max_split_size(), Some(64 << 20));
        assert_eq!(options.confs[1].0, "garbage_collection_threshold:0.5");
    }

    #[test]
    fn sizes_have_units_or_none() {
        assert_eq!(bytes("12"), Ok(12));
        assert_eq!(bytes("3GiB"), Ok(3 << 30));
        for wrong in ["", "GiB", "3GB", "-3", "1.5GiB", "99999999999TiB", "3 GiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn malformed_command_lines_end_with_code_2() {
        for text in [
            "replay",
            "replay f --conf nonsense:1",
            "replay f --total x",
            "replay f --check --conf max_split_size_mb:64",
            "replay f --check --json",
            "replay f --check --no-limits",
            "replay f --html o --conf max_split_size_mb:64 --conf max_split_size_mb:65",
            "export f",
            "export f --device x --html o",
            "shrink f",
        ] {
            assert_eq!(read(text).unwrap_err().exit_code(), 2, "{text}");
        }
    }
}
