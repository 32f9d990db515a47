// flags: --target-env=vulkan1.2
#version 450
layout(local_size_x = 4) in;
struct S { vec3 a[2]; uint b; };
layout(std430, set = 0, binding = 0) readonly buffer Vectors { uvec3 v[]; };
layout(std430, set = 0, binding = 1) readonly buffer Structs { S s[]; };
layout(std140, set = 0, binding = 2) uniform Uniforms { uvec4 u[4]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { uint words[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    words[i] = v[i].x + u[i].x;
    words[4] = s[0].b + s[1].b + s.length();
}
