#version 450
// The way forward behind the hidden layer's product: its bias, tanh, and the dropout.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) buffer Hidden { float hidden[]; };
layout(set = 0, binding = 1) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 2) readonly buffer Mask { float mask[]; };
layout(push_constant) uniform Push { float kept; uint n; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) hidden[i] = tanh(hidden[i] + bias[i % bias.length()]) * mask[i] / kept;
}
