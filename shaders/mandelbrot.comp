#version 450
// The Mandelbrot set as an RGBA picture, 8 bits a channel: row by row, one word a pixel.

layout(local_size_x = 8, local_size_y = 8) in;

layout(constant_id = 0) const uint ITERATIONS = 400;
// The middle of the picture and how much of the plane it shows from left to right.
layout(constant_id = 1) const float CENTER_X = -0.743517;
layout(constant_id = 2) const float CENTER_Y = 0.131355;
layout(constant_id = 3) const float SPAN = 0.012;

layout(set = 0, binding = 0, std430) writeonly buffer Pixels { uint pixels[]; };
layout(push_constant) uniform Push {
    uint width;
    // Of the whole picture.
    uint height;
    // The row of the picture at which the buffer starts, for those who render it in parts.
    uint first_row;
};

// Smooth colours around a circle of hues.
vec3 colour(float steps) {
    vec3 phase = vec3(0.0, 0.6, 1.2);
    return 0.5 - 0.5 * cos(0.25 * steps + phase);
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    uint index = at.y * width + at.x;
    if (at.x >= width || at.y + first_row >= height || index >= pixels.length()) {
        return;
    }
    vec2 pixel = vec2(at) + vec2(0.5, 0.5 + float(first_row));
    vec2 size = vec2(width, height);
    vec2 c = vec2(CENTER_X, CENTER_Y) + (pixel - 0.5 * size) * (SPAN / size.x) * vec2(1.0, -1.0);

    vec2 z = vec2(0.0);
    uint i = 0;
    while (i < ITERATIONS && dot(z, z) < 256.0) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        i++;
    }
    vec3 rgb = vec3(0.0);
    if (i < ITERATIONS) {
        rgb = colour(sqrt(float(i) + 5.0 - log2(log2(dot(z, z)))) * 3.0);
    }
    pixels[index] = packUnorm4x8(vec4(rgb, 1.0));
}
