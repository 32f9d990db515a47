// flags: --target-env=vulkan1.2
// Takes its time, by address: see slow.comp.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Data { uint words[]; };
layout(push_constant) uniform Push { Data data; uint steps; };
void main() {
    uint x = data.words[gl_GlobalInvocationID.x];
    for (uint i = 0; i < steps; ++i) x = x * 1664525 + 1013904223;
    data.words[gl_GlobalInvocationID.x] = x;
}
