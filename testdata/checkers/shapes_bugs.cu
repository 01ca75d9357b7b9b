// Kernels in shapes of their own that use cooperative groups, libcu++ and CUB, with a mistake each and without, written before any
// of them was run. `// == NAME: CHECKER KEYS` stands before one, and `//!` at the lines that the report names. CUDA 13.0:
//   nvcc -ptx -lineinfo -std=c++17 -arch=sm_90 [-DBUG] shapes_bugs.cu, with the path of this file and of headers cut
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/std/utility>
#include <cuda/pipeline>
#include <cuda/atomic>
#include <cub/block/block_reduce.cuh>
#include <cuda/ptx>
namespace cg = cooperative_groups;
// == tile_of_eight_syncs_itself_alone: racecheck, grid=1 block=64
extern "C" __global__ void tile_of_eight_syncs_itself_alone(unsigned *a, unsigned *b) {
  __shared__ unsigned sums[8];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  unsigned s = cg::reduce(tile, a[threadIdx.x] + 1u, cg::plus<unsigned>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = s; //!
#ifdef BUG
  tile.sync();
#else
  block.sync();
#endif
  unsigned t = 0;
  for (int i = 0; i < 8; i++) t += sums[i]; //!
  b[threadIdx.x] = t;
}

// == token_of_the_phase_before: racecheck, grid=1 block=64
extern "C" __global__ void token_of_the_phase_before(unsigned *a, unsigned *b) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ unsigned x[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  auto first = bar.arrive();
  bar.wait(cuda::std::move(first));
  x[threadIdx.x] = a[threadIdx.x]; //!
#ifdef BUG
  (void)bar.arrive();
#else
  auto second = bar.arrive();
  bar.wait(cuda::std::move(second));
#endif
  b[threadIdx.x] = x[(threadIdx.x + 32) % 64]; //!
}

// == stage_consumed_without_a_wait: asynccheck, grid=1 block=64
extern "C" __global__ void stage_consumed_without_a_wait(unsigned *a, unsigned *b) {
  __shared__ unsigned x[2][64];
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&x[0][threadIdx.x], a + threadIdx.x, sizeof(unsigned), pipe);
  pipe.producer_commit();
  unsigned sum = 0;
  for (int i = 0; i < 3; i++) {
    if (i < 2) {
      pipe.producer_acquire();
      cuda::memcpy_async(&x[(i + 1) % 2][threadIdx.x], a + threadIdx.x, sizeof(unsigned), pipe);
      pipe.producer_commit();
    }
#ifdef BUG
    if (i != 1) pipe.consumer_wait();
#else
    pipe.consumer_wait();
#endif
    sum += x[i % 2][threadIdx.x]; //!
    pipe.consumer_release();
  }
#ifdef BUG
  pipe.consumer_wait();
#endif
  b[threadIdx.x] = sum;
}

// == flag_of_the_block_for_the_grid: racecheck, grid=2 block=32
#ifdef BUG
constexpr auto FLAG = cuda::thread_scope_block;
#else
constexpr auto FLAG = cuda::thread_scope_device;
#endif
extern "C" __global__ void flag_of_the_block_for_the_grid(unsigned *a, unsigned *b) {
  cuda::atomic_ref<unsigned, FLAG> flag(b[0]);
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    a[5] = 17; //!
    flag.store(2, cuda::memory_order_release); //!
  } else {
    while (flag.load(cuda::memory_order_acquire) != 2) ; //!
    b[1] = a[5]; //!
  }
}

// == storage_of_a_reduction_used_again: racecheck, grid=1 block=128
extern "C" __global__ void storage_of_a_reduction_used_again(unsigned *a, unsigned *b) {
  using R = cub::BlockReduce<unsigned, 128>;
  __shared__ typename R::TempStorage temp;
  unsigned total = 0;
  for (int i = 0; i < 3; i++) {
    total += R(temp).Sum(threadIdx.x * i); //!
#ifndef BUG
    __syncthreads();
#endif
  }
  if (threadIdx.x == 0) b[0] = total;
}

