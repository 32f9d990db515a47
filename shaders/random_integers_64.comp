#version 450
// Uniform 64-bit integers of a range, without bias, of 32-bit arithmetic; see random_integers_32.comp.
#extension GL_GOOGLE_include_directive : require
#define PARAMETERS uvec2 lowest; uvec2 size; uvec2 refused;
#include "philox.glsl"

uvec2 add(uvec2 a, uvec2 b) {
    uint carry;
    uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

bool is_below(uvec2 a, uvec2 b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

// The halves of a product of 128 bits.
void multiply(uvec2 a, uvec2 b, out uvec2 high, out uvec2 low) {
    uvec2 ll, lh, hl, hh;
    umulExtended(a.x, b.x, ll.y, ll.x);
    umulExtended(a.x, b.y, lh.y, lh.x);
    umulExtended(a.y, b.x, hl.y, hl.x);
    umulExtended(a.y, b.y, hh.y, hh.x);
    uvec2 middle = add(add(uvec2(ll.y, 0u), uvec2(lh.x, 0u)), uvec2(hl.x, 0u));
    low = uvec2(ll.x, middle.x);
    high = add(add(hh, uvec2(lh.y, 0u)), add(uvec2(hl.y, 0u), uvec2(middle.y, 0u)));
}

uvec4 pick(uint index) {
    uvec4 block = draws(index, 0u);
    if (size == uvec2(0u)) {
        return uvec4(add(lowest, block.xy), add(lowest, block.zw));
    }
    uvec2 high[2], low[2];
    multiply(block.xy, size, high[0], low[0]);
    multiply(block.zw, size, high[1], low[1]);
    bvec2 again = bvec2(is_below(low[0], refused), is_below(low[1], refused));
    for (uint attempt = 1u; any(again) && attempt < 128u; attempt++) {
        block = draws(index, attempt);
        if (again.x) {
            multiply(block.xy, size, high[0], low[0]);
        }
        if (again.y) {
            multiply(block.zw, size, high[1], low[1]);
        }
        again = bvec2(is_below(low[0], refused), is_below(low[1], refused));
    }
    return uvec4(add(lowest, high[0]), add(lowest, high[1]));
}

void main() {
    uint index = block_index();
    if (4u * index < count) {
        put(index, pick(index));
    }
}
