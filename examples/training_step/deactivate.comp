#version 450
// The way back from the hidden layer's output to its product: the gradient behind dropout and tanh.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) buffer Gradient { float gradient[]; };
layout(set = 0, binding = 1) readonly buffer Hidden { float hidden[]; };
layout(set = 0, binding = 2) readonly buffer Mask { float mask[]; };
layout(push_constant) uniform Push { float kept; uint n; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) return;
    float activation = hidden[i] * kept;
    gradient[i] *= mask[i] / kept * (1.0 - activation * activation);
}
