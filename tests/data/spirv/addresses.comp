// flags: --target-env=vulkan1.2
// Buffers by address: read, written through a copy in a local variable, both in a function.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430) readonly buffer Source { float values[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Target { float values[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Header { vec4 scale; uint count; };
layout(push_constant) uniform Push { Source source; Target target; Header header; uint n; } push;
void bump(Header header) { header.count += 1; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= push.n) return;
    Target out_values = push.target;
    out_values.values[i] = push.source.values[i] * push.header.scale.x;
    if (i == 0) bump(push.header);
}
