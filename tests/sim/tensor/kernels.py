"""Kernels around one instruction: bytes come to shared or tensor memory, the instruction runs, results go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import ptxtools

_SHARED_BYTES = 96 << 10


def _vector(registers: list[str]) -> str:
    return "{" + ", ".join(registers) + "}"


def loaded(text: str, target: str) -> ptxtools.Module:
    """The module of a text that lacks its header."""
    return ptxtools.loads(f".version 9.0\n.target {target}\n.address_size 64\n" + text)


def run(text: str, block: int, arrays: list[Any], *, target: str, grid: int = 1, **options: Any) -> None:
    """Launch the kernel `k` of a module on arrays that are changed in place."""
    module = loaded(text, target)
    device = ptxtools.Device(target=target, **options)
    device.launch(module["k"], grid, block, arrays)


_COPY = """
    ld.param.u64 %rd0, [data];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 4;
    mov.u32 %r2, smem;
    add.u32 %r2, %r2, %r1;
    cvt.u64.u32 %rd1, %r1;
    add.u64 %rd1, %rd0, %rd1;
    mov.u32 %r3, 0;
copy:
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1];
    st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};
    add.u32 %r2, %r2, 2048;
    add.u64 %rd1, %rd1, 2048;
    add.u32 %r3, %r3, 2048;
    setp.lt.u32 %p0, %r3, BYTES;
    @%p0 bra copy;
    fence.proxy.async;
    bar.sync 0;
"""


def wgmma(
    opcode: str, shared: np.ndarray, d: np.ndarray, tail: str, *, a: np.ndarray | None = None,
    descriptors: tuple[int, ...] = (), metadata: np.ndarray | None = None, selector: int = 0, scale_d: int = 1,
    times: int = 2, named: Mapping[int, int] | None = None, **options: Any,
) -> np.ndarray:  # fmt: skip
    """One wgmma.mma_async: d and a are registers x 128 threads; descriptors as they are written, a's first; named:
    other registers in some places of the vector of d.

    It runs more than once with the same d, because native code serves what has run once.
    Returns the registers of d afterwards.
    """
    count = len(d)
    out = np.ascontiguousarray(d.T).copy()
    ra = np.ascontiguousarray((np.zeros((4, 128), np.uint32) if a is None else a).T)
    meta = np.zeros(128, np.uint32) if metadata is None else metadata
    lines = [f"    ld.global.u32 %d{i}, [%rd5+{4 * i}];" for i in range(count)]
    stores = [f"    st.global.u32 [%rd5+{4 * i}], %d{i};" for i in range(count)]
    names = ["%ad", "%bd"][-len(descriptors) :]
    moves = [f"    mov.u64 {name}, {value};" for name, value in zip(names, descriptors, strict=True)]
    first = "%ad" if len(descriptors) == 2 else "{%a0, %a1, %a2, %a3}"
    sparse = f"%m, {selector}, " if metadata is not None else ""
    text = f"""
