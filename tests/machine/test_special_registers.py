"""Special registers read at the widths that they once had (chapter 10)."""

import numpy as np

from .harness import both, output

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
"""


@both
def test_thread_and_grid_numbers_of_16_and_32_bits(engine):
    body = """
    mov.u16 %h1, %tid.x; mov.u16 %h2, %ntid.x; mov.u16 %h3, %gridid; mov.u32 %r2, %gridid;
    cvt.u32.u16 %r3, %h1; cvt.u32.u16 %r4, %h2; cvt.u32.u16 %r5, %h3;
    sub.u32 %r5, %r5, %r2; mad.lo.u32 %r3, %r4, 100, %r3; add.u32 %r3, %r3, %r5;
    st.global.u32 [%d1], %r3; ret;"""
    got = output(engine, HEAD + body + "}", 40, dtype=np.uint32, block=(40, 1, 1))
    assert list(got) == [4000 + t for t in range(40)]
