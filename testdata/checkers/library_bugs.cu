// Kernels that use cooperative groups, libcu++ and CUB, with a mistake each and without. `// == NAME: CHECKER KEYS` stands
// before one, and `//!` at the lines that the report names. CUDA 13.0:
//   nvcc -ptx -lineinfo -std=c++17 -arch=sm_90 [-DBUG] library_bugs.cu, with the path of this file and of headers cut
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cub/cub.cuh>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
#ifdef BUG
#define IF_BUG(x) x
#define UNLESS(x)
#else
#define IF_BUG(x)
#define UNLESS(x) x
#endif
// == tile_sync: racecheck, grid=1 block=64
K tile_sync(unsigned *a, unsigned *b) {
  __shared__ unsigned s[64];
  auto t = cg::tiled_partition<16>(cg::this_thread_block());
  s[threadIdx.x] = threadIdx.x; //!
  UNLESS(t.sync();)
  unsigned n = (threadIdx.x & ~15u) + ((t.thread_rank() + 1) & 15);
  a[threadIdx.x] = s[n]; //!
}
// == cluster_sync: racecheck, grid=2 block=32 cluster=2
K __cluster_dims__(2, 1, 1) cluster_sync(unsigned *a, unsigned *b) {
  __shared__ unsigned s[32];
  auto c = cg::this_cluster();
  s[threadIdx.x] = threadIdx.x + c.block_rank(); //!
#ifdef BUG
  __syncthreads();
#else
  c.sync();
#endif
  unsigned *p = c.map_shared_rank(s, c.block_rank() ^ 1);
  a[blockIdx.x * 32 + threadIdx.x] = p[threadIdx.x]; //!
  c.sync();
}
// == cluster_leaves: synccheck, grid=2 block=32 cluster=2
K __cluster_dims__(2, 1, 1) cluster_leaves(unsigned *a, unsigned *b) {
  __shared__ unsigned s[32];
  auto c = cg::this_cluster();
  s[threadIdx.x] = threadIdx.x;
  c.sync();
  unsigned *p = c.map_shared_rank(s, c.block_rank() ^ 1);
  a[blockIdx.x * 32 + threadIdx.x] = p[31 - threadIdx.x]; //!
  UNLESS(c.sync();)
}
// == pipeline_release: racecheck, grid=1 block=64
K pipeline_release(unsigned *a, const unsigned *b) {
  __shared__ unsigned s[2][64];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto p = cuda::make_pipeline(block, &state);
  unsigned sum = 0;
  for (int i = 0; i < 2; ++i) {
    p.producer_acquire();
    cuda::memcpy_async(block, s[i & 1], b, sizeof s[0], p); //!
    p.producer_commit();
  }
  for (int i = 0; i < 4; ++i) {
    p.consumer_wait();
    IF_BUG(p.consumer_release();)
    sum += s[i & 1][63 - threadIdx.x]; //!
    UNLESS(p.consumer_release();)
    if (i < 2) {
      p.producer_acquire();
      cuda::memcpy_async(block, s[i & 1], b, sizeof s[0], p); //!
      p.producer_commit();
    }
  }
  a[threadIdx.x] = sum;
}
// == pipeline_prior: asynccheck, grid=1 block=32
K pipeline_prior(unsigned *a, const unsigned *b) {
  __shared__ unsigned s[2][32];
  auto p = cuda::make_pipeline();
  for (int i = 0; i < 2; ++i) {
    p.producer_acquire();
    cuda::memcpy_async(&s[i][threadIdx.x], b + threadIdx.x, cuda::aligned_size_t<4>(4), p);
    p.producer_commit();
  }
#ifdef BUG
  cuda::pipeline_consumer_wait_prior<2>(p);
#else
  cuda::pipeline_consumer_wait_prior<1>(p);
#endif
  unsigned x = s[0][threadIdx.x]; //!
  p.consumer_release();
  cuda::pipeline_consumer_wait_prior<0>(p);
  a[threadIdx.x] = x + s[1][threadIdx.x];
  p.consumer_release();
}
// == barrier_early: racecheck, grid=1 block=64
K barrier_early(unsigned *a, const unsigned *b) {
  __shared__ unsigned s[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
#ifdef BUG
  auto t = bar.arrive();
  s[threadIdx.x] = b[threadIdx.x]; //!
#else
  s[threadIdx.x] = b[threadIdx.x];
  auto t = bar.arrive();
#endif
  bar.wait(std::move(t));
  a[threadIdx.x] = s[63 - threadIdx.x]; //!
}
// == atomic_ref_scope: racecheck, grid=4 block=32
K atomic_ref_scope(unsigned *a, const unsigned *b) {
#ifdef BUG
  cuda::atomic_ref<unsigned, cuda::thread_scope_block> r(*a);
#else
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> r(*a);
#endif
  if (threadIdx.x == 0) r.fetch_add(b[0], cuda::memory_order_relaxed); //!
}
// == spin_lock: racecheck, grid=4 block=32
__device__ cuda::atomic<int, cuda::thread_scope_device> lock_;
K spin_lock(unsigned *a, const unsigned *b) {
  if (threadIdx.x) return;
#ifdef BUG
  while (lock_.exchange(1, cuda::memory_order_relaxed)) ;
#else
  while (lock_.exchange(1, cuda::memory_order_acquire)) ;
#endif
  a[0] += b[0]; //!
  lock_.store(0, cuda::memory_order_release);
}
// == cub_reduce_twice: racecheck, grid=1 block=128
K cub_reduce_twice(unsigned *a, const unsigned *b) {
  using R = cub::BlockReduce<unsigned, 128>;
  __shared__ typename R::TempStorage t; //!
  unsigned x = R(t).Sum(b[threadIdx.x & 63]); //!
  UNLESS(__syncthreads();)
  unsigned y = R(t).Sum(threadIdx.x); //!
  if (threadIdx.x == 0) { a[0] = x; a[1] = y; }
}
// == cub_union: racecheck, grid=1 block=64
K cub_union(unsigned *a, const unsigned *b) {
  using L = cub::BlockLoad<unsigned, 64, 2, cub::BLOCK_LOAD_TRANSPOSE>;
  using S = cub::BlockScan<unsigned, 64>;
  __shared__ union { typename L::TempStorage l; typename S::TempStorage s; } t;
  unsigned x[2];
  L(t.l).Load(b, x, 64, 0u); //!
  UNLESS(__syncthreads();)
  S(t.s).InclusiveSum(x, x); //!
  a[threadIdx.x] = x[1];
}
// == ldg_alias: memcheck, grid=1 block=32
K ldg_alias(unsigned *a, const unsigned *b) {
  a[threadIdx.x] = b[threadIdx.x];
#ifdef BUG
  a[threadIdx.x + 32] = __ldg(a + 2 * (threadIdx.x / 2)); //!
#else
  a[threadIdx.x + 32] = __ldg(b + 2 * (threadIdx.x / 2));
#endif
}
// == shuffle_mask: synccheck, grid=1 block=32
K shuffle_mask(unsigned *a, const unsigned *b) {
  unsigned x = b[threadIdx.x];
  if (threadIdx.x < 24) {
#ifdef BUG
    x += __shfl_xor_sync(0xffffffff, x, 1); //!
#else
    x += __shfl_xor_sync(0x00ffffff, x, 1);
#endif
  }
  a[threadIdx.x] = x;
}
// == memcpy_wait: racecheck, grid=1 block=64
K memcpy_wait(unsigned *a, const unsigned *b) {
  __shared__ unsigned s[64];
  auto g = cg::this_thread_block();
  cg::memcpy_async(g, s, b, sizeof s); //!
#ifndef BUG
  cg::wait(g);
#else
  __pipeline_wait_prior(0);
#endif
  a[threadIdx.x] = s[63 - threadIdx.x]; //!
}
// == tma_fence: asynccheck, grid=1 block=64
K tma_fence(unsigned *a, const unsigned *b) {
  __shared__ alignas(128) unsigned s[64];
  s[threadIdx.x] = b[threadIdx.x] + 1;
  UNLESS(cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);)
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, a, s, 256); //!
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}
