//! Finds the edges in a picture.
//!
//! ```text
//! cargo run --features glsl --example image_filter -- IN.png [OUT.png]
//! ```
//!
//! Any PNG is taken. The result is an RGBA PNG, `IN-edges.png` where no name is given.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use vkaccel::{Buffer, Grid, Kernel};

mod picture;
use picture::Picture;

const USAGE: &str = "usage: image_filter IN.png [OUT.png]";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (input, output) = match &arguments[..] {
        [input] => (PathBuf::from(input), beside(Path::new(input))),
        [input, output] => (PathBuf::from(input), PathBuf::from(output)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match filter(&input, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("image_filter: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The default output: the input's name with `-edges` before the extension.
fn beside(input: &Path) -> PathBuf {
    let mut name = input.file_stem().unwrap_or_default().to_os_string();
    name.push("-edges.png");
    input.with_file_name(name)
}

fn filter(input: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
    let picture = read(input).map_err(|error| format!("{}: {error}", input.display()))?;
    let (width, height) = (picture.width, picture.height);

    let kernel = Kernel::from_glsl(include_str!("../shaders/edge.comp"))?;
    let source = Buffer::from_slice(&picture.pixels)?;
    let target = Buffer::<u32>::uninit(source.len())?;
    kernel.launch(
        Grid::elements([width, height]),
        (&source, &target, width, height),
    )?;
    let pixels = target.to_vec()?;

    Picture { pixels, ..picture }.write(output)?;
    println!(
        "{width} x {height} pixels on {}: {}",
        target.device(),
        output.display()
    );
    Ok(())
}

/// Reads a PNG of any colour type and bit depth.
fn read(path: &Path) -> Result<Picture, Box<dyn Error>> {
    let mut decoder = png::Decoder::new(BufReader::new(File::open(path)?));
    // Palettes are looked up, 16 bits a channel become 8, fewer than 8 become 8.
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let size = reader.output_buffer_size().ok_or("too large a picture")?;
    let mut bytes = vec![0; size];
    let info = reader.next_frame(&mut bytes)?;
    let pixels = bytes[..info.buffer_size()]
        .chunks_exact(info.color_type.samples())
        .map(|pixel| match *pixel {
            [grey] => [grey, grey, grey, 255],
            [grey, alpha] => [grey, grey, grey, alpha],
            [red, green, blue] => [red, green, blue, 255],
            [red, green, blue, alpha, ..] => [red, green, blue, alpha],
            [] => [0; 4],
        })
        .map(u32::from_le_bytes)
        .collect();
    Ok(Picture {
        width: info.width,
        height: info.height,
        pixels,
    })
}
