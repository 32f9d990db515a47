// flags: --target-env=vulkan1.0
// target = value.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint value; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) target[i] = value;
}
