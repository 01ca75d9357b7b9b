// The limit for the kernels of programs.cu and Triton's: the same work as C for vectors of BYTES bytes.  gcc -O3 -march=native -fopenmp programs.c -lm
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <math.h>
#include <omp.h>
#ifndef BYTES
#define BYTES 64     // 32 for CPUs with AVX2
#endif
#define LANES (BYTES / 4)  // of a vector
#define SIDE (BYTES / 16)   // vectors beside each other: what the registers hold
typedef float F __attribute__((vector_size(BYTES)));
static double now() { return omp_get_wtime(); }
#define BEST(name, ...) do { double best = 1e9; for (int rep = 0; rep < 7; rep++) { double t = now(); __VA_ARGS__; t = now() - t; if (t < best) best = t; } \
  printf("{\"kernel\":\"%s\",\"runner\":\"simd_omp%d\",\"seconds\":%.6f}\n", name, omp_get_max_threads(), best); } while (0)

static void stencil(const float *in, float *out, int nx, int ny, int nz) {
  static const float zeros[1024];
  _Pragma("omp parallel for collapse(2)")
  for (int z = 0; z < nz; z++) for (int y = 0; y < ny; y++) {
    const float *p = in + (z * ny + y) * nx, *n = y ? p - nx : zeros, *s = y + 1 < ny ? p + nx : zeros;
    const float *b = z ? p - nx * ny : zeros, *a = z + 1 < nz ? p + nx * ny : zeros;
    float *o = out + (z * ny + y) * nx;
    o[0] = 0.4f * p[0] + 0.1f * (n[0] + s[0] + p[1] + b[0] + a[0]);
    for (int x = 1; x < nx - 1; x++) o[x] = 0.4f * p[x] + 0.1f * (n[x] + s[x] + p[x - 1] + p[x + 1] + b[x] + a[x]);
    int l = nx - 1;
    o[l] = 0.4f * p[l] + 0.1f * (n[l] + s[l] + p[l - 1] + b[l] + a[l]);
  }
}

static void histogram(const uint32_t *in, uint32_t *bins, int n) {
  memset(bins, 0, 1024);
  _Pragma("omp parallel") {
    uint32_t s[4][256] = {0};
    _Pragma("omp for")
    for (int i = 0; i < n; i++) { uint32_t v = in[i]; s[0][v & 255]++; s[1][v >> 8 & 255]++; s[2][v >> 16 & 255]++; s[3][v >> 24]++; }
    _Pragma("omp critical")
    for (int b = 0; b < 256; b++) bins[b] += s[0][b] + s[1][b] + s[2][b] + s[3][b];
  }
}

static void spmv(const int *rows, const int *columns, const float *values, const float *x, float *y, int n) {
  _Pragma("omp parallel for")
  for (int r = 0; r < n; r++) {
    float sum = 0;
    _Pragma("omp simd reduction(+:sum)")
    for (int i = rows[r]; i < rows[r + 1]; i++) sum += values[i] * x[columns[i]];
    y[r] = sum;
  }
}

static void scan(const uint32_t *in, uint32_t *out, uint32_t *totals, int n) {
  typedef uint32_t V __attribute__((vector_size(BYTES)));
  const V zero = {0};
  _Pragma("omp parallel for")
  for (int b = 0; b < n; b += 1024) {
    V carry = {0};
    for (int i = b; i < b + 1024; i += LANES) {
      V v = *(const V *)(in + i);
#if BYTES == 64
      v += __builtin_shuffle(zero, v, (V){0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30});
      v += __builtin_shuffle(zero, v, (V){0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29});
      v += __builtin_shuffle(zero, v, (V){0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27});
      v += __builtin_shuffle(zero, v, (V){0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23});
      const V last = {15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15};
#else
      v += __builtin_shuffle(zero, v, (V){0, 8, 9, 10, 0, 12, 13, 14}); // in halves, which a shift moves at once
      v += __builtin_shuffle(zero, v, (V){0, 0, 8, 9, 0, 0, 12, 13});
      v += __builtin_shuffle(zero, v, (V){0, 0, 0, 0, 11, 11, 11, 11});
      const V last = {7, 7, 7, 7, 7, 7, 7, 7};
#endif
      v += carry;
      *(V *)(out + i) = v;
      carry = __builtin_shuffle(v, last);
    }
    totals[b / 1024] = out[b + 1023];
  }
}

static void radix(const uint32_t *in, uint32_t *out, int n, int shift) {
  _Pragma("omp parallel for")
  for (int b = 0; b < n; b += 1024) {
    uint32_t counts[16] = {0}, sum = b;
    for (int i = b; i < b + 1024; i++) counts[in[i] >> shift & 15]++;
    for (int d = 0; d < 16; d++) { uint32_t c = counts[d]; counts[d] = sum; sum += c; }
    for (int i = b; i < b + 1024; i++) out[counts[in[i] >> shift & 15]++] = in[i];
  }
}

