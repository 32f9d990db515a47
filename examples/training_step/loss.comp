#version 450
// The mean squared error of one batch, which is noted behind those of the batches before, and its gradient.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) buffer Prediction { float prediction[]; };
layout(set = 0, binding = 1) readonly buffer Bias { float bias; };
layout(set = 0, binding = 2) readonly buffer Targets { float targets[]; };
layout(set = 0, binding = 3) buffer Steps { uint steps; };
layout(set = 0, binding = 4) writeonly buffer Losses { float losses[]; };

shared float squares[64];

void main() {
    uint i = gl_LocalInvocationID.x;
    float difference = prediction[i] + bias - targets[i];
    squares[i] = difference * difference;
    prediction[i] = 2.0 * difference / 64.0;
    barrier();
    if (i > 0) return;
    float sum = 0.0;
    for (uint k = 0; k < 64; k++) sum += squares[k];
    if (steps < losses.length()) losses[steps] = sum / 64.0;
    steps++;
}
