// flags: --target-env=vulkan1.2
// Atomics on a buffer, by indices that nothing bounds: signed, unsigned, fixed, into a struct.
#version 450
layout(local_size_x = 1) in;
struct Pair { uint first; uint second; };
layout(set = 0, binding = 0) buffer Words { uint head; uint words[]; };
layout(set = 0, binding = 1) buffer Pairs { Pair pairs[]; };
layout(push_constant) uniform Push { int signed_index; uint unsigned_index; };
void main() {
    atomicAdd(words[signed_index], 1u);
    atomicMax(words[unsigned_index], 2u);
    atomicXor(words[1000], 3u);
    atomicAdd(pairs[unsigned_index].second, 4u);
    atomicAdd(head, 1u);
    words[unsigned_index] = 5u;
}
