// flags: --target-env=vulkan1.0
// target = scale * source + offset.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint scale; uint offset; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) target[i] = scale * source[i] + offset;
}
