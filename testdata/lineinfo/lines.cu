__device__ __forceinline__ float load(const float *p, int i) {
    return p[i];
}

template <typename T>
__device__ __forceinline__ T scaled(const T *p, int i, T f) {
    return load(p, i) * f;
}

__device__ __noinline__ void store(float *p, int i, float v) {
    p[i] = v;
}

// Reads behind `in` when n is too large (line 2, by way of lines 7 and 16), writes through a call (line 11).
__global__ void sums(const float *in, float *out, int n) {
    float a = scaled(in, n, 2.0f);
    float b = scaled(in, threadIdx.x, 3.0f);
    store(out, threadIdx.x, a + b);
}

namespace ns {
template <typename T, int N>
__global__ void fill(T *out, T v) {
    for (int k = 0; k < N; ++k) out[threadIdx.x + k] = v;
}
}
template __global__ void ns::fill<float, 4>(float *, float);
template __global__ void ns::fill<int, 2>(int *, int);

// Two warps wait at different barriers, each for the other one.
__global__ void hang(int *p) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;");
        p[threadIdx.x] = 1;
    } else {
        asm volatile("bar.sync 2, 64;");
    }
}

// Two warps write a byte of shared memory; a read of what nobody wrote; a block that is never freed.
__global__ void wrong(int *p) {
    __shared__ int s[64];
    s[threadIdx.x & 3] = threadIdx.x;
    p[0] = s[60];
    p[1] = *(int *)malloc(4);
}
