// flags: --target-env=vulkan1.0
// Adds to one word.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint index; uint value; };
void main() { data[index] += value; }
