// flags: --target-env=vulkan1.2
// What an array holds, as far as the shader sees: its length, then what lies past its end.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer In { uint words[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint result[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    words[i] = 7u;
    result[i] = words.length() * 1000u + words[i];
}