// == copy_by_a_barrier_read_before_it_has_come: asynccheck, grid=1 block=64
extern "C" __global__ void copy_by_a_barrier_read_before_it_has_come(unsigned *a, unsigned *b) {
  __shared__ alignas(16) unsigned x[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  auto block = cooperative_groups::this_thread_block();
  cuda::memcpy_async(block, x, a, cuda::aligned_size_t<16>(sizeof x), bar);
#ifdef BUG
  auto t = bar.arrive();
  unsigned v = x[threadIdx.x]; //!
  bar.wait(std::move(t));
#else
  bar.arrive_and_wait();
  unsigned v = x[threadIdx.x];
#endif
  b[threadIdx.x] = v;
}

// == barrier_in_a_template_under_a_condition: synccheck, grid=1 block=64
template <int N> __device__ __noinline__ unsigned turn(unsigned *x, unsigned v) {
  x[threadIdx.x] = v;
  __syncthreads(); //!
  unsigned r = x[(threadIdx.x + N) % 64];
  __syncthreads(); //!
  return r;
}
extern "C" __global__ void barrier_in_a_template_under_a_condition(unsigned *a, unsigned *b) {
  __shared__ unsigned x[64];
  unsigned v = a[threadIdx.x];
  x[threadIdx.x] = 0;
  __syncthreads();
#ifdef BUG
  if (v + threadIdx.x < 40) v = turn<3>(x, v);
#else
  v = turn<3>(x, v);
#endif
  b[threadIdx.x] = v;
}

// == lock_given_back_relaxed: racecheck, grid=3 block=32
extern "C" __global__ void lock_given_back_relaxed(unsigned *a, unsigned *b) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> lock(a[0]);
  if (threadIdx.x) return;
  while (lock.exchange(1, cuda::memory_order_acquire)) ;
  b[3] += blockIdx.x; //!
#ifdef BUG
  lock.store(0, cuda::memory_order_relaxed);
#else
  lock.store(0, cuda::memory_order_release);
#endif
}

// == shuffle_of_all_behind_an_early_return: synccheck, grid=1 block=64
extern "C" __global__ void shuffle_of_all_behind_an_early_return(unsigned *a, unsigned *b) {
  unsigned v = a[threadIdx.x];
#ifdef BUG
  unsigned mask = 0xffffffff;
#else
  unsigned mask = __ballot_sync(0xffffffff, threadIdx.x % 32 < 20);
#endif
  if (threadIdx.x % 32 >= 20) return;
  for (int d = 1; d < 16; d *= 2) v += __shfl_up_sync(mask, v, d); //!
  b[threadIdx.x] = v;
}

// == bulk_store_of_what_was_not_fenced: asynccheck, grid=1 block=64
extern "C" __global__ void bulk_store_of_what_was_not_fenced(unsigned *a, unsigned *b) {
  __shared__ alignas(16) unsigned x[64];
  for (int i = 0; i < 2; i++) {
    x[threadIdx.x] = threadIdx.x + i; //!
#ifdef BUG
    if (i == 0)
#endif
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, b, x, sizeof x); //!
      cuda::ptx::cp_async_bulk_commit_group();
      cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
    }
    __syncthreads();
  }
}

// == objects_of_a_loop_deleted_once: leakcheck, grid=1 block=32
struct Shape { __device__ virtual unsigned area() = 0; __device__ virtual ~Shape() {} };
struct Square : Shape { unsigned s; __device__ Square(unsigned s) : s(s) {} __device__ unsigned area() override { return s * s; } };
struct Line : Shape { __device__ unsigned area() override { return 0; } };
extern "C" __global__ void objects_of_a_loop_deleted_once(unsigned *a, unsigned *b) {
  unsigned sum = 0;
  Shape *shape = nullptr;
#pragma unroll 1
  for (unsigned i = 0; i < 3; i++) {
    if ((threadIdx.x + i) % 2) shape = new Square(i + a[0]); //!
    else shape = new Line; //!
    sum += shape->area();
#ifndef BUG
    delete shape;
#endif
  }
#ifdef BUG
  delete shape;
#endif
  b[threadIdx.x] = sum;
}

// == doubles_behind_an_odd_number_of_floats: memcheck, grid=1 block=64 shared=1024
extern __shared__ char raw[];
extern "C" __global__ void doubles_behind_an_odd_number_of_floats(unsigned *a, unsigned *b) {
  float *f = (float *)raw;
#ifdef BUG
  unsigned n = 63 + a[0];
#else
  unsigned n = 64 + a[0];
#endif
  double *d = (double *)(raw + n * 4);
  if (threadIdx.x < n) f[threadIdx.x] = 1.0f;
  d[threadIdx.x] = threadIdx.x; //!
  __syncthreads();
  b[threadIdx.x] = d[63 - threadIdx.x] + f[threadIdx.x % n]; //!
}

// == pipeline_of_the_block_gives_a_stage_back_early: racecheck, grid=1 block=64
extern "C" __global__ void pipeline_of_the_block_gives_a_stage_back_early(unsigned *a, unsigned *b) {
  __shared__ unsigned x[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  unsigned sum = 0;
  for (int fill = 0, i = 0; i < 4; i++) {
    for (; fill < 4 && fill < i + 2; fill++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, x[fill % 2], a, sizeof(unsigned) * 64, pipe); //!
      pipe.producer_commit();
    }
    pipe.consumer_wait();
#ifdef BUG
    pipe.consumer_release();
    sum += x[i % 2][(threadIdx.x + 32) % 64]; //!
#else
    sum += x[i % 2][(threadIdx.x + 32) % 64];
    pipe.consumer_release();
#endif
  }
  b[threadIdx.x] = sum;
}
