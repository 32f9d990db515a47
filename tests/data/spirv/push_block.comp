// flags: --target-env=vulkan1.2
// A push-constant block with padding: offsets 0, 16, 28, size 32.
#version 450
layout(push_constant) uniform Push { float a; vec3 b; uint c; } push;
layout(set = 0, binding = 0) writeonly buffer Output { uint words[]; } result;
layout(local_size_x = 1) in;
void main() {
    result.words[0] = floatBitsToUint(push.a);
    result.words[1] = floatBitsToUint(push.b.x);
    result.words[2] = floatBitsToUint(push.b.y);
    result.words[3] = floatBitsToUint(push.b.z);
    result.words[4] = push.c;
}
