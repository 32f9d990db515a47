// flags: --target-env=vulkan1.0
// x = scale * x + offset in place; the numbers wrap around.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint scale; uint offset; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) data[i] = scale * data[i] + offset;
}
