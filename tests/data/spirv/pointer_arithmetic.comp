// flags: --target-env=vulkan1.2
// Addresses with offsets, which are computed as numbers; in a struct, and in an array.
#version 450
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Source { float v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Target { float v; };
struct Pair { Source from; Target to; };
layout(push_constant, scalar) uniform Push { Pair pair; uint n; Target rows[2]; } push;
void copy(Pair pair, uint i) {
    Target to = pair.to + i;
    to.v = pair.from[i].v;
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    copy(push.pair, i);
    push.rows[i & 1][i].v = 2.0;
}
