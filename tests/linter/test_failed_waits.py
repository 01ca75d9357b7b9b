"""PTX617: what a branch on the result of a wait for an mbarrier leads to."""

from __future__ import annotations

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

_HEAD = """.version 8.0
.target sm_90
.address_size 64
.func later { ret; }
.entry k(.param .b64 a) {
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p<8>; .shared .align 8 .b64 bar; .shared .b32 tile[32];
    ld.param.b64 %d1, [a]; mov.u32 %r2, %tid.x; setp.eq.u32 %p5, %r2, 0;
"""
_TRY = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;"
_TEST = "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;"
_USE = "ld.shared.b32 %r1, [tile]; st.global.b32 [%d1], %r1;"


@rows(("body", "found"), [
    (f"W: {_TRY} @!%p1 bra W; {_USE}", 0),
    (f"W: {_TRY} @%p1 bra W; {_USE}", 1),  # as long as it succeeds
    (f"W: {_TRY} @!%p1 bra D; bra W; D: {_USE}", 1),
    (f"W: {_TRY} @%p1 bra D; bra W; D: {_USE}", 0),
    (f"W: {_TRY} @%p1 bra D; nanosleep.u32 64; bra W; D: {_USE}", 0),
    (f"{_TRY} @%p1 bra D; nanosleep.u32 64; D: {_USE}", 1),
    (f"{_TEST} @%p1 bra D; D: {_USE}", 1),
    (f"{_TRY} @%p1 bra D; {_TRY} D: {_USE}", 1),  # nothing looks at the second one
    (f"{_TRY} @%p1 bra D; W: {_TRY} @!%p1 bra W; D: {_USE}", 0),
    (f"{_TRY} @%p1 bra D; call later; D: {_USE}", 0),  # which may wait
    (f"{_TRY} @%p1 bra D; bar.sync 0; D: {_USE}", 0),  # others may have waited
    (f"{_TRY} @%p1 bra D; trap; D: {_USE}", 0),
    (f"{_TRY} @%p1 bra D; @%p5 trap; D: {_USE}", 1),
    (f"{_TRY} selp.b32 %r3, 1, 0, %p1; @%p1 bra D; nanosleep.u32 64; D: st.global.b32 [%d1], %r3;", 0),
    (f"{_TRY} @%p1 bra D; mov.u32 %r1, 0; bra E; D: {_USE} E:", 0),  # does without
    (f"mov.u32 %r4, 0; W: {_TRY} @%p1 bra D; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra W; D: {_USE}", 1),
    (f"mov.u32 %r4, 0; W: {_TRY} @%p1 bra D; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra W; trap; D: {_USE}",
     0),
    (f"{_TEST} @%p1 bra D; nanosleep.u32 64; D: mov.u32 %r3, 1; W: {_TRY} @!%p1 bra W; {_USE}", 0),  # waits later
])  # fmt: skip
def test_failed_waits(body: str, found: int) -> None:
    parsed = parse(f"{_HEAD} {body} ret; }}", "k.ptx")
    assert not parsed.diagnostics
    codes = [one.code for one in lint(parsed.module)]
    assert not [code for code in codes if code < "PTX500"]
    assert codes.count("PTX617") == found
