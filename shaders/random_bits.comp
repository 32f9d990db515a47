#version 450
// Random words: the draws themselves.
#extension GL_GOOGLE_include_directive : require
#include "philox.glsl"

void main() {
    uint index = block_index();
    if (4u * index < count) {
        put(index, draws(index, 0u));
    }
}
