// flags: --target-env=vulkan1.2
// x = scale * x + offset in place, by address; the numbers wrap around.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Data { uint words[]; };
layout(push_constant) uniform Push { Data data; uint scale; uint offset; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) data.words[i] = scale * data.words[i] + offset;
}
