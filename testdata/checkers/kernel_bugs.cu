// Kernels in the style of everyday CUDA, with a mistake each and without, as library_bugs.cu has them. CUDA 13.0:
//   nvcc -ptx -lineinfo -std=c++17 -arch=sm_90 [-DBUG] kernel_bugs.cu, with the path of this file and of headers cut
#include <cuda/atomic>
#include <cuda/barrier>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#ifdef BUG
#define IF_BUG(x) x
#define UNLESS(x)
#define EITHER(bug, ok) bug
#else
#define IF_BUG(x)
#define UNLESS(x) x
#define EITHER(bug, ok) ok
#endif
#define T threadIdx.x
#define FULL 0xffffffffu
// == private_histogram: racecheck, grid=2 block=128
K private_histogram(unsigned *a, unsigned *b) {
  __shared__ unsigned bins[4][64];
  for (int i = T; i < 256; i += 128) (&bins[0][0])[i] = 0; //!
  UNLESS(__syncthreads();)
  for (int i = T; i < 256; i += 128) atomicAdd(&bins[T >> 5][(b[i] * 7 + i) & 63], 1); //!
  __syncthreads();
  if (T < 64) {
    unsigned s = 0;
    for (int w = 0; w < 4; w++) s += bins[w][T];
    if (s) atomicAdd(&a[T], s);
  }
}
// == scan_in_one_buffer: racecheck, grid=1 block=128
K scan_in_one_buffer(unsigned *a, unsigned *b) {
  __shared__ unsigned s[128];
  s[T] = b[T] + T;
  __syncthreads();
  for (int d = 1; d < 128; d <<= 1) {
    unsigned v = T >= d ? s[T - d] : 0; //!
    UNLESS(__syncthreads();)
    s[T] += v; //!
    __syncthreads();
  }
  a[T] = s[T];
}
// == product_of_tiles: racecheck, grid=1 block=256
K product_of_tiles(float *a, const unsigned *b) {
  __shared__ float x[16][17], y[16][17];
  int r = T >> 4, c = T & 15;
  float sum = 0;
  for (int k = 0; k < 4; k++) {
    x[r][c] = b[(r * 16 + c + k) & 255]; //!
    y[c][r] = b[(c * 16 + r + k * 3) & 255]; //!
    __syncthreads();
#pragma unroll 4
    for (int j = 0; j < 16; j++) sum += x[r][j] * y[c][j]; //!
    UNLESS(__syncthreads();)
  }
  a[T] = sum;
}
// == halo_left_out: initcheck, grid=1 block=128
K halo_left_out(unsigned *a, unsigned *b) {
  __shared__ unsigned s[130];
  s[T + 1] = b[T];
  if (T == 0) s[0] = 0;
  UNLESS(if (T == 127) s[129] = 0;)
  __syncthreads();
  a[T] = s[T] + s[T + 1] + s[T + 2]; //!
}
// == sum_of_the_last_block: racecheck, grid=4 block=64
K sum_of_the_last_block(unsigned *a, unsigned *b) {
  __shared__ unsigned s[2];
  __shared__ bool last;
  unsigned v = __reduce_add_sync(FULL, b[T]);
  if (!(T & 31)) s[T >> 5] = v;
  __syncthreads();
  if (T == 0) {
    a[blockIdx.x + 1] = s[0] + s[1]; //!
    UNLESS(__threadfence();)
    last = atomicAdd(&a[0], 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && T == 0) {
    __threadfence();
    unsigned sum = 0;
    for (int i = 0; i < gridDim.x; i++) sum += ((volatile unsigned *)a)[i + 1]; //!
    a[64] = sum;
  }
}
// == lookback_by_plain_loads: racecheck, grid=4 block=32
K lookback_by_plain_loads(unsigned *a, unsigned *b) {
  unsigned v = __reduce_add_sync(FULL, b[T]);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> mine(a[blockIdx.x * 2]);
  if (T == 0) {
    unsigned before = 0;
    if (blockIdx.x) {
#ifdef BUG
      while (((volatile unsigned *)a)[blockIdx.x * 2 - 2] == 0) {} //!
#else
      cuda::atomic_ref<unsigned, cuda::thread_scope_device> f(a[blockIdx.x * 2 - 2]);
      while (f.load(cuda::memory_order_acquire) == 0) {}
#endif
      before = a[blockIdx.x * 2 - 1]; //!
    }
    a[blockIdx.x * 2 + 1] = before + v; //!
    mine.store(1, cuda::memory_order_release);
  }
}
// == group_waited_for_too_late: asynccheck, grid=1 block=128
K group_waited_for_too_late(unsigned *a, unsigned *b) {
  __shared__ __align__(16) unsigned s[3][128];
  auto copy = [&](int k) {
    unsigned p = (unsigned)__cvta_generic_to_shared(&s[k % 3][T]);
    if (k < 6) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(p), "l"(b + ((T + 16 * k) & 255)) : "memory"); //!
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  copy(0); copy(1);
  unsigned sum = 0;
  for (int k = 0; k < 6; k++) {
    EITHER(asm volatile("cp.async.wait_group 2;" ::: "memory"), asm volatile("cp.async.wait_group 1;" ::: "memory"));
    __syncthreads();
    sum += s[k % 3][T ^ 33]; //!
    copy(k + 2);
  }
  a[T] = sum;
}
// == bulk_store_without_a_proxy_fence: asynccheck, grid=1 block=64
K bulk_store_without_a_proxy_fence(unsigned *a, unsigned *b) {
  __shared__ __align__(128) unsigned s[64];
  s[T] = b[T] + T; //!
  UNLESS(asm volatile("fence.proxy.async.shared::cta;" ::: "memory");)
  __syncthreads();
  if (T == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(a), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory"); //!
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
// == buffer_filled_while_it_is_stored: asynccheck, grid=1 block=64
K buffer_filled_while_it_is_stored(unsigned *a, unsigned *b) {
  __shared__ __align__(128) unsigned s[64];
  for (int k = 0; k < 3; k++) {
    s[T] = b[T] + T * k; //!
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (T == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(a + 64 * k), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory"); //!
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      EITHER(asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"), asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"));
    }
    __syncthreads();
  }
  if (T == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// == bins_of_the_peer_not_cleared_yet: racecheck, grid=2 block=64 cluster=2
K __cluster_dims__(2, 1, 1) bins_of_the_peer_not_cleared_yet(unsigned *a, unsigned *b) {
  __shared__ unsigned bins[32];
  auto c = cg::this_cluster();
  if (T < 32) bins[T] = 0; //!
  EITHER(__syncthreads(), c.sync());
  unsigned v = (b[T] * 5 + T * 3 + blockIdx.x) & 63;
  atomicAdd(c.map_shared_rank(&bins[v & 31], v >> 5), 1); //!
  c.sync();
  if (T < 32) a[c.block_rank() * 32 + T] = bins[T];
}
// == shuffle_in_a_branch: synccheck, grid=1 block=32
K shuffle_in_a_branch(unsigned *a, unsigned *b) {
  unsigned v = b[T] + T;
  if (T < 20) {
    unsigned m = EITHER(FULL, 0xfffffu);
    v += __shfl_xor_sync(m, v, 1); //!
    a[T] = v;
  } else
    a[T] = v * 3;
}
// == one_row_too_many: memcheck, grid=2 block=128
K one_row_too_many(unsigned *a, unsigned *b) {
  int n = 256, i = blockIdx.x * 128 + T;
  if (i EITHER(<=, <) n - 1) a[i] = b[i] + b[i + 1]; //!
}
// == aggregated_atomic_of_all_lanes: synccheck, grid=1 block=64
K aggregated_atomic_of_all_lanes(unsigned *a, unsigned *b) {
  unsigned v = b[T] * 3 + T;
  if (v % 3 == 1) {
    unsigned m = EITHER(FULL, __activemask());
    unsigned eq = __match_any_sync(m, v & 7); //!
    int leader = __ffs(eq) - 1;
    if ((T & 31) == leader) atomicAdd(&a[v & 7], __popc(eq));
  }
}
// == list_longer_than_its_array: memcheck, grid=1 block=32
K list_longer_than_its_array(unsigned *a, unsigned *b) {
  unsigned best[4] = {0, 0, 0, 0}, tags[4] = {1, 2, 3, 4};
  for (int k = 0; k < 8; k++) {
    unsigned v = (b[(T + k) & 255] * 17 + k * T) & 31;
    int at = 3;
    while (at EITHER(>= 0, > 0) && best[at EITHER(, - 1)] < v) { best[at] = at ? best[at - 1] : 0; tags[at] += k; at--; } //!
    best[at] = v; //!
    tags[(v + at) & 3] ^= v;
  }
  a[T] = best[T & 3] + tags[(T + 1) & 3];
}
// == node_freed_before_its_next_is_read: memcheck, grid=1 block=4
struct Node { unsigned value; Node *next; };
K node_freed_before_its_next_is_read(unsigned *a, unsigned *b) {
  Node *head = nullptr;
  for (unsigned k = 0; k < 3; k++) {
    Node *n = (Node *)malloc(sizeof(Node));
    n->value = k + b[T]; n->next = head; head = n;
  }
  unsigned sum = 0;
  while (head) {
    sum += head->value;
#ifdef BUG
    free(head);
    head = head->next; //!
#else
    Node *next = head->next;
    free(head);
    head = next;
#endif
  }
  a[T] = sum;
}
// == lock_given_back_by_a_plain_store: racecheck, grid=4 block=32
K lock_given_back_by_a_plain_store(unsigned *a, unsigned *b) {
  if (T == 0) {
    while (atomicCAS(&a[0], 0, 1)) {}
    __threadfence();
    a[1] = a[1] + b[0]; //!
    EITHER(*(volatile unsigned *)&a[0] = 0, (__threadfence(), atomicExch(&a[0], 0)));
  }
}
// == fence_of_the_block_for_the_grid: racecheck, grid=2 block=64
K fence_of_the_block_for_the_grid(unsigned *a, unsigned *b) {
  if (blockIdx.x == 0) {
    a[T + 4] = b[T] + 1; //!
    EITHER(__threadfence_block(), __threadfence());
    __syncthreads();
    if (T == 0) atomicExch(&a[0], 1);
  } else {
    if (T == 0) while (atomicAdd(&a[0], 0) == 0) {}
    __syncthreads();
    __threadfence();
    a[T + 96] = a[67 - T]; //!
  }
}
// == second_array_too_near: racecheck, grid=1 block=64 shared=512
K second_array_too_near(unsigned *a, unsigned *b) {
  extern __shared__ unsigned dyn[];
  unsigned *keys = dyn, *values = dyn + EITHER(32, 64);
  keys[T] = b[T]; //!
  values[T] = T; //!
  __syncthreads();
  a[T] = keys[T ^ 1] + values[T ^ 1];
}
// == minimum_of_warps_without_items: initcheck, grid=1 block=128
K minimum_of_warps_without_items(unsigned *a, unsigned *b) {
  __shared__ unsigned least[4];
  unsigned n = 80, v = T < n ? b[T] * (T ^ 21) : EITHER(0, ~0u);
  unsigned w = T >> 5;
  if (EITHER(w * 32 < n, true)) {
    v = __reduce_min_sync(FULL, v);
    if (!(T & 31)) least[w] = v;
  }
  __syncthreads();
  if (T == 0) {
    unsigned m = least[0];
    for (int i = 1; i < 4; i++) m = min(m, least[i]); //!
    a[0] = m;
  }
}
// == rows_of_odd_length_as_float4: memcheck, grid=1 block=16
K rows_of_odd_length_as_float4(unsigned *a, unsigned *b) {
  int pitch = EITHER(13, 12);
  uint4 v = *(const uint4 *)(b + (T & 7) * pitch); //!
  a[T] = v.x + v.y + v.z + v.w;
}
// == named_barrier_of_too_many: deadlock, grid=1 block=96
K named_barrier_of_too_many(unsigned *a, unsigned *b) {
  __shared__ unsigned s[64];
  if (T < 64) {
    s[T] = b[T];
    asm volatile("bar.sync 1, %0;" ::"n"(EITHER(96, 64)) : "memory"); //!
    a[T] = s[63 - T];
  } else {
    a[T] = b[T] * 3;
  }
}
// == read_only_load_of_new_values: racecheck, grid=1 block=64
K read_only_load_of_new_values(unsigned *a, unsigned *b) {
  a[T] = b[T] + T; //!
  __syncthreads();
  unsigned v = EITHER(__ldg(&a[63 - T]), *(volatile unsigned *)&a[63 - T]); //!
  b[T] = v;
}
// == parity_of_each_stage: deadlock, grid=1 block=64
K parity_of_each_stage(unsigned *a, unsigned *b) {
  __shared__ __align__(8) unsigned long long full[2], empty[2];
  __shared__ unsigned s[2][32];
  auto at = [](void *p) { return (unsigned)__cvta_generic_to_shared(p); };
  auto wait = [&](unsigned long long *m, unsigned parity) {
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" ::"r"(at(m)), "r"(parity) : "memory");
  };
  auto arrive = [&](unsigned long long *m) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(m)) : "memory"); };
  if (T == 0)
    for (int i = 0; i < 2; i++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&full[i])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&empty[i])) : "memory");
    }
  __syncthreads();
  unsigned l = T & 31;
  if (T < 32)
    for (int k = 0; k < 6; k++) {
      wait(&empty[k & 1], EITHER(((k >> 1) & 1), (((k >> 1) & 1) ^ 1))); //!
      s[k & 1][l] = b[l] + k; //!
      arrive(&full[k & 1]);
    }
  else {
    unsigned sum = 0;
    for (int k = 0; k < 6; k++) {
      wait(&full[k & 1], (k >> 1) & 1);
      sum += s[k & 1][31 - l]; //!
      arrive(&empty[k & 1]);
    }
    a[l] = sum;
  }
}
// == block_never_freed: leakcheck, grid=1 block=8
K block_never_freed(unsigned *a, unsigned *b) {
  unsigned *p = (unsigned *)malloc(64); //!
  if (!p) return;
  for (int i = 0; i < 16; i++) p[i] = b[T] * i;
  a[T] = p[b[T] & 15];
  if (EITHER(T & 1, true)) free(p);
}
// == transposed_in_place: racecheck, grid=1 block=256
K transposed_in_place(unsigned *a, unsigned *b) {
  int r = T >> 4, c = T & 15;
#ifdef BUG
  unsigned v = b[c * 16 + r]; //!
  b[r * 16 + c] = v; //!
#else
  unsigned v = b[c * 16 + r];
  __syncthreads();
  b[r * 16 + c] = v;
#endif
  a[T] = v;
}
// == radix_ranks_before_the_scan: racecheck, grid=1 block=128
K radix_ranks_before_the_scan(unsigned *a, unsigned *b) {
  __shared__ unsigned count[4][4], base[4], out[128];
  unsigned key = (b[T] * 13 + T * 7) & 3, w = T >> 5, l = T & 31, rank = 0;
  for (unsigned d = 0; d < 4; d++) {
    unsigned m = __ballot_sync(FULL, key == d);
    if (key == d) rank = __popc(m & ((1u << l) - 1));
    if (l == d) count[w][d] = __popc(m); //!
  }
  __syncthreads();
  if (T < 4) {
    unsigned s = 0;
    for (int i = 0; i < 4; i++) { unsigned c = count[i][T]; count[i][T] = s; s += c; } //!
    base[T] = s; //!
  }
  EITHER(__syncwarp(), __syncthreads());
  unsigned first = 0;
  for (unsigned d = 0; d < key; d++) first += base[d]; //!
  out[first + count[w][key] + rank] = T; //!
  __syncthreads();
  a[T] = out[T];
}
