// flags: --target-env=vulkan1.0
// The first three words of its buffer.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer Words { uint words[]; };
layout(push_constant) uniform Push { uint x; uint y; uint z; };
void main() {
    words[0] = x;
    words[1] = y;
    words[2] = z;
}
