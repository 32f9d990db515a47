// flags: --target-env=vulkan1.2
// The first three words of its buffer, by address.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Words { uint words[]; };
layout(push_constant) uniform Push { Words target; uint x; uint y; uint z; };
void main() {
    target.words[0] = x;
    target.words[1] = y;
    target.words[2] = z;
}
