// flags: --target-env=vulkan1.2
// Counts the invocations, by address.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Counter { uint count; };
layout(push_constant) uniform Push { Counter counter; };
void main() { atomicAdd(counter.count, 1); }
