// flags: --target-env=vulkan1.2
// An address made of two words.
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430) buffer Data { uint value; };
layout(push_constant) uniform Push { uvec2 where; } push;
void main() { Data(push.where).value = 7; }