static void gemm(const float *a, const float *b, float *c, int m) {
  _Pragma("omp parallel for")
  for (int i = 0; i < m; i += 4) for (int j = 0; j < m; j += SIDE * LANES) { F s[4][SIDE] = {0};
    for (int k = 0; k < m; k++) { const F *p = (const F *)(b + k * m + j); for (int r = 0; r < 4; r++) { float x = a[(i + r) * m + k]; for (int q = 0; q < SIDE; q++) s[r][q] += x * p[q]; } }
    for (int r = 0; r < 4; r++) for (int q = 0; q < SIDE; q++) ((F *)(c + (i + r) * m + j))[q] = s[r][q]; }
}

static void softmax(const float *in, float *out, int rows, int n, int from, int to) {
  _Pragma("omp parallel for")
  for (int r = 0; r < rows; r++) {
    const float *p = in + r * from; float *o = out + r * to, top = -INFINITY, sum = 0;
    _Pragma("omp simd reduction(max:top)")
    for (int i = 0; i < n; i++) top = p[i] > top ? p[i] : top;
    _Pragma("omp simd reduction(+:sum)")
    for (int i = 0; i < n; i++) { float e = expf(p[i] - top); o[i] = e; sum += e; }
    sum = 1 / sum;
    for (int i = 0; i < n; i++) o[i] *= sum;
  }
}

// one head of 64, keys transposed on the way; four queries at a time
static void attention(const _Float16 *q, const _Float16 *k, const _Float16 *v, _Float16 *o, int n, float scale) {
  float *kt = aligned_alloc(64, 256 * n), *vf = aligned_alloc(64, 256 * n);
  for (int j = 0; j < n; j++) for (int d = 0; d < 64; d++) { kt[d * n + j] = k[64 * j + d]; vf[64 * j + d] = v[64 * j + d]; }
  _Pragma("omp parallel") {
    float *s = aligned_alloc(64, 16 * n);
    _Pragma("omp for")
    for (int i = 0; i < n; i += 4) {
      float sums[4];
      for (int j = 0; j < n; j += SIDE * LANES) { F a[4][SIDE] = {0};
        for (int d = 0; d < 64; d++) { const F *p = (const F *)(kt + d * n + j); for (int r = 0; r < 4; r++) { float x = q[64 * (i + r) + d]; for (int c = 0; c < SIDE; c++) a[r][c] += x * p[c]; } }
        for (int r = 0; r < 4; r++) for (int c = 0; c < SIDE; c++) ((F *)(s + r * n + j))[c] = a[r][c] * scale; }
      for (int r = 0; r < 4; r++) { float top = -INFINITY, sum = 0, *p = s + r * n;
        _Pragma("omp simd reduction(max:top)")
        for (int j = 0; j < n; j++) top = p[j] > top ? p[j] : top;
        _Pragma("omp simd reduction(+:sum)")
        for (int j = 0; j < n; j++) { p[j] = exp2f(p[j] - top); sum += p[j]; }
        sums[r] = 1 / sum; }
      for (int h = 0; h < 64; h += SIDE * LANES) { F a[4][SIDE] = {0};
        for (int j = 0; j < n; j++) { const F *p = (const F *)(vf + 64 * j + h); for (int r = 0; r < 4; r++) { float x = s[r * n + j]; for (int c = 0; c < SIDE; c++) a[r][c] += x * p[c]; } }
        for (int r = 0; r < 4; r++) for (int c = 0; c < SIDE; c++) for (int l = 0; l < LANES; l++) o[64 * (i + r) + h + LANES * c + l] = (_Float16)(a[r][c][l] * sums[r]); }
    }
    free(s);
  }
  free(kt); free(vf);
}

int main(void) {
  int n = 1 << 20;
  float *a = aligned_alloc(64, 4 * n), *b = aligned_alloc(64, 4 * n), *c = aligned_alloc(64, 4 * n);
  uint32_t *u = aligned_alloc(64, 4 * n), *w = aligned_alloc(64, 4 * n), bins[1024];
  srand(1);
  for (int i = 0; i < n; i++) { a[i] = rand() / (float)RAND_MAX - .5f; b[i] = rand() / (float)RAND_MAX - .5f; u[i] = rand() * 2654435761u ^ rand() << 8; }
  memset(c, 0, 4 * n); memset(w, 0, 4 * n);
  BEST("stencil", stencil(a, c, 128, 128, 64));
  BEST("histogram", histogram(u, bins, n));
  int rows = 16384, *start = malloc(4 * (rows + 1)), *columns = malloc(4 * n);
  for (int r = 0; r <= rows; r++) start[r] = 64 * r;
  for (int i = 0; i < n; i++) columns[i] = u[i] % rows;
  BEST("spmv", spmv(start, columns, a, b, c, rows));
  BEST("scan", scan(u, w, (uint32_t *)c, n));
  BEST("radix", radix(u, w, n, 8));
  BEST("gemm_async", gemm(a, b, c, 256));
  BEST("softmax", softmax(a, c, 1024, 777, 784, 800));
  _Float16 *h = aligned_alloc(64, 2 * n), *o = aligned_alloc(64, 2 * n);
  for (int i = 0; i < n; i++) h[i] = (_Float16)a[i];
  BEST("attention", attention(h, h + 65536, h + 131072, o, 1024, 0.18f));
  double check = 0; for (int i = 0; i < 1000; i++) check += c[i] + w[i] + (float)o[i] + bins[i & 255]; fprintf(stderr, "check %g\n", check);
}
