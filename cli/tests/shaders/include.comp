#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "beside.glsl"

layout(binding = 0) buffer Out { uint o[]; };

void main() {
    o[gl_GlobalInvocationID.x] = answer();
}
