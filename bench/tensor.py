"""Speed of matrix instructions and of a product of 512 x 512 x 512, on one core, each beside its bound.

An instruction's time is the processor time that a loop takes for each: the difference between a long and a short run.
A turn of wgmma has a group of one product and waits for it; one of tcgen05 has four products and a commit, and waits
for that. The large products run the kernels of `testdata/pipelines` and one with `mma.sync` that Triton made; their
results are compared with NumPy's. All code is compiled well before anything is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ptxtools
from ptxtools.native.code import jit, tiers

DATA = Path(__file__).resolve().parents[1] / "testdata"
ROUNDS = 3
SIZE = 512

MMA = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry loop(.param .u64 x, .param .u64 out, .param .u32 n)
.reqntid 32
{
    .reg .b32 %a<4>, %b<2>, %r<3>;  .reg .f32 %d<4>;  .reg .b64 %p<3>;  .reg .pred %q;
    ld.param.u64 %p0, [x];  ld.param.u64 %p1, [out];  ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %p2, %r1, 32;  add.u64 %p0, %p0, %p2;
    mul.wide.u32 %p2, %r1, 16;  add.u64 %p1, %p1, %p2;
    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%p0];
    ld.global.v2.b32 {%b0, %b1}, [%p0+16];
    mov.f32 %d0, 0f00000000;  mov.f32 %d1, %d0;  mov.f32 %d2, %d0;  mov.f32 %d3, %d0;
again:
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%d0, %d1, %d2, %d3};
    sub.u32 %r0, %r0, 1;  setp.ne.u32 %q, %r0, 0;  @%q bra again;
    st.global.v4.f32 [%p1], {%d0, %d1, %d2, %d3};
    ret;
}
"""

# Both factors of the next two: rows of 128 bytes with 128-byte swizzle, groups of eight rows 1024 bytes apart.
FILL = """
    mov.u32 %r1, %tid.x;  mov.u32 %r2, memory;  shl.b32 %r3, %r1, 4;
fill:
    cvt.u64.u32 %l2, %r3;  add.u64 %l2, %l0, %l2;  add.u32 %r4, %r2, %r3;
    ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%l2];
    st.shared.v4.b32 [%r4], {%r5, %r6, %r7, %r8};
    add.u32 %r3, %r3, 2048;  setp.lt.u32 %q, %r3, BYTES;  @%q bra fill;
    fence.proxy.async.shared::cta;
"""

WGMMA = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry loop(.param .u64 x, .param .u64 out, .param .u32 n)
.reqntid 128
{
    .shared .align 1024 .b8 memory[40960];
    .reg .b32 %r<9>;  .reg .f32 %d<128>;  .reg .b64 %l<6>;  .reg .pred %q;
    ld.param.u64 %l0, [x];  ld.param.u32 %r0, [n];
FILLING
    bar.sync 0;
    shr.u32 %r3, %r2, 4;  cvt.u64.u32 %l3, %r3;
    or.b64 %l3, %l3, 0x4000004000010000;
    add.u64 %l4, %l3, 512;
ZEROS
again:
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {SUMS}, %l3, %l4, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    sub.u32 %r0, %r0, 1;  setp.ne.u32 %q, %r0, 0;  @%q bra again;
    ld.param.u64 %l0, [out];  mul.wide.u32 %l1, %r1, 4;  add.u64 %l0, %l0, %l1;
    st.global.f32 [%l0], %d0;
    ret;
}
"""

TCGEN05 = """
.version 8.6
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry loop(.param .u64 x, .param .u64 out, .param .u32 n)
.reqntid 128
{
    .shared .align 8 .b64 done;  .shared .b32 tensor;
    .reg .b32 %r<12>;  .reg .b64 %l<6>;  .reg .pred %q, %first, %on;
    ld.param.u64 %l0, [x];  ld.param.u32 %r0, [n];
FILLING
    setp.eq.u32 %first, %r1, 0;
    @%first mbarrier.init.shared::cta.b64 [done], 1;
    setp.lt.u32 %on, %r1, 32;
    @%on tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tensor], 256;
    bar.sync 0;
    ld.shared.u32 %r9, [tensor];
    shr.u32 %r3, %r2, 4;  cvt.u64.u32 %l3, %r3;
    or.b64 %l3, %l3, 0x4000404000010000;
    add.u64 %l4, %l3, 1024;
    mov.u32 %r10, 0;
    mov.pred %on, 0;
    @!%first bra through;
