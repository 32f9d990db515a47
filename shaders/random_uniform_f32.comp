#version 450
// Uniform 32-bit floats in [0, 1): the upper 24 bits of a draw as a part of 1.
#extension GL_GOOGLE_include_directive : require
#include "philox.glsl"

void main() {
    uint index = block_index();
    if (4u * index < count) {
        put(index, floatBitsToUint(vec4(draws(index, 0u) >> 8) * (1.0 / 16777216.0)));
    }
}
