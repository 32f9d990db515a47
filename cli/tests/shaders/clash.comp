#version 450
layout(local_size_x = 1) in;

layout(binding = 0) buffer A { uint data[]; } a;
layout(binding = 1) buffer B { uint data[]; } b;

void main() {
    uint i = gl_GlobalInvocationID.x;
    b.data[i] += a.data[i];
}
