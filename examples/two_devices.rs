//! Renders one picture on all devices at once, each a band of it, and puts it together on the first.
//!
//! ```text
//! cargo run --example two_devices -- [OUT.png]
//! ```
//!
//! With one device the bands share it. The kernel comes as SPIR-V, so that no shader compiler is
//! needed.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use vkaccel::{Buffer, Grid, Kernel, Spirv, Stream};

mod picture;
use picture::Picture;

const WIDTH: u32 = 960;
const HEIGHT: u32 = 640;

fn main() -> ExitCode {
    let output = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("two_devices.png"), PathBuf::from);
    let pixels = match render() {
        Ok(pixels) => pixels,
        Err(error) => {
            eprintln!("two_devices: {error}");
            return ExitCode::FAILURE;
        }
    };
    let picture = Picture {
        width: WIDTH,
        height: HEIGHT,
        pixels,
    };
    if let Err(error) = picture.write(&output) {
        eprintln!("two_devices: {error}");
        return ExitCode::FAILURE;
    }
    println!("{}", output.display());
    ExitCode::SUCCESS
}

/// A part of the picture that a device is at.
struct Band {
    stream: Stream,
    rows: u32,
    pixels: Buffer<u32>,
}

fn render() -> Result<Vec<u32>, Box<dyn Error>> {
    let devices = vkaccel::device_count();
    if devices == 1 {
        println!("there is one device, so it renders both bands; with VK_ICD_FILENAMES set to");
        println!("the manifests of two drivers there are two");
    }
    let count = u32::try_from(devices)?.max(2);
    let started = Instant::now();
    // Nothing here waits: every device has its work before the first result is asked for.
    let mut bands = Vec::new();
    for band in 0..count {
        let (first, next) = (HEIGHT * band / count, HEIGHT * (band + 1) / count);
        bands.push(start(band as usize % devices.max(1), first, next - first)?);
    }
    let stream = Stream::new(0)?;
    let picture: Buffer<u32> = stream.uninit((WIDTH * HEIGHT) as usize)?;
    let mut done = 0;
    for Band {
        stream: there,
        rows,
        pixels,
    } in bands
    {
        // Waits for this band alone, where it is on another device.
        let place = picture.view(done..done + pixels.len())?;
        stream.copy_from_peer(&there, &pixels, place)?;
        done += pixels.len();
        let device = there.device();
        let name = vkaccel::get_device_capability(device)?.name().to_owned();
        let elapsed = started.elapsed().as_millis();
        println!("{device} ({name}): {rows} rows, on their way after {elapsed} ms");
    }
    Ok(stream.to_vec(&picture)?)
}

/// Starts the rendering of some rows on one device.
fn start(device: usize, first_row: u32, rows: u32) -> vkaccel::Result<Band> {
    let module = Spirv::from(include_bytes!("../shaders/mandelbrot.spv"));
    let builder = Kernel::builder(module).device(device);
    #[expect(unsafe_code, reason = "SPIR-V is trusted where it is loaded")]
    // SAFETY: glslc made the module, which a test holds to its source; the source writes one pixel
    // an invocation, checks its index against the buffer's length, and its loop is bounded.
    let kernel = unsafe { builder.build_unchecked()? };

    let stream = Stream::new(device)?;
    let pixels: Buffer<u32> = stream.uninit((WIDTH * rows) as usize)?;
    let args = (&pixels, WIDTH, HEIGHT, first_row);
    stream.launch(&kernel, Grid::elements([WIDTH, rows]), args)?;
    Ok(Band {
        stream,
        rows,
        pixels,
    })
}
