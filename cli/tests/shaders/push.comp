#version 450
layout(local_size_x = 1) in;

layout(push_constant) uniform Params {
    uint n;
    vec3 v;
    ivec2 w[2];
    mat2 m;
} p;
layout(binding = 0) buffer Out { float o[]; };

void main() {
    o[0] = float(p.n);
    o[1] = p.v.x;
    o[2] = p.v.y;
    o[3] = p.v.z;
    o[4] = float(p.w[0].x);
    o[5] = float(p.w[0].y);
    o[6] = float(p.w[1].x);
    o[7] = float(p.w[1].y);
    o[8] = p.m[0][0];
    o[9] = p.m[0][1];
    o[10] = p.m[1][0];
    o[11] = p.m[1][1];
}
