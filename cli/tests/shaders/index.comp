#version 450
// Writes each element's own index times a constant, as a macro or a specialization constant has it.
layout(local_size_x_id = 1) in;
layout(constant_id = 0) const uint STEP = 1;
#ifndef PLUS
#define PLUS 0
#endif

layout(set = 2, binding = 3) writeonly buffer Out { uint data[]; } result;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < result.data.length()) {
        result.data[i] = i * STEP + PLUS;
    }
}
