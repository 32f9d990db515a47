//! `vkaccel memory export`: a snapshot in other formats.

use super::files;
use super::input::{self, Input};
use super::options::ExportOptions;
use crate::exit::Failure;

/// Reads a snapshot and writes it in each format that was asked for.
pub fn run(options: &ExportOptions) -> Result<(), Failure> {
    let outs = [
        ("--html", &options.html),
        ("--pickle", &options.pickle),
        ("--lines", &options.lines),
    ];
    for (option, out) in outs {
        if let Some(file) = out {
            files::check_folder(option, file)?;
        }
    }
    let snapshot = match input::open(&options.file, options.device)? {
        Input::Recorded(recorded) => recorded.snapshot,
        Input::Golden(..) => {
            return Err(Failure::usage(format_args!(
                "{} is a golden trace, and no snapshot: `vkaccel memory replay --html` shows it",
                options.file.display()
            )));
        }
    };
    if let Some(file) = &options.html {
        files::write_html(file, &snapshot)?;
    }
    if let Some(file) = &options.pickle {
        files::write_pickle(file, &snapshot)?;
    }
    if let Some(file) = &options.lines {
        files::write_lines(file, &snapshot)?;
    }
    Ok(())
}
