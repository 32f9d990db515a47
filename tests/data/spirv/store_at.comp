// flags: --target-env=vulkan1.2
// target = value, by address.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Target { uint words[]; };
layout(push_constant) uniform Push { Target target; uint value; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) target.words[i] = value;
}
