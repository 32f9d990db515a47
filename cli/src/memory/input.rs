//! Opens the files of `vkaccel memory`, whatever their kind.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::golden::{self, Golden, Header};
use super::lines::{self, Recorded};
use super::pickle::Pickle;
use super::text::Lines;
use super::torch;
use crate::exit::Failure;

/// The largest pickle that is read; it has to fit into the memory, several times over.
const MAX_PICKLE: u64 = 1 << 30;

type Source = Box<dyn BufRead>;

/// A file.
pub enum Input {
    Golden(Header, Box<Golden<Source>>),
    Recorded(Box<Recorded>),
}

/// Opens a file, or the standard input for `-`. Of a snapshot of several devices one is `asked` for.
pub fn open(path: &Path, asked: Option<u32>) -> Result<Input, Failure> {
    let name = path.display().to_string();
    let cannot = |error: io::Error| Failure::usage(format_args!("cannot read {name}: {error}"));
    let mut source: Source = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        if path.is_dir() {
            return Err(Failure::usage(format_args!("{name} is a folder")));
        }
        let file = File::open(path).map_err(cannot)?;
        Box::new(BufReader::with_capacity(1 << 16, file))
    };
    match source.fill_buf().map_err(cannot)?.first() {
        None => Err(Failure::usage(format_args!("{name} is empty"))),
        Some(0x80) => read_pickle(source, &name, asked),
        Some(b'{') => read_lines(Lines::new(source, &name)),
        Some(_) => Err(Failure::usage(format_args!(
            "{name} is no golden trace, no JSON lines of vkaccel and no pickled snapshot of PyTorch"
        ))),
    }
}

fn read_pickle(source: Source, name: &str, asked: Option<u32>) -> Result<Input, Failure> {
    let fault = |text: String| Failure::usage(format_args!("{name}: {text}"));
    let mut data = Vec::new();
    let read = source.take(MAX_PICKLE + 1).read_to_end(&mut data);
    read.map_err(|error| fault(error.to_string()))?;
    if data.len() as u64 > MAX_PICKLE {
        return Err(fault(format!(
            "a snapshot of more than {} MiB is not read: record fewer entries (`max_entries`)",
            MAX_PICKLE >> 20
        )));
    }
    let pickle = Pickle::read(&data).map_err(|error| fault(error.to_string()))?;
    let recorded = torch::read(&pickle, asked).map_err(fault)?;
    Ok(Input::Recorded(Box::new(recorded)))
}

fn read_lines(mut lines: Lines<Source>) -> Result<Input, Failure> {
    let first = lines.next()?.unwrap_or_default();
    let header: Value = match serde_json::from_slice(first) {
        Ok(header) => header,
        Err(error) => return Err(lines.fault(format_args!("it is no JSON: {error}"))),
    };
    if golden::is_header(&header) {
        let header = Header::read(&header).map_err(|text| lines.fault(text))?;
        return Ok(Input::Golden(header, Box::new(Golden::new(lines))));
    }
    if lines::is_header(&header) {
        let recorded = lines::read(&header, lines)?;
        return Ok(Input::Recorded(Box::new(recorded)));
    }
    Err(lines.fault("`format` is neither 1, as of golden traces, nor \"vkaccel-memory\""))
}
