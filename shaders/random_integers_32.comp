#version 450
// Uniform 32-bit integers of a range, without bias: Lemire's method, as src/rng/parameters.rs describes it.
#extension GL_GOOGLE_include_directive : require
// The lowest integer; how many there are, 0 for all; the products' lower halves that are refused are below `refused`.
#define PARAMETERS uint lowest; uint size; uint refused;
#include "philox.glsl"

uvec4 pick(uint index) {
    uvec4 block = draws(index, 0u);
    if (size == 0u) {
        return lowest + block;
    }
    uvec4 high, low;
    umulExtended(block, uvec4(size), high, low);
    bvec4 again = lessThan(low, uvec4(refused));
    // A refused draw is replaced by the same one of the next subsequence.
    for (uint attempt = 1u; any(again) && attempt < 128u; attempt++) {
        uvec4 next_high, next_low;
        umulExtended(draws(index, attempt), uvec4(size), next_high, next_low);
        high = mix(high, next_high, again);
        low = mix(low, next_low, again);
        again = lessThan(low, uvec4(refused));
    }
    return lowest + high;
}

void main() {
    uint index = block_index();
    if (4u * index < count) {
        put(index, pick(index));
    }
}
