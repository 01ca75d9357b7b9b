#include <stdio.h>
extern __device__ int counter;
__constant__ int table[8] = {1,2,3,4,5,6,7,8};
static __device__ __noinline__ int mine(int x) { return x + 7; }
__device__ int helper(int x, float y) { if (x < 0) printf("neg %d\n", x); atomicAdd(&counter, 1); return mine(x) + (int)(y * 2.0f); }
extern "C" __global__ void k2(int *out) { out[0] = counter; }
__device__ int unused_fn(int a) { return a; }
