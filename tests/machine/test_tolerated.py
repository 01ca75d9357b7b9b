"""What ptxas compiles though the manual does not have it (PTX610) runs as ptxas has it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

from .harness import ENGINES

SUMS = """.version 9.3
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b64 %p<3>, %w<6>; .reg .b32 %t, %o, %x, %r<6>; .reg .f32 %f<4>; .reg .b16 %h<3>; .reg .f64 %d<2>;
    mov.u32 %t, %tid.x; shl.b32 %o, %t, 2; cvt.u64.u32 %p2, %o;
    ld.param.u64 %p0, [in]; ld.param.u64 %p1, [out]; add.u64 %p0, %p0, %p2; add.u64 %p1, %p1, %p2;
    ld.global.b32 %x, [%p0]; mov.f32 %f1, 0f40400000; mov.b16 %h1, 0x4200; mov.b32 %r1, 0x00070001;
    mul.f32 %f0, %f1, %x+8;                     st.global.f32 [%p1], %f0;
    mul.f16 %h0, %h1, %x+8; mov.b32 %r0, {%h0, 0}; st.global.b32 [%p1+128], %r0;
    min.s16x2 %r0, %r1, %x+8;                   st.global.b32 [%p1+256], %r0;
    vmad.u32.u32.u32 %r0, %t, %t, %x+8;         st.global.b32 [%p1+384], %r0;
    mov.b64 %w0, {%x, %x}; neg.f64 %d0, %w0+8; mov.b64 {%r2, %r3}, %d0; st.global.b32 [%p1+512], %r3;
    mov.b32 %r0, 0; st.global.b32 [%p1+640], %r0; st.global.b8 [%p1+640], %x+8;
    ret;
}
"""
SHORT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %p<3>; .reg .b16 %h; .reg .b8 %b; .reg .b32 %t, %a, %r<4>;
    .shared .align 4 .b32 s[8300]; // so that sixteen bits cannot be taken for a negative number
    mov.u32 %t, %tid.x; mov.u32 %a, s; mad.lo.u32 %a, %t, 4, %a; cvt.u8.u32 %b, %a; add.u32 %a, %a, 32800;
    cvt.u16.u32 %h, %a; st.shared.b32 [%a], %t; ld.shared.b32 %r0, [%h]; atom.shared.add.u32 %r1, [%h], 5;
    st.shared.b32 [%b], %t; ld.shared.b32 %r2, [%h];
    mad.lo.u32 %r0, %r0, 1000, %r1; mad.lo.u32 %r0, %r0, 1000, %r2;
    ld.param.u64 %p0, [out]; mul.wide.u32 %p1, %t, 4; add.u64 %p0, %p0, %p1; st.global.b32 [%p0], %r0;
    ret;
}
"""


def launch(text: str, engine: str, *arguments: np.ndarray) -> None:
    target = text.partition(".target ")[2].partition("\n")[0]
    with pytest.warns(ptxtools.PtxWarning, match="PTX610"):
        module = ptxtools.loads(text)
    ptxtools.Device(target, engine=engine).launch(module["k"], 1, 32, list(arguments))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_register_and_a_constant_are_added_in_the_register_s_bits(engine: str) -> None:
    given = (np.linspace(1, 2, 32, dtype=np.float32).view(np.uint32) & 0xFFFF_0000) | np.arange(0x3C00, 0x3C20)
    given = given.astype(np.uint32)
    out = np.zeros((6, 32), np.uint32)
    launch(SUMS, engine, given, out)
    total = given + np.uint32(8)
    assert (out[0].view(np.float32) == np.float32(3) * total.view(np.float32)).all()
    halves = total.copy().view(np.uint16).reshape(32, 2)
    assert (out[1] == (np.float16(3) * halves[:, 0].view(np.float16)).view(np.uint16)).all()
    least = np.minimum(np.array([1, 7], np.int16), halves.view(np.int16))
    assert (out[2] == np.ascontiguousarray(least).view(np.uint32).ravel()).all()
    assert (out[3] == np.arange(32, dtype=np.uint32) ** 2 + total).all()
    assert (out[4] == given ^ np.uint32(1 << 31)).all()
    assert (out[5] == total & 0xFF).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_addresses_of_8_and_16_bits_are_extended_with_zeros(engine: str) -> None:
    out = np.zeros(32, np.uint32)
    launch(SHORT, engine, out)
    lane = np.arange(32, dtype=np.uint32)
    assert (out == (lane * 1000 + lane) * 1000 + lane + 5).all()
