// For the shaders random_*.comp with elements smaller than a word, on top of philox.glsl.

// Sets the bits of a mask in a word. The others belong to another invocation, or to memory beside the view, which may be
// in use: they are never written.
void merge(uint index, uint mask, uint bits) {
    if (mask == 0xFFFFFFFFu) {
        memory.word[index] = bits;
    } else if (mask != 0u) {
        atomicAnd(memory.word[index], ~mask | bits);
        atomicOr(memory.word[index], bits);
    }
}

// The lowest bits of a word, so many.
uint lowest(uint bits) {
    return bits >= 32u ? 0xFFFFFFFFu : (1u << bits) - 1u;
}
