//! `vkaccel memory export`: a snapshot in other formats.

use super::files;
use super::input::{self, Input};
use super::options::ExportOptions;
use crate::exit::Failure;

/// Reads a snapshot and writes it in each format that was asked for.
pub fn run(options: &ExportOptions) -> Result<(), Failure> {
    files::check_folders(&options.outs)?;
    let snapshot = match input::open(&options.file, options.device)? {
        Input::Recorded(recorded) => recorded.snapshot,
        Input::Golden(..) => {
            return Err(Failure::usage(format_args!(
                "{} is a golden trace, and no snapshot: `vkaccel memory replay --html` shows it",
                options.file.display()
            )));
        }
    };
    files::write_all(&options.outs, &snapshot)
}