.visible .entry k(.param .u64 data, .param .u64 areg, .param .u64 dreg, .param .u64 meta)
.reqntid 128, 1, 1
{{
    .reg .b32 %r<20>; .reg .b32 %d<{count}>; .reg .b32 %a<4>; .reg .b32 %m; .reg .b64 %rd<9>; .reg .b64 %ad, %bd;
    .reg .pred %p<3>;
    .shared .align 1024 .b8 smem[{_SHARED_BYTES}];
{_COPY.replace("BYTES", str(len(shared)))}
    ld.param.u64 %rd5, [dreg];
    mad.wide.u32 %rd5, %r0, {4 * count}, %rd5;
    ld.param.u64 %rd6, [areg];
    mad.wide.u32 %rd6, %r0, 16, %rd6;
    ld.param.u64 %rd7, [meta];
    mad.wide.u32 %rd7, %r0, 4, %rd7;
    ld.global.v4.u32 {{%a0, %a1, %a2, %a3}}, [%rd6];
    ld.global.u32 %m, [%rd7];
{chr(10).join(moves)}
    setp.ne.u32 %p1, {scale_d}, 0;
    mov.u32 %r8, 0;
again:
{chr(10).join(lines)}
    wgmma.fence.sync.aligned;
    {opcode} {_vector([f"%d{(named or {}).get(i, i)}" for i in range(count)])}, {first}, %bd, {sparse}%p1{tail};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p2, %r8, {times};
    @%p2 bra again;
{chr(10).join(stores)}
    ret;
}}
"""
    run(text, 128, [shared, ra, out, meta], target="sm_90a", **options)
    return out.T


def tcgen05(
    lines: str, shared: np.ndarray, cells: np.ndarray, *, columns: int = 512, group: int = 1, target: str = "sm_100a",
    **options: Any,
) -> np.ndarray:  # fmt: skip
    """Instructions over tensor memory: `cells` (CTAs x 128 x columns, u32) are stored first and loaded afterwards.

    shared: bytes of each CTA (CTAs x bytes). One thread of the first CTA runs `lines`, which find %t, the address of
    tensor memory, and registers %q<16>, %w<16> (b64) and %z<4> (predicates).
    """
    out = np.ascontiguousarray(cells).copy()
    text = tcgen05_text(lines, shared, columns, group)
    run(text, 128, [np.ascontiguousarray(shared), out], target=target, grid=group, **options)
    return out


def tcgen05_module(lines: str, shared: np.ndarray, *, target: str) -> ptxtools.Module:
    """The module that `tcgen05` runs."""
    return loaded(tcgen05_text(lines, shared, 512, 1), target)


def tcgen05_text(lines: str, shared: np.ndarray, columns: int, ctas: int) -> str:
    group, step = ctas, 32
    names = [f"%d{i}" for i in range(step)]
    per_warp = _vector(names)
    into = "\n".join(
        [f"    ld.global.u32 %d{i}, [%rd5+{4 * i}];" for i in range(step)]
        + [f"    tcgen05.st.sync.aligned.32x32b.x{step}.b32 [%r10], {per_warp};"]
    )
    outof = "\n".join(
        [f"    tcgen05.ld.sync.aligned.32x32b.x{step}.b32 {per_warp}, [%r10];", "    tcgen05.wait::ld.sync.aligned;"]
        + [f"    st.global.u32 [%rd5+{4 * i}], %d{i};" for i in range(step)]
    )
    cluster = ".explicitcluster\n.reqnctapercluster 2, 1, 1" if ctas == 2 else ""
    meet = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;" if ctas == 2 else "bar.sync 0;"

    def loop(name: str, body: str) -> str:
        return f"""
    ld.param.u64 %rd5, [dreg];
    mad.wide.u32 %rd5, %r0, {4 * columns}, %rd5;
    mad.wide.u32 %rd5, %r12, {128 * 4 * columns}, %rd5;
    shl.b32 %r10, %r11, 21;
    add.u32 %r10, %r10, %t;
    mov.u32 %r3, 0;
{name}:
{body}
    add.u64 %rd5, %rd5, {4 * step};
    add.u32 %r10, %r10, {step};
    add.u32 %r3, %r3, {step};
    setp.lt.u32 %p0, %r3, {columns};
    @%p0 bra {name};
"""

    size = shared.shape[1]
    own = f"ld.param.u64 %rd0, [data];\n    mad.wide.u32 %rd0, %r12, {size}, %rd0;"
    copy = _COPY.replace("BYTES", str(size)).replace("ld.param.u64 %rd0, [data];", own)
    return f"""
.visible .entry k(.param .u64 data, .param .u64 dreg)
.reqntid 128, 1, 1
{cluster}
{{
    .reg .b32 %r<20>; .reg .b32 %d<{step}>; .reg .b64 %rd<9>; .reg .b32 %t; .reg .b32 %q<16>; .reg .b64 %w<16>;
    .reg .pred %p<3>; .reg .pred %z<4>;
    .shared .align 1024 .b8 smem[{_SHARED_BYTES}];
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 place;
    mov.u32 %r12, %ctaid.x;
{copy}
    shr.u32 %r11, %r0, 5;
    setp.ne.u32 %p1, %r11, 0;
    @%p1 bra allocated;
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [place], {columns};
allocated:
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra ready;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
ready:
    {meet}
    ld.shared.u32 %t, [place];
{loop("into", into)}
    tcgen05.wait::st.sync.aligned;
    {meet}
    or.b32 %r13, %r0, %r12;
    setp.ne.u32 %p1, %r13, 0;
    @%p1 bra wait;
{lines}
    tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [bar];
wait:
    setp.ne.u32 %p1, %r12, 0;
    @%p1 bra done;
again:
    mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;
    @!%p0 bra again;
done:
    {meet}
    tcgen05.fence::after_thread_sync;
{loop("outof", outof)}
    {meet}
    setp.ne.u32 %p1, %r11, 0;
    @%p1 bra end;
    tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %t, {columns};
    tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
end:
    ret;
}}
"""
