#include "elsewhere.glsl"

uint answer() {
    return 2u * HALF;
}
