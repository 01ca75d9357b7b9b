"""Bits that nobody has set: what is computed of them is found, what moves or drops them is not."""

from __future__ import annotations

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse

_KERNEL = """.version 9.0
.target sm_90
.address_size 64
.entry k(.param .u64 a) {
  .reg .b64 %d<9>; .reg .b32 %r<9>, %never; .reg .pred %p; .local .align 8 .b8 v[16];
  ld.param.u64 %d0, [a]; mov.u32 %r1, %tid.x;
BODY
  ret;
}
"""
_LOAD = "st.local.u8 [v], %r1; ld.local.u64 %d1, [v];"
_PACK = "mov.b64 %d1, {%r1, %never};"


def found(body: str) -> list[str]:
    result = parse(_KERNEL.replace("BODY", body), "k.ptx")
    assert not result.diagnostics
    return [d.code for d in lint(result.module) if d.code in ("PTX520", "PTX523")]


@pytest.mark.parametrize(
    "use",
    [
        "add.u64 %d2, %d1, 1; st.global.u64 [%d0], %d2;",
        "and.b64 %d2, %d1, 0x100000000; setp.ne.u64 %p, %d2, 0; @%p st.global.u32 [%d0], 1;",
        "mov.b64 {%r2, %r3}, %d1; add.u32 %r3, %r3, 1; st.global.u32 [%d0], %r3;",
        "shr.u64 %d2, %d1, 36; add.u64 %d2, %d2, %d0; ld.global.u32 %r2, [%d2]; st.global.u32 [%d0], %r2;",
        "bfe.u64 %d2, %d1, 28, 8; st.global.u64 [%d0], %d2;",
    ],
)
def test_computed(use: str) -> None:
    assert found(_LOAD + use) == ["PTX523"]
    assert "PTX520" in found(_PACK + use)


@pytest.mark.parametrize(
    "use",
    [
        "st.global.u8 [%d0], %d1;",  # the byte that is set
        "add.u64 %d2, %d1, 1; st.global.u8 [%d0], %d2;",  # what is carried goes up
        "and.b64 %d2, %d1, 0xff; add.u64 %d2, %d2, 1; st.global.u64 [%d0], %d2;",
        "cvt.u8.u64 %r2, %d1; add.u32 %r2, %r2, 1; st.global.u32 [%d0], %r2;",
        "xor.b64 %d2, %d1, %d1; st.global.u64 [%d0], %d2;",
        "or.b64 %d2, %d1, 0xffffffffffffff00; setp.eq.u64 %p, %d2, 0; @%p st.global.u32 [%d0], 1;",
        "shr.u64 %d2, %d1, 32; add.u64 %d2, %d2, 1; st.local.u64 [v+8], %d2;",
        "L: add.u64 %d2, %d1, 1; st.global.u64 [%d0], %d2;",  # who comes there may have set it
    ],
)
def test_moved_or_dropped(use: str) -> None:
    assert found(_LOAD + use) == []


@pytest.mark.parametrize(
    "before",
    [
        "st.local.u64 [v], %d0;",
        "@%p st.local.u64 [v], %d0;",
        "mov.u64 %d3, v; st.local.u64 [%d3], %d0;",
        "L: setp.eq.u32 %p, %r1, 0; @%p bra L;",
    ],
)
def test_perhaps_set(before: str) -> None:
    assert "PTX523" not in found(before + _LOAD + "add.u64 %d2, %d1, 1; st.global.u64 [%d0], %d2;")


@pytest.mark.parametrize(
    ("selects", "expected"),
    [("lt.u32 %p, %r2, 21", 1), ("lt.u32 %p, %r2, 20", 0), ("lt.u32 %p, %r2, 8", 0), ("lt.u32 %p, %r1, 40", 0)],
)
def test_selected_in_lanes_that_do_not_load(selects: str, expected: int) -> None:
    text = f""".reg .pred %q; and.b32 %r2, %r1, 31; setp.lt.u32 %q, %r2, 20; @%q ld.global.u32 %r3, [%d0];
        setp.{selects}; selp.u32 %r4, %r3, 0, %p; st.global.u32 [%d0], %r4;"""
    result = parse(_KERNEL.replace("BODY", text), "k.ptx")
    assert not result.diagnostics
    assert [d.code for d in lint(result.module) if d.code == "PTX522"] == ["PTX522"] * expected


@pytest.mark.parametrize(("first", "expected"), [("0", True), ("1", False)])
def test_sum_of_what_the_first_round_has_not_written(first: str, expected: bool) -> None:
    text = f""".reg .pred %q; mov.u32 %r2, {first};
        LOOP: setp.eq.u32 %p, %r2, 0; @%p bra NEXT; mov.u32 %r3, %r2; NEXT: add.u32 %r4, %r3, 1;
        st.global.u32 [%d0], %r4; add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, 3; @%q bra LOOP;"""
    result = parse(_KERNEL.replace("BODY", text), "k.ptx")
    assert not result.diagnostics
    assert any(d.code == "PTX522" and "term of" in d.message for d in lint(result.module)) == expected
