// C = A * B^T of f16 matrices with CuTe: cp.async into swizzled shared memory, ldmatrix, mma. Tiles of 64 x 64 x 32.
#include <cute/tensor.hpp>
using namespace cute;

using Tile3 = Shape<_64, _64, _32>;
using Swizzled = decltype(tile_to_shape(composition(Swizzle<2, 3, 3>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{}),
                                        Shape<_64, _32>{}));

extern "C" __global__ void __launch_bounds__(128) product(half_t const* a, half_t const* b, float* c, int m, int n, int k)
{
    __shared__ alignas(128) half_t room_a[cosize_v<Swizzled>], room_b[cosize_v<Swizzled>];
    Tensor sA = make_tensor(make_smem_ptr(room_a), Swizzled{});
    Tensor sB = make_tensor(make_smem_ptr(room_b), Swizzled{});
    auto at = make_coord(blockIdx.x, blockIdx.y, _);
    Tensor A = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
    Tensor B = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(k, _1{}));
    Tensor C = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{}));
    Tensor gA = local_tile(A, Tile3{}, at, Step<_1, X, _1>{});
    Tensor gB = local_tile(B, Tile3{}, at, Step<X, _1, _1>{});
    Tensor gC = local_tile(C, Tile3{}, at, Step<_1, _1, X>{});

    auto copier = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
                                  Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
    auto mine = copier.get_slice(threadIdx.x);
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto part = mma.get_slice(threadIdx.x);
    Tensor rA = part.partition_fragment_A(gA(_, _, 0));
    Tensor rB = part.partition_fragment_B(gB(_, _, 0));
    Tensor rC = part.partition_fragment_C(gC);
    auto load_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
    auto load_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
    clear(rC);
    for (int step = 0; step < k / 32; ++step) {
        copy(copier, mine.partition_S(gA(_, _, step)), mine.partition_D(sA));
        copy(copier, mine.partition_S(gB(_, _, step)), mine.partition_D(sB));
        cp_async_fence();
        cp_async_wait<0>();
        __syncthreads();
        copy(load_a, load_a.get_slice(threadIdx.x).partition_S(sA), load_a.get_slice(threadIdx.x).retile_D(rA));
        copy(load_b, load_b.get_slice(threadIdx.x).partition_S(sB), load_b.get_slice(threadIdx.x).retile_D(rB));
        gemm(mma, rA, rB, rC);
        __syncthreads();
    }
    copy(rC, part.partition_C(gC));
}
