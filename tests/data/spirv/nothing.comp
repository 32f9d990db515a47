// flags: --target-env=vulkan1.0
// Does nothing: work for a stream that uses no memory.
#version 450
layout(local_size_x = 1) in;
void main() {}
