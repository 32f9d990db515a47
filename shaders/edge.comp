#version 450
// Edges of an RGBA picture, 8 bits a channel, one word a pixel: the length of the Sobel gradient of
// the brightness. Beyond the border lies the nearest pixel; transparency is kept.

layout(local_size_x = 8, local_size_y = 8) in;

layout(set = 0, binding = 0, std430) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push {
    uint width;
    uint height;
};

float brightness(ivec2 at) {
    ivec2 inside = clamp(at, ivec2(0), ivec2(width, height) - 1);
    vec4 pixel = unpackUnorm4x8(source[uint(inside.y) * width + uint(inside.x)]);
    return dot(pixel.rgb, vec3(0.2126, 0.7152, 0.0722)) * pixel.a;
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= width || at.y >= height) {
        return;
    }
    float b[9];
    for (int i = 0; i < 9; i++) {
        b[i] = brightness(ivec2(at) + ivec2(i % 3 - 1, i / 3 - 1));
    }
    vec2 gradient = vec2(
        b[2] + 2.0 * b[5] + b[8] - b[0] - 2.0 * b[3] - b[6],
        b[6] + 2.0 * b[7] + b[8] - b[0] - 2.0 * b[1] - b[2]);
    uint i = at.y * width + at.x;
    float alpha = unpackUnorm4x8(source[i]).a;
    target[i] = packUnorm4x8(vec4(vec3(min(length(gradient), 1.0)), alpha));
}
