// flags: --target-env=vulkan1.2
// Addresses found in memory, in blocks that point to each other.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { uint value; Node next; };
layout(push_constant) uniform Push { Node head; } push;
layout(set = 0, binding = 0) buffer Output { uint sum; };
void main() {
    Node node = push.head;
    for (uint i = 0; i < 4; ++i) {
        sum += node.value;
        node = node.next;
    }
    node.value = 0;
}
