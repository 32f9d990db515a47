//! Compares vkaccel's spec with another version of it, or with the names of a PyTorch.
//!
//! ```text
//! spec-diff OLD NEW
//! ```
//!
//! Each is a folder with `api.yaml` and `memory_stats.yaml`, one of these files, or a list that `torch_names.py` wrote. Like
//! `diff`, it ends with 0 if both are the same, 1 if they differ, 2 if something went wrong.

mod compare;
mod read;
mod surface;

use std::env;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [old, new] = arguments.as_slice() else {
        eprintln!(
            "usage: spec-diff OLD NEW  (folders or files of a spec, or lists by torch_names.py)"
        );
        return ExitCode::from(2);
    };
    let both = read::surface(Path::new(old)).and_then(|old| {
        let new = read::surface(Path::new(new))?;
        Ok((old, new))
    });
    match both {
        Ok((old, new)) => {
            let difference = compare::compare(&old, &new);
            println!("old: {old}\nnew: {new}\n{difference}");
            ExitCode::from(u8::from(!difference.is_empty()))
        }
        Err(error) => {
            eprintln!("spec-diff: {error}");
            ExitCode::from(2)
        }
    }
}
