// flags: --target-env=vulkan1.2
// An image, which kernels cannot have.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 1, rgba8) uniform writeonly image2D picture;
void main() { imageStore(picture, ivec2(0), vec4(1.0)); }
