//! The files that `vkaccel memory` writes.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use vkaccel::alloc::MemorySnapshot;

use super::options::Outs;
use crate::exit::Failure;

/// Says before anything is computed for nothing that files can't be written.
pub fn check_folders(outs: &Outs) -> Result<(), Failure> {
    outs.all()
        .try_for_each(|(option, file)| check_folder(option, file))
}

fn check_folder(option: &str, file: &Path) -> Result<(), Failure> {
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let why = if file.is_dir() {
        "it is a folder".to_owned()
    } else if !folder.is_dir() {
        format!("there is no folder {}", folder.display())
    } else {
        return Ok(());
    };
    Err(Failure::usage(format_args!(
        "{option} {}: cannot write a file there: {why}",
        file.display()
    )))
}

/// Writes a file.
fn write(
    file: &Path,
    content: impl FnOnce(BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    let created = File::create(file).map(|file| BufWriter::with_capacity(1 << 16, file));
    created
        .and_then(content)
        .map_err(|error| Failure::run(format_args!("cannot write {}: {error}", file.display())))
}

/// Writes a snapshot to each file that was asked for.
pub fn write_all(outs: &Outs, snapshot: &MemorySnapshot) -> Result<(), Failure> {
    if let Some(file) = &outs.html {
        write(file, |out| snapshot.write_html(out))?;
    }
    if let Some(file) = &outs.pickle {
        write(file, |out| snapshot.write_pickle(out))?;
    }
    if let Some(file) = &outs.lines {
        write(file, |out| snapshot.write_json_lines(out))?;
    }
    Ok(())
}
