"""Kernels for Triton, and their PTX: python triton_kernels.py FOLDER (needs triton; no GPU)."""

# ruff: noqa
import os
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vadd(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(x, y, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + r * n + i, mask=m, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    tl.store(o + r * n + i, (e / tl.sum(e, 0)).to(o.dtype.element_ty), mask=m)


@triton.jit
def layernorm(x, y, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros([B], tl.float32)
    q = tl.zeros([B], tl.float32)
    for c in range(0, n, B):
        i = c + tl.arange(0, B)
        v = tl.load(x + r * n + i, mask=i < n, other=0.0).to(tl.float32)
        acc += v
        q += v * v
    mean = tl.sum(acc, 0) / n
    var = tl.sum(q, 0) / n - mean * mean
    rs = 1 / tl.sqrt(var + 1e-5)
    for c in range(0, n, B):
        i = c + tl.arange(0, B)
        m = i < n
        w = tl.load(y + i, mask=m)
        v = tl.load(x + r * n + i, mask=m, other=0.0).to(tl.float32)
        tl.store(o + r * n + i, ((v - mean) * rs * w).to(o.dtype.element_ty), mask=m)


@triton.jit
def matmul(x, y, o, n, B: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * 64 + tl.arange(0, 64)
    rn = pn * 64 + tl.arange(0, 64)
    rk = tl.arange(0, 32)
    a = x + rm[:, None] * n + rk[None, :]
    b = y + rk[:, None] * n + rn[None, :]
    acc = tl.zeros([64, 64], tl.float32)
    for k in range(0, n, 32):
        acc += tl.dot(tl.load(a), tl.load(b))
        a += 32
        b += 32 * n
    tl.store(o + rm[:, None] * n + rn[None, :], acc.to(o.dtype.element_ty))


@triton.jit
def scan(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.store(o + i, tl.cumsum(v, 0), mask=i < n)


@triton.jit
def sort(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.sort(tl.load(x + i)))


@triton.jit
def hist(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0).to(tl.int32)
    h = tl.histogram(v, 64)
    tl.atomic_add(o + tl.arange(0, 64), h.to(o.dtype.element_ty))


@triton.jit
def atom(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(o + i % 64, v, mask=i < n)


@triton.jit
def transp(x, y, o, n, B: tl.constexpr):
    r = tl.program_id(0) * 32 + tl.arange(0, 32)
    c = tl.program_id(1) * 32 + tl.arange(0, 32)
    tl.store(o + c[:, None] * n + r[None, :], tl.trans(tl.load(x + r[:, None] * n + c[None, :])))


@triton.jit
def reduce2(x, y, o, n, B: tl.constexpr):
    r = tl.arange(0, 16)
    c = tl.arange(0, B)
    v = tl.load(x + r[:, None] * n + c[None, :])
    tl.store(o + r, tl.max(v, 1))
    tl.store(o + n + c, tl.sum(v, 0))


@triton.jit
def attn(x, y, o, n, B: tl.constexpr):
    pm = tl.program_id(0)
    rm = pm * 64 + tl.arange(0, 64)
    d = tl.arange(0, 32)
    q = tl.load(x + rm[:, None] * 32 + d[None, :])
    m = tl.full([64], -1e9, tl.float32)
    l = tl.zeros([64], tl.float32)
    acc = tl.zeros([64, 32], tl.float32)
    for k in range(0, n, 64):
        rk = k + tl.arange(0, 64)
        kk = tl.load(y + rk[None, :] * 32 + d[:, None])
        s = tl.dot(q, kk)
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        a = tl.exp(m - mn)
        l = l * a + tl.sum(p, 1)
        vv = tl.load(y + n * 32 + rk[:, None] * 32 + d[None, :])
        acc = acc * a[:, None] + tl.dot(p.to(vv.dtype), vv)
        m = mn
    tl.store(o + rm[:, None] * 32 + d[None, :], (acc / l[:, None]).to(o.dtype.element_ty))


@triton.jit
def rand(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    r = tl.rand(n, i)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, tl.where(r > 0.5, v, v * 0), mask=i < n)


@triton.jit
def gather(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    j = tl.load(y + i, mask=m, other=0).to(tl.int32)
    tl.store(o + i, tl.load(x + j, mask=m & (j >= 0)), mask=m)


KERNELS = [vadd, softmax, layernorm, matmul, scan, sort, hist, atom, transp, reduce2, attn, rand, gather]
TYPES, TARGETS, SHAPES = ("fp32", "fp16", "bf16", "i32"), (75, 80, 89, 90, 100, 120), ((1, 128), (4, 1024), (8, 512))


def main() -> None:
    """Each kernel for four types, six targets, and three pairs of warps and elements of a block."""
    made = 0
    for function in KERNELS:
        for type_ in TYPES:
            for target in TARGETS:
                for warps, block in SHAPES:
                    signature = {"x": "*" + type_, "y": "*" + type_, "o": "*" + type_, "n": "i32", "B": "constexpr"}
                    source = ASTSource(function, signature, {"B": block})
                    options = {"num_warps": warps, "num_stages": 3}
                    try:
                        compiled = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
                    except Exception:  # a type or a target that the kernel does not take
                        continue
                    name = f"{function.__name__}_{type_}_{target}_{warps}.ptx"
                    with open(os.path.join(sys.argv[1], name), "w") as file:
                        file.write(compiled.asm["ptx"])
                    made += 1
    print(made)


if __name__ == "__main__":
    main()
