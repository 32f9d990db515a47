//! A program of somebody who depends on vkaccel; tests/consumer.rs builds and runs it.

use vkaccel::{Buffer, Grid, Kernel};

const SAXPY: &[u8] = include_bytes!("saxpy.spv");

fn main() -> vkaccel::Result<()> {
    // SAFETY: the module is valid and checks its index against `n`, which is the buffers' length.
    let kernel = unsafe { Kernel::from_spirv(SAXPY)? };
    println!("SPIR-V {:?}", saxpy(&kernel)?);
    from_glsl()
}

fn saxpy(kernel: &Kernel) -> vkaccel::Result<Vec<f32>> {
    let x = Buffer::from_slice(&[1.0f32, 2.0, 3.0])?;
    let y = Buffer::from_slice(&[10.0f32, 20.0, 30.0])?;
    kernel.launch(Grid::elements(x.len()), (&x, &y, 2.0, x.len()))?;
    y.to_vec()
}

#[cfg(feature = "glsl")]
fn from_glsl() -> vkaccel::Result<()> {
    let kernel = Kernel::from_glsl(include_str!("saxpy.comp"))?;
    println!("GLSL {:?}", saxpy(&kernel)?);
    Ok(())
}

#[cfg(not(feature = "glsl"))]
fn from_glsl() -> vkaccel::Result<()> {
    let refused = Kernel::from_glsl(include_str!("saxpy.comp")).map(|_| ());
    println!("GLSL {:?}", refused.map_err(|error| error.kind()));
    Ok(())
}
