// flags: --target-env=vulkan1.0
// Counts the invocations.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Counter { uint count; };
void main() { atomicAdd(count, 1); }
