// flags: --target-env=vulkan1.2
#version 450
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 1) in;
layout(std430, set = 1, binding = 2) uniform Params { float weights[8]; mat3 rotation; layout(row_major) mat2x4 rows; };
layout(set = 0, binding = 0) buffer Output { float result[]; };
void main() {
    result[0] = weights[3] + rotation[1][2] + rows[1][3];
}
