#version 450
// Normal 32-bit floats: Box and Muller's transform of additions, multiplications and operations on integers alone, which
// every device does alike. src/rng/normal.rs has the same, operation by operation, and says more; change them together.
#extension GL_GOOGLE_include_directive : require
#define PARAMETERS float mean; float deviation;
#include "philox.glsl"

float truncated(uint x) {
    int dropped = max(findMSB(x) - 23, 0);
    return float(x >> dropped << dropped);
}

// ln(1 - x / 2^32)
precise float log_part(uint x) {
    const float SCALE = 1.0 / 4294967296.0;
    precise float f;
    precise float exponent = 0.0;
    if (x <= 0x4AFB0CCCu) {
        f = -(truncated(x) * SCALE);
    } else {
        uint bits = floatBitsToUint(truncated(0u - x) * SCALE);
        exponent = float(bits >> 23) - 127.0;
        precise float mantissa = uintBitsToFloat((bits & 0x007FFFFFu) | 0x3F800000u);
        if (mantissa > 1.4142135) {
            mantissa = mantissa * 0.5;
            exponent = exponent + 1.0;
        }
        f = mantissa - 1.0;
    }
    precise float square = f * f;
    precise float p = 0.06971611;
    p = p * f + -0.11479734;
    p = p * f + 0.1168542;
    p = p * f + -0.12425687;
    p = p * f + 0.14249058;
    p = p * f + -0.16667803;
    p = p * f + 0.20000716;
    p = p * f + -0.24999997;
    p = p * f + 0.3333333;
    precise float tail = f * square * p;
    tail = tail + exponent * -0.00021219444 - 0.5 * square;
    return f + tail + exponent * 0.6933594;
}

precise float root(float x) {
    precise float y = uintBitsToFloat(0x5F375A86u - (floatBitsToUint(x) >> 1));
    for (int i = 0; i < 3; i++) {
        y = y * (1.5 - 0.5 * x * y * y);
    }
    return x * y;
}

precise vec2 turn(uint angle) {
    uint quarter = (angle + (1u << 29)) >> 30;
    int rest = int(angle - (quarter << 30));
    precise float t = float(2 * (rest >> 7) + 1) * (1.0 / 67108864.0);
    precise float square = t * t;
    precise float c = 59.424107;
    c = c * square + -85.44882;
    c = c * square + 64.93937;
    c = c * square + -19.739208;
    c = 1.0 + square * c;
    precise float s = -75.40161;
    s = s * square + 81.592545;
    s = s * square + -41.341663;
    s = s * square + 6.2831855;
    s = t * s;
    precise vec2 turned = (quarter & 1u) == 0u ? vec2(c, s) : vec2(-s, c);
    return (quarter & 2u) == 0u ? turned : -turned;
}

precise vec2 pair(uvec2 block) {
    precise float radius = root(-2.0 * log_part(max(block.x, 1u)));
    precise vec2 normal = radius * turn(block.y);
    normal = normal * deviation + mean;
    return normal;
}

void main() {
    uint index = block_index();
    if (4u * index < count) {
        uvec4 block = draws(index, 0u);
        put(index, floatBitsToUint(vec4(pair(block.xy), pair(block.zw))));
    }
}
