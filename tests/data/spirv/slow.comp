// flags: --target-env=vulkan1.0
// Takes its time: each invocation makes as many steps of a generator of random numbers as it is told
// to. Lavapipe ends all loops of an invocation after 65535 rounds.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint steps; };
void main() {
    uint x = data[gl_GlobalInvocationID.x];
    for (uint i = 0; i < steps; ++i) x = x * 1664525 + 1013904223;
    data[gl_GlobalInvocationID.x] = x;
}
