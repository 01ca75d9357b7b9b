"""Global memory of each CTA (11.4.10): where slices lie, and what they hold."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.sim.poison import poison

GRID = (3, 2, 2)
CTAS = 12
TEXT = """.version 9.4
.target sm_80
.address_size 64
.func (.reg .b64 where) slice() {{ mov.u64 where, %perctamemoryoffset; ret; }}
.visible .entry k(.param .u64 out) {directive} {{
    .reg .b32 %r<9>; .reg .b64 %d<9>;
    mov.u32 %r1, %ctaid.z; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.x;
    mad.lo.u32 %r1, %r1, 2, %r2; mad.lo.u32 %r1, %r1, 3, %r3;
    ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 32; add.u64 %d1, %d1, %d2;
    {body}
    ret;
}}"""
BODY = """
    mov.u64 %d3, %perctamemoryoffset; mov.u32 %r4, %perctamemorysize; cvt.u64.u32 %d4, %r4;
    ld.global.u64 %d5, [%d3]; add.u32 %r5, %r1, 100; st.global.u32 [%d3], %r5; add.u64 %d6, %d3, %d4;
    st.global.u32 [%d6+-4], %r5; call (%d7), slice, (); ld.global.u32 %r6, [%d7]; cvt.u64.u32 %d8, %r6;
    st.global.v2.u64 [%d1], {%d3, %d4}; st.global.v2.u64 [%d1+16], {%d5, %d8};"""


def launch(engine: str, directive: str, body: str = BODY) -> np.ndarray:
    out = np.zeros((CTAS, 4), np.uint64)
    device = ptxtools.Device("sm_80", engine=engine)
    device.launch(ptxtools.loads(TEXT.format(directive=directive, body=body))["k"], GRID, 1, [out])
    return out


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("least", "size"), [(1, 1024), (1024, 1024), (3000, 3072)])
def test_slices_follow_each_other(engine, least, size):
    out = launch(engine, f".minperctamemory {least}")
    first = int(out[0, 0])
    for number in range(CTAS):
        begin = first + number * size
        assert out[number].tolist() == [begin, size, int.from_bytes(poison(begin, 8), "little"), number + 100]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_last_slice_ends_where_it_says(engine):
    """What is written behind it is found."""
    beyond = """mov.u64 %d3, %perctamemoryoffset; add.u64 %d3, %d3, 1024; setp.ne.u32 %p1, %r1, 11;
    @%p1 bra done; st.global.u32 [%d3], %r1; done:"""
    with pytest.raises(ptxtools.Trap, match="out of bounds"):
        launch(engine, ".minperctamemory 1024", ".reg .pred %p<2>;" + beyond)
    launch(engine, ".minperctamemory 1024", ".reg .pred %p<2>;" + beyond.replace("1024", "1020"))


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_kernel_that_asks_for_none_has_none(engine):
    """Only a called function may read the registers then: they are zero."""
    out = launch(engine, "", "call (%d3), slice, (); st.global.u64 [%d1], %d3;")
    assert not out.any()


def test_memory_for_too_many_ctas():
    with pytest.raises(ptxtools.LaunchError, match="out of device memory"):
        launch("native", f".minperctamemory {2**31}")
