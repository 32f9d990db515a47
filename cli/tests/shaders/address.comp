#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;

layout(buffer_reference, std430) buffer Floats { float values[]; };
layout(push_constant) uniform Params {
    Floats source;
    uint n;
    vec2 scale;
    Floats target;
} p;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.n) {
        p.target.values[i] = p.source.values[i] * p.scale.x + p.scale.y;
    }
}
