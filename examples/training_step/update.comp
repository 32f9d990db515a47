#version 450
// Gradient descent with momentum.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) buffer Values { float values[]; };
layout(set = 0, binding = 1) buffer Velocities { float velocities[]; };
layout(set = 0, binding = 2) readonly buffer Gradient { float gradient[]; };
layout(push_constant) uniform Push { float rate; float momentum; uint n; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) return;
    velocities[i] = momentum * velocities[i] - rate * gradient[i];
    values[i] += velocities[i];
}
