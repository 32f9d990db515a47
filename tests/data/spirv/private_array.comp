// flags: --target-env=vulkan1.2
// A private array as large as the caller says.
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint LENGTH = 64;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
void main() {
    float kept[LENGTH];
    for (uint i = 0; i < LENGTH; ++i) kept[i] = float(words[i & 3] + i);
    words[0] = uint(kept[words[1] % LENGTH]);
}
