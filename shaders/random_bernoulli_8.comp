#version 450
// Trials as bytes: draws up to `highest` give `one`, the others 0.
#extension GL_GOOGLE_include_directive : require
#define MEMORY
#define PARAMETERS uint highest; uint one;
#include "philox.glsl"
#include "philox_parts.glsl"

void main() {
    uint index = block_index();
    if (4u * index >= count) {
        return;
    }
    uvec4 trial = uvec4(lessThanEqual(draws(index, 0u), uvec4(highest))) * one;
    uint mask = lowest(8u * min(count - 4u * index, 4u));
    uint bits = (trial.x | trial.y << 8 | trial.z << 16 | trial.w << 24) & mask;
    uint shift = 8u * start;
    merge(index, mask << shift, bits << shift);
    if (shift != 0u) {
        merge(index + 1u, mask >> (32u - shift), bits >> (32u - shift));
    }
}
