// flags: --target-env=vulkan1.2
// Adds to one word, by address.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Data { uint words[]; };
layout(push_constant) uniform Push { Data data; uint index; uint value; };
void main() { data.words[index] += value; }
