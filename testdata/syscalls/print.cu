#include <cstdio>
#include <cassert>
#include <cstdint>
extern "C" __global__ void print_all(const char *unused, float x) {
  if (threadIdx.x) return;
  printf("%d|%5d|%-5d|%05d|%+d|% d|%i\n", 1, -2, 3, 4, 5, 6, 7);
  printf("%u|%o|%#o|%x|%X|%#x|%#010x\n", 4000000000u, 8, 8, 255, 255, 255, 255);
  printf("%hhd|%hd|%ld|%lld|%zu|%td|%jd\n", (char)-1, (short)-2, -3l, -4ll, (size_t)5, (ptrdiff_t)-6, (intmax_t)7);
  printf("%f|%.2f|%10.3f|%-10.1f|%e|%E|%g|%G|%a\n", x, x, x, x, x, x, x, x, 1.5);
  printf("%c%c|%s|%10s|%-10s|%.2s|%p\n", 'o', 'k', "str", "right", "left", "cut", (void *)0x1234);
  printf("%*d|%-*d|%.*f|%%\n", 6, 42, 6, 42, 2, 3.14159);
  printf("%g %g %g %f\n", 1.0/0.0*1, -1.0/(double)(x-x), 0.0, 1e300);
  int n = printf("n\n"); printf("%d %d\n", n, printf("%d %d\n", 1, 2));
}
extern "C" __global__ void print_each(int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) printf("thread %d of %d\n", i, n); }
extern "C" __global__ void heap(int *ok, size_t size, int times) {
  int good = 0; void *last = 0;
  for (int i = 0; i < times; i++) { void *p = malloc(size); if (p) { good++; last = p; } }
  free(last); free(0);
  ok[threadIdx.x] = good;
}
extern "C" __global__ void newdel(int *o) { int *p = new int[10]; for (int i = 0; i < 10; i++) p[i] = i * threadIdx.x; int s = 0; for (int i = 0; i < 10; i++) s += p[i]; o[threadIdx.x] = s; delete[] p; }
extern "C" __global__ void fails(int n) { assert(threadIdx.x + n < 40); }
