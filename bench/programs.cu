// Kernels as real programs have them, one to a file: nvcc -arch=sm_80 -ptx -DK_NAME programs.cu -o NAME.ptx
#include <stdint.h>
#include <cuda_pipeline.h>

#ifdef K_STENCIL
// seven points of a cube, planes of 64 x 64 in turn, the planes above and below in registers
extern "C" __global__ void stencil(const float* in, float* out, int nx, int ny, int nz) {
  __shared__ float s[10][34];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32 + tx, y = blockIdx.y * 8 + ty;
  int plane = nx * ny, at = y * nx + x;
  float below = 0.f, here = in[at], above = in[at + plane];
  for (int z = 0; z < nz; z++) {
    s[ty + 1][tx + 1] = here;
    if (ty == 0) s[0][tx + 1] = y > 0 ? in[at - nx] : 0.f;
    if (ty == 7) s[9][tx + 1] = y + 1 < ny ? in[at + nx] : 0.f;
    if (tx == 0) s[ty + 1][0] = x > 0 ? in[at - 1] : 0.f;
    if (tx == 31) s[ty + 1][33] = x + 1 < nx ? in[at + 1] : 0.f;
    __syncthreads();
    float sides = s[ty][tx + 1] + s[ty + 2][tx + 1] + s[ty + 1][tx] + s[ty + 1][tx + 2];
    out[at] = 0.4f * here + 0.1f * (sides + below + above);
    __syncthreads();
    below = here;
    here = above;
    above = z + 2 < nz ? in[at + 2 * plane] : 0.f;
    at += plane;
  }
}
#endif

#ifdef K_HISTOGRAM
// 256 bins in shared memory, then added to those in global memory
extern "C" __global__ void histogram(const uint32_t* in, uint32_t* bins, int n) {
  __shared__ uint32_t s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    uint32_t v = in[i];
    atomicAdd(&s[v & 255], 1);
    atomicAdd(&s[v >> 8 & 255], 1);
    atomicAdd(&s[v >> 16 & 255], 1);
    atomicAdd(&s[v >> 24], 1);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
#endif

#ifdef K_SPMV
// rows in compressed form, a warp to a row
extern "C" __global__ void spmv(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (row >= n) return;
  float sum = 0.f;
  for (int i = rows[row] + lane; i < rows[row + 1]; i += 32) sum += values[i] * x[columns[i]];
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if (lane == 0) y[row] = sum;
}
#endif

#ifdef K_SCAN
// inclusive sums of 1024 numbers, four to a thread, within warps and then across them
extern "C" __global__ void scan(const uint32_t* in, uint32_t* out, uint32_t* totals) {
  __shared__ uint32_t warps[8];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  uint4 v = ((const uint4*)in)[blockIdx.x * 256 + t];
  v.y += v.x; v.z += v.y; v.w += v.z;
  uint32_t sum = v.w;
  for (int d = 1; d < 32; d <<= 1) { uint32_t left = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += left; }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    uint32_t w = lane < 8 ? warps[lane] : 0;
    for (int d = 1; d < 8; d <<= 1) { uint32_t left = __shfl_up_sync(~0u, w, d); if (lane >= d) w += left; }
    if (lane < 8) warps[lane] = w;
  }
  __syncthreads();
  uint32_t before = sum - v.w + (warp ? warps[warp - 1] : 0);
  v.x += before; v.y += before; v.z += before; v.w += before;
  ((uint4*)out)[blockIdx.x * 256 + t] = v;
  if (t == 255) totals[blockIdx.x] = v.w;
}
#endif

#ifdef K_RADIX
// a pass of a radix sort over 1024 keys of a block: four bits, by counts of digits of each warp; stable
extern "C" __global__ void radix(const uint32_t* in, uint32_t* out, int shift) {
  __shared__ uint32_t counts[16][33];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  uint32_t key = in[blockIdx.x * 1024 + t], digit = key >> shift & 15;
  uint32_t peers = ~0u;
  for (int bit = 0; bit < 4; bit++) { uint32_t set = __ballot_sync(~0u, digit >> bit & 1); peers &= digit >> bit & 1 ? set : ~set; }
  uint32_t rank = __popc(peers & ((1u << lane) - 1));
  if (t < 512) counts[t >> 5][t & 31] = 0;
  __syncthreads();
  if (rank == 0) counts[digit][warp] = __popc(peers);
  __syncthreads();
  if (warp < 16) {
    uint32_t mine = counts[warp][lane], sum = mine;
    for (int d = 1; d < 32; d <<= 1) { uint32_t left = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += left; }
    counts[warp][lane] = sum - mine;
    if (lane == 31) counts[warp][32] = sum;
  }
  __syncthreads();
  if (warp == 0) {
    uint32_t mine = lane < 16 ? counts[lane][32] : 0, sum = mine;
    for (int d = 1; d < 16; d <<= 1) { uint32_t left = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += left; }
    if (lane < 16) counts[lane][32] = sum - mine;
  }
  __syncthreads();
  out[blockIdx.x * 1024 + counts[digit][32] + counts[digit][warp] + rank] = key;
}
#endif

#ifdef K_GEMM_ASYNC
// 64 x 64 of a product to a block of 256 threads, 4 x 4 to a thread, tiles of 16 copied ahead
extern "C" __global__ void gemm_async(const float* A, const float* B, float* C, int n) {
  __shared__ __align__(16) float a[2][64][16], b[2][16][64];
  int t = threadIdx.x, tx = t & 15, ty = t >> 4, row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  auto fetch = [&](int stage, int k) {
    __pipeline_memcpy_async(&a[stage][t >> 2][4 * (t & 3)], A + (row + (t >> 2)) * n + k + 4 * (t & 3), 16);
    __pipeline_memcpy_async(&b[stage][t >> 4][4 * (t & 15)], B + (k + (t >> 4)) * n + column + 4 * (t & 15), 16);
    __pipeline_commit();
  };
  fetch(0, 0);
  for (int k = 0; k < n; k += 16) {
    int stage = k >> 4 & 1;
    if (k + 16 < n) { fetch(stage ^ 1, k + 16); __pipeline_wait_prior(1); } else __pipeline_wait_prior(0);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float4 y = *(const float4*)&b[stage][i][4 * tx];
#pragma unroll
      for (int r = 0; r < 4; r++) {
        float x = a[stage][4 * ty + r][i];
        sum[r][0] += x * y.x; sum[r][1] += x * y.y; sum[r][2] += x * y.z; sum[r][3] += x * y.w;
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; r++)
    *(float4*)&C[(row + 4 * ty + r) * n + column + 4 * tx] = make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
}
#endif
