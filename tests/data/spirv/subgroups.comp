// flags: --target-env=vulkan1.2
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_shader_subgroup_extended_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_atomic_float : require
#extension GL_EXT_shader_atomic_int64 : require
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer Output { float sum; uint64_t total; };
shared uint64_t shared_total;
shared float shared_sum;
void main() {
    float16_t part = subgroupAdd(float16_t(gl_LocalInvocationIndex));
    atomicAdd(sum, float(part));
    atomicAdd(total, uint64_t(1));
    atomicMax(shared_total, uint64_t(2));
    atomicExchange(shared_sum, 1.0);
}
