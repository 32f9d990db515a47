//! Turns pixels that the command line wrote into a picture.
//!
//! ```text
//! cargo run --example npy_to_png -- IN.npy OUT.png
//! ```
//!
//! The array holds `u8` and has the shape height × width × 4 (red, green, blue, alpha).

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;

mod picture;
use picture::Picture;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [input, output] = &arguments[..] else {
        eprintln!("usage: npy_to_png IN.npy OUT.png");
        return ExitCode::from(2);
    };
    let picture = read(Path::new(input))
        .map_err(|error| format!("{}: {error}", Path::new(input).display()).into());
    match picture.and_then(|picture| picture.write(Path::new(output))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("npy_to_png: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<Picture, Box<dyn Error>> {
    let array = npyz::NpyFile::new(BufReader::new(File::open(path)?))?;
    let shape = array.shape().to_vec();
    let (&[height, width, 4], npyz::Order::C) = (&shape[..], array.order()) else {
        return Err(format!("not height x width x 4 in C order, but {shape:?}").into());
    };
    let bytes: Vec<u8> = array.into_vec()?;
    Ok(Picture {
        width: u32::try_from(width)?,
        height: u32::try_from(height)?,
        pixels: bytes
            .chunks_exact(4)
            .map(|pixel| u32::from_le_bytes([pixel[0], pixel[1], pixel[2], pixel[3]]))
            .collect(),
    })
}
