// flags: --target-env=vulkan1.0
// Descriptor sets and bindings that are not numbered in a row, and a uniform block among them.
#version 450
layout(local_size_x = 4) in;
layout(set = 3, binding = 1) writeonly buffer Target { uint target[]; };
layout(set = 0, binding = 5) readonly buffer Left { uint left[]; };
layout(set = 0, binding = 2) uniform Params { uint scale; uint offset; } params;
layout(set = 3, binding = 0) readonly buffer Right { uint right[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    target[i] = params.scale * left[i] + right[i] + params.offset;
}
