// flags: --target-env=vulkan1.2
// 16-bit storage and 16-bit arithmetic are two features.
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) writeonly buffer R { float16_t r[]; };
void main() {
    r[0] = a[0] + a[1];
    r[1] = a[0] * a[1];
}
