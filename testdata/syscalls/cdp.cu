#include <cstdio>
__global__ void child(int *out, int base, double scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[base + i] = (int)(i * scale) + base;
}
__global__ void grandchild(int *out) { atomicAdd(out, 1); }
__global__ void tail(int *out, int n) { int s = 0; for (int i = 0; i < n; i++) s += out[i]; out[n] = s; grandchild<<<2, 3, 0, cudaStreamFireAndForget>>>(out + n + 1); }
extern "C" __global__ void parent(int *out, int n) {
    if (threadIdx.x < n) {
        child<<<2, 8>>>(out, 16 * threadIdx.x, 1.5);
        cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess) printf("launch failed %d\n", (int)e);
    }
    if (threadIdx.x == 0) tail<<<1, 1, 0, cudaStreamTailLaunch>>>(out, 16 * n);
}
extern "C" __global__ void many(int *out) {
  cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  child<<<dim3(1,1,1), dim3(4,2,1), 64, s>>>(out, 3, 2.0);
  cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); cudaEventRecord(e, s); cudaStreamWaitEvent(s, e, 0); cudaEventDestroy(e);
  cudaStreamDestroy(s);
  int d; cudaGetDevice(&d); int c; cudaGetDeviceCount(&c); int a; cudaDeviceGetAttribute(&a, cudaDevAttrMultiProcessorCount, d);
  size_t lim; cudaDeviceGetLimit(&lim, cudaLimitMallocHeapSize);
  out[100]=d; out[101]=c; out[102]=a; out[103]=(int)lim; out[104] = cudaPeekAtLastError();
  printf("%s %s\n", cudaGetErrorName(cudaGetLastError()), cudaGetErrorString(cudaErrorInvalidValue));
  void* p; cudaMalloc(&p, 64); cudaMemcpyAsync(out+110, out, 8, cudaMemcpyDeviceToDevice, 0); cudaMemsetAsync(out+114, 7, 8, 0); cudaFree(p);
  int nb; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&nb, child, 32, 0); out[105] = nb;
  cudaFuncAttributes fa; cudaFuncGetAttributes(&fa, child); out[106] = fa.maxThreadsPerBlock;
  int v; cudaRuntimeGetVersion(&v); out[107] = v;
}
