// C = A * B^T with tcgen05 on CTA pairs: A[M,K] and B[N,K] row-major f16, f32 accumulation, C[M,N] f16.
//
// A pair makes tiles of 256 x 128 (each CTA holds 128 rows of A and of D, and 64 rows of B), K in steps of 64 through a
// ring of three stages. Warp 0 of each CTA copies with TMA and signals the leader's barrier; warp 1 of the leader issues
// tcgen05.mma.cta_group::2 and commits to the barriers of both CTAs; warp 2 allocates and frees tensor memory; warps 4
// to 7 load finished accumulators and store them with TMA. Clusters are persistent, and two accumulators let the
// epilogue of one tile overlap with the products of the next.
#include "../pipeline.cuh"

constexpr int BM = 256, BN = 128, BK = 64, STAGES = 3, ACCUMULATORS = 2;
constexpr int A_BYTES = BM / 2 * BK * 2, B_BYTES = BN / 2 * BK * 2, C_BYTES = BM / 2 * BN * 2;
constexpr int COLUMNS = ACCUMULATORS * BN;
// f32 accumulators, f16 factors, both K-major.
constexpr uint32_t INSTRUCTION = 1u << 4 | (BN / 8) << 17 | (BM / 16) << 24;

struct Barriers {
    uint64_t full[STAGES], empty[STAGES], made[ACCUMULATORS], taken[ACCUMULATORS];
    uint32_t tensor_memory;
};

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ uint32_t in_leader(uint32_t address) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(address));
    return remote;
}

__device__ __forceinline__ void load_tile(const CUtensorMap &map, uint32_t to, uint32_t bar, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(&map), "r"(bar), "r"(x), "r"(y) : "memory");
}

// K-major, 128-byte swizzle: groups of eight rows are 1024 bytes apart.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

__device__ __forceinline__ void product(uint32_t d, uint64_t a, uint64_t b, uint32_t accumulate) {
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n"
                 "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d), "l"(a), "l"(b), "r"(INSTRUCTION), "r"(accumulate)
                 : "memory");
}

__device__ __forceinline__ void commit(uint32_t bar) {
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(bar), "h"((uint16_t)3) : "memory");
}

// Tiles of this cluster, and where they lie.
struct Tiles {
    int columns, count, steps;
    __device__ Tiles(int m, int n, int k) : columns((n + BN - 1) / BN), count((m + BM - 1) / BM * columns), steps((k + BK - 1) / BK) {}
    __device__ int first() const { return blockIdx.x / 2; }
    __device__ int next(int tile) const { return tile + gridDim.x / 2; }
    __device__ int row(int tile) const { return tile / columns * BM; }
    __device__ int column(int tile) const { return tile % columns * BN; }
};

__device__ __forceinline__ void produce(const CUtensorMap &a, const CUtensorMap &b, uint32_t stages, Barriers &bars, const Tiles &tiles, int rank) {
    Ring<STAGES> ring;
    for (int tile = tiles.first(); tile < tiles.count; tile = tiles.next(tile))
        for (int step = 0; step < tiles.steps; ++step, ring.advance()) {
            uint32_t own = shared_address(&bars.full[ring.stage]), full = in_leader(own);
            uint32_t to = stages + ring.stage * (A_BYTES + B_BYTES);
            barrier_wait(shared_address(&bars.empty[ring.stage]), ring.parity ^ 1);
            if (rank == 0) barrier_expect(own, 2 * (A_BYTES + B_BYTES));
            load_tile(a, to, full, step * BK, tiles.row(tile) + rank * (BM / 2));
            load_tile(b, to + A_BYTES, full, step * BK, tiles.column(tile) + rank * (BN / 2));
        }
}

