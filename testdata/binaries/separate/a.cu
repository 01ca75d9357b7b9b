extern __device__ int helper(int x, float y);
extern __constant__ int table[8];
__device__ int counter = 3;
static __device__ __noinline__ int mine(int x) { return x * 3 + counter; }
__device__ int *ptr = &counter;
extern "C" __global__ void k1(int *out) { out[threadIdx.x] = helper(mine(threadIdx.x), 1.5f) + table[threadIdx.x & 7]; }
