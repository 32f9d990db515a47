//! A tiled matrix product, checked against the CPU.
//!
//! ```text
//! cargo run --release --features glsl --example matrix_product -- 512
//! ```

use std::time::Instant;

use vkaccel::{Buffer, Grid, Kernel};

/// Each workgroup computes a tile of the result, and reads the factors tile by tile through shared
/// memory. The edges of a matrix that is no multiple of a tile are padded with zeros.
const SOURCE: &str = "#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Size { uint rows; uint inner; uint columns; };

shared float tile_a[16][16];
shared float tile_b[16][16];

void main() {
    uvec2 here = gl_LocalInvocationID.xy;
    uint row = gl_GlobalInvocationID.y;
    uint column = gl_GlobalInvocationID.x;
    float sum = 0.0;
    for (uint start = 0; start < inner; start += 16) {
        uint k = start + here.x;
        tile_a[here.y][here.x] = row < rows && k < inner ? a[row * inner + k] : 0.0;
        k = start + here.y;
        tile_b[here.y][here.x] = column < columns && k < inner ? b[k * columns + column] : 0.0;
        barrier();
        for (uint i = 0; i < 16; i++) sum += tile_a[here.y][i] * tile_b[i][here.x];
        barrier();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let size: usize = match std::env::args().nth(1) {
        Some(size) => size.parse()?,
        None => 200,
    };
    // No multiple of a tile in any direction, unless asked for.
    let (rows, inner, columns) = (size, size + 3, size / 2 + 1);
    let a: Vec<f32> = (0..rows * inner).map(number).collect();
    let b: Vec<f32> = (0..inner * columns).map(number).collect();

    let kernel = Kernel::from_glsl(SOURCE)?;
    let (device_a, device_b) = (Buffer::from_slice(&a)?, Buffer::from_slice(&b)?);
    let device_c = Buffer::<f32>::zeroed(rows * columns)?;
    let arguments = (&device_a, &device_b, &device_c, rows, inner, columns);
    vkaccel::synchronize(None)?;
    let started = Instant::now();
    kernel.launch(Grid::elements([columns, rows]), arguments)?;
    vkaccel::synchronize(None)?;
    let device_time = started.elapsed();
    let c = device_c.to_vec()?;

    let started = Instant::now();
    let mut worst = 0.0f32;
    for row in 0..rows {
        for column in 0..columns {
            let products = (0..inner).map(|k| a[row * inner + k] * b[k * columns + column]);
            worst = worst.max((products.sum::<f32>() - c[row * columns + column]).abs());
        }
    }
    println!(
        "{rows}x{inner} times {inner}x{columns}: {device_time:?} on the device, {:?} on the CPU, \
         largest difference {worst}",
        started.elapsed()
    );
    // Both add the same small integers and halves in another order at most, which loses nothing.
    assert!(worst == 0.0, "the device computed something else");
    Ok(())
}

/// Numbers whose products and sums are exact in single precision.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn number(index: usize) -> f32 {
    (index * 7 % 17) as f32 * 0.5 - 4.0
}
