#version 450
// Uniform 64-bit floats in [0, 1): the upper 53 bits of two draws as a part of 1, put together of integers, so that no
// device needs 64-bit arithmetic for it.
#extension GL_GOOGLE_include_directive : require
#include "philox.glsl"

uvec2 part_of_1(uvec2 pair) {
    uint high = pair.y >> 11;
    uint low = (pair.y << 21) | (pair.x >> 11);
    int highest = high != 0u ? 32 + findMSB(high) : findMSB(low);
    if (highest < 0) {
        return uvec2(0u);
    }
    // The highest bit goes to bit 52, where it is hidden in the exponent.
    uint shift = uint(52 - highest);
    if (shift >= 32u) {
        high = low << (shift - 32u);
        low = 0u;
    } else if (shift > 0u) {
        high = (high << shift) | (low >> (32u - shift));
        low <<= shift;
    }
    return uvec2(low, (high & 0xFFFFFu) | uint(highest + 1023 - 53) << 20);
}

void main() {
    uint index = block_index();
    if (4u * index < count) {
        uvec4 block = draws(index, 0u);
        put(index, uvec4(part_of_1(block.xy), part_of_1(block.zw)));
    }
}
