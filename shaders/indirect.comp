#version 450
// The group counts of an indirect launch: copied as they are where the device takes them, else noted
// and replaced by none. A zero along any axis runs nothing, whatever the others say.

layout(local_size_x = 1) in;

layout(set = 0, binding = 0, std430) readonly buffer Counts { uint counts[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Groups { uint groups[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Note { uint note[]; };
layout(push_constant) uniform Push {
    uint limit_x;
    uint limit_y;
    uint limit_z;
    // Where the counts start.
    uint first;
    // What the note ends with, so that the host knows it from older ones.
    uint tag;
};

void main() {
    uvec3 asked = uvec3(counts[first], counts[first + 1u], counts[first + 2u]);
    bool is_none = any(equal(asked, uvec3(0u)));
    bool is_too_large = any(greaterThan(asked, uvec3(limit_x, limit_y, limit_z)));
    uvec3 taken = is_none || is_too_large ? uvec3(0u) : asked;
    groups[0] = taken.x;
    groups[1] = taken.y;
    groups[2] = taken.z;
    if (is_too_large && !is_none) {
        note[0] = asked.x;
        note[1] = asked.y;
        note[2] = asked.z;
        note[3] = tag;
    }
}
