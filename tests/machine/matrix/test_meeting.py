"""Lanes that come to a matrix instruction by different ways, guards, and host memory."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

from .harness import ENGINES, Memory, launch_of, run

#: d = c + 16 for f16 ones; lanes below 16 take a longer way to the product.
DIVERGED = """.version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b32 %a, %i, %lane; .reg .f32 %c, %d<4>; .reg .u64 %in, %out, %o; .reg .pred %p, %q;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %lane, %laneid; mul.wide.u32 %o, %lane, 4;
add.u64 %in, %in, %o; add.u64 %out, %out, %o; ld.global.f32 %c, [%in]; mov.b32 %a, 0;
mov.f32 %d0, 0f00000000; mov.f32 %d1, 0f00000000; mov.f32 %d2, 0f00000000; mov.f32 %d3, 0f00000000;
setp.lt.u32 %p, %lane, 16;
@%p bra SLOW;
mov.b32 %a, 0x3C003C00;
bra TOGETHER;
SLOW: mov.u32 %i, 0;
LOOP: add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 300; @%q bra LOOP;
mov.b32 %a, 0x3C003C00;
TOGETHER:
GUARD mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%d0, %d1, %d2, %d3}, {%a, %a, %a, %a}, {%a, %a}, {%c, %c, %c, %c};
st.global.f32 [%out], %d0; ret; }"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_diverged_lanes_meet(engine: str, seed: int | None) -> None:
    memory = Memory()
    c = np.arange(32, dtype=np.float32)
    out = memory.put(np.zeros(32, np.float32))
    launch = launch_of(DIVERGED.replace("GUARD", ""), memory, [memory.put(c), out], seed=seed)
    ENGINES[engine](launch)
    assert np.array_equal(memory.get(out, np.float32, 32), c + 16)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("guard", "wanted"), [("setp.eq.u32 %q, %lane, %lane; @%q ", 16.0),
                                               ("setp.ne.u32 %q, %lane, %lane; @%q ", 0.0)])  # fmt: skip
def test_guards(engine: str, guard: str, wanted: float) -> None:
    given = np.zeros((1, 32), np.float32).view(np.uint32)
    got = run(DIVERGED.replace("GUARD", guard), given, 1, engine).view(np.float32)
    assert np.array_equal(got, np.full((1, 32), wanted, np.float32))


HOST = """.version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.shared .align 16 .b8 memory[512];
.reg .b32 %s, %lane, %r<4>; .reg .u64 %in, %out, %o;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %lane, %laneid; mul.wide.u32 %o, %lane, 16;
add.u64 %in, %in, %o; add.u64 %out, %out, %o; mov.u32 %s, memory; mad.lo.u32 %s, %lane, 16, %s;
cp.async.cg.shared.global [%s], [%in], 16; cp.async.wait_all; bar.sync 0;
ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%s]; st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3}; ret; }"""


def test_cp_async_from_host_memory() -> None:
    whole = np.arange(132, dtype=np.uint32)
    skip = -whole.ctypes.data % 16 // 4
    given = whole[skip : skip + 128]
    room = np.zeros(132, np.uint32)
    out = room[-room.ctypes.data % 16 // 4 :][:128]
    ptxtools.ptx_run(HOST, [given.ctypes.data, out.ctypes.data], (32, 1, 1), (1, 1, 1))
    assert np.array_equal(out, given)
