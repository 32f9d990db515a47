// flags: --target-env=vulkan1.2
// Computed indices into everything that has a fixed length.
#version 450
layout(local_size_x = 8) in;
layout(constant_id = 0) const uint LENGTH = 16;
layout(constant_id = 1) const int ROWS = 3;
struct Cell { uint kinds[5]; float weight; };
shared uint small[4];
shared float sized[LENGTH * 2 + 1];
shared Cell cells[ROWS][2];
layout(push_constant) uniform Push { uint index; uint table[6]; mat3 turn; } push;
layout(set = 0, binding = 0) buffer Data { uint head[3]; vec4 vectors[2]; uint tail[]; } data[2];
layout(set = 0, binding = 2) uniform Params { vec4 params[7]; };
const uint lookup[5] = uint[](3, 1, 4, 1, 5);
float whole[10];
void main() {
    uint i = push.index;
    int j = int(i) - 5;
    float local[9];
    local[i] = 1.0;
    small[i] = push.table[j];
    sized[j] = push.turn[i][j];
    cells[i][j].kinds[i + 1] = lookup[j];
    cells[1][1].weight = 2.0;
    whole[i] = params[i].z + params[j][i];
    vec4 v = params[2];
    v[i] = 3.0;
    barrier();
    data[0].head[i] = small[j] + uint(v[j]);
    data[1].vectors[i][j] = local[j] + sized[i] + whole[2] + cells[j][i].weight;
    data[1].tail[i] = cells[i][1].kinds[j];
}
