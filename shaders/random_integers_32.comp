#version 450
// Uniform 32-bit integers of a range, without bias: Lemire's method, as src/rng/parameters.rs describes it.
#extension GL_GOOGLE_include_directive : require
// The lowest integer; how many there are, 0 for all; the products' lower halves that are refused are below `refused`.
#define PARAMETERS uint lowest; uint size; uint refused;
#include "philox.glsl"

uint pick(uint index, uint lane, uint draw) {
    if (size == 0u) {
        return lowest + draw;
    }
    uint high, low;
    umulExtended(draw, size, high, low);
    // A refused draw is replaced by the same one of the next subsequence.
    for (uint attempt = 1u; low < refused && attempt < 128u; attempt++) {
        umulExtended(draws(index, attempt)[lane], size, high, low);
    }
    return lowest + high;
}

void main() {
    uint index = block_index();
    if (4u * index < count) {
        uvec4 block = draws(index, 0u);
        put(index, uvec4(
            pick(index, 0u, block.x), pick(index, 1u, block.y),
            pick(index, 2u, block.z), pick(index, 3u, block.w)));
    }
}
