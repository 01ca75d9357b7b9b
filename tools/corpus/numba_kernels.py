"""Kernels for numba-cuda, and their PTX: python numba_kernels.py FOLDER (needs numba-cuda and NVVM of a CUDA toolkit)."""

# ruff: noqa
import math
import os
import sys

import numba
from numba import cuda, types

KERNELS = {}


def kernel(function):
    KERNELS[function.__name__] = function
    return function


@kernel
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@kernel
def saxpy_stride(a, x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = a * x[i] + y[i]


@kernel
def block_sum(a, x, y):
    s = cuda.shared.array(256, numba.float32)
    i = cuda.threadIdx.x
    s[i] = x[cuda.grid(1)]
    cuda.syncthreads()
    n = 128
    while n > 0:
        if i < n:
            s[i] += s[i + n]
        cuda.syncthreads()
        n //= 2
    if i == 0:
        y[cuda.blockIdx.x] = s[0]


@kernel
def warp_sum(a, x, y):
    v = x[cuda.grid(1)]
    for o in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, o)
    if cuda.laneid == 0:
        y[cuda.blockIdx.x] = v


@kernel
def scan(a, x, y):
    s = cuda.shared.array(512, numba.float64)
    i = cuda.threadIdx.x
    n = cuda.blockDim.x
    s[i] = x[i]
    cuda.syncthreads()
    o = 1
    while o < n:
        v = s[i]
        if i >= o:
            v += s[i - o]
        cuda.syncthreads()
        s[i] = v
        cuda.syncthreads()
        o *= 2
    y[i] = s[i]


@kernel
def hist(a, x, y):
    s = cuda.shared.array(64, numba.int32)
    i = cuda.threadIdx.x
    if i < 64:
        s[i] = 0
    cuda.syncthreads()
    for j in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(s, int(x[j]) % 64, 1)
    cuda.syncthreads()
    if i < 64:
        cuda.atomic.add(y, i, s[i])


@kernel
def atomics(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(y, 0, x[i])
        cuda.atomic.add(y, 1, a)


@kernel
def transpose(a, x, y):
    s = cuda.shared.array((32, 33), numba.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    n = int(math.sqrt(x.size))
    c = cuda.blockIdx.x * 32 + tx
    r = cuda.blockIdx.y * 32 + ty
    for j in range(0, 32, 8):
        if c < n and r + j < n:
            s[ty + j, tx] = x[(r + j) * n + c]
    cuda.syncthreads()
    for j in range(0, 32, 8):
        y[(cuda.blockIdx.x * 32 + ty + j) * n + cuda.blockIdx.y * 32 + tx] = s[tx, ty + j]


@kernel
def matmul(a, x, y):
    A = cuda.shared.array((16, 16), numba.float32)
    B = cuda.shared.array((16, 16), numba.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    n = int(a)
    acc = numba.float32(0)
    r = cuda.blockIdx.y * 16 + ty
    c = cuda.blockIdx.x * 16 + tx
    for m in range(n // 16):
        A[ty, tx] = x[r * n + m * 16 + tx]
        B[ty, tx] = x[(m * 16 + ty) * n + c]
        cuda.syncthreads()
        for q in range(16):
            acc += A[ty, q] * B[q, tx]
        cuda.syncthreads()
    y[r * n + c] = acc


@kernel
def stencil(a, x, y):
    s = cuda.shared.array(258, numba.float32)
    i = cuda.threadIdx.x
    g = cuda.grid(1)
    if g < x.size:
        s[i + 1] = x[g]
    if i == 0 and g > 0:
        s[0] = x[g - 1]
    if i == 255 and g + 1 < x.size:
        s[257] = x[g + 1]
    cuda.syncthreads()
    if g < x.size:
        y[g] = (s[i] + s[i + 1] * a + s[i + 2]) / 3


@kernel
def collatz(a, x, y):
    i = cuda.grid(1)
    v = int(x[i])
    n = 0
    while v > 1:
        v = v // 2 if v % 2 == 0 else 3 * v + 1
        n += 1
    y[i] = n


@kernel
def local_sort(a, x, y):
    l = cuda.local.array(16, numba.float32)
    g = cuda.grid(1) * 16
    for j in range(16):
        l[j] = x[g + j]
    for j in range(1, 16):
        v = l[j]
        q = j - 1
        while q >= 0 and l[q] > v:
            l[q + 1] = l[q]
            q -= 1
        l[q + 1] = v
    for j in range(16):
        y[g + j] = l[j]


@kernel
def bitonic(a, x, y):
    s = cuda.shared.array(256, numba.float32)
    i = cuda.threadIdx.x
    s[i] = x[i]
    cuda.syncthreads()
    n = 2
    while n <= 256:
        j = n // 2
        while j > 0:
            p = i ^ j
            if p > i:
                u = s[i]
                v = s[p]
                if ((i & n) == 0) == (u > v):
                    s[i] = v
                    s[p] = u
            cuda.syncthreads()
            j //= 2
        n *= 2
    y[i] = s[i]


@kernel
def vote(a, x, y):
    i = cuda.grid(1)
    p = x[i] > a
    b = cuda.ballot_sync(0xFFFFFFFF, p)
    c = cuda.any_sync(0xFFFFFFFF, p)
    if cuda.laneid == 0:
        y[i // 32] = cuda.popc(b) + (1 if c else 0)


@kernel
def mandel(a, x, y):
    i = cuda.grid(1)
    cr = x[i]
    ci = a
    zr = 0.0
    zi = 0.0
    n = 0
    while zr * zr + zi * zi < 4 and n < 100:
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        n += 1
    y[i] = n


@kernel
def mathy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.sin(x[i]) + math.exp(x[i]) * math.sqrt(abs(x[i]))


@kernel
def lock(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i % int(a + 1)] = x[i] / a


@kernel
def count_if(a, x, y):
    i = cuda.grid(1)
    c = cuda.syncthreads_count(x[i] > a)
    if cuda.threadIdx.x == 0:
        y[cuda.blockIdx.x] = c


@kernel
def tri(a, x, y):
    i, j = cuda.grid(2)
    n = int(a)
    if i < n and j < n:
        y[i * n + j] = x[j * n + i] if i > j else x[i * n + j]


@kernel
def poly(a, x, y):
    i = cuda.grid(1)
    v = x[i]
    r = a
    for q in range(24):
        r = r * v + q
    y[i] = r


@kernel
def fence(a, x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    cuda.threadfence()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(y, 0, a)


def main() -> None:
    """Each kernel for five types and six targets; code for sm_89 is not optimised, arrays for sm_75 have any stride."""
    made = 0
    for name, function in KERNELS.items():
        for type_ in (types.float32, types.float64, types.int32, types.int64, types.uint8):
            for target in ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)):
                array = types.Array(type_, 1, "A" if target == (7, 5) else "C")
                try:
                    ptx, _ = cuda.compile_ptx(function, (type_, array, array), cc=target, opt=target != (8, 9))
                except Exception:  # a type that the kernel does not take
                    continue
                with open(os.path.join(sys.argv[1], f"{name}_{type_}_{target[0]}{target[1]}.ptx"), "w") as file:
                    file.write(ptx)
                made += 1
    print(made)


if __name__ == "__main__":
    main()
