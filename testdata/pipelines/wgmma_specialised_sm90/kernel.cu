// C = A * B with wgmma, warp specialised: A[M,K] and B[K,N] row-major f16, f32 accumulation, C[M,N] f16.
//
// A tile is 128 x 128, K in steps of 64 through a ring of three stages. Warpgroup 0 produces: one elected thread waits
// for an empty stage and copies A and B with TMA. Warpgroups 1 and 2 consume 64 rows each with wgmma.m64n128k16; they
// keep one group of products in flight and release a stage when its products are done. A is K-major, B is MN-major
// (transposed, two atoms of 64 columns), both with 128-byte swizzle. The epilogue goes through stmatrix and TMA.
#include "../pipeline.cuh"

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 3;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2, C_BYTES = BM * BN * 2;

__device__ __forceinline__ void load_tile(const CUtensorMap &map, uint32_t to, uint32_t bar, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to), "l"(&map), "r"(bar), "r"(x), "r"(y) : "memory");
}

// Start address, distance of atoms along the leading dimension, of groups of eight rows, 128-byte swizzle.
__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | 1ull << 62;
}

#define F8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

__device__ __forceinline__ void product(float (&d)[64], uint64_t a, uint64_t b, int accumulate) {
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
                 " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
                 " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},"
                 " %64, %65, p, 1, 1, 0, 1;\n}"
                 : F8(d, 0), F8(d, 8), F8(d, 16), F8(d, 24), F8(d, 32), F8(d, 40), F8(d, 48), F8(d, 56)
                 : "l"(a), "l"(b), "r"(accumulate));
}

struct Barriers {
    uint64_t full[STAGES], empty[STAGES];
};

__device__ __forceinline__ void produce(const CUtensorMap &a, const CUtensorMap &b, uint32_t stages, Barriers &bars, int steps) {
    Ring<STAGES> ring;
    for (int step = 0; step < steps; ++step, ring.advance()) {
        uint32_t full = shared_address(&bars.full[ring.stage]);
        uint32_t to = stages + ring.stage * (A_BYTES + B_BYTES);
        barrier_wait(shared_address(&bars.empty[ring.stage]), ring.parity ^ 1);
        barrier_expect(full, A_BYTES + B_BYTES);
        load_tile(a, to, full, step * BK, blockIdx.x * BM);
        load_tile(b, to + A_BYTES, full, blockIdx.y * BN, step * BK);
        load_tile(b, to + A_BYTES + B_BYTES / 2, full, blockIdx.y * BN + 64, step * BK);
    }
}

__device__ __forceinline__ void consume(float (&d)[64], uint32_t stages, Barriers &bars, int steps, int part) {
    Ring<STAGES> ring;
    int previous = -1;
    for (int step = 0; step < steps; ++step, ring.advance()) {
        uint32_t from = stages + ring.stage * (A_BYTES + B_BYTES);
        barrier_wait(shared_address(&bars.full[ring.stage]), ring.parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < BK / 16; ++k)
            product(d, descriptor(from + part * A_BYTES / 2 + k * 32, 16, 1024),
                    descriptor(from + A_BYTES + k * 2048, B_BYTES / 2, 1024), step > 0 || k > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (previous >= 0 && threadIdx.x % 128 == 0) barrier_arrive(shared_address(&bars.empty[previous]));
        previous = ring.stage;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// A warp has 16 rows; stmatrix puts 16 columns at a time into two 64-column boxes with 128-byte swizzle.
__device__ __forceinline__ void put(const float (&d)[64], uint32_t to, int part) {
    int lane = threadIdx.x % 32, row = part * 64 + threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        int chunk = j * 2 + lane / 16;
        uint32_t at = to + chunk / 8 * (C_BYTES / 2) + row * 128 + ((chunk % 8 ^ row % 8) * 16);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(packed(d[8 * j], d[8 * j + 1])),
                     "r"(packed(d[8 * j + 2], d[8 * j + 3])), "r"(packed(d[8 * j + 4], d[8 * j + 5])), "r"(packed(d[8 * j + 6], d[8 * j + 7]))
                     : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int k) {
    extern __shared__ __align__(1024) uint8_t stages[];
    __shared__ Barriers bars;
    uint32_t base = shared_address(stages) + 1023 & ~1023u;
    uint32_t out = base + STAGES * (A_BYTES + B_BYTES);
    int warpgroup = threadIdx.x / 128, steps = (k + BK - 1) / BK;
    if (threadIdx.x == 0) {
        prefetch(a), prefetch(b), prefetch(c);
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(shared_address(&bars.full[i]), 1);
            barrier_init(shared_address(&bars.empty[i]), 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x / 32 == 0 && elect_one()) produce(a, b, base, bars, steps);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int part = warpgroup - 1;
    float d[64];
    consume(d, base, bars, steps, part);
    put(d, out, part);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup) : "memory");
    if (threadIdx.x % 128 == 0) {
        for (int half = 0; half < 2; ++half)
            store_tile(c, out + half * (C_BYTES / 2) + part * 64 * 128, blockIdx.y * BN + half * 64, blockIdx.x * BM + part * 64);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
