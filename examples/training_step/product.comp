#version 450
// c = a b. A factor comes with the distances between its rows and between its columns, so that either may be
// transposed, and numbers may count as many times.
layout(local_size_x = 8, local_size_y = 8) in;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Shape {
    uint rows;
    uint inner;
    uint columns;
    uint a_row;
    uint a_column;
    uint b_row;
    uint b_column;
};

void main() {
    uint column = gl_GlobalInvocationID.x;
    uint row = gl_GlobalInvocationID.y;
    if (row >= rows || column >= columns) return;
    float sum = 0.0;
    for (uint k = 0; k < inner; k++) sum += a[row * a_row + k * a_column] * b[k * b_row + column * b_column];
    c[row * columns + column] = sum;
}
