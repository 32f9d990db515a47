#version 450
// Trials as 32-bit numbers: draws up to `highest` give `one`, the others 0.
#extension GL_GOOGLE_include_directive : require
#define PARAMETERS uint highest; uint one;
#include "philox.glsl"

void main() {
    uint index = block_index();
    if (4u * index < count) {
        put(index, uvec4(lessThanEqual(draws(index, 0u), uvec4(highest))) * one);
    }
}