__device__ __forceinline__ void multiply(uint32_t stages, Barriers &bars, const Tiles &tiles, uint32_t memory) {
    Ring<STAGES> ring;
    Ring<ACCUMULATORS> sums;
    for (int tile = tiles.first(); tile < tiles.count; tile = tiles.next(tile), sums.advance()) {
        barrier_wait(shared_address(&bars.taken[sums.stage]), sums.parity ^ 1);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (int step = 0; step < tiles.steps; ++step, ring.advance()) {
            uint32_t from = stages + ring.stage * (A_BYTES + B_BYTES);
            barrier_wait(shared_address(&bars.full[ring.stage]), ring.parity);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
            for (int k = 0; k < BK / 16; ++k)
                product(memory + sums.stage * BN, descriptor(from + k * 32), descriptor(from + A_BYTES + k * 32), step > 0 || k > 0);
            commit(shared_address(&bars.empty[ring.stage]));
        }
        commit(shared_address(&bars.made[sums.stage]));
    }
}

#define R4(r, i) "=r"(r[i]), "=r"(r[i + 1]), "=r"(r[i + 2]), "=r"(r[i + 3])
#define R16(r, i) R4(r, i), R4(r, i + 4), R4(r, i + 8), R4(r, i + 12)

__device__ __forceinline__ void load_columns(uint32_t (&r)[32], uint32_t from) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
                 : R16(r, 0), R16(r, 16)
                 : "r"(from));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// A thread has one row; 32 columns at a time go into boxes of 64 columns with 128-byte swizzle.
__device__ __forceinline__ void finish(const CUtensorMap &c, uint32_t out, Barriers &bars, const Tiles &tiles, uint32_t memory, int rank) {
    Ring<ACCUMULATORS> sums;
    int row = threadIdx.x % 128, warp = row / 32;
    for (int tile = tiles.first(); tile < tiles.count; tile = tiles.next(tile), sums.advance()) {
        barrier_wait(shared_address(&bars.made[sums.stage]), sums.parity);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        for (int part = 0; part < BN / 32; ++part) {
            uint32_t r[32];
            load_columns(r, memory + (warp * 32 << 16) + sums.stage * BN + part * 32);
            for (int j = 0; j < 4; ++j) {
                int chunk = part % 2 * 4 + j;
                uint32_t at = out + part / 2 * (C_BYTES / 2) + row * 128 + (chunk ^ row % 8) * 16;
                const float *f = reinterpret_cast<const float *>(r) + 8 * j;
                asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(packed(f[0], f[1])), "r"(packed(f[2], f[3])),
                             "r"(packed(f[4], f[5])), "r"(packed(f[6], f[7]))
                             : "memory");
            }
        }
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_leader(shared_address(&bars.taken[sums.stage]))) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (row == 0) {
            for (int half = 0; half < 2; ++half)
                store_tile(c, out + half * (C_BYTES / 2), tiles.column(tile) + half * 64, tiles.row(tile) + rank * (BM / 2));
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    if (row == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void prepare(Barriers &bars) {
    for (int i = 0; i < STAGES; ++i) {
        barrier_init(shared_address(&bars.full[i]), 1);
        barrier_init(shared_address(&bars.empty[i]), 1);
    }
    for (int i = 0; i < ACCUMULATORS; ++i) {
        barrier_init(shared_address(&bars.made[i]), 1);
        barrier_init(shared_address(&bars.taken[i]), 2 * 128);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int m, int n, int k) {
    extern __shared__ __align__(1024) uint8_t dynamic[];
    __shared__ Barriers bars;
    uint32_t stages = shared_address(dynamic) + 1023 & ~1023u, out = stages + STAGES * (A_BYTES + B_BYTES);
    int warp = threadIdx.x / 32, rank = cluster_rank();
    Tiles tiles(m, n, k);
    if (threadIdx.x == 0) prepare(bars);
    if (warp == 2) {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&bars.tensor_memory)), "r"(COLUMNS) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    cluster_sync();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    uint32_t memory = *(volatile uint32_t *)&bars.tensor_memory;
    if (warp == 0) {
        if (elect_one()) produce(a, b, stages, bars, tiles, rank);
    } else if (warp == 1) {
        if (rank == 0 && elect_one()) multiply(stages, bars, tiles, memory);
    } else if (warp >= 4) {
        finish(c, out, bars, tiles, memory, rank);
    }
    __syncwarp();
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    cluster_sync();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    if (warp == 2) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(memory), "r"(COLUMNS));
}
