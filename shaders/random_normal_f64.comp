#version 450
// Normal 64-bit floats; see random_normal_f32.comp, and src/rng/normal.rs, which has the same, operation by operation.
#extension GL_GOOGLE_include_directive : require
#define PARAMETERS double mean; double deviation;
#include "philox.glsl"

const double TWO_TO_MINUS_32 = 1.0lf / 4294967296.0lf;
const double TWO_TO_MINUS_53 = 1.0lf / 9007199254740992.0lf;

// ln(1 - v)
precise double log_part(double v) {
    precise double f;
    precise double exponent = 0.0lf;
    if (v <= 0.2928932188134524lf) {
        f = -v;
    } else {
        precise double u = 1.0lf - v;
        uvec2 bits = unpackDouble2x32(u);
        exponent = double(bits.y >> 20) - 1023.0lf;
        precise double mantissa = packDouble2x32(uvec2(bits.x, (bits.y & 0xFFFFFu) | 0x3FF00000u));
        if (mantissa > 1.4142135623730951lf) {
            mantissa = mantissa * 0.5lf;
            exponent = exponent + 1.0lf;
        }
        f = mantissa - 1.0lf;
    }
    precise double divisor = 2.0lf + f;
    precise double reciprocal = 0.98508lf - 0.23902lf * divisor;
    for (int i = 0; i < 4; i++) {
        reciprocal = reciprocal * (2.0lf - divisor * reciprocal);
    }
    precise double s = f * reciprocal;
    precise double square = s * s;
    precise double p = 2.0lf / 21.0lf;
    p = p * square + 2.0lf / 19.0lf;
    p = p * square + 2.0lf / 17.0lf;
    p = p * square + 2.0lf / 15.0lf;
    p = p * square + 2.0lf / 13.0lf;
    p = p * square + 2.0lf / 11.0lf;
    p = p * square + 2.0lf / 9.0lf;
    p = p * square + 2.0lf / 7.0lf;
    p = p * square + 2.0lf / 5.0lf;
    p = p * square + 2.0lf / 3.0lf;
    precise double series = square * p;
    precise double small = s * (f - series) - exponent * 1.9082149292705877e-10lf;
    return exponent * 0.6931471803691238lf - (small - f);
}

precise double root(double x) {
    precise double y = packDouble2x32(uvec2(0u, 0x5FE6EB50u - (unpackDouble2x32(x).y >> 1)));
    for (int i = 0; i < 4; i++) {
        y = y * (1.5lf - 0.5lf * x * y * y);
    }
    return x * y;
}

precise dvec2 turn(uvec2 angle) {
    uint quarter = (angle.y + (1u << 29)) >> 30;
    int rest = int(angle.y - (quarter << 30));
    precise double below = (double(angle.x >> 11) + 0.5lf) * (1.0lf / 2097152.0lf);
    precise double t = (double(rest) + below) * TWO_TO_MINUS_32;
    precise double square = t * t;
    precise double c = -0.03638284114254567lf;
    c = c * square + 0.28200596845579123lf;
    c = c * square + -1.714390711088672lf;
    c = c * square + 7.903536371318469lf;
    c = c * square + -26.4262567833744lf;
    c = c * square + 60.24464137187666lf;
    c = c * square + -85.45681720669373lf;
    c = c * square + 64.9393940226683lf;
    c = c * square + -19.739208802178716lf;
    c = c * square + 1.0lf;
    precise double s = 0.10422916220813984lf;
    s = s * square + -0.7181223017785006lf;
    s = s * square + 3.819952584848282lf;
    s = s * square + -15.09464257682299lf;
    s = s * square + 42.058693944897655lf;
    s = s * square + -76.70585975306139lf;
    s = s * square + 81.60524927607506lf;
    s = s * square + -41.34170224039976lf;
    s = s * square + 6.283185307179586lf;
    s = t * s;
    precise dvec2 turned = (quarter & 1u) == 0u ? dvec2(c, s) : dvec2(-s, c);
    return (quarter & 2u) == 0u ? turned : -turned;
}

void main() {
    uint index = block_index();
    if (4u * index < count) {
        uvec4 block = draws(index, 0u);
        precise double v = double(block.y) * TWO_TO_MINUS_32 + double(block.x >> 11) * TWO_TO_MINUS_53;
        precise double radius = root(-2.0lf * log_part(max(v, TWO_TO_MINUS_53)));
        precise dvec2 normal = radius * turn(block.zw);
        normal = normal * deviation + mean;
        put(index, uvec4(unpackDouble2x32(normal.x), unpackDouble2x32(normal.y)));
    }
}
