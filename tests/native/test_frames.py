"""Lanes of one warp inside different functions at the same depth: their frames share memory, never registers."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.program.program import FRAME_HEADER
from tests.program.harness import Memory, launch_of, lowered

#: Lanes below 16 wait inside `waits`, with narrow registers live, until lane 31 has been through `works`, which has
#: wide ones, a deeper call and constants of its own.
TEXT = """
.func (.param .b32 r) waits(.param .b32 n, .param .b64 flag) {
    .reg .u32 %a<12>; .reg .u64 %f; .reg .pred %q;
    ld.param.u32 %a1, [n];
    ld.param.u64 %f, [flag];
    add.u32 %a2, %a1, 100; mul.lo.u32 %a3, %a1, 3; xor.b32 %a4, %a1, 1717; shl.b32 %a5, %a1, 4;
    add.u32 %a6, %a1, 12345; not.b32 %a7, %a1; mul.lo.u32 %a8, %a1, %a1; add.u32 %a9, %a1, 77;
SPIN:
    ld.volatile.global.u32 %a10, [%f];
    setp.eq.u32 %q, %a10, 0;
    @%q bra SPIN;
    add.u32 %a2, %a2, %a3; add.u32 %a2, %a2, %a4; add.u32 %a2, %a2, %a5; add.u32 %a2, %a2, %a6;
    add.u32 %a2, %a2, %a7; add.u32 %a2, %a2, %a8; add.u32 %a2, %a2, %a9;
    st.param.b32 [r], %a2;
    ret;
}
.func (.param .b64 r) deeper(.param .b64 x) {
    .reg .u64 %b<4>;
    ld.param.u64 %b1, [x];
    mul.lo.u64 %b2, %b1, 0x123456789abcdef;
    add.u64 %b3, %b2, %b1;
    st.param.b64 [r], %b3;
    ret;
}
.func (.param .b64 r) works(.param .b64 x, .param .b32 n) {
    .reg .u64 %c<12>; .reg .u32 %n;
    ld.param.u64 %c1, [x];
    ld.param.u32 %n, [n];
    mul.lo.u64 %c2, %c1, 0xfedcba987654321; shl.b64 %c3, %c1, 17; not.b64 %c4, %c1; add.u64 %c5, %c1, 0x7777777777;
    mul.wide.u32 %c6, %n, 1000003;
    { .param .b64 p; .param .b64 q; st.param.b64 [p], %c2; call (q), deeper, (p); ld.param.b64 %c7, [q]; }
    xor.b64 %c8, %c7, %c3; xor.b64 %c8, %c8, %c4; xor.b64 %c8, %c8, %c5; xor.b64 %c8, %c8, %c6;
    st.param.b64 [r], %c8;
    ret;
}
.visible .entry k(.param .u64 out, .param .u64 flag) {
    .reg .u32 %t, %r1; .reg .u64 %out, %w, %flag, %d1, %d2; .reg .pred %p, %last;
    mov.u32 %t, %tid.x;
    ld.param.u64 %out, [out];
    ld.param.u64 %flag, [flag];
    mul.wide.u32 %w, %t, 8;
    add.u64 %out, %out, %w;
    setp.lt.u32 %p, %t, 16;
    @!%p bra WORK;
    { .param .b32 x; .param .b64 f; .param .b32 y; st.param.b32 [x], %t; st.param.b64 [f], %flag;
      call (y), waits, (x, f); ld.param.b32 %r1, [y]; }
    cvt.u64.u32 %d1, %r1;
    st.global.u64 [%out], %d1;
    ret;
WORK:
    { .param .b64 x; .param .b32 n; .param .b64 y; st.param.b64 [x], %w; st.param.b32 [n], %t;
      call (y), works, (x, n); ld.param.b64 %d2, [y]; }
    st.global.u64 [%out], %d2;
    setp.eq.u32 %last, %t, 31;
    @%last st.volatile.global.u32 [%flag], 1;
    ret;
}
"""


def expected() -> list[int]:
    low, high = (1 << 32) - 1, (1 << 64) - 1
    found = [
        (n + 100 + 3 * n + (n ^ 1717) + (n << 4) + n + 12345 + (~n & low) + n * n + n + 77) & low for n in range(16)
    ]
    for n in range(16, 32):
        x = 8 * n
        c2 = x * 0xFEDCBA987654321 & high
        c7 = (c2 * 0x123456789ABCDEF + c2) & high
        found.append(c7 ^ (x << 17 & high) ^ (~x & high) ^ (x + 0x7777777777) ^ n * 1000003)
    return found


@pytest.mark.parametrize("engine", [native, reference])
@pytest.mark.parametrize("optimise", [True, False])
def test_lanes_in_different_functions_keep_their_registers(engine, optimise: bool) -> None:
    memory = Memory()
    out, flag = memory.put(np.zeros(32, np.uint64)), memory.put(np.zeros(1, np.uint32))
    engine.run(launch_of(TEXT, memory, [out, flag], optimise=optimise))
    assert memory.get(out, np.uint64, 32).tolist() == expected()


@pytest.mark.parametrize("optimise", [True, False])
def test_called_functions_share_one_layout(optimise: bool) -> None:
    """A byte of a frame belongs to one storage class, whichever function is in it; all frames have one size."""
    program = lowered(TEXT, optimise=optimise)
    assert len({f.frame_bytes for f in program.functions[1:]}) == 1
    owner: dict[int, str] = {}
    sizes = {"pred": 4, "b16": 64, "b32": 128, "b64": 256, "b128": 512}
    firsts = [f.first for f in program.functions] + [len(program.blocks)]
    for number, function in enumerate(program.functions):
        refs = [
            r for b in program.blocks[firsts[number] : firsts[number + 1]] for op in b.ops for r in (*op.dst, *op.src)
        ]
        for ref in filter(None, refs):
            outgoing = ref.slot >= function.frame_bytes
            slot = ref.slot - function.frame_bytes if outgoing else ref.slot
            if slot >= FRAME_HEADER and (outgoing or number):
                for byte in range(slot, slot + sizes[ref.type]):
                    assert owner.setdefault(byte, ref.type) == ref.type
