// flags: --target-env=vulkan1.2
// Sums four nodes of a list by following the addresses in them, and clears the value of the fifth.
// No loop: SwiftShader fails on addresses that a loop carries on.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { uint value; Node next; };
layout(push_constant) uniform Push { Node head; } push;
layout(set = 0, binding = 0) buffer Output { uint sum; };
void main() {
    Node second = push.head.next;
    Node third = second.next;
    Node fourth = third.next;
    sum += push.head.value + second.value + third.value + fourth.value;
    fourth.next.value = 0;
}
