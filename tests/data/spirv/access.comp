// flags: --target-env=vulkan1.1
// Buffers that are only read, only written, both, or not touched, told by decorations or by use.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Marked { uint marked[]; };
layout(set = 0, binding = 1) buffer OnlyRead { uint count; uint only_read[]; } reads;
layout(set = 0, binding = 2) buffer OnlyWritten { uint only_written[]; } writes;
layout(set = 0, binding = 3) buffer Both { uint both[]; };
layout(set = 0, binding = 4) buffer Counter { uint counter; };
layout(set = 0, binding = 5) buffer Untouched { uint untouched[]; };
layout(set = 0, binding = 6) buffer Measured { vec4 measured[]; };
layout(set = 0, binding = 7) buffer View32 { uint view32[]; };
layout(set = 0, binding = 7) buffer View128 { uvec4 view128[]; };
layout(set = 1, binding = 0) buffer Many { uint many[]; } many[3];
uint helper(uint i) { return reads.only_read[i] + marked[i]; }
void set(out uint target, uint value) { target = value; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    writes.only_written[i] = helper(i) + reads.count + measured.length();
    both[i] += 1;
    atomicAdd(counter, 1);
    set(many[1].many[i], i);
    view32[0] = view128[1].x;
}
