// flags: --target-env=vulkan1.0
// A workgroup's size from a constant without a name, as the built-in constant.
#version 450
layout(local_size_x_id = 3) in;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
void main() {
    words[gl_GlobalInvocationID.x] = gl_WorkGroupSize.x * 100 + gl_LocalInvocationID.x;
}
