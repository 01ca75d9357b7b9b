// Matrix products C = A B of single floats (m x n x k), from the plainest to one with tiles in registers: what
// bench/estimates.py holds the model of time against.

extern "C" __global__ void naive(int m, int n, int k, const float *a, const float *b, float *c)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x; // threads of a warp are below one another: nothing coalesces
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && column < n) {
        float sum = 0;
        for (int i = 0; i < k; i++)
            sum += a[row * k + i] * b[i * n + column];
        c[row * n + column] = sum;
    }
}

extern "C" __global__ void coalesced(int m, int n, int k, const float *a, const float *b, float *c)
{
    int row = blockIdx.x * 32 + threadIdx.x / 32;
    int column = blockIdx.y * 32 + threadIdx.x % 32;
    if (row < m && column < n) {
        float sum = 0;
        for (int i = 0; i < k; i++)
            sum += a[row * k + i] * b[i * n + column];
        c[row * n + column] = sum;
    }
}

extern "C" __global__ void tiled(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float left[32 * 32], right[32 * 32];
    int y = threadIdx.x / 32, x = threadIdx.x % 32;
    int row = blockIdx.x * 32 + y, column = blockIdx.y * 32 + x;
    float sum = 0;
    for (int at = 0; at < k; at += 32) {
        left[y * 32 + x] = a[row * k + at + x];
        right[y * 32 + x] = b[(at + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; i++)
            sum += left[y * 32 + i] * right[i * 32 + x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void column_of_eight(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ float left[64 * 8], right[8 * 64];
    int x = threadIdx.x % 64, y = threadIdx.x / 64; // 512 threads, 8 results each
    float sums[8] = {0};
    a += blockIdx.y * 64 * k;
    b += blockIdx.x * 64;
    for (int at = 0; at < k; at += 8) {
        left[threadIdx.x] = a[threadIdx.x / 8 * k + at + threadIdx.x % 8];
        right[threadIdx.x] = b[(at + threadIdx.x / 64) * n + threadIdx.x % 64];
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            float one = right[i * 64 + x];
            for (int j = 0; j < 8; j++)
                sums[j] += left[(y * 8 + j) * 8 + i] * one;
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++)
        c[(blockIdx.y * 64 + y * 8 + j) * n + blockIdx.x * 64 + x] = sums[j];
}
