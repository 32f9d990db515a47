//! Sums lists of different lengths, each in a buffer of its own, through a table of their addresses.
//!
//! ```text
//! cargo run --features glsl --example addresses
//! ```
//!
//! # Safety
//!
//! Nothing checks what a shader does with addresses. This one stays below the count that stands
//! beside each address, and the launch says with `Arg::uses` which buffers the addresses lead to.
#![allow(unsafe_code)]

use vkaccel::{Access, Arg, Buffer, Grid, Kernel};

const SOURCE: &str = "#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Numbers { float number[]; };
struct List { Numbers numbers; uint count; };
layout(set = 0, binding = 0, std430) readonly buffer Table { List lists[]; };
layout(set = 0, binding = 1) writeonly buffer Sums { float sums[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= lists.length()) return;
    float sum = 0.0;
    for (uint k = 0; k < lists[i].count; k++) sum += lists[i].numbers.number[k];
    sums[i] = sum;
}";

/// `List` as the shader has it: its size is a multiple of the address's 8 bytes.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct List {
    numbers: u64,
    count: u32,
    padding: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: see the top of the file; `sums` is as long as the table.
    let kernel = unsafe { Kernel::builder(SOURCE).build_unchecked() }?;
    let lists = [
        Buffer::from_slice(&[1.0f32, 2.0, 3.0])?,
        Buffer::from_slice(&[10.0])?,
        Buffer::from_slice(&[0.5; 1000])?,
    ];
    let mut table = Vec::new();
    for list in &lists {
        table.push(List {
            numbers: list.address().get(),
            count: u32::try_from(list.len())?,
            padding: 0,
        });
    }
    let table = Buffer::from_slice(&table)?;
    let sums = Buffer::<f32>::zeroed(lists.len())?;
    let mut arguments = vec![Arg::from(&table), Arg::from(&sums)];
    arguments.extend(lists.iter().map(|list| Arg::uses(list, Access::Read)));
    kernel.launch(Grid::elements(lists.len()), &arguments)?;
    println!("{:?}", sums.to_vec()?); // [6.0, 10.0, 500.0]
    assert_eq!(sums.to_vec()?, [6.0, 10.0, 500.0]);
    Ok(())
}
