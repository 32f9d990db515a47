//! Multiplies a list by ten on the default device.

use vkaccel::{Buffer, Grid, Kernel};

const SOURCE: &str = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
layout(push_constant) uniform Push { float factor; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) data[i] *= factor;
}";

fn main() -> vkaccel::Result<()> {
    let kernel = Kernel::from_glsl(SOURCE)?;
    let data = Buffer::from_slice(&[1.0f32, 2.0, 3.0, 4.0])?;
    kernel.launch(Grid::elements(data.len()), (&data, 10.0, data.len()))?;
    println!("{:?}", data.to_vec()?); // [10.0, 20.0, 30.0, 40.0]
    Ok(())
}
