// What the shaders random_*.comp share: Philox4x32-10, and the memory that its numbers go to. Each invocation makes one
// block of four draws and writes the elements that come of it; src/rng/ has the same on the CPU.
//
// The memory is reached by its address, so that a view may start at any element. A shader may define MEMORY, how it uses
// the memory if it does not just write words, and PARAMETERS, what it takes beside the rest.

#extension GL_EXT_buffer_reference : require

#ifndef MEMORY
#define MEMORY writeonly
#endif
#ifndef PARAMETERS
#define PARAMETERS
#endif

layout(local_size_x = 64) in;

layout(buffer_reference, buffer_reference_align = 4, std430) MEMORY buffer Words { uint word[]; };
layout(buffer_reference, buffer_reference_align = 16, std430) MEMORY buffer Quads { uvec4 quad[]; };
layout(buffer_reference, buffer_reference_align = 8, std430) readonly buffer State { uvec2 key; uvec2 first; };

// Whether the seed and the counter's base are in memory, where a recorded launch finds others each time that it runs.
layout(constant_id = 0) const bool FROM_MEMORY = false;

layout(push_constant, std430) uniform Push {
    Words memory;
    // The same, where it starts at a multiple of 16 bytes.
    Quads quads;
    // The memory of FROM_MEMORY: the seed, and what `first` is added to.
    State state;
    // The seed.
    uvec2 key;
    // The counter of the first block.
    uvec2 first;
    // How many words or, where several elements share one, elements are to be written.
    uint count;
    // Where the first element starts: 0 if `quads` is there, else 1; where several elements share a word, how many of the
    // first word's come before.
    uint start;
    PARAMETERS
};

// Which block the invocation makes, counted from the first one.
uint block_index() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    return group * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
}

uvec4 draws(uint index, uint subsequence) {
    uvec2 k = key;
    uvec2 block = first;
    if (FROM_MEMORY) {
        k = state.key;
        uvec2 base = state.first;
        block += base;
        block.y += uint(block.x < base.x);
    }
    uint low = block.x + index;
    uvec4 counter = uvec4(low, block.y + uint(low < index), subsequence, 0u);
    for (int i = 0; i < 10; i++) {
        uint high_a, low_a, high_b, low_b;
        umulExtended(0xD2511F53u, counter.x, high_a, low_a);
        umulExtended(0xCD9E8D57u, counter.z, high_b, low_b);
        counter = uvec4(high_b ^ counter.y ^ k.x, low_b, high_a ^ counter.w ^ k.y, low_a);
        k += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

// Writes the words of a block, as far as they are asked for.
void put(uint index, uvec4 words) {
    uint at = 4u * index;
    uint left = count - at;
    if (start == 0u && left >= 4u) {
        quads.quad[index] = words;
        return;
    }
    memory.word[at] = words.x;
    if (left > 1u) {
        memory.word[at + 1u] = words.y;
    }
    if (left > 2u) {
        memory.word[at + 2u] = words.z;
    }
    if (left > 3u) {
        memory.word[at + 3u] = words.w;
    }
}
