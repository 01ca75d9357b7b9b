"""Vector registers as a whole: passed to functions and returned, packed, taken apart, copied (5.4.2, 7.1, 9.7.9.4)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FUNCTIONS = (
    HEADER
    + """
.func (.reg .v2 .u32 o) swap(.reg .v2 .u32 i, .reg .u32 add)
{
    add.u32 o.x, i.y, add; add.u32 o.y, i.x, add; ret;
}
.func (.reg .v4 .f32 o) scale(.reg .f32 s, .reg .v4 .f32 i)
{
    mul.f32 o.x, i.x, s; mul.f32 o.y, i.y, s; mul.f32 o.z, i.z, s; mul.f32 o.w, i.w, s; ret;
}
.func (.reg .v4 .u16 o) turn(.reg .v4 .u16 i)
{
    mov.v4.u16 o, {i.y, i.z, i.w, i.x}; ret;
}
.func (.reg .v2 .u32 o) fibonacci(.reg .u32 n)
{
    .reg .pred %p; .reg .u32 %m; .reg .v2 .u32 %v;
    mov.v2.u32 o, {0, 1};
    setp.eq.u32 %p, n, 0;
    @%p ret;
    sub.u32 %m, n, 1;
    call (%v), fibonacci, (%m);
    mov.u32 o.x, %v.y; add.u32 o.y, %v.x, %v.y;
    ret;
}
.visible .entry functions(.param .u64 out)
{
    .reg .u64 d, q; .reg .u32 t; .reg .v2 .u32 a, b; .reg .v4 .f32 f; .reg .v4 .u16 h;
    proto: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _, .reg .u32 _);
    ld.param.u64 d, [out];
    mov.u32 t, %tid.x; mad.wide.u32 d, t, 64, d;
    mov.u32 a.x, t; mov.u32 a.y, 2;
    call (b), swap, (a, 10);
    st.global.v2.u32 [d], b;
    mov.u64 q, swap;
    call (a), q, (b, t), proto;
    st.global.v2.u32 [d + 8], a;
    mov.v4.f32 f, {0f3f800000, 0f40000000, 0f40400000, 0f40800000};
    call (f), scale, (0f40000000, f);
    st.global.v4.f32 [d + 16], f;
    mov.b64 h, 0x0004000300020001;
    call (h), turn, (h);
    st.global.v4.u16 [d + 32], h;
    add.u32 t, t, 9;
    call (a), fibonacci, (t);
    st.global.v2.u32 [d + 40], a;
    ret;
}
.visible .entry packing(.param .u64 out)
{
    .reg .u64 d, q; .reg .u32 r, s; .reg .v2 .b16 x; .reg .v4 .b8 c; .reg .v4 .b16 w; .reg .v2 .f32 f; .reg .v2 .u32 u;
    ld.param.u64 d, [out];
    mov.b32 r, 0x12345678;
    mov.b32 x, r; mov.b16 x.x, 7; mov.b32 s, x;
    st.global.u32 [d], s;
    mov.b32 c, r; mov.b32 s, {c.w, c.z, c.y, c.x};
    st.global.u32 [d + 4], s;
    mov.b32 r, c;
    st.global.u32 [d + 8], r;
    mov.v2.f32 f, {0f3f800000, 0f40000000};
    mov.b64 q, f; mov.b64 w, q; mov.b64 q, w; mov.b64 u, q; mov.v2.u32 u, {u.y, u.x};
    st.global.v2.u32 [d + 16], u;
    .reg .pred %p;
    setp.eq.u32 %p, r, 0;
    @%p mov.b32 x, r;
    mov.b32 s, x;
    st.global.u32 [d + 24], s;
    ret;
}
"""
)
ENGINES = ["native", "reference"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("contained", [False, True])
def test_functions_take_and_return_them(engine: str, contained: bool) -> None:
    module = ptxtools.loads(ptxtools.assemble(FUNCTIONS) if contained else FUNCTIONS)
    out = np.zeros((40, 16), np.uint32)
    ptxtools.Device(engine=engine).launch(module["functions"], 1, 40, [out])
    series = [0, 1]
    while len(series) < 60:
        series.append(series[-1] + series[-2])
    for t, row in enumerate(out):
        assert row[:4].tolist() == [12, t + 10, t + 10 + t, 12 + t]
        assert row[4:8].view(np.float32).tolist() == [2, 4, 6, 8]
        assert row[8:10].view(np.uint16).tolist() == [2, 3, 4, 1]
        assert row[10:12].tolist() == [n % 2**32 for n in series[t + 9 : t + 11]]


@pytest.mark.parametrize("engine", ENGINES)
def test_mov_packs_them_and_takes_them_apart(engine: str) -> None:
    out = np.zeros(8, np.uint32)
    ptxtools.Device(engine=engine).launch(ptxtools.loads(FUNCTIONS)["packing"], 1, 1, [out])
    assert out[:3].tolist() == [0x12340007, 0x78563412, 0x12345678]
    assert out[4:6].view(np.float32).tolist() == [2, 1] and out[6] == 0x12340007


def findings(signature: str, body: str) -> list[str]:
    declared = ".reg .v2 .u32 v, w; .reg .v2 .b16 x; .reg .u32 r, s; .reg .u64 q;"
    text = f"{HEADER}.func {signature} {{ {declared} {body} ret; }}"
    return [d.code for d in ptxtools.lint(text) if d.severity.name == "ERROR"]


@pytest.mark.parametrize("body", ["mov.b64 v, w;", "mov.b32 x, x;", "mov.b64 {r, s}, v;", "mov.b64 v, {r, s};",
                                  "mov.b64 {r, s}, {s, r};"])  # fmt: skip
def test_a_vector_is_not_packed_into_a_vector(body: str) -> None:
    assert findings("f()", body) == ["PTX223"]


@pytest.mark.parametrize("body", ["mov.b64 q, v;", "mov.b64 v, q;", "mov.v2.u32 v, w;", "mov.v2.u32 {r, s}, v;"])
def test_what_ptxas_takes(body: str) -> None:
    assert findings("f()", body) == []


@pytest.mark.parametrize(
    ("type_", "accepted"),
    [
        (".u16", False),
        (".v2 .u16", True),
        (".v4 .u16", True),
        (".v2 .s16", True),
        (".v4 .u8", True),
        (".v2 .u8", True),
        (".s8", False),
        (".b16", True),
        (".pred", False),
        (".v2 .pred", False),
    ],
)
def test_narrow_values_travel_in_vectors(type_: str, accepted: bool) -> None:
    """As ptxas 13.0 has it for functions that are kept."""
    assert (findings(f"f(.reg {type_} a)", "") == []) == accepted
    assert (findings(f"(.reg {type_} a) f()", "") == []) == accepted
