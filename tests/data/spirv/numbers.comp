// flags: --target-env=vulkan1.0
// A push-constant block of scalars, a vector and an array.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer Output { uint words[]; };
layout(push_constant) uniform Push { float a; int b; uint c; uvec2 d; uint e[2]; };
void main() {
    words[0] = floatBitsToUint(a);
    words[1] = uint(b);
    words[2] = c;
    words[3] = d.x;
    words[4] = d.y;
    words[5] = e[0];
    words[6] = e[1];
}
