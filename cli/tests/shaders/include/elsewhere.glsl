#define HALF 21u