again:
    tcgen05.mma.cta_group::1.kind::f16 [%r9], %l3, %l4, INSTRUCTION, %on;
    mov.pred %on, 1;
    tcgen05.mma.cta_group::1.kind::f16 [%r9], %l3, %l4, INSTRUCTION, %on;
    tcgen05.mma.cta_group::1.kind::f16 [%r9], %l3, %l4, INSTRUCTION, %on;
    tcgen05.mma.cta_group::1.kind::f16 [%r9], %l3, %l4, INSTRUCTION, %on;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [done], %r10;
    @!%q bra wait;
    xor.b32 %r10, %r10, 1;
    sub.u32 %r0, %r0, 1;  setp.ne.u32 %q, %r0, 0;  @%q bra again;
through:
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    shr.u32 %r3, %r1, 5;  shl.b32 %r3, %r3, 21;  add.u32 %r3, %r3, %r9;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r3];
    tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %l0, [out];  mul.wide.u32 %l1, %r1, 4;  add.u64 %l0, %l0, %l1;
    st.global.b32 [%l0], %r4;
    bar.sync 0;
    setp.lt.u32 %on, %r1, 32;
    @%on tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 256;
    ret;
}
"""

#: Name, device, module, CTA size, bytes of shared memory, products in a turn, turns of a short and a long run, bound
#: with AVX-512 and without.
INSTRUCTIONS = {
    "mma.sync m16n8k16 f16": ("sm_90a", MMA, 32, 0, 1, (200, 20_200), (1.5e-6, 1.5e-6)),
    "wgmma m64n256k16 f16": ("sm_90a", WGMMA, 128, 0, 1, (20, 1020), (8e-6, 16e-6)),
    "tcgen05.mma 128x256x16 f16": ("sm_100a", TCGEN05, 128, 49152, 4, (5, 155), (40e-6, 80e-6)),
}
BOUND = {"chip": 3.0, "ieee": 0.6}


def text_of(template: str) -> str:
    bytes_ = "49152" if template is TCGEN05 else "40960"
    zeros = "\n".join(f"    mov.f32 %d{i}, 0f00000000;" for i in range(128))
    text = template.replace("FILLING", FILL.replace("BYTES", bytes_)).replace("ZEROS", zeros)
    text = text.replace("INSTRUCTION", "%r11").replace("mov.u32 %r10, 0;", f"mov.u32 %r10, 0;  mov.u32 %r11, {IDESC};")
    return text.replace("SUMS", ", ".join(f"%d{i}" for i in range(128)))


#: f32 sums of f16 products, N = 256, M = 128 (9.7.16.4.2).
IDESC = 1 << 4 | 256 // 8 << 17 | 128 // 16 << 24


def prepared(first: Callable[[], object]) -> None:
    """Run something for the first time, and wait until what it needs is compiled well, which is else done beside
    the runs that follow."""
    tiers.AT_ONCE = True
    try:
        first()
    finally:
        tiers.AT_ONCE = False
    tiers.settle()


def instruction_time(name: str, numerics: str = "chip") -> float:
    """Seconds of one product on one core."""
    target, template, size, shared, products, turns, _ = INSTRUCTIONS[name]
    device = ptxtools.Device(target, threads=1, numerics=numerics)
    kernel = ptxtools.loads(text_of(template))["loop"]
    x = device.upload(np.random.default_rng(0).standard_normal(24576).astype(np.float16))
    out = device.upload(np.zeros(size * 4, np.float32))

    def run(n: int) -> float:
        start = time.process_time()
        device.launch(kernel, 1, size, [x, out, n], shared=shared)
        return time.process_time() - start

    prepared(lambda: run(1))
    short, long = (min(run(n) for _ in range(ROUNDS)) for n in turns)
    if not np.isfinite(out.download()).all() or not out.download().any():
        raise AssertionError(f"{name}: no sums")
    return (long - short) / (turns[1] - turns[0]) / products


# --- a product of 512 x 512 x 512 -------------------------------------------------------------------------------------


def arrays() -> tuple[Any, Any]:
    generator = np.random.default_rng(512)
    a, b = generator.standard_normal((2, SIZE, SIZE)).astype(np.float16)
    return a, b


def maps(device: ptxtools.Device, buffers: list[Any], boxes: list[list[int]]) -> list[Any]:
    common = {"type": "f16", "shape": [SIZE, SIZE], "strides": [2 * SIZE], "swizzle": "128B"}
    return [device.tensormap(b, box=box, **common) for b, box in zip(buffers, boxes, strict=True)]


def gemm(which: str, numerics: str) -> float:
    """Seconds of the fastest launch; the result is compared with NumPy's."""
    a, b = arrays()
    target = {"mma.sync": "sm_80", "wgmma": "sm_90a", "tcgen05": "sm_100a"}[which]
    device = ptxtools.Device(target, threads=1, numerics=numerics)
    buffers = [device.upload(x) for x in (a, b, np.zeros_like(a))]
    more: dict[str, Any]
    if which == "mma.sync":
        path, grid, size, more = "cases/tri_mm_f16_sm80", (4, 4, 1), 128, {"shared": 65536}
        args = [*buffers, *[SIZE] * 6, None, None]
    elif which == "wgmma":
        path, grid, size, more = "pipelines/wgmma_specialised_sm90", (4, 4, 1), 384, {"shared": 132096}
        args = [*maps(device, buffers, [[64, 128], [64, 64], [64, 64]]), SIZE]
    else:
        path, grid, size, more = (
            "pipelines/tcgen05_pair_sm100",
            (4, 1, 1),
            256,
            {"shared": 107520, "cluster": (2, 1, 1)},
        )
        args = [*maps(device, buffers, [[64, 128], [64, 64], [64, 128]]), SIZE, SIZE, SIZE]
    (kernel,) = ptxtools.load(str(DATA / path / "kernel.ptx")).kernels

    def run() -> float:
        start = time.process_time()
        device.launch(kernel, grid, size, args, **more)
        return time.process_time() - start

    prepared(run)
    best = min(run() for _ in range(ROUNDS))
    expected = a.astype(np.float64) @ (b.T if which == "tcgen05" else b).astype(np.float64)
    off = np.abs(buffers[2].download().astype(np.float64) - expected)
    bound = (SIZE + 1) * 2.0**-23 * np.abs(a.astype(np.float64)) @ np.abs(b).astype(np.float64)
    if (off > 2.0**-11 * np.abs(expected) + bound.max()).any():
        raise AssertionError(f"{which}: the product is wrong by {off.max()}")
    return best


def main() -> None:
    print("Matrix instructions, one core: microseconds for each")
    narrow = "avx512f" not in jit.host_features()
    for name, row in INSTRUCTIONS.items():
        chip, ieee = (1e6 * instruction_time(name, numerics) for numerics in ("chip", "ieee"))
        print(f"  {name:28} chip {chip:8.2f}  (bound: {1e6 * row[-1][narrow]:g})   ieee {ieee:8.2f}")
    print(f"Products of {SIZE} x {SIZE} x {SIZE} in f16, one core: seconds")
    for which in ("mma.sync", "wgmma", "tcgen05"):
        chip, ieee = gemm(which, "chip"), gemm(which, "ieee")
        print(
            f"  {which:28} chip {chip:8.3f}  (bound: {BOUND['chip']:g})   ieee {ieee:8.3f}  (bound: {BOUND['ieee']:g})"
        )


if __name__ == "__main__":
    main()
