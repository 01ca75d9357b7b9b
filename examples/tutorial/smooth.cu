// The mean of each element and its two neighbours.
extern "C" __global__ void smooth(const float *in, float *out, int n) {
    __shared__ float tile[130];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int t = threadIdx.x + 1;
    tile[t] = i < n ? in[i] : 0.0f;
    if (threadIdx.x == 0) {
        tile[0] = i > 0 ? in[i - 1] : 0.0f;
        tile[129] = i + 128 < n ? in[i + 128] : 0.0f;
    }
    if (i < n)
        out[i] = (tile[t - 1] + tile[t] + tile[t + 1]) / 3.0f;
}
