#version 450
// Uniform 16-bit floats in [0, 1): the upper 11 bits of a draw as a part of 1, which a half holds exactly.
#extension GL_GOOGLE_include_directive : require
#define MEMORY
#include "philox.glsl"
#include "philox_parts.glsl"

void main() {
    uint index = block_index();
    if (4u * index >= count) {
        return;
    }
    vec4 part = vec4(draws(index, 0u) >> 21) * (1.0 / 2048.0);
    uvec2 bits = uvec2(packHalf2x16(part.xy), packHalf2x16(part.zw));
    uint left = 16u * min(count - 4u * index, 4u);
    uvec2 mask = uvec2(lowest(left), left > 32u ? lowest(left - 32u) : 0u);
    bits &= mask;
    uint at = 2u * index;
    if (start == 0u) {
        merge(at, mask.x, bits.x);
        merge(at + 1u, mask.y, bits.y);
    } else {
        merge(at, mask.x << 16, bits.x << 16);
        merge(at + 1u, mask.x >> 16 | mask.y << 16, bits.x >> 16 | bits.y << 16);
        merge(at + 2u, mask.y >> 16, bits.y >> 16);
    }
}
