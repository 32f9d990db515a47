// flags: --target-env=vulkan1.2
// Adds up what each buffer of a table holds. Indexing the table itself needs no 64-bit integers.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint word[]; };
layout(set = 0, binding = 0) buffer Sums { uint sums[]; };
layout(set = 0, binding = 1) readonly buffer Table { Words table[]; };
layout(push_constant) uniform Params { uint len; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= sums.length()) {
        return;
    }
    uint sum = 0;
    for (uint k = 0; k < len; ++k) {
        sum += table[i].word[k];
    }
    sums[i] = sum;
}
