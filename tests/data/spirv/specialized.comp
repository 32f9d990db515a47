// flags: --target-env=vulkan1.2
// Every kind of specialization constant, and sizes computed from them.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x_id = 0, local_size_y = 2, local_size_z_id = 1) in;
layout(constant_id = 2) const bool FLAG = true;
layout(constant_id = 3) const int SIGNED = -4;
layout(constant_id = 4) const float SCALE = 1.5;
layout(constant_id = 5) const double PRECISE = 0.5;
layout(constant_id = 6) const uint64_t BIG = 0x100000002UL;
layout(constant_id = 8) const uint TILE = 8;
layout(constant_id = 9) const int16_t NARROW = int16_t(-2);
shared float tile[TILE * (TILE + 1)];
shared vec3 triples[FLAG ? 2 : 4];
layout(set = 0, binding = 0) buffer Output { double result[]; };
void main() {
    tile[gl_LocalInvocationIndex] = SCALE;
    triples[0] = vec3(SIGNED);
    barrier();
    result[0] = FLAG ? PRECISE + double(tile[1]) + double(triples[1].x) : double(BIG) + double(NARROW);
}
