"""What lanes have from each other: values, pointers, and registers that only one of them has written."""

from __future__ import annotations

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.entry k(.param .b64 a) .reqntid 32 {{
.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<9>; .shared .align 4 .b32 sh[2];
ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2;
{}
ret;
}}
"""


CODES = ("PTX522", "PTX533", "PTX545", "PTX598")


def found(body: str) -> list[str]:
    result = parse(KERNEL.format(body), "k.ptx")
    assert not result.diagnostics
    return [one.code for one in lint(result.module) if one.code in CODES]


#: One lane has a number for all, as when a warp adds to a counter at once; of 64 bits in two registers.
LEADER = "@!%p1 bra L; atom.global.add.u32 %r2, [%d1], 32; L: "
LEADER_64 = "@!%p1 bra L; atom.global.add.u64 %d3, [%d1], 32; L: mov.b64 {%r2, %r3}, %d3; "
STORE = "st.global.b32 [%d2+4096], %r4;"


@rows(("body", "codes"), [
    (LEADER + "shfl.sync.idx.b32 %r4, %r2, 0, 31, -1; " + STORE, []),
    (LEADER + "shfl.sync.idx.b32 %r4|%p2, %r2, 0, 31, -1; " + STORE, []),
    (LEADER + "shfl.sync.idx.b32 %r4, %r2, 1, 31, -1; " + STORE, ["PTX522"]),
    (LEADER + "shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1; " + STORE, ["PTX522"]),
    (LEADER_64 + "shfl.sync.idx.b32 %r4, %r2, 0, 31, -1; shfl.sync.idx.b32 %r5, %r3, 0, 31, -1; " + STORE, []),
    (LEADER + STORE.replace("%r4", "%r2"), ["PTX522"]),
])  # fmt: skip
def test_registers_that_one_lane_has_written(body: str, codes: list[str]) -> None:
    assert found(body) == codes


#: Each lane has the number before its own: it is one less.
BEFORE = "mov.u32 %r2, %r1; shfl.sync.up.b32 %r2, %r2, 1, 0, -1; sub.u32 %r3, %r1, %r2; shl.b32 %r3, %r3, 2; "


def test_a_shuffle_in_place_counts_once() -> None:
    assert found(BEFORE + "mov.u32 %r4, sh; add.u32 %r4, %r4, %r3; st.shared.b32 [%r4], %r1;") == []
    assert found(BEFORE + "mov.u32 %r4, sh; add.u32 %r4, %r4, %r3; st.shared.b32 [%r4+4], %r1;") == ["PTX545"]


GIVEN = """@!%p1 bra L;
{ .param .b64 n; .param .b64 p; st.param.b64 [n], 64; call (p), malloc, (n); ld.param.b64 %d3, [p]; }
L: mov.b64 {%r2, %r3}, %d3;
"""
SHUFFLED = """shfl.sync.idx.b32 %r4, %r2, {0}, 31, -1; shfl.sync.idx.b32 %r5, %r3, {0}, 31, -1;
mov.b64 %d4, {{%r4, %r5}};
"""
FREE = "{ .param .b64 p; st.param.b64 [p], %d4; call free, (p); }"


@rows(("body", "codes"), [
    (GIVEN + SHUFFLED.format(0) + "setp.lt.u32 %p3, %r1, 2; @!%p3 ret; " + FREE, ["PTX598"]),
    (GIVEN + SHUFFLED.format(0) + "setp.eq.u32 %p3, %r1, 7; @!%p3 ret; " + FREE, []),
    (GIVEN + SHUFFLED.format(0).replace("%r5, %r3", "%r5, %r2") + "setp.lt.u32 %p3, %r1, 2; @!%p3 ret; " + FREE, []),
    ("mov.b64 %d3, 0; " + GIVEN + SHUFFLED.format(0) + "setp.lt.u32 %p3, %r1, 2; @!%p3 ret; " + FREE, ["PTX598"]),
])  # fmt: skip
def test_pointers_in_two_registers(body: str, codes: list[str]) -> None:
    assert found(body) == codes


@rows(("body", "codes"), [
    ("shfl.sync.down.b32 %r4, %r1, 4, 31, 0xffffff; st.global.b32 [%d2], %r4;", ["PTX533"]),
    ("shfl.sync.down.b32 %r4, %r1, 4, 31, 0xffffff; setp.lt.u32 %p2, %r1, 9; @%p2 st.global.b32 [%d2], %r4;", []),
    ("shfl.sync.down.b32 %r4, %r1, 4, 31, 0xffffff; @%p1 bra L; st.global.b32 [%d2], %r4; L:", []),
    ("shfl.sync.down.b32 %r4, %r1, 4, 31, 0xffffff; add.u32 %r4, %r4, %r1; st.global.b32 [%d2], %r4;", []),
    ("shfl.sync.down.b32 %r4, %r1, 4, 31, -1; st.global.b32 [%d2], %r4;", []),
])  # fmt: skip
def test_lanes_that_store_what_they_get(body: str, codes: list[str]) -> None:
    assert found("setp.ge.u32 %p3, %r1, 24; @%p3 ret; " + body) == codes
